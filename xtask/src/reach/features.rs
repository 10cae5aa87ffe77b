//! Finds where each cargo feature is used: a feature of the facade or the command that turns it on, an example that
//! needs it, or a page.

use std::fs;

use anyhow::{Context, Result};
use toml::Table;

use super::{Row, Shown, link};
use crate::{layers, repository};

/// Packages whose features a program or the command turns on.
const DOORS: &[&str] = &["archon-agents", "archon-agents-cli"];

/// Finds the place of each feature: a feature of the facade or the command that turns it on, an example that
/// needs it, or a page.
pub(super) fn rows(shown: &Shown) -> Result<Vec<Row>> {
    let packages = packages()?;
    let mut rows = Vec::new();
    for package in &packages {
        for (feature, _) in &package.features {
            let place = turned_on_by(&packages, package, feature)
                .or_else(|| package.example_that_needs(feature))
                .or_else(|| shown.find(|text| names_feature(text, feature)));
            rows.push(Row { part: format!("{}/{feature}", package.name), place });
        }
    }
    Ok(rows)
}

/// Returns whether a paragraph calls the name a feature, or a command line turns it on.
fn names_feature(text: &str, feature: &str) -> bool {
    let quoted = format!("`{feature}`");
    let paragraphs = text.split("\n\n").any(|part| part.contains("feature") && part.contains(&quoted));
    paragraphs
        || text.match_indices("--features ").any(|(at, flag)| {
            let list = text[at + flag.len()..].split([' ', '\n', '`']).next().unwrap_or_default();
            list.split(',').any(|asked| asked.rsplit('/').next() == Some(feature))
        })
}

/// Finds the feature of a door or of the same package that turns on a feature; none for a feature of a door.
fn turned_on_by(packages: &[Package], package: &Package, feature: &str) -> Option<String> {
    if package.is_door() {
        return None;
    }
    by_door(packages, package, feature).or_else(|| {
        let (name, _) = package.features.iter().find(|(_, on)| on.iter().any(|named| named == feature))?;
        Some(format!("feature `{name}` of `{}`", package.name))
    })
}

/// Finds the feature of a door that turns on a feature below, also by a feature of a crate between.
fn by_door(packages: &[Package], package: &Package, feature: &str) -> Option<String> {
    let above = |is_door: bool| packages.iter().filter(move |other| other.is_door() == is_door);
    let direct = above(true).find_map(|door| {
        let name = door.features_with(&package.name, feature).next()?;
        Some(format!("feature `{name}` of `{}`", door.name))
    });
    direct.or_else(|| {
        above(false).find_map(|between| {
            let mut names = between.features_with(&package.name, feature);
            names.find_map(|name| by_door(packages, between, name))
        })
    })
}

/// Returns whether an entry such as `a/tls` or `a?/tls` turns on this feature of another package.
fn turns_on(entry: &str, package: &str, feature: &str) -> bool {
    let named = entry.split_once('/').map(|(name, on)| (name.strip_suffix('?').unwrap_or(name), on));
    named == Some((package, feature))
}

struct Package {
    name: String,
    folder: String,
    /// Features, each with what it turns on; without `default`.
    features: Vec<(String, Vec<String>)>,
    /// Examples, each with the features that it needs.
    examples: Vec<(String, Vec<String>)>,
}

impl Package {
    fn parse(folder: &str, manifest: &str) -> Result<Self> {
        let table: Table =
            toml::from_str(manifest).with_context(|| format!("{folder}/Cargo.toml cannot be read"))?;
        let texts = |value: &toml::Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.filter_map(toml::Value::as_str).map(str::to_owned).collect()
        };
        let features = table.get("features").and_then(toml::Value::as_table).into_iter().flatten();
        let examples = table.get("example").and_then(toml::Value::as_array).into_iter().flatten();
        // One with a path of its own is a program for tests.
        let examples = examples.filter(|example| example.get("path").is_none());
        let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
        Ok(Self {
            name: name.with_context(|| format!("{folder}/Cargo.toml names no package"))?.to_owned(),
            folder: folder.to_owned(),
            features: features
                .filter(|(name, _)| *name != "default")
                .map(|(name, on)| (name.clone(), texts(on)))
                .collect(),
            examples: examples
                .filter_map(|one| {
                    Some((one.get("name")?.as_str()?.to_owned(), texts(one.get("required-features")?)))
                })
                .collect(),
        })
    }

    fn is_door(&self) -> bool {
        DOORS.contains(&self.name.as_str())
    }

    /// Returns the features that turn on this feature of another package.
    fn features_with<'a>(&'a self, package: &'a str, feature: &'a str) -> impl Iterator<Item = &'a str> {
        let has = move |on: &[String]| on.iter().any(|entry| turns_on(entry, package, feature));
        self.features.iter().filter(move |(_, on)| has(on)).map(|(name, _)| name.as_str())
    }

    fn example_that_needs(&self, feature: &str) -> Option<String> {
        let (name, _) = self.examples.iter().find(|(_, needed)| needed.iter().any(|name| name == feature))?;
        let folder = format!("{}/examples/{name}", self.folder);
        let is_folder = repository::root().join(&folder).is_dir();
        Some(link(&if is_folder { format!("{folder}/main.rs") } else { format!("{folder}.rs") }))
    }
}

fn packages() -> Result<Vec<Package>> {
    let read = |name: &str| {
        let folder = layers::folder(name);
        let manifest = fs::read_to_string(repository::root().join(&folder).join("Cargo.toml"));
        Package::parse(&folder, &manifest.with_context(|| format!("cannot read {folder}/Cargo.toml"))?)
    };
    layers::product().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_named_in_a_paragraph_on_features_or_on_a_command_line() {
        assert!(names_feature("x\n\n| feature | brings |\n|---|---|\n| `tls` | https |\n", "tls"));
        assert!(names_feature("cargo run -p a --features b/tls,c --example d", "tls"));
        assert!(!names_feature("one feature\n\nthe `tls` of others", "tls"));
    }

    #[test]
    fn a_feature_below_is_reached_by_the_one_of_a_door_that_turns_it_on() {
        let parse = |folder: &str, text: &str| Package::parse(folder, text).unwrap();
        let door = "[package]\nname = \"archon-agents\"\n[features]\ndefault = [\"web\"]\nweb = [\"archon-tools/web\"]\n";
        let below =
            "[package]\nname = \"archon-tools\"\n[features]\nweb = [\"http\"]\nhttp = []\nlost = []\n";
        let packages = [parse("crates/archon", door), parse("crates/tools", below)];
        let by = |feature| turned_on_by(&packages, &packages[1], feature);
        assert_eq!(by("web").as_deref(), Some("feature `web` of `archon-agents`"));
        assert_eq!(by("http").as_deref(), Some("feature `web` of `archon-tools`"));
        assert_eq!(by("lost"), None);
        assert_eq!(turned_on_by(&packages, &packages[0], "web"), None);
    }

    #[test]
    fn a_feature_below_is_reached_if_its_crate_is_optional_or_another_crate_is_between() {
        let parse = |folder: &str, text: &str| Package::parse(folder, text).unwrap();
        let door = "[package]\nname = \"archon-agents\"\n[features]\ntls = [\"archon-hooks?/tls\"]\n\
                    server-tls = [\"server\", \"archon-server/tls\"]\n";
        let hooks = "[package]\nname = \"archon-hooks\"\n[features]\ntls = []\n";
        let server = "[package]\nname = \"archon-server\"\n[features]\ntls = [\"archon-http-access/tls\"]\n";
        let access = "[package]\nname = \"archon-http-access\"\n[features]\ntls = []\nlost = []\n";
        let packages = [
            parse("crates/archon", door),
            parse("crates/hooks", hooks),
            parse("crates/server", server),
            parse("crates/http-access", access),
        ];
        let by = |package: usize, feature| turned_on_by(&packages, &packages[package], feature);
        assert_eq!(by(1, "tls").as_deref(), Some("feature `tls` of `archon-agents`"));
        assert_eq!(by(3, "tls").as_deref(), Some("feature `server-tls` of `archon-agents`"));
        assert_eq!(by(3, "lost"), None);
    }
}
