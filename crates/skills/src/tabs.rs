//! Tabs in YAML. The reference validator allows them only in quotes, in comments and in the lines of a block;
//! our parser allows them in more places.

use granit_parser::Span;

/// A range of a text in which tabs are allowed, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: usize,
    end: usize,
    /// The minimum number of spaces at the beginning of each line of a text after `|` or `>`; 0 for other ranges.
    indent: usize,
}

impl Place {
    pub(crate) fn of(span: &Span, is_block: bool) -> Self {
        let indent = if is_block { span.start.col() } else { 0 };
        Self { start: span.start.index(), end: span.end.index(), indent }
    }
}

/// Returns an error for the first tab outside of the places.
pub(crate) fn check(text: &str, places: &[Place]) -> Result<(), (usize, String)> {
    let characters: Vec<char> = text.chars().collect();
    let is_allowed = |at: usize| {
        let mut around = places.iter().filter(|place| (place.start..place.end).contains(&at));
        around.any(|place| is_behind(&characters, at, place.indent))
    };
    let tabs = characters.iter().enumerate().filter(|(_, c)| **c == '\t').map(|(at, _)| at);
    match tabs.into_iter().find(|at| !is_allowed(*at)) {
        None => Ok(()),
        Some(at) => {
            let line = characters[..at].iter().filter(|c| **c == '\n').count() + 1;
            Err((line, "a tab is not allowed here; use spaces".to_owned()))
        }
    }
}

/// Returns true if the line with this character begins with at least `indent` spaces.
fn is_behind(characters: &[char], at: usize, indent: usize) -> bool {
    let before = &characters[..at];
    let line = before.iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1);
    before[line..].iter().take_while(|c| **c == ' ').count() >= indent
}
