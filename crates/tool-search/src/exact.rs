//! Finds the tools that a query names.

use std::collections::HashMap;

/// Separates the name of a server from that of its tool.
pub(crate) const SERVER: &str = "__";

/// Finds the positions of tools by their names. Upper and lower case and the separators in a name make no difference.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<String>,
    /// Positions by the tool's whole name, as [`spelling`] writes it.
    whole: HashMap<String, Vec<usize>>,
    /// Positions by the tool's name without the server, as [`spelling`] writes it.
    short: HashMap<String, Vec<usize>>,
}

impl Names {
    pub(crate) fn new<'s>(names: impl Iterator<Item = &'s str>) -> Self {
        let mut all = Self::default();
        for (place, name) in names.enumerate() {
            all.names.push(name.to_owned());
            all.whole.entry(spelling(name)).or_default().push(place);
            if let Some((_, short)) = name.split_once(SERVER) {
                all.short.entry(spelling(short)).or_default().push(place);
            }
        }
        all
    }

    /// Returns the positions of the tools that the query names, without duplicates, in this order: the tool
    /// whose name is exactly the query, tools whose name is the query in another spelling, tools whose name
    /// without the server is the query, and tools whose name is a word of the query.
    pub(crate) fn named(&self, query: &str) -> Vec<usize> {
        let mut found = Vec::new();
        // A name may end with a character that `bare` removes.
        self.add(&self.whole, query.trim(), &mut found);
        let query = bare(query);
        let words = || query.split_whitespace().map(bare).filter(|word| is_identifier(word));
        for name in std::iter::once(query).chain(words()) {
            self.add(&self.whole, name, &mut found);
            self.add(&self.short, name, &mut found);
        }
        found
    }

    fn add(&self, names: &HashMap<String, Vec<usize>>, name: &str, found: &mut Vec<usize>) {
        let places = names.get(&spelling(name)).map_or(&[][..], Vec::as_slice);
        let is_exact = |place: &&usize| self.names[**place] == name;
        let exact = places.iter().filter(is_exact);
        let others = places.iter().filter(|place| !is_exact(place));
        for place in exact.chain(others) {
            if !found.contains(place) {
                found.push(*place);
            }
        }
    }
}

/// Returns a name in lower case and with `_` for every separator, for comparisons with other names.
fn spelling(name: &str) -> String {
    name.to_lowercase().replace(['-', '.', ' ', '/', ':'], "_")
}

/// Returns the text without quotes and punctuation around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Returns `true` if a word of a sentence is written like a name: in parts, or with an upper-case letter
/// inside. An ordinary word, such as "search", does not count.
fn is_identifier(word: &str) -> bool {
    let inner_capital =
        word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    word.contains(['_', '-', '.']) || inner_capital
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &[&str]) {
        let all =
            ["Read_File", "github__create_issue", "jira__create_issue", "read_file", "search", "web__search"];
        let found: Vec<_> =
            Names::new(all.into_iter()).named(query).into_iter().map(|place| all[place]).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn named_finds_the_exact_name_before_other_spellings() {
        check("read_file", &["read_file", "Read_File"]);
        check(" `Read_File`, ", &["Read_File", "read_file"]);
        check("read-file", &["Read_File", "read_file"]);
        check("jira__create_issue", &["jira__create_issue"]);
    }

    #[test]
    fn named_finds_names_without_their_server() {
        check("create_issue", &["github__create_issue", "jira__create_issue"]);
        check("search", &["search", "web__search"]);
    }

    #[test]
    fn named_finds_names_in_sentences_but_not_ordinary_words() {
        check("call jira__create_issue, then read_file", &["jira__create_issue", "read_file", "Read_File"]);
        check("search the web", &[]);
        check("", &[]);
    }
}
