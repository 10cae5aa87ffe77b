//! Compares what a command printed with what a page shows. Ids, durations and times may differ; on a page, `[..]` stands
//! for any part of a line and `...` for any lines.

use std::collections::BTreeMap;

/// The line of a page that stands for any lines.
pub(super) const ANY_LINES: &str = "...";

/// Ids of a page, as `run_` and 32 digits, and the ids that stand for them in this execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(BTreeMap<String, String>);

impl Ids {
    /// Puts the real ids in place of the page's.
    pub(crate) fn to_real(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (page, real)| text.replace(page, real))
    }

    /// Puts the page's ids in place of the real ones.
    pub(crate) fn to_page(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (page, real)| text.replace(real, page))
    }

    /// Pairs the ids of two texts in the order in which they first appear; a known id keeps its partner.
    pub(crate) fn pair(&mut self, page: &str, real: &str) {
        for (page, real) in ids(page).into_iter().zip(ids(real)) {
            self.0.entry(page.to_owned()).or_insert_with(|| real.to_owned());
        }
    }

    /// Returns the ids of the text that have no partner yet.
    pub(crate) fn unknown<'a>(&self, text: &'a str) -> Vec<&'a str> {
        ids(text).into_iter().filter(|id| !self.0.contains_key(*id)).collect()
    }
}

/// Returns whether the page's lines match the printed ones, and learns their ids if so.
pub(crate) fn matches(page: &[String], printed: &[String], known: &mut Ids) -> bool {
    let Some((first, rest)) = page.split_first() else { return printed.is_empty() };
    if first.trim() == ANY_LINES {
        return (0..=printed.len()).any(|skipped| attempt(rest, &printed[skipped..], known));
    }
    let Some((line, left)) = printed.split_first() else { return false };
    let mut ids = known.clone();
    if ids.unknown(first).is_empty() || !first.contains("[..]") {
        ids.pair(first, line);
    }
    if !glob(&mask(&ids.to_real(first)), &mask(line)) || !matches(rest, left, &mut ids) {
        return false;
    }
    *known = ids;
    true
}

fn attempt(page: &[String], printed: &[String], known: &mut Ids) -> bool {
    let mut ids = known.clone();
    let fits = matches(page, printed, &mut ids);
    if fits {
        *known = ids;
    }
    fits
}

/// Returns whether the text fits the pattern, in which `[..]` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once("[..]") else { return pattern == text };
    let Some(text) = text.strip_prefix(before) else { return false };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().any(|at| glob(rest, &text[at..]))
}

/// Returns the distinct ids of a text: a word, an underscore and 32 hexadecimal digits.
fn ids(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for word in text.split(|c| !is_part(c)) {
        let Some((prefix, digits)) = word.rsplit_once('_') else { continue };
        let is_id = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id && !prefix.is_empty() && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Puts marks in place of durations and times, and one space in place of several, since columns follow their contents.
fn mask(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line.trim_end();
    while let Some(next) = rest.chars().next() {
        let is_start = !masked.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if let Some((length, mark)) = time(rest).filter(|_| is_start && next.is_ascii_digit()) {
            masked.push_str(mark);
            rest = &rest[length..];
            continue;
        }
        if next != ' ' || !masked.ends_with(' ') {
            masked.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    masked
}

/// Returns the length of the duration or the time at the start of the text, and the mark for it.
fn time(text: &str) -> Option<(usize, &'static str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let of_clock = text.bytes().take_while(|byte| byte.is_ascii_digit() || b"-:T.Z".contains(byte)).count();
    let clock = &text[..of_clock];
    if clock.matches(':').count() == 2
        || clock.matches('-').count() == 2
        || (clock.len() == 5 && clock[2..].starts_with(':'))
    {
        return Some((of_clock, "<time>"));
    }
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, |rest| digits(rest) + 1);
    let number = whole + fraction;
    let space = usize::from(text[number..].starts_with(' '));
    let unit = text[number + space..].bytes().take_while(u8::is_ascii_alphabetic).count();
    let end = number + space + unit;
    ["ms", "s", "min", "h"].contains(&&text[number + space..end]).then_some((end, "<duration>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn id(digit: char) -> String {
        format!("run_{}", String::from(digit).repeat(32))
    }

    #[test]
    fn matches_other_ids_durations_and_columns_but_no_other_words() {
        let page = lines(&format!("run {}   1.2 s\n2026-11-26 02:40  finished: 2 turns (0 ms)", id('a')));
        let printed =
            |word: &str| lines(&format!("run {} 340 ms\n2027-01-01 12:00 {word}: 2 turns (13 ms)", id('b')));
        let mut known = Ids::default();
        assert!(!matches(&page, &printed("failed"), &mut known));
        assert!(known.0.is_empty());
        assert!(matches(&page, &printed("finished"), &mut known));
        assert_eq!(known.to_real(&format!("resume {}.2-0", id('a'))), format!("resume {}.2-0", id('b')));
        assert_eq!(known.to_page(&id('b')), id('a'));
    }

    #[test]
    fn matches_of_an_id_that_has_another_partner_fails() {
        let mut known = Ids::default();
        assert!(matches(&[id('a')], &[id('b')], &mut known));
        assert!(!matches(&[id('a')], &[id('c')], &mut known));
    }

    #[test]
    fn matches_wildcards_stand_for_parts_and_for_lines() {
        let check = |page, printed| matches(&lines(page), &lines(printed), &mut Ids::default());
        assert!(check("a [..] c [..]", "a b c d"));
        assert!(!check("a [..] c", "a b d"));
        assert!(check("a\n...\nd", "a\nb\nc\nd"));
        assert!(check("...", ""));
        assert!(!check("a\n...\nd", "a\nb"));
        assert!(!check("3 turns", "4 turns"));
    }

    #[test]
    fn ids_are_words_with_32_digits() {
        let text = format!("({}.2-0) run_last {} run_12", id('a'), id('a'));
        assert_eq!(ids(&text), [id('a')]);
    }
}
