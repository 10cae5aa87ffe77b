//! `cargo xtask conformance skills`: compares the strict validation of skills with the reference validator of the
//! specification, on generated folders.
//!
//! The validator comes from PyPI, into a folder under cargo's target directory. The comparison is an ignored test of
//! `archon-skills`.

use anyhow::Result;

use crate::command_line::CommandLine;
use crate::metadata::Metadata;
use crate::python::environment;

/// Pinned, so that a new release cannot break the check; raised by hand.
const PACKAGE: &str = "skills-ref==0.1.1";

pub(crate) fn run() -> Result<()> {
    let folder = Metadata::load()?.target_directory.join("third-party/skills-ref");
    environment(&folder, &[PACKAGE])?;
    let validator = folder.join("bin").join("agentskills").display().to_string();
    CommandLine::cargo("test --profile accept -p archon-skills --test all -- --ignored --nocapture")
        .env("ARCHON_SKILLS_REF", validator)
        .run()
}
