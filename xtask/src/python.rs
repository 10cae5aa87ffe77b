//! Installs Python packages for checks, into their own environments below cargo's target directory.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command_line::{CommandLine, find_on_path};

/// Makes a Python environment with these packages, unless it exists. Returns its `python`.
pub(crate) fn environment(folder: &Path, packages: &[&str]) -> Result<String> {
    ensure!(
        find_on_path("python3").is_some(),
        "the check needs Python packages; install python3 with its venv module"
    );
    let python = folder.join("bin").join("python").display().to_string();
    let done = folder.join("packages.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(python);
    }
    CommandLine::new("python3").args(["-m", "venv", &folder.display().to_string()]).run()?;
    CommandLine::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(packages.iter().copied())
        .run()?;
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))?;
    Ok(python)
}
