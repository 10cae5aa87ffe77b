//! Names of tools, arguments and schemas, legal for every model service and unique.

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{CALL_TOOL, TOOL_SEARCH};

/// Longest name that every model service accepts, in characters.
const LONGEST: usize = 64;
/// Longest part of a name before its number, so that there is room for any number.
const LONGEST_STEM: usize = 52;
/// Longest name of a group of tools, in characters.
const LONGEST_GROUP: usize = 32;

/// Names that are taken.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: BTreeSet<String>,
    /// The number that the next name with this stem gets. Without it, the numbers of equal names would be tried again
    /// for each of them.
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// Creates the set of tool names in which only the reserved names are taken: those of the tools that search and
    /// call deferred tools.
    pub(crate) fn of_tools() -> Self {
        Self { names: [TOOL_SEARCH, CALL_TOOL].map(str::to_owned).into(), ..Self::default() }
    }

    /// Reserves and returns a free name for a tool: `prefix__id`. Illegal characters become `_`. If the name is
    /// taken, it gets the suffix `_2`, and so on.
    pub(crate) fn tool(&mut self, prefix: Option<&str>, id: &str) -> String {
        let mut name = clean(id, |c| matches!(c, '_' | '-'));
        if let Some(prefix) = prefix {
            name = format!("{prefix}__{name}");
        } else {
            // The name would be that of another server's tool.
            while name.contains("__") {
                name = name.replace("__", "_");
            }
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                // Some services want a letter first.
                name = format!("op_{}", name.trim_start_matches('_'));
            }
        }
        self.unique(&name)
    }

    /// Reserves and returns a free name for an argument or a schema.
    pub(crate) fn argument(&mut self, name: &str) -> String {
        let name = clean(name, |c| matches!(c, '_' | '-' | '.'));
        self.unique(if name.is_empty() { "argument" } else { &name })
    }

    /// Returns whether an argument can have exactly this name: the name is legal and free.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        !self.names.contains(name) && name.len() <= LONGEST && !name.is_empty() && argument_name(name) == name
    }

    /// Reserves and returns a free name: `name`, if necessary shortened and with a number. `name` must be ASCII.
    fn unique(&mut self, name: &str) -> String {
        self.find_free(name).0
    }

    /// Returns the same as [`unique`](Self::unique), and the number of names that were tried.
    fn find_free(&mut self, name: &str) -> (String, usize) {
        let mut free = name[..name.len().min(LONGEST)].to_owned();
        let mut tries = 1;
        if self.names.contains(&free) {
            let stem = name[..name.len().min(LONGEST_STEM)].trim_end_matches('_');
            let number = self.numbers.entry(stem.to_owned()).or_insert(2);
            while self.names.contains(&free) {
                free = format!("{stem}_{number}");
                *number += 1;
                tries += 1;
            }
        }
        self.names.insert(free.clone());
        (free, tries)
    }
}

/// Returns the legal name of an argument like [`Names::argument`], but does not check that the name is free.
pub(crate) fn argument_name(name: &str) -> String {
    clean(name, |c| matches!(c, '_' | '-' | '.'))
}

/// Returns the name of the group of tools for a tag; empty if the tag has no characters that the name of a group may
/// have.
pub(crate) fn group(tag: &str) -> String {
    let name = clean(tag, |c| matches!(c, '_' | '-'));
    name[..name.len().min(LONGEST_GROUP)].trim_matches('_').to_owned()
}

/// Returns the name of an operation that has no `operationId`.
pub(crate) fn by_path(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.to_ascii_lowercase(), |name, word| format!("{name}_{word}"))
}

/// Returns a name with only ASCII letters, digits and the other `allowed` characters. Each run of other characters
/// becomes one `_`.
fn clean(name: &str, allowed: fn(char) -> bool) -> String {
    let mut clean = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii() && (c.is_ascii_alphanumeric() || allowed(c)) {
            true => clean.push(c),
            false if clean.ends_with('_') => {}
            false => clean.push('_'),
        }
    }
    match clean.trim_end_matches('_') {
        trimmed if trimmed.len() == clean.len() || name.ends_with('_') => clean,
        trimmed => trimmed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use archon_testkit::Chance;

    use super::*;

    // spec: OA-04
    #[test]
    fn tool_has_its_id_as_its_name_with_the_prefix_before() {
        let mut names = Names::of_tools();
        assert_eq!(names.tool(None, "listPets"), "listPets");
        assert_eq!(names.tool(Some("shop"), "listPets"), "shop__listPets");
        assert_eq!(names.tool(None, "repos/get-content"), "repos_get-content");
        assert_eq!(names.tool(None, "listPets"), "listPets_2");
        assert_eq!(names.tool(None, "2fa"), "op_2fa");
        assert_eq!(names.tool(None, "github___deleteRepo"), "github_deleteRepo");
        assert_eq!(names.tool(Some("shop"), "github__deleteRepo"), "shop__github__deleteRepo");
        assert_eq!(names.tool(None, "tool_search"), "tool_search_2");
        assert_eq!(by_path("GET", "/pets/{petId}/toys.json"), "get_pets_petId_toys_json");
    }

    // spec: OA-04
    #[test]
    fn tool_of_any_id_has_a_legal_and_unique_name() {
        let mut chance = Chance(31);
        let letters: Vec<char> = "ab_-./ é\u{202e}0{😀".chars().collect();
        for prefix in [None, Some("p")] {
            let (mut names, mut seen) = (Names::of_tools(), BTreeSet::new());
            for _ in 0..2_000 {
                let length = chance.below(90);
                let letter = |_| letters[usize::try_from(chance.below(letters.len() as u64)).unwrap()];
                let id: String = (0..length).map(letter).collect();
                let name = names.tool(prefix, &id);
                let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                assert!(!name.is_empty() && name.len() <= LONGEST && name.chars().all(is_allowed), "{name}");
                assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
                assert!(prefix.is_some() || !name.contains("__"), "{name}");
                assert!(seen.insert(name.clone()), "{name} twice");
            }
        }
    }

    #[test]
    fn names_of_equal_ids_are_tried_in_proportion_to_their_number() {
        let long = "a".repeat(80);
        // Ids that take the numbered names of others, and ids that differ only where a number cuts them off.
        let hostile = |number: usize| match number % 4 {
            0 => "same".to_owned(),
            1 => format!("same_{number}"),
            2 => format!("{}{:04}", &long[..60], number / 8),
            _ => long.clone(),
        };
        let mut names = Names::default();
        let (mut tries, mut seen) = (0, BTreeSet::new());
        for number in 0..4_000 {
            let (name, count) = names.find_free(&hostile(number));
            assert!(name.len() <= LONGEST && seen.insert(name.clone()), "{name}");
            tries += count;
        }
        assert!(tries <= 3 * 4_000, "{tries}");
    }

    #[test]
    fn group_of_a_tag_is_a_short_name() {
        for (tag, expected) in [
            ("pets", "pets"),
            ("Pull requests / reviews", "Pull_requests_reviews"),
            ("_a_", "a"),
            ("\u{8a02}\u{55ae}", ""),
        ] {
            assert_eq!(group(tag), expected);
        }
        assert_eq!(group(&"a".repeat(99)).len(), LONGEST_GROUP);
    }

    #[test]
    fn argument_keeps_a_legal_name_and_replaces_brackets() {
        let mut names = Names::default();
        assert_eq!(names.argument("page.size"), "page.size");
        assert_eq!(names.argument("filter[name]"), "filter_name");
        assert_eq!(names.argument("filter(name)"), "filter_name_2");
        assert_eq!(names.argument("$"), "argument");
        assert!(names.is_free("limit") && !names.is_free("page.size") && !names.is_free("a b"));
    }
}
