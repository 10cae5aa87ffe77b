//! Texts for a person about a conversation: its folder, its session, and its Git branch.

use std::path::{Path, PathBuf};

use archon::types::SessionId;

use crate::{
    app::App,
    command_line::{in_data_dir, quoted},
    text::visible_path,
    toolset,
};

/// The maximum size of the file that names the branch.
const MOST: u64 = 4_096;

/// Returns the first line of a conversation: the version, the model and the folder.
pub(crate) fn title(app: &App, model: &str) -> String {
    let mut parts = vec![format!("archon {}", env!("CARGO_PKG_VERSION")), model.to_owned()];
    if let Some(folder) = toolset::folder(app) {
        let branch = branch(&folder).map(|branch| format!(" ({branch})")).unwrap_or_default();
        parts.push(format!("{}{branch}", short(&folder, app.env("HOME").map(Path::new))));
    }
    parts.join(" · ")
}

/// Returns the command that continues a conversation.
pub(crate) fn continue_line(app: &App, session: &SessionId) -> String {
    in_data_dir(app, &format!("archon chat --session {}", quoted(session.as_str())))
}

/// Returns true if commands run in a sandbox on this machine.
#[cfg(unix)]
pub(crate) fn is_sandboxed() -> bool {
    archon::tools::sandbox::missing().is_none()
}

/// Returns false: there is no tool that runs commands.
#[cfg(not(unix))]
pub(crate) fn is_sandboxed() -> bool {
    false
}

/// Returns the branch of a folder's Git repository; `None` without a repository or a branch.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let head = folder.ancestors().find_map(|folder| head_file(&folder.join(".git")))?;
    let is_small = std::fs::metadata(&head).is_ok_and(|file| file.is_file() && file.len() <= MOST);
    let text = is_small.then(|| std::fs::read_to_string(head).ok()).flatten()?;
    Some(text.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}

/// Returns the file that names the branch. In a linked worktree, `.git` is a file with the path of the folder that
/// contains the file.
fn head_file(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.join("HEAD"));
    }
    let is_small = std::fs::metadata(git).is_ok_and(|file| file.is_file() && file.len() <= MOST);
    let text = is_small.then(|| std::fs::read_to_string(git).ok()).flatten()?;
    let folder = PathBuf::from(text.trim().strip_prefix("gitdir: ")?);
    let base = git.parent().unwrap_or(Path::new("."));
    Some(base.join(folder).join("HEAD"))
}

/// Returns the path of a folder, with `~` for the person's home folder.
fn short(folder: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", visible_path(rest)),
        None => visible_path(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_is_found_from_a_folder_below_and_in_a_linked_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let (git, below) = (dir.path().join("shop/.git"), dir.path().join("shop/src"));
        std::fs::create_dir_all(git.join("worktrees/side")).unwrap();
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/feature/prices\n").unwrap();
        assert_eq!(branch(&below).as_deref(), Some("feature/prices"));
        std::fs::write(git.join("HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(branch(&below), None, "no branch is checked out");

        let side = dir.path().join("side");
        std::fs::create_dir(&side).unwrap();
        std::fs::write(side.join(".git"), "gitdir: ../shop/.git/worktrees/side\n").unwrap();
        std::fs::write(git.join("worktrees/side/HEAD"), "ref: refs/heads/side\n").unwrap();
        assert_eq!(branch(&side).as_deref(), Some("side"));
    }

    #[test]
    fn short_replaces_only_the_persons_own_folder() {
        let home = Some(Path::new("/home/ada"));
        for (folder, expected) in
            [("/home/ada", "~"), ("/home/ada/shop", "~/shop"), ("/home/adam", "/home/adam"), ("/srv", "/srv")]
        {
            assert_eq!(short(Path::new(folder), home), expected);
        }
    }
}
