//! The hash that a person trusts: of a project's file with hooks, and of the scripts that its commands name.

use std::path::Path;

/// Variables for the folder of the project, in the forms that a command may have.
const FOLDERS: [&str; 4] =
    ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${ARCHON_PROJECT_DIR}", "$ARCHON_PROJECT_DIR"];

/// Returns the SHA-256 in hexadecimal digits of a file's text and of each file of the project that a command names,
/// with its path. So a script that was changed since needs to be trusted again.
pub(crate) fn digest<'c>(text: &str, commands: impl IntoIterator<Item = &'c str>, project: &Path) -> String {
    let mut hash = hmac_sha256::Hash::new();
    let mut add = |bytes: &[u8]| {
        // With its length, so that no part can pass for the beginning of the next.
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    add(text.as_bytes());
    for command in commands {
        for (path, content) in scripts(command, project) {
            add(path.as_bytes());
            add(&content);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the files of the project that a command line names, each with its content.
fn scripts(command: &str, project: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(root) = project.canonicalize() else { return Vec::new() };
    let bare = command.replace(['"', '\'', '\\'], "");
    let words = bare.split(|c: char| c.is_whitespace() || ";|&()<>=`".contains(c));
    let read = |word: &str| {
        let folder = FOLDERS.iter().find_map(|folder| word.strip_prefix(folder));
        let word = folder.map_or(word, |rest| rest.trim_start_matches('/'));
        let path =
            root.join(word).canonicalize().ok().filter(|path| path.starts_with(&root) && path.is_file())?;
        Some((word.to_owned(), std::fs::read(path).ok()?))
    };
    words.filter(|word| !word.is_empty()).filter_map(read).collect()
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
            let of = |text: &str| digest(text, [command], project);
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
        let of = || digest("{}", ["sh ../check.sh"], &project);
        let before = of();
        fs::write(above.path().join("check.sh"), "exit 0").unwrap();
        assert_eq!(of(), before);
    }
}
