//! Cargo commands that download crates. They succeed also if an earlier download was interrupted: cargo keeps the
//! part of the archive that arrived, takes it for the whole, and fails on it each time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command_line::CommandLine;
use crate::demo::cargo_home;

/// Runs the command. If it fails and cargo's cache holds damaged archives, deletes them and runs it once more.
pub(crate) fn run(command: &CommandLine) -> Result<()> {
    let Err(failure) = command.run() else { return Ok(()) };
    let damaged = cargo_home().map(|home| damaged_archives(&home)).unwrap_or_default();
    if damaged.is_empty() {
        return Err(failure);
    }
    for archive in damaged {
        let name = archive.display();
        fs::remove_file(&archive).with_context(|| format!("{name} is damaged and cannot be deleted"))?;
        println!("deleted {name}: its download was interrupted; fetching it again");
    }
    command.run()
}

/// Returns the archives of crates that gzip cannot read to their end; none without gzip.
fn damaged_archives(cargo_home: &Path) -> Vec<PathBuf> {
    if CommandLine::new("gzip").args(["--version"]).output().is_err() {
        return Vec::new();
    }
    let entries =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(cargo_home.join("registry/cache"))
        .flat_map(entries)
        .filter(|file| file.extension().is_some_and(|ending| ending == "crate"))
        .filter(|file| {
            let file = file.display().to_string();
            CommandLine::new("gzip").args(["--test", "--suffix", ".crate", &file]).output().is_err()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty file, compressed.
    const ARCHIVE: [u8; 20] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn damaged_archives_after_an_interrupted_download_names_its_archive_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("registry/cache/index");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("whole-1.0.0.crate"), ARCHIVE).unwrap();
        fs::write(folder.join("part-1.0.0.crate"), &ARCHIVE[..12]).unwrap();
        fs::write(folder.join("note.txt"), "no archive").unwrap();

        assert_eq!(damaged_archives(home.path()), [folder.join("part-1.0.0.crate")]);
    }
}
