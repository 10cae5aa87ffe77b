//! The index of a directory of logs, so that a list costs what it finds. It can be removed; the next list makes it again.
//!
//! | file | holds |
//! |---|---|
//! | `{dir}/index/recent` | a line for each [`Note`], the newest last |
//! | `{dir}/index/sessions/{hash}/{run}` | nothing; there for each run of the session of that hash |
//! | `{dir}/index/waiting/{run}` | nothing; there for each run that waits |
//! | `{dir}/index/whole` | nothing; there when the index knows every log |
//!
//! The index only says where to look: what is said of a run comes from its log. So an entry for a run that is gone, or
//! is not as the index has it, does no harm, but a missing one would. An entry is therefore made before the record that
//! it is for, and one that says that a run rests after it. A log that was put into the directory by hand is found when
//! all runs are listed; then the index is made anew.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use archon_types::{JournalError, RunHead, RunId, RunStatus, SessionId, Timestamp};

use super::RunFiles;
use crate::{
    blob,
    files::{Identity, create_directory, make_directory, open_file, storage, sync_directory},
    listing::Note,
};

/// How much of the notes is read at once, from the end.
const BLOCK: u64 = 16 * 1024;
/// Longer than any line.
const LINE: u64 = 512;

#[derive(Clone, Debug)]
pub(super) struct Index {
    runs: PathBuf,
    dir: PathBuf,
}

impl Index {
    /// The index of the logs in `runs`, beside them.
    pub(super) fn of(runs: &Path) -> Self {
        Self { runs: runs.to_owned(), dir: runs.with_file_name("index") }
    }

    /// Notes that a run begins in a session. It is on the medium after [`sync`](Self::sync).
    pub(super) fn begin(&self, run: &RunId, session: &SessionId) -> Result<(), JournalError> {
        touch(&self.session(session), run)
    }

    /// Puts what was noted of runs that begin in a session on the medium.
    pub(super) fn sync(&self, session: &SessionId) -> Result<(), JournalError> {
        let directory = self.session(session);
        sync_directory(&directory)?;
        directory.parent().map_or(Ok(()), sync_directory)
    }

    /// Notes that a run is about to wait, on the medium.
    pub(super) fn waits(&self, run: &RunId) -> Result<(), JournalError> {
        touch(&self.waiting(), run)?;
        sync_directory(&self.waiting())
    }

    /// Notes that a run waits no more.
    pub(super) fn waits_no_more(&self, run: &RunId) {
        let _ = fs::remove_file(self.waiting().join(run.as_str()));
    }

    /// Forgets a run that was removed, where its name is looked up.
    pub(super) fn forget(&self, run: &RunId, session: Option<&SessionId>) {
        self.waits_no_more(run);
        if let Some(session) = session {
            let dir = self.session(session);
            let _ = fs::remove_file(dir.join(run.as_str()));
            let _ = fs::remove_dir(dir);
        }
    }

    /// Appends a note.
    pub(super) fn note(&self, note: &Note) -> Result<(), JournalError> {
        let mut recent = self.lock()?;
        let path = self.recent();
        append(&mut recent, note).map_err(storage("write", &path))
    }

    /// The runs of a session.
    pub(super) fn of_session(&self, session: &SessionId) -> Result<Vec<RunId>, JournalError> {
        names(&self.session(session))
    }

    /// The runs that wait, and perhaps some that do not.
    pub(super) fn who_waits(&self) -> Result<Vec<RunId>, JournalError> {
        names(&self.waiting())
    }

    /// All notes with the latest time until each, the newest first.
    pub(super) fn notes(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Note, Timestamp), JournalError>>, JournalError> {
        let path = self.recent();
        let file = open_file(&path).map_err(storage("read", &path))?;
        let left = file.metadata().map_err(storage("read", &path))?.len();
        let mut lines = Backwards { file, left, text: Vec::new() };
        Ok(std::iter::from_fn(move || {
            loop {
                match lines.next() {
                    Ok(None) => return None,
                    Ok(Some(line)) => {
                        if let Some(note) = parse(&line) {
                            return Some(Ok(note));
                        }
                    }
                    Err(e) => return Some(Err(storage("read", &path)(e))),
                }
            }
        }))
    }

    /// Makes the index if it does not know every log. `all` lists them.
    pub(super) fn complete(
        &self,
        all: impl FnOnce() -> Result<Vec<RunHead>, JournalError>,
    ) -> Result<(), JournalError> {
        let whole = self.dir.join("whole");
        if whole.exists() {
            return Ok(());
        }
        // Nobody notes anything meanwhile: who begins a run does so before there is a log, so that run is either in
        // the list or in a note that comes after it.
        let mut before = self.lock()?;
        if whole.exists() {
            return Ok(());
        }
        let mut heads = all()?;
        heads.sort_by_cached_key(RunHead::place);
        let path = self.recent();
        let new = path.with_extension("new");
        let mut recent = open(&new, true).map_err(storage("write", &new))?;
        let mut write = |note: &Note| append(&mut recent, note).map_err(storage("write", &new));
        for head in &heads {
            if let Some(session) = &head.session {
                self.begin(&head.run_id, session)?;
            }
            if head.status == RunStatus::Suspended {
                self.waits(&head.run_id)?;
            }
            write(&note_of(head))?;
        }
        // Runs that were noted and have no record yet.
        let known: HashSet<&RunId> = heads.iter().map(|head| &head.run_id).collect();
        let mut text = String::new();
        before.rewind().and_then(|()| before.read_to_string(&mut text)).map_err(storage("read", &path))?;
        for (note, _) in text.lines().filter_map(|line| parse(line.as_bytes())) {
            if !known.contains(&note.run) && RunFiles::new(&self.runs, note.run.clone()).log.exists() {
                write(&note)?;
            }
        }
        fs::rename(&new, &path).map_err(storage("name", &path))?;
        open(&whole, true).map(|_| ()).map_err(storage("write", &whole))
    }

    /// Has the index made anew by the next list if it lacks one of these, which are all there are.
    pub(super) fn check(&self, all: &[RunHead]) {
        let lacks = |head: &RunHead| {
            head.session
                .as_ref()
                .is_some_and(|session| !self.session(session).join(head.run_id.as_str()).exists())
        };
        if all.iter().any(lacks) {
            let _ = fs::remove_file(self.dir.join("whole"));
        }
    }

    /// The notes, for one process at a time.
    fn lock(&self) -> Result<File, JournalError> {
        create_directory(&self.dir)?;
        let path = self.recent();
        loop {
            let file = open(&path, false).map_err(storage("write", &path))?;
            file.lock().map_err(storage("lock", &path))?;
            // Whoever made the index anew meanwhile has put other notes there.
            if Identity::of(&file.metadata().map_err(storage("lock", &path))?).is_at(&path) {
                return Ok(file);
            }
        }
    }

    fn recent(&self) -> PathBuf {
        self.dir.join("recent")
    }

    fn waiting(&self) -> PathBuf {
        self.dir.join("waiting")
    }

    fn session(&self, session: &SessionId) -> PathBuf {
        self.dir.join("sessions").join(blob::hash(session.as_str().as_bytes()))
    }
}

fn note_of(head: &RunHead) -> Note {
    let rests = Some(head.status).filter(|status| status.has_ended() || *status == RunStatus::Suspended);
    Note { run: head.run_id.clone(), at: head.updated_at, rests, top_level: head.called_by.is_none() }
}

/// Appends the line of a note: its time, the latest time until it, how the run rests, its level, the run.
fn append(recent: &mut File, note: &Note) -> io::Result<()> {
    let length = recent.seek(SeekFrom::End(0))?;
    recent.seek(SeekFrom::Start(length.saturating_sub(LINE)))?;
    let mut end = Vec::new();
    recent.read_to_end(&mut end)?;
    let before = end.rsplit(|b| *b == b'\n').find_map(parse).map(|(_, latest)| latest).unwrap_or_default();
    let latest = before.max(note.at).as_millis();
    let torn = if end.is_empty() || end.ends_with(b"\n") { "" } else { "\n" };
    let rests = note.rests.map_or("-", RunStatus::as_str);
    let level = if note.top_level { "top" } else { "called" };
    let line = format!("{torn}{} {latest} {rests} {level} {}\n", note.at.as_millis(), note.run);
    recent.write_all(line.as_bytes())
}

fn parse(line: &[u8]) -> Option<(Note, Timestamp)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let mut time = || words.next()?.parse().ok().map(Timestamp::from_millis);
    let (at, latest) = (time()?, time()?);
    let rests = match words.next()? {
        "-" => None,
        name => Some(RunStatus::of_name(name)?),
    };
    let top_level = words.next()? == "top";
    let run = RunId::new(words.next()?);
    words.next().is_none().then_some((Note { run, at, rests, top_level }, latest))
}

/// The lines of a file from its end.
struct Backwards {
    file: File,
    /// Bytes that are not read yet.
    left: u64,
    /// What is read and not given out.
    text: Vec<u8>,
}

impl Backwards {
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(newline) = self.text.iter().rposition(|b| *b == b'\n') {
                let line = self.text.split_off(newline + 1);
                self.text.pop();
                return Ok(Some(line));
            }
            if self.left == 0 {
                let line = std::mem::take(&mut self.text);
                return Ok(Some(line).filter(|line| !line.is_empty()));
            }
            let start = self.left.saturating_sub(BLOCK);
            let mut block = Vec::new();
            self.file.seek(SeekFrom::Start(start))?;
            (&self.file).take(self.left - start).read_to_end(&mut block)?;
            block.append(&mut self.text);
            (self.text, self.left) = (block, start);
        }
    }
}

fn open(path: &Path, anew: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).create(true);
    if anew {
        options.write(true).truncate(true)
    } else {
        options.append(true)
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn touch(dir: &Path, run: &RunId) -> Result<(), JournalError> {
    let path = dir.join(run.as_str());
    // Whoever removes the last run of a session removes the directory, too.
    loop {
        match open(&path, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => make_directory(dir)?,
            opened => return opened.map(|_| ()).map_err(storage("write", &path)),
        }
    }
}

fn names(dir: &Path) -> Result<Vec<RunId>, JournalError> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(storage("list", dir))?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let name = entry.map_err(storage("list", dir))?.file_name();
        runs.extend(name.to_str().map(RunId::new));
    }
    Ok(runs)
}
