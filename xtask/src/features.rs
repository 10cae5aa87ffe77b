//! `cargo xtask features`: checks each package without features, and with each of its features alone. The other checks
//! build many packages at once, and then a feature of one turns on what another needs but does not declare.
//!
//! `--sample N --seed S` checks N of these builds, drawn by the seed; without `--seed` the commit decides, so that CI
//! draws others from commit to commit.

use anyhow::{Result, bail, ensure};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::sample;

const ENGINE: &str =
    "builds llama.cpp, which needs cmake, a C++ compiler and libclang: `cargo xtask accept engine`";

/// Package, feature, and the reason why it is not checked here.
const LEFT_OUT: &[(&str, &str, &str)] =
    &[("archon-local-model", "from-source", ENGINE), ("archon-agents-cli", "local-from-source", ENGINE)];

/// A package with one feature, or with none.
#[derive(Debug, PartialEq)]
struct Build {
    package: String,
    feature: Option<String>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let (sample, seed) = (args.number("--sample")?, args.number("--seed")?);
    args.finish()?;
    ensure!(sample.is_some() || seed.is_none(), "`--seed` decides the draw of `--sample N`; give both");
    for (package, feature, why) in LEFT_OUT {
        println!("left out: {package}/{feature}: {why}");
    }
    let mut builds = builds(&Metadata::load()?);
    if let Some(count) = sample {
        let (all, seed) = (builds.len(), seed.unwrap_or_else(seed_of_commit));
        builds = sample::draw(builds, count, seed);
        println!("{} of {all}, drawn by the seed {seed}: {}", builds.len(), names(&builds));
        println!("to draw them again: cargo xtask features --sample {count} --seed {seed}");
    }
    check(&builds)
}

/// Returns the builds of all packages, without those that are left out.
fn builds(metadata: &Metadata) -> Vec<Build> {
    let mut builds = Vec::new();
    for package in &metadata.packages {
        builds.push(Build { package: package.name.clone(), feature: None });
        let is_left_out =
            |feature: &str| LEFT_OUT.iter().any(|(of, out, _)| (*of, *out) == (&package.name, feature));
        let features = package.features.iter().filter(|feature| !is_left_out(feature));
        builds.extend(
            features.map(|feature| Build { package: package.name.clone(), feature: Some(feature.clone()) }),
        );
    }
    builds
}

/// Checks all builds, and then fails with those that do not compile.
fn check(builds: &[Build]) -> Result<()> {
    let failed: Vec<_> = builds.iter().filter_map(|build| build.command().run().err()).collect();
    if failed.is_empty() {
        println!("features: {} builds", builds.len());
        return Ok(());
    }
    let lines: Vec<_> = failed.iter().map(|error| format!("{error:#}")).collect();
    bail!("{} of {} builds failed:\n{}", failed.len(), builds.len(), lines.join("\n"))
}

impl Build {
    fn command(&self) -> CommandLine {
        let line = CommandLine::cargo(&format!("check -p {} --no-default-features", self.package));
        match &self.feature {
            Some(feature) => line.args(["--features", feature]),
            None => line,
        }
    }
}

fn names(builds: &[Build]) -> String {
    let name = |build: &Build| match &build.feature {
        Some(feature) => format!("{}/{feature}", build.package),
        None => format!("{} without features", build.package),
    };
    builds.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns a number that differs from commit to commit; 0 without git.
fn seed_of_commit() -> u64 {
    let id = CommandLine::new("git").args(["rev-parse", "HEAD"]).output();
    id.ok().and_then(|id| seed_of(&id)).unwrap_or(0)
}

/// Returns the first 32 bits of a commit's id: enough to differ, and short to type.
fn seed_of(id: &str) -> Option<u64> {
    u64::from_str_radix(id.get(..8)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(package: &str, feature: Option<&str>) -> Build {
        Build { package: package.to_owned(), feature: feature.map(str::to_owned) }
    }

    #[test]
    fn builds_have_each_feature_alone_and_none() {
        let metadata = Metadata::parse(
            r#"{"packages": [
                {"name": "a", "version": "1.0.0", "manifest_path": "/a/Cargo.toml", "dependencies": [],
                 "features": {"default": ["b"], "b": []}},
                {"name": "archon-local-model", "version": "1.0.0", "manifest_path": "/l/Cargo.toml", "dependencies": [],
                 "features": {"from-source": []}}
            ], "target_directory": "t"}"#,
        );
        let mut builds = builds(&metadata.unwrap());
        builds.sort_by_key(|build| (build.package.clone(), build.feature.clone()));
        assert_eq!(
            builds,
            [
                build("a", None),
                build("a", Some("b")),
                build("a", Some("default")),
                build("archon-local-model", None)
            ]
        );
    }

    #[test]
    fn command_can_be_typed() {
        assert_eq!(build("a", None).command().to_string(), "cargo check -p a --no-default-features");
        assert_eq!(
            build("a", Some("b")).command().to_string(),
            "cargo check -p a --no-default-features --features b"
        );
        assert_eq!(names(&[build("a", None), build("a", Some("b"))]), "a without features, a/b");
    }

    #[test]
    fn left_out_features_exist() {
        let metadata = Metadata::load().unwrap();
        for (package, feature, _) in LEFT_OUT {
            let found = metadata.packages.iter().find(|known| known.name == *package);
            assert!(
                found.is_some_and(|known| known.features.iter().any(|name| name == feature)),
                "{package}/{feature}"
            );
        }
    }

    #[test]
    fn check_fails_with_the_commands_that_failed() {
        let error = check(&[build("no-such-package", Some("x"))]).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "1 of 1 builds failed:\n`cargo check -p no-such-package --no-default-features --features x` failed"
            ),
            "{error}"
        );
    }

    #[test]
    fn seed_follows_the_commit() {
        assert_eq!(seed_of("0000000aecc3\n"), Some(10));
        assert_eq!(seed_of("ecc301d0aaaa\n"), Some(0xecc3_01d0));
        for wrong in ["", "short", "no commit"] {
            assert_eq!(seed_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_seed_without_a_sample_is_refused() {
        let words = vec!["--seed".to_owned(), "1".to_owned()];
        let error = run(Args::new("features", "", words)).unwrap_err().to_string();
        assert_eq!(error, "`--seed` decides the draw of `--sample N`; give both");
    }
}
