//! Fetches the functions and questions for measuring tool search: the data of the Berkeley Function Calling
//! Leaderboard, in its Python package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::command_line::{CommandLine, find_on_path};

/// The package, at the measured version.
const PACKAGE: &str = "bfcl-eval==2026.3.23";
/// SHA-256 of its wheel; results of another one would not be comparable.
const SUM: &str = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a";
/// The licence notice.
const LICENCE: &str =
    "The data of the Berkeley Function Calling Leaderboard is under the Apache License 2.0.";

/// Downloads and unpacks the wheel below `cache`, unless it is there. Returns the folder of the data.
pub(crate) fn fetch(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(PACKAGE.replace("==", "-"));
    let data = folder.join("bfcl_eval/data");
    if data.is_dir() {
        return Ok(data);
    }
    ensure!(
        find_on_path("python3").is_some(),
        "the data of the evaluation comes in a Python package; install python3 with pip"
    );
    println!("{LICENCE}");
    // A temporary name, so that a partial package is never taken for a whole one.
    let part = folder.with_extension(format!("{}.part", std::process::id()));
    let fetched = unpacked(&part).and_then(|()| {
        fs::rename(&part, &folder).with_context(|| format!("cannot write {}", folder.display()))
    });
    _ = fs::remove_dir_all(&part);
    fetched.map(|()| data)
}

fn unpacked(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (place, wanted) = (folder.display().to_string(), folder.join("wanted.txt"));
    fs::write(&wanted, format!("{PACKAGE} --hash=sha256:{SUM}\n"))
        .with_context(|| format!("cannot write {}", wanted.display()))?;
    CommandLine::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
        ])
        .args(["--only-binary", ":all:", "--dest", &place, "--requirement", &wanted.display().to_string()])
        .run()?;
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {place}"))?;
    let mut names = files.flatten().map(|file| file.path());
    let wheel = names.find(|path| path.extension().is_some_and(|end| end == "whl"));
    let wheel = wheel.with_context(|| format!("pip brought no wheel of {PACKAGE} to {place}"))?;
    CommandLine::new("python3").args(["-m", "zipfile", "-e", &wheel.display().to_string(), &place]).run()
}
