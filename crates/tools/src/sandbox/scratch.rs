//! The scratch folder of a call. It is deleted with the call, or after a crash by the next process that runs
//! commands: its name identifies its maker.

use std::{io, path::Path, sync::Once};

use rustix::fs::{AtFlags, CWD, FileType};
use tempfile::TempDir;

use super::maker;

const PREFIX: &str = "archon-call-";

/// Creates a scratch folder that only its owner can use.
pub(super) fn create() -> io::Result<TempDir> {
    TempDir::with_prefix(maker::name(PREFIX, "").unwrap_or_else(|| PREFIX.to_owned()))
}

/// Deletes the scratch folders of processes that are gone. Runs once, because this process deletes its own
/// folders.
pub(super) fn remove_stale() {
    static LOOKED: Once = Once::new();
    LOOKED.call_once(|| {
        if let Some(namespace) = maker::namespace() {
            remove_stale_in(&std::env::temp_dir(), &namespace);
        }
    });
}

fn remove_stale_in(parent: &Path, namespace: &str) {
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        let is_stale =
            entry.file_name().to_str().is_some_and(|name| maker::is_stale(name, PREFIX, namespace));
        // Other users can create such names in a shared folder.
        if is_stale && is_own_folder(&entry.path()) {
            let removed = std::fs::remove_dir_all(entry.path());
            tracing::info!(target: "archon::tools", folder = ?entry.path(), ?removed, "a scratch folder of before");
        }
    }
}

/// Returns whether the path is a folder of our user, and not a link to one.
fn is_own_folder(path: &Path) -> bool {
    let of = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    of.is_ok_and(|of| {
        FileType::from_raw_mode(of.st_mode) == FileType::Directory
            && of.st_uid == rustix::process::geteuid().as_raw()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    // spec: TE-58
    #[test]
    fn scratch_folders_of_processes_that_are_gone_are_taken_away_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let namespace = maker::namespace().unwrap();
        let gone = |of: &str| format!("{PREFIX}{namespace}-{}-0-{of}", std::process::id());
        let kept = parent.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        fs::create_dir_all(parent.path().join(gone("a")).join("deep/er")).unwrap();
        symlink(&kept, parent.path().join(gone("a")).join("link")).unwrap();
        symlink(&kept, parent.path().join(gone("link"))).unwrap();
        fs::write(parent.path().join(gone("file")), "").unwrap();
        fs::create_dir(parent.path().join("archon-call-1-2-3-x")).unwrap();
        let mut expected =
            vec!["kept".to_owned(), gone("link"), gone("file"), "archon-call-1-2-3-x".to_owned()];
        if rustix::process::geteuid().is_root() {
            fs::create_dir(parent.path().join(gone("others"))).unwrap();
            std::os::unix::fs::chown(parent.path().join(gone("others")), Some(65_534), None).unwrap();
            expected.push(gone("others"));
        }
        let ours = maker::name(PREFIX, "z").unwrap();
        fs::create_dir(parent.path().join(&ours)).unwrap();
        expected.push(ours);
        remove_stale_in(parent.path(), &namespace);
        let mut left: Vec<_> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        assert!(kept.join("file").exists());
    }
}
