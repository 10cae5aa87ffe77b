//! Finds names that stand for types of two crates: a program that uses both crates, or a reader of a page, has to know
//! which type a name means.

use std::collections::BTreeMap;

use crate::layers;
use crate::reach;
use crate::repository::TextFile;

/// Returns one line for each name that several crates export for types of their own. A type that a crate exports again
/// counts for the crate that declares it. Types that a macro declares are not seen.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in layers::product() {
        for name in reach::own_types(package, files) {
            owners.entry(name).or_default().push(package);
        }
    }
    owners.retain(|_, packages| packages.len() > 1);
    owners
        .into_iter()
        .map(|(name, packages)| {
            format!(
                "`{name}` is a public type of {}: give it another name in all but one",
                packages.join(" and ")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(memory: &str) -> Vec<String> {
        let files = [
            ("crates/types/src/lib.rs", "\npub use team::{Member, Role};\n"),
            ("crates/types/src/team.rs", "pub struct Role {\npub struct Member {\n"),
            ("crates/memory/src/lib.rs", memory),
            ("crates/memory/src/role.rs", "pub enum Role {\npub trait Rank {\n"),
        ];
        check(&files.map(|(path, text)| TextFile::new(path, text)))
    }

    #[test]
    fn check_type_name_of_two_crates_is_a_problem() {
        let expected = [
            "`Role` is a public type of archon-agents-types and archon-memory: give it another name in all but one",
        ];
        assert_eq!(problems("\npub use role::{Rank, Role};\n"), expected);
        assert_eq!(problems("\npub mod role;\n"), expected);
    }

    #[test]
    fn check_private_type_and_reexport_with_the_name_of_another_crate_are_no_problem() {
        assert_eq!(problems("\nmod role;\npub use role::Rank;\n"), [""; 0]);
        assert_eq!(problems("\npub use archon_types::Member;\n"), [""; 0]);
    }
}
