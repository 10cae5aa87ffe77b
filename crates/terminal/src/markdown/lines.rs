//! The lines of Markdown: which block a line begins, and where a block ends.

/// The indentation that makes a line code.
pub(super) const CODE_INDENT: usize = 4;

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The line without its line end.
    pub(super) text: &'a str,
    /// The number of bytes, with the line end.
    pub(super) length: usize,
    /// True if nothing can be appended to the line.
    pub(super) is_complete: bool,
}

/// The kind of block that a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Code,
    Fence(Fence),
    Heading,
    Rule,
    Quote,
    /// An item of a list, and the column of its content.
    Item(usize),
}

/// The opening line of a block of code: its sign and the number of signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    sign: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let (sign, length, rest) = signs(line)?;
        (sign != '`' || !rest.contains('`')).then_some(Self { sign, length })
    }

    pub(super) fn is_closed_by(self, line: &str) -> bool {
        signs(line).is_some_and(|(sign, length, rest)| {
            sign == self.sign && length >= self.length && rest.trim().is_empty()
        })
    }

    /// Returns the info string: the text after the signs of the opening line.
    pub(super) fn info(self, line: &str) -> &str {
        line.trim_start().trim_start_matches(self.sign).trim()
    }
}

/// Splits a line that begins like a fence into the sign, the number of signs, and the rest; `None` for any other line.
fn signs(line: &str) -> Option<(char, usize, &str)> {
    let begin = line.trim_start_matches(' ');
    let sign = begin.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = begin.trim_start_matches(sign);
    let length = begin.len() - rest.len();
    (length >= 3 && line.len() - begin.len() <= 3).then_some((sign, length, rest))
}

impl<'a> Line<'a> {
    /// Returns the first line; `None` if there is no text.
    pub(super) fn first(text: &'a str, is_whole: bool) -> Option<Self> {
        let line = text.split_inclusive('\n').next()?;
        let own = line.strip_suffix('\n').unwrap_or(line);
        let is_complete = is_whole || own.len() < line.len();
        let own = own.strip_suffix('\r').unwrap_or(own);
        Some(Self { text: own, length: line.len(), is_complete })
    }

    pub(super) fn is_blank(self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the number of columns before the text.
    pub(super) fn indent(self) -> usize {
        let mut columns = 0;
        for character in self.text.chars() {
            match character {
                ' ' => columns += 1,
                '\t' => columns += CODE_INDENT - columns % CODE_INDENT,
                _ => break,
            }
        }
        columns
    }

    /// Returns the number of bytes before the text.
    pub(super) fn leading(self) -> usize {
        self.text.len() - self.text.trim_start_matches([' ', '\t']).len()
    }

    /// Returns true if the line is text of a paragraph, whatever is appended to it. It may still be indented code.
    pub(super) fn is_surely_text(self) -> bool {
        let first = self.text.chars().find(|c| !matches!(c, ' ' | '\t'));
        first.is_some_and(|c| !c.is_ascii_digit() && !c.is_whitespace() && !"#>-+*_=~`|".contains(c))
    }

    pub(super) fn kind(self) -> Kind {
        let text = self.text.trim_start_matches([' ', '\t']);
        if self.indent() >= CODE_INDENT {
            Kind::Code
        } else if let Some(fence) = Fence::opened_by(self.text) {
            Kind::Fence(fence)
        } else if is_heading(text) {
            Kind::Heading
        } else if is_rule(text) {
            Kind::Rule
        } else if text.starts_with('>') {
            Kind::Quote
        } else {
            self.item().map_or(Kind::Text, |item| Kind::Item(item.content))
        }
    }

    /// Returns true if the line ends a paragraph before it.
    pub(super) fn interrupts(self) -> bool {
        match self.kind() {
            Kind::Text | Kind::Code => false,
            Kind::Item(_) => self.item().is_some_and(|item| item.may_interrupt),
            Kind::Fence(_) | Kind::Heading | Kind::Rule | Kind::Quote => true,
        }
    }

    /// Returns true if the line would make a heading of the paragraph above it.
    pub(super) fn is_underline(self) -> bool {
        let text = self.text.trim();
        ['=', '-'].into_iter().any(|sign| !text.is_empty() && text.trim_start_matches(sign).is_empty())
    }

    /// Returns true if the line is the one between the head and the rows of a table.
    pub(super) fn is_below_table_head(self) -> bool {
        self.text.contains('-') && self.text.contains('|') && self.may_be_below_table_head()
    }

    /// Returns true if the line may become the one between the head and the rows of a table.
    pub(super) fn may_be_below_table_head(self) -> bool {
        self.indent() < CODE_INDENT
            && self.text.chars().all(|c| matches!(c, '|' | ':' | '-' | ' ' | '\t' | '\r'))
    }

    fn item(self) -> Option<Item> {
        let text = self.text.trim_start_matches([' ', '\t']);
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = match digits {
            0 => text.strip_prefix(['-', '+', '*'])?,
            1..=9 => text.get(digits..)?.strip_prefix(['.', ')'])?,
            _ => return None,
        };
        let marker = text.len() - rest.len();
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let is_empty = spaces == rest.len();
        if spaces == 0 && !is_empty {
            return None;
        }
        let is_first =
            digits == 0 || text.get(..digits).and_then(|number| number.parse().ok()) == Some(1_u32);
        let spaces = if is_empty || spaces > CODE_INDENT { 1 } else { spaces };
        Some(Item { content: self.indent() + marker + spaces, may_interrupt: !is_empty && is_first })
    }
}

/// The beginning of an item of a list.
struct Item {
    content: usize,
    may_interrupt: bool,
}

fn is_heading(text: &str) -> bool {
    let rest = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - rest.len())) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_rule(text: &str) -> bool {
    ['-', '*', '_'].into_iter().any(|sign| {
        let signs = text.chars().filter(|c| *c == sign).count();
        signs >= 3 && text.chars().all(|c| c == sign || matches!(c, ' ' | '\t'))
    })
}

/// Returns the length of the block quote at the beginning of the text; `None` if its end is not known yet.
pub(super) fn quote_end(text: &str, is_whole: bool, most: usize) -> Option<usize> {
    let continues = |line: Line<'_>, _: bool| match line.kind() {
        Kind::Quote => true,
        Kind::Text | Kind::Code => !line.is_blank(),
        _ => false,
    };
    end(text, is_whole, most, continues)
}

/// Returns the length of the list item at the beginning of the text; `content` is the column of its content.
pub(super) fn item_end(text: &str, content: usize, is_whole: bool, most: usize) -> Option<usize> {
    let continues = |line: Line<'_>, is_after_blank: bool| {
        line.is_blank()
            || line.indent() >= content
            || !is_after_blank && matches!(line.kind(), Kind::Text | Kind::Code)
    };
    end(text, is_whole, most, continues)
}

/// Returns the length of the table at the beginning of the text.
pub(super) fn table_end(text: &str, is_whole: bool, most: usize) -> Option<usize> {
    end(text, is_whole, most, |line, _| !line.is_blank() && matches!(line.kind(), Kind::Text | Kind::Code))
}

/// Returns the length of the block at the beginning of the text, up to its last line that is not blank; `None` if the
/// end is not known yet. `continues` returns true if a line continues the block; it gets the line, and true if the
/// line before it is blank.
fn end(text: &str, is_whole: bool, most: usize, continues: impl Fn(Line<'_>, bool) -> bool) -> Option<usize> {
    let (mut at, mut end) = (0, 0);
    loop {
        let Some(line) = Line::first(text.get(at..)?, is_whole) else { return is_whole.then_some(end) };
        if !line.is_complete {
            return None;
        }
        if at > 0 && (at > most || !continues(line, end < at)) {
            return Some(end);
        }
        at += line.length;
        end = if line.is_blank() { end } else { at };
    }
}
