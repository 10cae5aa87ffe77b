//! Finds files of a workspace that git runs or reads as settings, by their location or because git's
//! settings name them. A git folder can have any name; it is recognised by its content.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

#[cfg(feature = "bash")]
use crate::control::GIT;
use crate::{beneath::open_regular, control::is_of_git, permissions::resolved};

/// Returns whether git would use a folder as a git folder. `has` returns whether the folder has an entry of
/// this name.
pub(crate) fn is_git(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Returns whether git runs the file `path` or reads settings from it, although the name of the file does not
/// show that.
pub(crate) fn decides(root: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
    above.into_iter().any(|folder| {
        let behind = path.strip_prefix(folder).unwrap_or(path);
        let names: Vec<_> = behind.components().map(|part| part.as_os_str()).collect();
        let is_part = || is_git(|name| folder.join(name).symlink_metadata().is_ok()) && is_of_git(&names);
        let named =
            || [folder.join(".git"), folder.to_owned()].iter().flat_map(|git| named(git)).collect::<Vec<_>>();
        is_part() || named().iter().any(|named| path.starts_with(named))
    })
}

/// Returns the paths of the settings within a git folder, and the paths that these settings name.
#[cfg(feature = "bash")]
pub(crate) fn parts(folder: &Path) -> Vec<PathBuf> {
    GIT.iter().map(|name| folder.join(name)).chain(named(folder)).collect()
}

/// Returns the hooks and settings that a repository's settings name, in the form that git itself writes;
/// other notations may be missed. `git` is the git folder, or the file of a worktree or submodule that points
/// to it.
pub(crate) fn named(git: &Path) -> Vec<PathBuf> {
    let beside = git.parent().unwrap_or(git).to_owned();
    let own = match text_of(git) {
        Some(text) => match text.strip_prefix("gitdir:") {
            Some(folder) => beside.join(folder.trim()),
            None => return Vec::new(),
        },
        None => git.to_owned(),
    };
    let common = text_of(&own.join("commondir")).map_or_else(|| own.clone(), |to| own.join(to.trim()));
    let mut trees = vec![beside];
    for worktree in fs::read_dir(own.join("worktrees")).into_iter().flatten().flatten() {
        let file = text_of(&worktree.path().join("gitdir"));
        trees.extend(file.and_then(|file| Path::new(file.trim()).parent().map(Path::to_owned)));
    }
    let mut found = Vec::new();
    for (folder, name) in [(&common, "config"), (&own, "config.worktree")] {
        if let Some(text) = text_of(&folder.join(name)) {
            found.extend(named_in(&text, folder, &trees));
        }
    }
    found
}

fn named_in(text: &str, folder: &Path, trees: &[PathBuf]) -> Vec<PathBuf> {
    let mut includes = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            includes = section.get(..7).is_some_and(|section| section.eq_ignore_ascii_case("include"));
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        let own = [folder.to_owned()];
        let from = match key {
            _ if key.eq_ignore_ascii_case("hookspath") => trees,
            _ if includes && key.eq_ignore_ascii_case("path") => &own[..],
            _ => continue,
        };
        // Resolves links in the path, which need not exist yet.
        found.extend(from.iter().filter_map(|from| resolved(from, Path::new(value))));
    }
    found
}

/// Returns a small settings file as text. Only its first 64 KiB are read.
fn text_of(file: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(file).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// A repository with a worktree `wt`, hooks in `scripts/hooks` that do not exist yet, and a git folder
    /// with another name.
    fn root() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [".git/worktrees/wt", "wt", "lib/objects", "lib/refs", "src"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write(".git/config", "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../more.ini\n");
        write(".git/worktrees/wt/gitdir", &format!("{}/wt/.git\n", root.display()));
        write(".git/worktrees/wt/commondir", "../..\n");
        write("wt/.git", &format!("gitdir: {}/.git/worktrees/wt\n", root.display()));
        write("lib/HEAD", "");
        (dir, root)
    }

    // spec: TE-39
    #[test]
    fn decides_is_true_for_files_named_by_git_settings_in_every_tree() {
        let (_dir, root) = root();
        for (path, expected) in [
            ("scripts/hooks/pre-commit", true),
            ("wt/scripts/hooks/pre-commit", true),
            ("more.ini", true),
            ("lib/config", true),
            ("lib/hooks/post-checkout", true),
            ("lib/objects/aa", false),
            ("src/scripts/hooks/pre-commit", false),
            ("scripts/other", false),
            ("src/config", false),
        ] {
            assert_eq!(decides(&root, &root.join(path)), expected, "{path}");
        }
        // The workspace is only the worktree.
        assert!(decides(&root.join("wt"), &root.join("wt/scripts/hooks/a")));
    }
}
