//! Text with emphasis, code and links.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{
    row::TextSpan,
    theme::{Look, Page, Style, Theme},
};

/// Returns the place of the first character that may be a sign of Markdown within a line, or a border of a table.
pub(super) fn first_sign(text: &str) -> Option<usize> {
    text.find(['*', '_', '`', '[', '<', '&', '\\', '|'])
}

/// Lines of text with their styles.
#[derive(Debug)]
pub(super) struct Inline {
    theme: Theme,
    lines: Vec<Vec<TextSpan>>,
    bold: usize,
    italic: usize,
    links: Vec<Link>,
    /// True if the text has a Markdown sign that a later sign may close.
    pub(super) is_open: bool,
}

#[derive(Debug)]
struct Link {
    address: String,
    text: String,
}

/// The text that is put before a piece of a paragraph while it is parsed, so that the piece begins no block.
const BEFORE: &str = "a ";

impl Inline {
    pub(super) fn new(page: &Page) -> Self {
        Self {
            theme: page.theme,
            lines: vec![Vec::new()],
            bold: 0,
            italic: 0,
            links: Vec::new(),
            is_open: false,
        }
    }

    /// Parses a piece of a paragraph.
    pub(super) fn of_paragraph(source: &str, page: &Page) -> Self {
        let source = format!("{BEFORE}{}", source.replace('\r', " "));
        let mut inline = Self::new(page);
        let mut is_first = true;
        for event in Parser::new_ext(&source, Options::empty()) {
            match event {
                Event::Text(text) if std::mem::take(&mut is_first) => {
                    let own = text.strip_prefix(BEFORE).or_else(|| text.strip_prefix(BEFORE.trim_end()));
                    inline.text(own.unwrap_or(&text));
                }
                event => inline.apply(event),
            }
        }
        inline
    }

    /// Adds the text of an event. The beginning of a block begins a line.
    pub(super) fn apply(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.push(&text, self.theme.style(Look::Code)),
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, self.style()),
            Event::SoftBreak | Event::HardBreak => self.lines.push(Vec::new()),
            Event::TaskListMarker(is_done) => self.push(self.task_sign(is_done), self.style()),
            Event::Start(tag) => self.begin(tag),
            Event::End(tag) => self.end(tag),
            _ => {}
        }
    }

    /// Removes and returns the lines; an empty list if there is no text.
    pub(super) fn take_lines(&mut self) -> Vec<Vec<TextSpan>> {
        let mut lines = std::mem::replace(&mut self.lines, vec![Vec::new()]);
        // HTML ends with a line end.
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Turns bold letters on or off, for a heading.
    pub(super) fn set_heading(&mut self, is_heading: bool) {
        self.bold = usize::from(is_heading);
    }

    fn begin(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(Link { address: dest_url.into_string(), text: String::new() });
            }
            _ if self.lines.last().is_some_and(|line| !line.is_empty()) => self.lines.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Writes the address behind the text of a link, unless the text is the address.
    fn end_link(&mut self) {
        let Some(Link { address, text }) = self.links.pop() else { return };
        let style = self.theme.style(Look::Address);
        if text.is_empty() {
            self.push(&address, style);
        } else if !address.is_empty() && address != text {
            self.push(&format!(" ({address})"), style);
        }
    }

    fn text(&mut self, text: &str) {
        self.is_open |= may_open(text);
        self.push(text, self.style());
    }

    fn push(&mut self, text: &str, style: Style) {
        self.links.iter_mut().for_each(|link| link.text.push_str(text));
        for (number, part) in text.split('\n').enumerate() {
            if number > 0 {
                self.lines.push(Vec::new());
            }
            if let Some(line) = self.lines.last_mut().filter(|_| !part.is_empty()) {
                line.push(TextSpan::new(part, style));
            }
        }
    }

    fn style(&self) -> Style {
        let style = self.theme.style(Look::Plain);
        let style = if self.bold > 0 { style.bold() } else { style };
        if self.italic > 0 { style.italic() } else { style }
    }

    fn task_sign(&self, is_done: bool) -> &'static str {
        match (self.theme.is_ascii(), is_done) {
            (false, false) => "☐ ",
            (false, true) => "☑ ",
            (true, false) => "[ ] ",
            (true, true) => "[x] ",
        }
    }
}

/// Returns true if a text has a Markdown sign that may get an effect when more text follows. Signs that already have
/// an effect are not in the text.
fn may_open(text: &str) -> bool {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let is_open = match character {
            '*' | '`' | '[' => true,
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '<' => after.is_alphabetic() || matches!(after, '/' | '!' | '?'),
            _ => false,
        };
        if is_open {
            return true;
        }
        before = character;
    }
    false
}
