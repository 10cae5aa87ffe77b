//! Overwrites lines of files that other programs may append to.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use archon::types::ContentHash;
use serde::{Deserialize, Serialize};

use super::{texts::Texts, unless_absent};

/// The length of a line in bytes, and 32 bits of its hash: enough to find the line again in its file, and too few to
/// guess its text from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) struct LineMark(usize, u32);

impl LineMark {
    fn of(line: &[u8]) -> Self {
        let hash = ContentHash::of(&line) & u64::from(u32::MAX);
        Self(line.len(), u32::try_from(hash).unwrap_or(0))
    }
}

/// Returns the marks of the lines that have one of the texts. One line at a time is in memory.
pub(super) fn with_texts(reader: impl BufRead, texts: &Texts) -> io::Result<BTreeSet<LineMark>> {
    marks_of(reader, |line| texts.are_in(line))
}

/// Returns those of the marks that a file has lines of: none if it is absent.
pub(super) fn present(path: &Path, marks: &BTreeSet<LineMark>) -> io::Result<BTreeSet<LineMark>> {
    match File::open(path) {
        Ok(file) => marks_of(BufReader::new(file), |line| marks.contains(&LineMark::of(line))),
        Err(e) => unless_absent(e).map(|()| BTreeSet::new()),
    }
}

fn marks_of(reader: impl BufRead, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<BTreeSet<LineMark>> {
    let mut marks = BTreeSet::new();
    for line in reader.split(b'\n') {
        let line = line?;
        if is_wanted(&line) {
            marks.insert(LineMark::of(&line));
        }
    }
    Ok(marks)
}

/// Overwrites the lines of these marks with spaces. Readers of the file leave such lines out. The file keeps its length,
/// so a program that appends to it at the same time loses no line.
///
/// # Errors
/// The file cannot be read or written.
pub(super) fn overwrite(path: &Path, marks: &BTreeSet<LineMark>) -> io::Result<()> {
    // Only the history of drafts is replaced by other processes, which hold this lock meanwhile.
    let lock =
        File::open(path.with_extension("lock")).map(Some).or_else(|e| unless_absent(e).map(|()| None))?;
    if let Some(lock) = &lock {
        lock.lock()?;
    }
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(e) => return unless_absent(e),
    };
    let (mut at, mut places) = (0, Vec::new());
    for line in BufReader::new(&file).split(b'\n') {
        let line = line?;
        if marks.contains(&LineMark::of(&line)) {
            places.push((at, line.len()));
        }
        at += line.len() as u64 + 1;
    }
    for (at, length) in places {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&vec![b' '; length])?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrite_keeps_other_lines_and_the_length_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        std::fs::write(&path, "{\"text\":\"my number is 4711\"}\n{\"text\":\"b\"}\nmy number is 4711")
            .unwrap();
        let marks = |text| with_texts(&*std::fs::read(&path).unwrap(), &Texts::of([text])).unwrap();
        assert!(marks("My number, my number is 4711").is_empty());
        let marks = marks("my number is 4711");
        assert_eq!(present(&path, &marks).unwrap(), marks);
        overwrite(&path, &marks).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n{{\"text\":\"b\"}}\n{}", " ".repeat(28), " ".repeat(17)));
        assert_eq!(present(&path, &marks).unwrap().len(), 0);
        assert_eq!(present(&dir.path().join("none.jsonl"), &marks).unwrap().len(), 0);
        overwrite(&dir.path().join("none.jsonl"), &marks).unwrap();
    }
}
