//! Reads the workspace's packages and declared dependencies from `cargo metadata`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command_line::CommandLine;

pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    /// Names of its cargo features.
    pub(crate) features: Vec<String>,
}

/// Packages that are not published.
const NOT_PUBLISHED: &[&str] = &["archon-tests", "archon-evals", "xtask"];

pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is an ordinary dependency; otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
}

impl Metadata {
    /// Asks cargo; nothing is downloaded, since only the workspace's manifests are read.
    pub(crate) fn load() -> Result<Self> {
        Self::parse(&CommandLine::cargo("metadata --format-version 1 --no-deps").output()?)
    }

    // Parsed by hand: a derive would be a third of what a fresh clone compiles before its first command.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let read = || {
            let value: Value = serde_json::from_str(json).ok()?;
            let packages = value["packages"].as_array()?.iter().map(Package::read).collect::<Option<_>>()?;
            Some(Self { packages, target_directory: value["target_directory"].as_str()?.into() })
        };
        read().context("`cargo metadata` printed something unexpected")
    }

    /// Returns the packages that users can depend on or install.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !NOT_PUBLISHED.contains(&&*package.name))
    }

    /// Returns the path of a program of this workspace, in the folder of the given profile.
    pub(crate) fn binary(&self, profile_folder: &str, name: &str) -> PathBuf {
        self.target_directory.join(profile_folder).join(crate::command_line::with_suffix(name))
    }
}

impl Package {
    fn read(value: &Value) -> Option<Self> {
        let folder = PathBuf::from(value["manifest_path"].as_str()?).parent()?.to_owned();
        let dependencies = value["dependencies"].as_array()?.iter().map(Dependency::read);
        let dependencies = dependencies.collect::<Option<_>>()?;
        let features = value["features"].as_object()?.keys().cloned().collect();
        let (name, version) = (text(&value["name"])?, text(&value["version"])?);
        Some(Self { name, version, folder, dependencies, features })
    }
}

impl Dependency {
    fn read(value: &Value) -> Option<Self> {
        let kind = text(&value["kind"]);
        Some(Self { name: text(&value["name"])?, kind, optional: value["optional"].as_bool()? })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_parse_finds_packages_and_dependencies() {
        let metadata = Metadata::parse(
            r#"{"packages": [{"name": "a", "version": "1.0.0", "manifest_path": "/a/Cargo.toml", "dependencies": [
                {"name": "b", "kind": null, "optional": true}, {"name": "c", "kind": "dev", "optional": false}
            ], "features": {"default": ["d"], "d": []}}], "target_directory": "t", "version": 1}"#,
        )
        .unwrap();
        let [package] = &metadata.packages[..] else { panic!("one package") };
        assert_eq!(package.folder, PathBuf::from("/a"));
        let [b, c] = &package.dependencies[..] else { panic!("two dependencies") };
        assert!(package.name == "a" && b.name == "b" && b.kind.is_none() && b.optional);
        assert!(c.kind.as_deref() == Some("dev") && !c.optional);
        assert_eq!(package.features, ["default", "d"]);
        assert_eq!(metadata.target_directory, PathBuf::from("t"));
    }

    #[test]
    fn parse_of_something_else_fails() {
        for json in ["", "{}", r#"{"packages": [{}], "target_directory": "t"}"#, r#"{"packages": []}"#] {
            let error = Metadata::parse(json).err().unwrap().to_string();
            assert_eq!(error, "`cargo metadata` printed something unexpected", "{json}");
        }
    }
}
