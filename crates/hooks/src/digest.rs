//! The hash that a person trusts: of a project's file with hooks, and of the files that its commands name.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

/// Variables for the folder of the project, in the forms that a command may have.
const FOLDERS: [&str; 4] =
    ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${ARCHON_PROJECT_DIR}", "$ARCHON_PROJECT_DIR"];

/// The most bytes of all files that the commands of one file name.
const MOST_BYTES: u64 = 16 << 20;

/// Returns the SHA-256 in hexadecimal digits of a file's text and of each file of the project that a command names,
/// with its path. So a script that was changed since needs to be trusted again.
///
/// # Errors
/// A command names a link that leads out of the project, or the files cannot be read or are too large.
pub(crate) fn digest<'c>(
    text: &str,
    commands: impl IntoIterator<Item = &'c str>,
    project: &Path,
) -> Result<String, String> {
    let mut hash = hmac_sha256::Hash::new();
    let mut add = |bytes: &[u8]| {
        // With its length, so that no part can pass for the beginning of the next.
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    add(text.as_bytes());
    let mut read = Contents { known: BTreeMap::new(), room: MOST_BYTES };
    for command in commands {
        for file in named_files(command, project)? {
            let content = read.hash(&file)?;
            add(file.name.as_bytes());
            add(&content);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A file of the project that a command names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedFile {
    /// The path below the folder of the project.
    pub(crate) name: String,
    /// The path without symbolic links.
    path: PathBuf,
}

/// Returns the files of the project that a command line names, in its order.
///
/// # Errors
/// A name leads to a file outside of the project through a symbolic link: whoever made the link chose the file, and a
/// change of it would need no agreement.
pub(crate) fn named_files(command: &str, project: &Path) -> Result<Vec<NamedFile>, String> {
    let Ok(root) = project.canonicalize() else { return Ok(Vec::new()) };
    let bare = command.replace(['"', '\'', '\\'], "");
    let words = bare.split(|c: char| c.is_whitespace() || ";|&()<>=`".contains(c));
    let mut files = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let folder = FOLDERS.iter().find_map(|folder| word.strip_prefix(folder));
        let word = folder.map_or(word, |rest| rest.trim_start_matches('/'));
        let named = root.join(word);
        let Some(path) = named.canonicalize().ok().filter(|path| path.is_file()) else { continue };
        match path.strip_prefix(&root) {
            Ok(below) => files.push(NamedFile { name: below.display().to_string(), path: path.clone() }),
            Err(_) if is_below(&named, &root) => {
                return Err(format!(
                    "the command names `{word}`, a link that leads out of the project: name {} instead",
                    path.display()
                ));
            }
            // A file of this machine, such as a program.
            Err(_) => {}
        }
    }
    Ok(files)
}

/// Returns true if a path is below a folder, as far as its words say, whatever links do.
fn is_below(path: &Path, root: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(root)
}

/// Files that were read, each once.
struct Contents {
    known: BTreeMap<PathBuf, [u8; 32]>,
    /// The bytes that may still be read.
    room: u64,
}

impl Contents {
    /// Returns the SHA-256 of a file.
    fn hash(&mut self, file: &NamedFile) -> Result<[u8; 32], String> {
        if let Some(hash) = self.known.get(&file.path) {
            return Ok(*hash);
        }
        let content = self
            .read(&file.path)
            .map_err(|e| format!("the command names `{}`, which cannot be read: {e}", file.name))?;
        let hash = hmac_sha256::Hash::hash(&content);
        self.known.insert(file.path.clone(), hash);
        Ok(hash)
    }

    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        File::open(path)?.take(self.room + 1).read_to_end(&mut content)?;
        let length = content.len() as u64;
        self.room = self.room.checked_sub(length).ok_or_else(|| {
            let most = MOST_BYTES >> 20;
            io::Error::other(format!("the files that commands name have more than {most} MiB; name others"))
        })?;
        Ok(content)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn digest_changes_with_text_and_named_scripts_only() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path();
        for name in ["check.sh", "my check.sh", "other.sh"] {
            fs::write(project.join(name), "exit 0").unwrap();
        }
        let commands = [
            "sh check.sh",
            "\"$CLAUDE_PROJECT_DIR\"/check.sh",
            "FILE=./check.sh; . ${ARCHON_PROJECT_DIR}/check.sh",
        ];
        for command in commands {
            let of = |text: &str| digest(text, [command], project).unwrap();
            let before = of("{}");
            assert_eq!(before.len(), 64);
            assert_ne!(of("{ }"), before);
            fs::write(project.join("other.sh"), "exit 1").unwrap();
            assert_eq!(of("{}"), before, "{command}");
            fs::write(project.join("check.sh"), "exit 1").unwrap();
            assert_ne!(of("{}"), before, "{command}");
            fs::write(project.join("check.sh"), "exit 0").unwrap();
            assert_eq!(of("{}"), before, "{command}");
        }
    }

    #[test]
    fn digest_leaves_out_files_beyond_the_project() {
        let above = tempfile::tempdir().unwrap();
        let project = above.path().join("project");
        fs::create_dir(&project).unwrap();
        let of = || digest("{}", ["sh ../check.sh"], &project).unwrap();
        let before = of();
        fs::write(above.path().join("check.sh"), "exit 0").unwrap();
        assert_eq!(of(), before);
    }

    #[test]
    fn named_files_are_those_of_the_project_by_their_paths() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path();
        fs::create_dir(project.join("scripts")).unwrap();
        for name in ["scripts/check.sh", "a.py"] {
            fs::write(project.join(name), "").unwrap();
        }
        let names = |command: &str| -> Vec<String> {
            named_files(command, project).unwrap().into_iter().map(|file| file.name).collect()
        };
        let absolute = format!("python3 {}/a.py", project.display());
        for (command, expected) in [
            (
                "\"$CLAUDE_PROJECT_DIR\"/scripts/check.sh --fast; python3 ./a.py",
                &["scripts/check.sh", "a.py"][..],
            ),
            (&absolute, &["a.py"]),
            ("cd scripts && ./check.sh", &[]),
            ("sh scripts/*.sh", &[]),
            ("\"$(pwd)/a.py\"", &[]),
            ("make lint", &[]),
        ] {
            assert_eq!(names(command), expected, "{command}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn named_files_behind_a_link_out_of_the_project_are_refused() {
        use std::os::unix::fs::symlink;

        let above = tempfile::tempdir().unwrap();
        let project = above.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(above.path().join("check.sh"), "").unwrap();
        fs::write(project.join("own.sh"), "").unwrap();
        symlink(above.path(), project.join("up")).unwrap();
        symlink(above.path().join("check.sh"), project.join("check.sh")).unwrap();
        symlink("own.sh", project.join("other.sh")).unwrap();
        for command in ["sh check.sh", "sh up/check.sh", "sh ./x/../check.sh"] {
            let problem = named_files(command, &project);
            let is_refused = problem.as_ref().is_err_and(|text| text.contains("leads out of the project"));
            // The last names no file: the folder `x` does not exist.
            assert_eq!(is_refused, !command.contains("x/.."), "{command}: {problem:?}");
            assert_eq!(digest("{}", [command], &project).is_err(), is_refused);
        }
        assert_eq!(named_files("sh other.sh", &project).unwrap()[0].name, "own.sh");
    }

    #[test]
    fn digest_of_files_beyond_the_limit_is_an_error_and_of_one_file_many_times_is_none() {
        let place = tempfile::tempdir().unwrap();
        let (small, large) = (vec![b'x'; 1 << 20], vec![b'x'; 16 << 20]);
        fs::write(place.path().join("small"), small).unwrap();
        assert!(digest("{}", ["cat small; cat small"; 20], place.path()).is_ok());
        fs::write(place.path().join("large"), large).unwrap();
        let problem = digest("{}", ["cat small", "cat large"], place.path()).unwrap_err();
        assert!(problem.contains("`large`") && problem.contains("more than 16 MiB"), "{problem}");
    }
}
