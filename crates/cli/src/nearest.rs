//! Finds what somebody meant who mistyped a name.

/// The name most like `wrong`, if any is like it at all.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), name));
    scored.filter(|(score, _)| *score > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Below this, names only share letters (0.0 to 1.0; found by trying slips of the finger).
const ALIKE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let names = ["calculator", "read_file", "list_files", "search"];
        for (wrong, expected) in [
            ("calclator", Some("calculator")),
            ("Calculator", Some("calculator")),
            ("readfile", Some("read_file")),
            ("list_file", Some("list_files")),
            ("serach", Some("search")),
            ("send_email", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names), expected, "{wrong}");
        }
    }
}
