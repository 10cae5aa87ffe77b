//! The search for folders with a `SKILL.md`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{SkillProblem, folder::SKIPPED, problem::SkillProblemKind as Kind, skill_file::SKILL_FILE};

/// The maximum depth of a searched folder. Folders directly below the start have depth 1.
const DEEPEST: usize = 6;
/// The maximum number of searched folders.
const MOST_FOLDERS: usize = 2_000;

/// The maximum number of files and folders directly in one folder. A folder with more is not searched.
const MOST_ENTRIES: usize = 10_000;

/// The folders with skills that a search found, and the problems of the search.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) problems: Vec<SkillProblem>,
    searched: usize,
}

/// Returns the folders below `start` that have a `SKILL.md`, in the order of their paths. A skill's folder is not
/// searched for further skills.
pub(crate) fn folders(start: &Path) -> Found {
    let mut found = Found::default();
    // The person named this folder, so it may itself be a link.
    if let Ok(start) = start.canonicalize() {
        found.search(&start, 0);
    }
    found
}

impl Found {
    fn add_problem(&mut self, file: &Path, kind: Kind, text: &str) {
        self.problems.push(SkillProblem::new(file, 1, kind, text));
    }

    fn search(&mut self, folder: &Path, depth: usize) {
        self.searched += 1;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                return self.add_problem(
                    folder,
                    Kind::Unreadable,
                    &format!("the folder cannot be read: {error}"),
                );
            }
        };
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut entries: Vec<PathBuf> = entries.take(MOST_ENTRIES + 1).collect();
        if entries.len() > MOST_ENTRIES {
            let text = format!(
                "the folder has more than {MOST_ENTRIES} files and folders, and is not searched for skills"
            );
            return self.add_problem(folder, Kind::Limit, &text);
        }
        entries.sort();
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(file) = entries.iter().find(|path| name(path) == SKILL_FILE) {
            return match file.is_symlink() {
                true => self.add_problem(
                    file,
                    Kind::Link,
                    "the file is a symbolic link, which is not followed; copy it",
                ),
                false => self.folders.push(folder.to_owned()),
            };
        }
        if let Some(file) = entries.iter().find(|path| name(path).to_lowercase() == "skill.md") {
            self.add_problem(file, Kind::Missing, "a skill's file must be named SKILL.md; rename it");
        }
        for path in entries {
            if path.is_symlink() {
                self.check_link(&path);
            } else if path.is_dir() && !SKIPPED.contains(&name(&path).as_str()) {
                self.descend(&path, depth + 1);
            }
        }
    }

    fn descend(&mut self, folder: &Path, depth: usize) {
        if depth > DEEPEST {
            let text =
                format!("the folder is more than {DEEPEST} folders deep, and is not searched for skills");
            return self.add_problem(folder, Kind::Limit, &text);
        }
        if self.searched >= MOST_FOLDERS {
            // One warning is enough; the next folder would have the same.
            if self.searched == MOST_FOLDERS {
                self.searched += 1;
                let text = format!(
                    "only {MOST_FOLDERS} folders are searched for skills; this one and those after it are not"
                );
                self.add_problem(folder, Kind::Limit, &text);
            }
            return;
        }
        self.search(folder, depth);
    }

    /// Adds a warning for a symbolic link to a skill's folder: the link is not followed, but a person may have meant
    /// it as a skill.
    fn check_link(&mut self, link: &Path) {
        if link.join(SKILL_FILE).is_file() {
            let text =
                "the folder is a symbolic link, which is not followed; copy it, or load what it leads to";
            self.add_problem(link, Kind::Link, text);
        }
    }
}
