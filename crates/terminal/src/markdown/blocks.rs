//! The rows of one whole block: a heading, a quote, an item of a list, a table.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::{
    code::{CodeState, Language},
    row::{Row, TextSpan, width},
    theme::{Look, Page},
    wrap::{self, break_spans},
};

use super::{code_row, inline::Inline, table::Table, verbatim};

/// The maximum width of a horizontal rule, in columns.
const RULE_COLUMNS: usize = 40;

/// Returns the rows of a block, at least one.
pub(super) fn rows(source: &str, page: &Page) -> Vec<Row> {
    let source = source.replace("\r\n", "\n").replace('\r', " ");
    let mut blocks = Blocks {
        source: &source,
        page,
        rows: Vec::new(),
        containers: Vec::new(),
        lists: Vec::new(),
        inline: Inline::new(page),
        code: None,
        table: None,
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut events = Parser::new_ext(&source, options).into_offset_iter();
    for (event, range) in events.by_ref() {
        blocks.apply(event, &range);
    }
    blocks.flush();
    // A definition has no event of its own, but a person must see it.
    let mut definitions: Vec<(usize, String)> = events
        .reference_definitions()
        .iter()
        .map(|(label, definition)| (definition.span.start, format!("[{label}]: {}", definition.dest)))
        .collect();
    definitions.sort_unstable();
    for (_, text) in definitions {
        blocks.push(&[TextSpan::new(text, page.theme.style(Look::Address))]);
    }
    match blocks.rows.is_empty() {
        true => wrap::rows(source.trim_end(), page.theme.style(Look::Plain), page.width),
        false => blocks.rows,
    }
}

struct Blocks<'a> {
    source: &'a str,
    page: &'a Page,
    rows: Vec<Row>,
    containers: Vec<Container>,
    /// The number of the next item of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    inline: Inline,
    code: Option<CodeBlock>,
    table: Option<Table>,
}

/// A quote or a list item around other blocks, with the signs that stand before its rows.
struct Container {
    /// The sign before the first row; `None` once that row is made.
    first: Option<String>,
    rest: String,
}

struct CodeBlock {
    /// The info string after the signs of the opening line; `None` for indented code.
    info: Option<String>,
    text: String,
}

impl Blocks<'_> {
    fn apply(&mut self, event: Event<'_>, range: &Range<usize>) {
        if let (Event::Text(text), Some(code)) = (&event, &mut self.code) {
            return code.text.push_str(text);
        }
        match event {
            Event::Start(tag) => self.begin(tag, range.start),
            Event::End(tag) => self.end(tag),
            Event::Rule => self.rule(range.start),
            event => self.inline.apply(event),
        }
    }

    fn begin(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(at),
            Tag::Heading { .. } => {
                self.begin_block(at);
                self.inline.set_heading(true);
            }
            Tag::BlockQuote(_) => {
                self.begin_block(at);
                self.containers.push(Container { first: None, rest: self.bar() });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(at);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => Some(info.into_string()),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some(CodeBlock { info, text: String::new() });
            }
            Tag::List(number) => {
                self.flush();
                self.lists.push(number);
            }
            Tag::Item => {
                self.begin_block(at);
                let marker = self.marker();
                self.containers.push(Container { rest: " ".repeat(width(&marker)), first: Some(marker) });
            }
            Tag::Table(alignments) => {
                self.begin_block(at);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => {}
            tag => self.inline.apply(Event::Start(tag)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.set_heading(false);
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.push_marker();
                self.containers.pop();
            }
            TagEnd::Table => {
                let lines = self.table.take().map(|table| table.lines(self.columns(), self.page));
                lines.into_iter().flatten().for_each(|line| self.push(&line));
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell = self.inline.take_lines().concat();
                if let Some(table) = &mut self.table {
                    table.add_cell(cell);
                }
            }
            tag => self.inline.apply(Event::End(tag)),
        }
    }

    /// Ends the text before a block, and adds an empty row if the source has an empty line there.
    fn begin_block(&mut self, at: usize) {
        self.flush();
        let before = self.source.get(..at).and_then(|before| before.rsplit_once('\n'));
        let Some((before, _)) = before.filter(|_| !self.rows.is_empty()) else { return };
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_blank = |text: &str| text.chars().all(|c| c.is_whitespace() || matches!(c, '>' | '│'));
        let is_there = self.rows.last().is_some_and(|row| is_blank(&row.text()));
        if is_blank(line) && !is_there {
            let shown = self.containers.iter().skip(self.first_shown());
            let bars: String = shown.map(|container| container.rest.as_str()).collect();
            self.rows.push(Row::of(bars.trim_end(), Look::Dim, self.page));
        }
    }

    fn flush(&mut self) {
        for line in self.inline.take_lines() {
            self.push(&line);
        }
    }

    /// Breaks a line into rows, and adds the rows with the signs of the containers before them.
    fn push(&mut self, line: &[TextSpan]) {
        let style = self.page.theme.style(Look::Dim);
        for mut row in break_spans(line, self.columns()) {
            let hidden = self.first_shown();
            for (number, container) in self.containers.iter_mut().enumerate().rev() {
                let before = container.first.take().unwrap_or_else(|| container.rest.clone());
                if number >= hidden {
                    row = row.after(before, style);
                }
            }
            self.rows.push(row);
        }
    }

    /// Adds a row for the sign of an item that has no text.
    fn push_marker(&mut self) {
        if self.containers.iter().any(|container| container.first.is_some()) {
            self.push(&[]);
        }
    }

    fn columns(&self) -> usize {
        let shown = self.containers.iter().skip(self.first_shown());
        let used: usize = shown.map(|container| width(&container.rest)).sum();
        self.page.width.saturating_sub(used).max(1)
    }

    /// Returns the index of the outermost container whose signs are shown. The signs take at most half of the width,
    /// so those of outer containers may be left out.
    fn first_shown(&self) -> usize {
        let mut room = self.page.width / 2;
        let fits = |container: &&Container| {
            let wide = width(&container.rest);
            let fits = wide <= room;
            room = room.saturating_sub(wide);
            fits
        };
        self.containers.len() - self.containers.iter().rev().take_while(fits).count()
    }

    fn rule(&mut self, at: usize) {
        self.begin_block(at);
        let sign = if self.page.theme.is_ascii() { "-" } else { "─" };
        let line = sign.repeat(self.columns().min(RULE_COLUMNS));
        self.push(&[TextSpan::new(line, self.page.theme.style(Look::Dim))]);
    }

    /// Adds the rows of code, without signs before them, so that a person can copy the code as it is.
    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        self.push_marker();
        let fence = |text: String| verbatim(vec![TextSpan::new(text, self.page.theme.style(Look::Dim))]);
        let language = code.info.as_deref().and_then(Language::of);
        let mut state = CodeState::default();
        self.rows.extend(code.info.as_ref().map(|info| fence(format!("{FENCE}{info}"))));
        for line in code.text.lines() {
            self.rows.push(code_row(line, language, &mut state, self.page));
        }
        self.rows.extend(code.info.as_ref().map(|_| fence(FENCE.to_owned())));
    }

    /// Returns the sign of the next item of the innermost list.
    fn marker(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            _ if self.page.theme.is_ascii() => "- ".to_owned(),
            _ => "• ".to_owned(),
        }
    }

    fn bar(&self) -> String {
        if self.page.theme.is_ascii() { "| ".to_owned() } else { "│ ".to_owned() }
    }
}

const FENCE: &str = "```";
