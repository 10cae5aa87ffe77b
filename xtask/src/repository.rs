//! Finds the top of the repository and the files that belong to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Returns the top of the repository, from cargo's variable at run time or at build time.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// Folders whose Rust files are data for a model, not code.
const FIXTURES: &[&str] = &["crates/cli/examples/eval/workspace/"];

/// A text file of the repository; `path` is relative to the top and written with `/`.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns whether the file is our source code, not example data.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && !FIXTURES.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Returns whether the file has only tests: it is in a `tests` folder or is named `tests.rs`.
    pub(crate) fn is_test_code(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// Returns every text file that git tracks or would track.
pub(crate) fn text_files() -> Result<Vec<TextFile>> {
    let root = root();
    let mut files = Vec::new();
    for path in paths(&root)? {
        // A deleted file may still be in the index.
        let Ok(bytes) = fs::read(root.join(&path)) else { continue };
        if bytes.contains(&0) {
            continue;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

fn paths(root: &Path) -> Result<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output();
    let mut paths = match listing {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names.split_terminator('\0').map(str::to_owned).collect()
        }
        // An unpacked archive has no git: takes everything but the build folders.
        _ => walk(root)?,
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                if entry.file_name() != "target" && entry.file_name() != ".git" {
                    folders.push(entry.path());
                }
            } else if let Ok(path) = entry.path().strip_prefix(root) {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_file_belongs_to_the_repository() {
        let files = text_files().unwrap();
        let this = files.iter().find(|file| file.path == "xtask/src/repository.rs").unwrap();
        assert!(this.is_rust() && !this.is_test_code());
    }

    #[test]
    fn example_data_is_no_source_code() {
        for folder in FIXTURES {
            assert!(!TextFile::new(&format!("{folder}src/main.rs"), "").is_rust());
        }
        assert!(TextFile::new("crates/types/src/lib.rs", "").is_rust());
    }

    #[test]
    fn without_git_the_build_folders_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/a.rs", "target/debug/b.rs", ".git/config"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(walk(folder.path()).unwrap(), ["src/a.rs"]);
    }

    #[test]
    fn test_code_is_known_by_its_path() {
        for (path, expected) in [
            ("tests/loop/resume.rs", true),
            ("crates/types/src/ids/tests.rs", true),
            ("crates/testkit/src/a.rs", false),
        ] {
            assert_eq!(TextFile::new(path, "").is_test_code(), expected, "{path}");
        }
    }
}
