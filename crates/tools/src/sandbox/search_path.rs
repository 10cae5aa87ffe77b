//! The search path of a command: folders that a command may write come last.
//!
//! A program that a model put into the workspace must not replace a system's program in a later command that
//! a person allowed by name. So folders within the workspace are searched last: `pytest` in the project's
//! `.venv/bin` is found if the system has none, but `ls` is always the system's. To change that, set `PATH`
//! in the [variables](super::SandboxOptions::env) of commands.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::permissions::resolved;

/// Folders that come first in a search path that has no usable folder outside of the granted ones.
const USUAL: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];

/// Returns `path` without relative folders, with folders within `inside` at its end and links resolved in the
/// others, so that these cannot be redirected later.
pub(super) fn search_path(path: &OsStr, inside: &[PathBuf]) -> Option<OsString> {
    let is_inside = |folder: &Path| inside.iter().any(|root| folder.starts_with(root));
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for folder in env::split_paths(path).filter(|folder| folder.is_absolute()) {
        // A dangling link may lead anywhere later.
        let Some(real) = resolved(Path::new("/"), &folder) else { continue };
        match is_inside(&folder) || is_inside(&real) {
            true => last.push(folder),
            false => first.push(real),
        }
    }
    if first.is_empty() {
        first.extend(USUAL.iter().map(PathBuf::from));
    }
    env::join_paths(first.into_iter().chain(last)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    // spec: TE-39
    #[test]
    fn folders_inside_are_looked_through_last_and_relative_ones_not_at_all() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        for folder in ["ws/.venv/bin", "ws/real", "tools"] {
            fs::create_dir_all(outer.join(folder)).unwrap();
        }
        symlink(outer.join("ws/.venv"), outer.join("into")).unwrap();
        symlink(outer.join("tools"), outer.join("to-tools")).unwrap();
        symlink(outer.join("tools"), outer.join("ws/out")).unwrap();
        symlink(outer.join("nowhere"), outer.join("dangling")).unwrap();
        let check = |path: &str, expected: &str| {
            let given = path.replace('@', outer.to_str().unwrap());
            let made = search_path(given.as_ref(), &[outer.join("ws")]).unwrap().into_string().unwrap();
            assert_eq!(made.replace(outer.to_str().unwrap(), "@"), expected, "{path}");
        };
        check("@/tools:@/ws/.venv/bin", "@/tools:@/ws/.venv/bin");
        check("@/ws/.venv/bin:@/tools", "@/tools:@/ws/.venv/bin");
        check("@/into/bin:@/tools", "@/tools:@/into/bin");
        check("@/ws/out:@/tools", "@/tools:@/ws/out");
        check("@/ws/not-there-yet:@/tools", "@/tools:@/ws/not-there-yet");
        check("@/to-tools:@/gone", "@/tools:@/gone");
        check("@/dangling:@/tools", "@/tools");
        check(".:node_modules/.bin::@/tools:", "@/tools");
        check("@/ws/real", "/usr/local/bin:/usr/bin:/bin:@/ws/real");
        check("", "/usr/local/bin:/usr/bin:/bin");
    }
}
