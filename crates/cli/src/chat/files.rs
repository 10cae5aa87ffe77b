//! The files of the workspace, for the names behind `@` in a draft.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::mpsc::UnboundedSender, time::Instant};

/// The age at which a list is made anew.
const OLD: Duration = Duration::from_secs(5);
/// The maximum number of files in a list.
const MOST: usize = 50_000;

/// The paths of files, relative to the folder of the workspace, in a stable order.
pub(crate) type FileList = Arc<[String]>;

/// Lists the files on another thread, since a large folder takes a while.
pub(crate) struct Files {
    folder: Option<PathBuf>,
    lists: UnboundedSender<FileList>,
    listed_at: Option<Instant>,
    is_listing: bool,
}

impl Files {
    /// Creates a value that lists the files of a folder and sends each list to `lists`. Without a folder, it sends
    /// none.
    pub(crate) fn new(folder: Option<PathBuf>, lists: UnboundedSender<FileList>) -> Self {
        Self { folder, lists, listed_at: None, is_listing: false }
    }

    /// Begins to list the files, unless a list is under way or less than 5 s old.
    pub(crate) fn list(&mut self) {
        let is_old = self.listed_at.is_none_or(|at| at.elapsed() >= OLD);
        let Some(folder) = self.folder.clone().filter(|_| is_old && !self.is_listing) else { return };
        self.is_listing = true;
        let lists = self.lists.clone();
        tokio::task::spawn_blocking(move || drop(lists.send(files(&folder, MOST).into())));
    }

    /// Records that a list has come, so that the next one may begin.
    pub(crate) fn note_list(&mut self) {
        (self.listed_at, self.is_listing) = (Some(Instant::now()), false);
    }
}

/// Returns the files in a folder and below it, except hidden and ignored ones. Links are not followed.
fn files(folder: &Path, most: usize) -> Vec<String> {
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.require_git(false).follow_links(false).sort_by_file_name(Ord::cmp);
    let files = walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let path = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(folder).ok()?.to_str()?;
        Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
    };
    files.filter_map(path).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_that_are_neither_hidden_nor_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["src/deep", "target", ".hidden"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["b.txt", "src/deep/a b.rs", "src/é.rs", "target/out", ".hidden/x", ".env", "c.log"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "target/\n*.log\n").unwrap();
        assert_eq!(files(dir.path(), 10), ["b.txt", "src/deep/a b.rs", "src/é.rs"]);
        assert_eq!(files(dir.path(), 2), ["b.txt", "src/deep/a b.rs"]);
    }
}
