//! Computes the encoded forms of secrets and finds them in one pass over a text.

use std::{fmt::Write, ops::Range};

use crate::{Json, values::Secret};

use super::{HIDDEN, Redactor};

/// All encoded forms of a set of secrets.
pub(crate) struct Forms {
    /// The forms, sorted and without duplicates. No form is shorter than [`Redactor::SHORTEST`].
    sorted: Vec<String>,
    /// A bit set of the first two bytes of all forms. It quickly rules out most positions of a text as the
    /// beginning of a form.
    heads: Vec<u64>,
    longest: usize,
}

impl Forms {
    pub(super) fn of(secrets: &[Secret]) -> Self {
        let mut sorted = Vec::new();
        for secret in secrets.iter().map(Secret::expose) {
            sorted.push(secret.clone());
            json(secret, &mut sorted);
            base64(secret.as_bytes(), &mut sorted);
            percent(secret.as_bytes(), &mut sorted);
            sorted.push(secret.bytes().fold(String::new(), |hex, byte| with_hex(hex, byte, false)));
            sorted.push(secret.bytes().fold(String::new(), |hex, byte| with_hex(hex, byte, true)));
        }
        sorted.sort_unstable();
        sorted.dedup();
        let mut heads = vec![0; if sorted.is_empty() { 0 } else { 1 << 10 }];
        for form in &sorted {
            if let Some((word, bit)) = head(form.as_bytes()) {
                heads[word] |= bit;
            }
        }
        let longest = sorted.iter().map(String::len).max().unwrap_or_default();
        Self { sorted, heads, longest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(String::as_str)
    }

    /// Returns the text with its secrets replaced; `None` if the text has no secret.
    pub(crate) fn cleaned(&self, text: &str) -> Option<String> {
        let found = self.find(text.as_bytes(), 0);
        let mut clean = String::with_capacity(if found.is_empty() { 0 } else { text.len() });
        let mut at = 0;
        for place in &found {
            clean.extend([&text[at..place.start], HIDDEN]);
            at = place.end;
        }
        (at > 0).then(|| clean + &text[at..])
    }

    /// Returns the ranges of all forms in the text, in order; overlapping ranges are merged. The first
    /// `covered` bytes belong to a form that began earlier.
    pub(super) fn find(&self, text: &[u8], covered: usize) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if covered > 0 {
            found.push(0..covered);
        }
        if self.is_empty() {
            return found;
        }
        for at in 0..(text.len() + 1).saturating_sub(Redactor::SHORTEST) {
            let Some(length) = self.longest_at(&text[at..]) else { continue };
            match found.last_mut() {
                Some(last) if at < last.end => last.end = last.end.max(at + length),
                _ => found.push(at..at + length),
            }
        }
        found
    }

    /// Returns the first position from which the rest of the text is the beginning of a form, which later
    /// text may complete; `None` if there is no such position.
    pub(super) fn open_end(&self, text: &[u8]) -> Option<usize> {
        let first = text.len().saturating_sub(self.longest.saturating_sub(1));
        (first..text.len()).find(|at| {
            let end = &text[*at..];
            let next = || self.sorted.get(self.sorted.partition_point(|form| form.as_bytes() <= end));
            (end.len() == 1 || self.may_begin(end))
                && next().is_some_and(|form| form.as_bytes().starts_with(end))
        })
    }

    /// Returns the length in bytes of the longest form at the beginning of the text.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        if !self.may_begin(text) {
            return None;
        }
        // Forms that the text begins with sort before it, and have the same beginning.
        let end = self.sorted.partition_point(|form| form.as_bytes() <= text);
        let alike =
            |form: &&String| form.as_bytes().get(..Redactor::SHORTEST) == text.get(..Redactor::SHORTEST);
        let mut forms = self.sorted[..end].iter().rev().take_while(alike);
        forms.find(|form| text.starts_with(form.as_bytes())).map(String::len)
    }

    fn may_begin(&self, text: &[u8]) -> bool {
        head(text).is_some_and(|(word, bit)| self.heads.get(word).is_some_and(|bits| bits & bit != 0))
    }
}

/// Returns the position of the text's first two bytes in the bit set `heads`: the index of the `u64` and the
/// mask of the bit. `None` for a shorter text.
fn head(text: &[u8]) -> Option<(usize, u64)> {
    let [first, second, ..] = text else { return None };
    let number = usize::from(*first) << 8 | usize::from(*second);
    Some((number >> 6, 1 << (number & 63)))
}

/// Adds the forms in JSON strings, as different programs escape them, and in JSON within JSON strings.
fn json(secret: &str, forms: &mut Vec<String>) {
    let escaped = escaped(secret);
    forms.push(self::escaped(&escaped));
    for upper in [false, true] {
        let ascii = ascii(&escaped, upper);
        forms.push(ascii.replace('/', "\\/"));
        forms.push(ascii);
    }
    forms.push(escaped.replace('/', "\\/"));
    forms.push(escaped);
}

fn escaped(text: &str) -> String {
    let quoted = Json::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Returns a text that is already escaped for JSON, with all non-ASCII characters escaped too.
fn ascii(escaped: &str, upper: bool) -> String {
    let mut all = String::new();
    for char in escaped.chars() {
        if char.is_ascii() {
            all.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            let _ = if upper { write!(all, "\\u{unit:04X}") } else { write!(all, "\\u{unit:04x}") };
        }
    }
    all
}

/// Adds the forms in base64: three for each alphabet, because the encoded text depends on the offset of the
/// secret modulo three.
fn base64(secret: &[u8], forms: &mut Vec<String>) {
    for last_two in [b"+/", b"-_"] {
        for (ahead, foreign) in [(0, 0), (1, 2), (2, 3)] {
            let mut bytes = vec![0; ahead];
            bytes.extend_from_slice(secret);
            let mut whole = String::new();
            for group in bytes.chunks(3) {
                let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))
                    << (8 * (3 - group.len()));
                for place in 0..=group.len() {
                    let sextet = u8::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default();
                    whole.push(char::from(base64_digit(sextet, *last_two)));
                }
            }
            // A digit that depends on neighbouring bytes is unknown; the end may have no neighbour.
            let own = bytes.len() * 8 / 6;
            forms.extend(whole.get(foreign..own).map(str::to_owned));
            if own < whole.len() {
                forms.extend(whole.get(foreign..).map(str::to_owned));
                whole.push_str(&"=".repeat((4 - whole.len() % 4) % 4));
                forms.extend(whole.get(foreign..).map(str::to_owned));
            }
        }
    }
}

fn base64_digit(sextet: u8, last_two: [u8; 2]) -> u8 {
    match sextet {
        0..26 => b'A' + sextet,
        26..52 => b'a' + sextet - 26,
        52..62 => b'0' + sextet - 52,
        62 => last_two[0],
        _ => last_two[1],
    }
}

/// The sets of characters, besides letters and digits, that programs leave unescaped: the unreserved
/// characters (RFC 3986); the same with the slash; those of JavaScript's `encodeURIComponent`; those of a URL
/// path; those of a URL query; those of HTML forms.
const UNESCAPED: [&[u8]; 6] =
    [b"-._~", b"-._~/", b"-._~!*'()", b"-._~!$&'()*+,;=:@", b"-._~!$&'()*+,;=:@/?", FORM];
const FORM: &[u8] = b"*-._";

fn percent(secret: &[u8], forms: &mut Vec<String>) {
    for upper in [false, true] {
        forms.push(secret.iter().fold(String::new(), |all, byte| with_percent(all, *byte, upper)));
        for unescaped in UNESCAPED {
            forms.push(secret.iter().fold(String::new(), |mut all, byte| match byte {
                byte if byte.is_ascii_alphanumeric() || unescaped.contains(byte) => {
                    all.push(char::from(*byte));
                    all
                }
                b' ' if unescaped == FORM => all + "+",
                byte => with_percent(all, *byte, upper),
            }));
        }
    }
}

fn with_percent(text: String, byte: u8, upper: bool) -> String {
    with_hex(text + "%", byte, upper)
}

fn with_hex(mut text: String, byte: u8, upper: bool) -> String {
    // Writing to a string does not fail.
    let _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
    text
}
