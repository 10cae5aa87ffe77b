//! `cargo xtask registry`: puts the packages and all that they depend on into `target/registry`, a folder that stands for a
//! registry, then builds README's program and installs `archon` from it. So a file that a package lacks, or a version that
//! cannot be installed, is found before a release.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::markdown::{self, Block};
use crate::metadata::Metadata;
use crate::repository;

const PACKAGE: &str = "package --workspace --exclude archon-tests --exclude archon-evals --exclude xtask --no-verify --allow-dirty";

const MANIFEST: &str = "[package]\nname = \"readme\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
                        archon = { package = \"archon-agents\", version = \"=VERSION\" }\n\
                        tokio = { version = \"1\", features = [\"full\"] }\n";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let metadata = Metadata::load()?;
    let folder = metadata.target_directory.join("registry");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", folder.display()));
        }
        _ => {}
    }
    let vendor = folder.join("vendor");
    // Cargo prints settings that we write ourselves.
    CommandLine::cargo("vendor --locked --versioned-dirs").args([vendor.display().to_string()]).output()?;
    CommandLine::cargo(PACKAGE).run()?;
    for package in metadata.published() {
        let name = format!("{}-{}", package.name, package.version);
        unpack(&metadata.target_directory.join("package").join(format!("{name}.crate")), &vendor, &name)?;
    }
    let settings = folder.join(".cargo");
    fs::create_dir_all(&settings)?;
    let source = format!(
        "[source.crates-io]\nreplace-with = \"folder\"\n\n[source.folder]\ndirectory = {:?}\n",
        vendor.display().to_string()
    );
    fs::write(settings.join("config.toml"), source)?;
    let version = metadata.published().next().context("the workspace publishes no package")?.version.clone();
    build(&folder, &version)
}

/// Unpacks a package as `cargo vendor` does: with a list of checksums, which may be empty.
fn unpack(package: &Path, vendor: &Path, name: &str) -> Result<()> {
    let words =
        ["-xzf".to_owned(), package.display().to_string(), "-C".to_owned(), vendor.display().to_string()];
    CommandLine::new("tar").args(words).output()?;
    fs::write(vendor.join(name).join(".cargo-checksum.json"), "{\"files\":{},\"package\":null}")
        .with_context(|| format!("cannot write the checksums of {name}"))
}

/// Builds README's program, installs the command, and starts both. They share a target folder.
fn build(folder: &Path, version: &str) -> Result<()> {
    let project = folder.join("readme");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("Cargo.toml"), MANIFEST.replace("VERSION", version))?;
    fs::write(project.join("src/main.rs"), readme_program()?)?;
    let target = folder.join("target").display().to_string();
    let cargo =
        |line: &str, at: PathBuf| CommandLine::cargo(line).folder(at).env("CARGO_TARGET_DIR", &target).run();
    cargo("build --offline", project)?;
    cargo(
        // `cargo install` reads no settings of the folder that it is started in.
        &format!(
            "install --config .cargo/config.toml --offline --debug --root installed archon-agents-cli@{version}"
        ),
        folder.to_owned(),
    )?;
    let archon = folder.join("installed/bin").join(crate::command_line::with_suffix("archon"));
    CommandLine::new(archon.display().to_string())
        .args(["tools", "call", "calculator", r#"{"expression":"2+2"}"#])
        .run()
}

fn readme_program() -> Result<String> {
    let readme = fs::read_to_string(repository::root().join("README.md")).context("cannot read README.md")?;
    let program = markdown::blocks(&readme).into_iter().find_map(|block| match block {
        Block::Fence(fence) if fence.language() == "rust" => Some(fence.lines.join("\n") + "\n"),
        _ => None,
    });
    program.context("README.md has no program in Rust")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_program_of_the_readme_is_a_whole_program() {
        let program = readme_program().unwrap();
        assert!(program.contains("async fn main()") && program.contains("use archon::"), "{program}");
    }
}
