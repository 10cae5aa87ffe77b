//! Frontmatter as a tree of texts. No value is a number, a date or a boolean: the specification knows texts only,
//! and `version: 1.10` must stay `1.10`.

use std::collections::BTreeSet;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use crate::tabs::{self, Place};

/// The maximum depth of nested lists and mappings.
const DEEPEST: usize = 32;

/// A node with its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    column: usize,
    is_plain: bool,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// The subset of YAML that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// All of YAML except aliases. If a key occurs twice, the later value is used.
    Lenient,
    /// The subset of the reference validator: no flow style, tags, anchors, or equal keys.
    Strict,
}

/// A problem and its line.
pub(crate) type Failed = (usize, String);

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns true for `<<` and `=` without quotes. The strict dialect takes them for YAML's merge key and default
    /// value, not for texts.
    pub(crate) fn is_symbol(&self) -> bool {
        self.is_plain && matches!(self.text(), Some("<<" | "="))
    }

    fn is_merge(&self) -> bool {
        self.is_plain && self.text() == Some("<<")
    }

    fn is_mergeable(&self) -> bool {
        match &self.value {
            Value::Text(_) => false,
            Value::List(items) => items.iter().all(|item| matches!(item.value, Value::Map(_))),
            Value::Map(_) => true,
        }
    }

    /// Returns the key and the value of the mapping's last entry with this key; `None` if there is no such entry, or
    /// if the node is not a mapping.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().rev().find(|(name, _)| name.text() == Some(key)).map(|(name, value)| (name, value))
    }
}

/// Parses a text with at most one YAML document. Without a document, returns a node with an empty text.
pub(crate) fn parse(text: &str, dialect: Dialect) -> Result<Node, Failed> {
    let mut reader = Reader { events: Parser::new_from_str(text), dialect, may_have_tabs: Vec::new() };
    let mut root = None;
    loop {
        match reader.next()? {
            (Event::DocumentStart(..), span) if root.is_some() => {
                return Err((span.start.line(), "there is more than one YAML document".to_owned()));
            }
            (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => break,
            (event, span) => root = Some(reader.node(event, span, 0)?),
        }
    }
    if dialect == Dialect::Strict {
        check_document(text)?;
        tabs::check(text, &reader.may_have_tabs)?;
    }
    let empty = Node { line: 1, column: 0, is_plain: true, value: Value::Text(String::new()) };
    Ok(root.unwrap_or(empty))
}

struct Reader<'t> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    dialect: Dialect,
    /// The ranges of comments, of texts in quotes and of block texts, in characters.
    may_have_tabs: Vec<Place>,
}

impl<'t> Reader<'t> {
    /// Returns the next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'t>, Span), Failed> {
        loop {
            match self.events.next() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Ok((Event::Comment(..), span))) => self.may_have_tabs.push(Place::of(&span, false)),
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => return Err((error.marker().line(), error.info())),
            }
        }
    }

    /// Reads the node that begins with this event.
    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Failed> {
        let line = span.start.line();
        if depth > DEEPEST {
            return Err((line, format!("more than {DEEPEST} collections are inside of each other")));
        }
        self.check(&event, line)?;
        let mut is_plain = false;
        let value = match event {
            // A value that is not there is no `~`.
            Event::Scalar(_, ScalarStyle::Plain, ..) if span.start.index() == span.end.index() => {
                Value::Text(String::new())
            }
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                is_plain = true;
                Value::Text(text.into_owned())
            }
            Event::Scalar(text, style, ..) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                self.may_have_tabs.push(Place::of(&span, is_block));
                Value::Text(text.into_owned())
            }
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            _ => return Err((line, "an alias is not allowed here; repeat the value".to_owned())),
        };
        Ok(Node { line, column: span.start.col(), is_plain, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Failed> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(nodes)),
                (event, span) => nodes.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Failed> {
        let mut entries = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            entries.push((key, self.node(event, span, depth + 1)?));
        }
        if self.dialect == Dialect::Strict {
            check_entries(&entries)?;
            entries.retain(|(key, _)| !key.is_merge());
        }
        Ok(Value::Map(entries))
    }

    /// Returns an error for syntax that the dialect does not allow.
    fn check(&self, event: &Event<'_>, line: usize) -> Result<(), Failed> {
        let (is_flow, anchor, has_tag) = match event {
            Event::Scalar(_, _, anchor, tag) => (false, *anchor, tag.is_some()),
            Event::SequenceStart(style, anchor, tag) | Event::MappingStart(style, anchor, tag) => {
                (*style == StructureStyle::Flow, *anchor, tag.is_some())
            }
            _ => return Ok(()),
        };
        let what = match (is_flow, anchor != 0, has_tag) {
            _ if self.dialect == Dialect::Lenient => return Ok(()),
            (true, ..) => "a list or mapping in brackets is not allowed; put the text in quotes",
            (_, true, _) => "an anchor (`&`) is not allowed; put the text in quotes",
            (_, _, true) => "a tag (`!`) is not allowed; put the text in quotes",
            _ => return Ok(()),
        };
        Err((line, what.to_owned()))
    }
}

/// Returns an error if a document ends (`...`) before it begins.
fn check_document(text: &str) -> Result<(), Failed> {
    let is_content =
        |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    match text.lines().enumerate().find(is_content) {
        Some((at, line)) if line == "..." || line.starts_with("... ") => {
            Err((at + 1, "the YAML document ends before it begins".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns an error for equal keys, for a key that is not a text, for a merge (`<<`) of a text, and for values that
/// are mappings with different indents.
fn check_entries(entries: &[(Node, Node)]) -> Result<(), Failed> {
    let mut keys = BTreeSet::new();
    for (key, value) in entries {
        let Some(name) = key.text() else { return Err((key.line, "a key must be a text".to_owned())) };
        if key.is_merge() && !value.is_mergeable() {
            return Err((key.line, "`<<` merges mappings; put it in quotes".to_owned()));
        }
        if !keys.insert(name) {
            return Err((key.line, format!("the key `{name}` is there twice; remove one")));
        }
    }
    let mut maps = entries.iter().map(|(_, value)| value).filter(|node| matches!(node.value, Value::Map(_)));
    let Some(first) = maps.next() else { return Ok(()) };
    match maps.find(|node| node.column != first.column) {
        Some(other) => Err((other.line, "the mappings have different indents; use the same".to_owned())),
        None => Ok(()),
    }
}
