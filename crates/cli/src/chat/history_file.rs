//! The drafts that were sent, kept across conversations in a file of the data folder.
//!
//! Each line has one draft as JSON. Several processes may append at once: each holds the lock of a file beside it, so
//! that no line is lost while another process shortens the file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    path::{Path, PathBuf},
};

use archon_terminal::{Draft, DraftKind};
use serde::{Deserialize, Serialize};

use crate::own_file;

/// The maximum number of drafts that are kept.
const MOST: usize = 1_000;
/// The number of lines at which the file is shortened.
const SHORTEN_AT: usize = MOST + 100;
/// The maximum size of a line in bytes. A longer draft is not kept.
const MOST_BYTES: usize = 64 * 1_024;

/// The file, and the number of its lines as far as this process knows.
pub(crate) struct HistoryFile {
    path: PathBuf,
    lines: usize,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    text: String,
    /// True if the first character of the text is a sign, such as `/`, which gives the draft its kind; false for a
    /// message.
    #[serde(default)]
    has_sign: bool,
    /// The parts that were pasted.
    #[serde(default)]
    pasted: Vec<Range<usize>>,
}

impl HistoryFile {
    /// Returns the file of a data folder, and its drafts, oldest first. Damaged lines are left out; of a file that
    /// cannot be read there are no drafts.
    pub(crate) fn open(data_dir: &Path) -> (Self, Vec<Draft>) {
        let path = data_dir.join("history.jsonl");
        let text = own_file::read(&path).ok().flatten().unwrap_or_default();
        let drafts: Vec<Draft> = text.lines().filter_map(draft).collect();
        let file = Self { path, lines: text.lines().count() };
        let first = drafts.len().saturating_sub(MOST);
        (file, drafts.into_iter().skip(first).collect())
    }

    /// Appends a draft.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn append(&mut self, draft: &Draft) -> io::Result<()> {
        let has_sign = draft.kind != DraftKind::Message;
        let (text, pasted) = (draft.text.clone(), draft.pasted.clone());
        let mut line = serde_json::to_string(&Line { text, has_sign, pasted })?;
        line.push('\n');
        if line.len() > MOST_BYTES {
            return Ok(());
        }
        own_file::create_folder(self.path.parent().unwrap_or(Path::new(".")))?;
        // The lock ends with this value.
        let lock = private().truncate(false).open(self.path.with_extension("lock"))?;
        lock.lock()?;
        if self.lines >= SHORTEN_AT {
            self.shorten()?;
        }
        let mut file = private().read(true).append(true).open(&self.path)?;
        if !ends_with_line_end(&mut file)? {
            line.insert(0, '\n');
        }
        self.lines += 1;
        // In one call, so that a process that does not know the lock adds no half lines.
        file.write_all(line.as_bytes())
    }

    /// Replaces the file by one with its newest drafts.
    fn shorten(&mut self) -> io::Result<()> {
        let text = own_file::read(&self.path)?.unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| draft(line).is_some()).collect();
        // Room for the line that follows.
        let kept = lines.get((lines.len() + 1).saturating_sub(MOST)..).unwrap_or_default();
        own_file::replace(&self.path, &kept.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        self.lines = kept.len();
        Ok(())
    }
}

/// Returns the draft of a line; `None` for a damaged line.
fn draft(line: &str) -> Option<Draft> {
    let Line { text, has_sign, pasted } = serde_json::from_str(line).ok()?;
    let mut draft = if has_sign { Draft::typed(text) } else { Draft::message(text) };
    draft.pasted = pasted;
    Some(draft)
}

/// Returns the options for a file that only its owner can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns true unless the last line was written only in part.
fn ends_with_line_end(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(folder: &Path) -> Vec<String> {
        HistoryFile::open(folder).1.into_iter().map(|draft| draft.text).collect()
    }

    #[test]
    fn drafts_come_back_with_their_kinds_and_line_ends() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");
        let (mut file, none) = HistoryFile::open(&folder);
        assert!(none.is_empty());
        let sent = [
            Draft::typed("two\nlines"),
            Draft::typed("!ls"),
            Draft::message("/pasted"),
            Draft::typed("/help"),
        ];
        sent.iter().for_each(|draft| file.append(draft).unwrap());
        assert_eq!(HistoryFile::open(&folder).1, sent);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(folder.join("history.jsonl")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn damaged_lines_are_left_out_and_spoil_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        std::fs::write(&path, "{\"text\":\"one\"}\n\u{0}\u{0}\n{\"text\":\"tw").unwrap();
        let (mut file, found) = HistoryFile::open(dir.path());
        assert_eq!(found, [Draft::message("one")]);
        file.append(&Draft::message("three")).unwrap();
        assert_eq!(drafts(dir.path()), ["one", "three"]);
    }

    #[test]
    fn long_history_keeps_the_newest_drafts() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, _) = HistoryFile::open(dir.path());
        (0..SHORTEN_AT + 5).for_each(|n| file.append(&Draft::message(n.to_string())).unwrap());
        file.append(&Draft::message("x".repeat(MOST_BYTES))).unwrap();
        let found = drafts(dir.path());
        assert_eq!((found.len(), found[0].as_str(), found[999].as_str()), (MOST, "105", "1104"));
        let text = std::fs::read_to_string(dir.path().join("history.jsonl")).unwrap();
        assert!(text.lines().count() < SHORTEN_AT, "{}", text.lines().count());
    }

    #[test]
    fn several_writers_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (mut first, _) = HistoryFile::open(dir.path());
        (0..SHORTEN_AT - 20).for_each(|n| first.append(&Draft::message(format!("old {n}"))).unwrap());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (mut file, _) = HistoryFile::open(dir.path());
                scope.spawn(move || {
                    (0..50).for_each(|n| file.append(&Draft::message(format!("{writer}.{n}"))).unwrap());
                });
            }
        });
        let found = drafts(dir.path());
        let new = found.iter().filter(|text| text.contains('.')).count();
        assert_eq!(new, 200, "{found:?}");
    }
}
