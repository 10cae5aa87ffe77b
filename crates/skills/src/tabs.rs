//! Tabs in YAML. The reference validator allows them only in quotes, in comments and in the lines of a block;
//! our parser allows them in more places.

use granit_parser::Span;

/// A part of a text that may have tabs, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: usize,
    end: usize,
    /// For a text after `|` or `>`, the spaces before each of its lines.
    indent: usize,
}

impl Place {
    pub(crate) fn of(span: &Span, is_block: bool) -> Self {
        let indent = if is_block { span.start.col() } else { 0 };
        Self { start: span.start.index(), end: span.end.index(), indent }
    }
}

/// Refuses a tab outside of the places.
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

/// Returns true if the line of this character has at least `indent` spaces before it.
fn is_behind(characters: &[char], at: usize, indent: usize) -> bool {
    let before = &characters[..at];
    let line = before.iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1);
    before[line..].iter().take_while(|c| **c == ' ').count() >= indent
}
