//! What somebody meant who mistyped a name.

/// Names less alike than this (0 to 1) are different words, not slips.
const ALIKE: f64 = 0.6;

/// Longer names are not compared: nobody meant them, and comparing takes their product in time.
const LONGEST: usize = 100;

/// The candidate that is most like `name`, if any is like it; of equals the first. Case and `-` for `_` count little.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        // The first of equals, so that the answer does not depend on what comes later.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

/// How much two names are alike: 0 for strangers, 1 for the same name in another spelling.
pub fn likeness(name: &str, candidate: &str) -> f64 {
    let (Some(wanted), Some(known)) = (simplified(name), simplified(candidate)) else { return 0.0 };
    if wanted == known {
        return 1.0;
    }
    // `file` for `file_path`, `search_files` for `search`: a part of a name stands for it.
    let (short, long) = if wanted.len() < known.len() { (&wanted, &known) } else { (&known, &wanted) };
    if short.len() > 3 && long.windows(short.len()).any(|part| part == short) {
        return 0.9;
    }
    1.0 - distance(&wanted, &known) as f64 / long.len() as f64
}

fn simplified(name: &str) -> Option<Vec<char>> {
    let spelled =
        || name.to_lowercase().chars().map(|c| if matches!(c, '-' | '.' | ' ') { '_' } else { c }).collect();
    (name.len() <= LONGEST).then(spelled)
}

/// How many letters have to be added, taken, changed or swapped with their neighbour (Damerau and Levenshtein, no
/// letter touched twice).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (row[j] + usize::from(a[i] != b[j])).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-05, TE-07
    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["expression", "file_path", "old_string", "recursive", "a", "calculator", "search"];
        for (name, expected) in [
            ("expresion", Some("expression")),
            ("Expression", Some("expression")),
            ("filePath", Some("file_path")),
            ("file-path", Some("file_path")),
            ("path", Some("file_path")),
            ("old_str", Some("old_string")),
            ("recusrive", Some("recursive")),
            ("calclator", Some("calculator")),
            ("serach", Some("search")),
            ("send_email", None),
            ("b", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"expression".repeat(100_000), known), None);
    }

    #[test]
    fn a_swap_is_one_slip() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, expected) in
            [("", "", 0), ("ab", "", 2), ("ab", "ba", 1), ("kitten", "sitting", 3), ("ca", "abc", 3)]
        {
            assert_eq!(distance(&chars(a), &chars(b)), expected, "{a} {b}");
        }
    }
}
