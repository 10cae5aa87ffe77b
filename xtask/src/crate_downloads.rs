//! Cargo commands that download crates. A cargo that was killed while it wrote an archive into its cache leaves a
//! part of it, which each later cargo takes for the whole and fails on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::command_line::CommandLine;
use crate::demo::cargo_home;

/// Runs the command. If it fails and cargo's cache holds damaged archives, deletes them and runs it once more.
pub(crate) fn run(command: &CommandLine) -> Result<()> {
    run_with(command, cargo_home().as_deref())
}

fn run_with(command: &CommandLine, cargo_home: Option<&Path>) -> Result<()> {
    let Err(failure) = command.run() else { return Ok(()) };
    let damaged = cargo_home.map(damaged_archives).unwrap_or_default();
    if damaged.is_empty() {
        return Err(failure);
    }
    for archive in damaged {
        let name = archive.display();
        fs::remove_file(&archive).with_context(|| format!("the archive {name} is damaged; delete it"))?;
        println!("the archive {name} was damaged: deleted it");
    }
    command.run()
}

/// Returns the archives of crates that gzip reads and finds damaged; none without gzip.
fn damaged_archives(cargo_home: &Path) -> Vec<PathBuf> {
    let entries =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(cargo_home.join("registry/cache"))
        .flat_map(entries)
        .filter(|file| file.extension().is_some_and(|ending| ending == "crate"))
        .filter(|file| is_damaged(file))
        .collect()
}

fn is_damaged(archive: &Path) -> bool {
    let Ok(archive) = File::open(archive) else { return false };
    let status = Command::new("gzip").arg("-t").stdin(archive).stderr(Stdio::null()).status();
    // Other codes are warnings.
    status.is_ok_and(|status| status.code() == Some(1))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// An empty file, compressed.
    const ARCHIVE: [u8; 20] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn run_with_a_damaged_archive_deletes_it_alone_and_runs_the_command_again() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("registry/cache/index");
        fs::create_dir_all(&folder).unwrap();
        let (whole, part) = (folder.join("whole-1.0.0.crate"), folder.join("part-1.0.0.crate"));
        fs::write(&whole, ARCHIVE).unwrap();
        fs::write(&part, &ARCHIVE[..12]).unwrap();
        let fails_if_present =
            |file: &Path| CommandLine::new("test").args(["!", "-e", &file.display().to_string()]);

        run_with(&fails_if_present(&part), Some(home.path())).unwrap();
        assert!(!part.exists() && whole.exists());

        run_with(&fails_if_present(&whole), Some(home.path())).unwrap_err();
        assert!(whole.exists());
    }
}
