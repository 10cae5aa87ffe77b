//! The index of a directory of logs. With it, the cost of a list depends only on the runs that the list
//! returns. If the index is removed, the next list builds it again.
//!
//! | file | holds |
//! |---|---|
//! | `{dir}/index/recent` | one line for each [`Note`], the newest last |
//! | `{dir}/index/session/{hash}` | one line for each note of a run of the session with that hash |
//! | `{dir}/index/waits/{hash}/{run}` | empty; exists for each suspended run of the tenant with that hash |
//! | `{dir}/index/complete` | empty; exists when the index has every log |
//!
//! Only the newest note of a run counts. When the size of a file passes a power of two in bytes, the file is
//! rewritten without the older notes, so that it grows with the number of runs and not with their records.
//! Only the holder of the lock on `recent` writes files.
//!
//! The index only says which logs to read; the facts about a run come from its log. So an entry for a deleted
//! run, or for a run whose state has changed, does no harm, but a missing entry would. Therefore an entry is
//! written before the record that it describes. Only a note that a run is suspended or has ended is written
//! after the record. A log that was put into the directory by hand is found when all runs are listed; then the
//! index is built again.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use archon_types::{
    JournalError, Record, RecordBody, RunHead, RunId, RunStatus, SessionId, TenantId, Timestamp,
};

use super::RunFiles;
use crate::{
    blob,
    files::{
        Identity, create_directory, entries, if_exists, make_directory, open_file, private, storage,
        sync_directory,
    },
    listing::Note,
};

/// The number of bytes of an index file that are read at once. Index files are read backwards, from the end.
const BLOCK: u64 = 16 * 1024;
/// A number of bytes greater than the length of any line of an index file.
const LINE: u64 = 512;
/// The size in bytes below which an index file is not compacted.
const TIDY: u64 = 64 * 1024;

const SESSION: &str = "session";
const WAITS: &str = "waits";
const COMPLETE: &str = "complete";

#[derive(Clone, Debug)]
pub(super) struct Index {
    runs: PathBuf,
    dir: PathBuf,
}

impl Index {
    /// Returns the index of the logs in `runs`, in the folder `index` next to it.
    pub(super) fn of(runs: &Path) -> Self {
        Self { runs: runs.to_owned(), dir: runs.with_file_name("index") }
    }

    /// Syncs the index file of a session and its directory.
    pub(super) fn sync(&self, session: &SessionId) -> Result<(), JournalError> {
        let path = self.session(session);
        open(&path, false).and_then(|file| file.sync_data()).map_err(storage("sync", &path))?;
        path.parent().map_or(Ok(()), sync_directory)
    }

    /// Adds a run that is about to be suspended to the suspended runs, and syncs the entry.
    pub(super) fn add_suspended(&self, run: &RunId, tenant: &TenantId) -> Result<(), JournalError> {
        let directory = self.waiting(tenant);
        touch(&directory, run)?;
        sync_directory(&directory)?;
        sync_directory(&self.dir.join(WAITS))
    }

    /// Removes a run from the suspended runs.
    pub(super) fn remove_suspended(&self, run: &RunId, tenant: &TenantId) {
        let directory = self.waiting(tenant);
        let _ = fs::remove_file(directory.join(run.as_str()));
        let _ = fs::remove_dir(directory);
    }

    /// Removes a deleted run from the suspended runs and from its session.
    pub(super) fn forget(&self, run: &RunId, owner: &Owner) -> Result<(), JournalError> {
        self.remove_suspended(run, &owner.tenant);
        let path = self.session(&owner.session);
        let _recent = self.lock()?;
        if path.exists() { self.tidy(&path) } else { Ok(()) }
    }

    /// Appends a note to the index file of its session and to `recent`, the index file of all sessions.
    pub(super) fn note(&self, note: &Note, owner: &Owner) -> Result<(), JournalError> {
        let tenant = key(owner.tenant.as_str());
        let mut recent = self.lock()?;
        let path = self.session(&owner.session);
        let mut of_session = open_in(&self.dir.join(SESSION), &path)?;
        self.append(&mut of_session, &path, note, &tenant)?;
        // `recent` comes last: compacting it replaces the locked file, so the lock is lost.
        self.append(&mut recent, &self.recent(), note, &tenant)
    }

    /// Returns the suspended runs of one tenant, or of all tenants; some of these runs may have been resumed
    /// already.
    pub(super) fn suspended(&self, tenant: Option<&TenantId>) -> Result<Vec<RunId>, JournalError> {
        let all = self.dir.join(WAITS);
        let tenants = match tenant {
            Some(tenant) => vec![self.waiting(tenant)],
            None => names(&all)?.iter().map(|key| all.join(key)).collect(),
        };
        let mut runs = Vec::new();
        for tenant in tenants {
            runs.extend(names(&tenant)?.into_iter().map(RunId::new));
        }
        Ok(runs)
    }

    /// Returns the notes of a session, or of all sessions, newest first. Each item is a note, and the latest
    /// time in this note and all older notes. With a tenant, notes of other tenants are skipped.
    pub(super) fn notes(
        &self,
        session: Option<&SessionId>,
        tenant: Option<&TenantId>,
    ) -> Result<impl Iterator<Item = Result<(Note, Timestamp), JournalError>> + use<>, JournalError> {
        let path = session.map_or_else(|| self.recent(), |session| self.session(session));
        let tenant = tenant.map(|tenant| key(tenant.as_str()));
        let mut lines = match open_file(&path) {
            Ok(file) => Some(Backwards::new(file).map_err(storage("read", &path))?),
            Err(e) if e.kind() == io::ErrorKind::NotFound && session.is_some() => None,
            Err(e) => return Err(storage("read", &path)(e)),
        };
        Ok(std::iter::from_fn(move || {
            loop {
                match lines.as_mut()?.next() {
                    Ok(None) => return None,
                    Ok(Some(line)) => {
                        if let Some(line) = Line::parse(&line)
                            && tenant.as_ref().is_none_or(|tenant| line.tenant == *tenant)
                        {
                            return Some(Ok((line.note, line.latest)));
                        }
                    }
                    Err(e) => return Some(Err(storage("read", &path)(e))),
                }
            }
        }))
    }

    /// Builds the index unless it is complete. `all` returns the heads of all logs.
    pub(super) fn complete(
        &self,
        all: impl FnOnce() -> Result<Vec<RunHead>, JournalError>,
    ) -> Result<(), JournalError> {
        let complete = self.dir.join(COMPLETE);
        if complete.exists() {
            return Ok(());
        }
        // The lock keeps writers from adding notes meanwhile. A run is noted before its log exists, so every
        // run is either in the list or in a note that comes later.
        let before = self.lock()?;
        if complete.exists() {
            return Ok(());
        }
        let mut heads = all()?;
        heads.sort_by_cached_key(RunHead::place);
        let known: HashSet<&RunId> = heads.iter().map(|head| &head.run_id).collect();
        // Runs that were noted and have no record yet are kept.
        let with_noted = |heads: &[&RunHead], path: &Path| {
            let noted = if_exists(open_file(path).and_then(newest)).map_err(storage("read", path))?;
            let is_new = |line: &Line| !known.contains(&line.note.run) && self.is_there(line);
            Ok(heads
                .iter()
                .copied()
                .map(Line::of)
                .chain(noted.into_iter().flatten().filter(is_new))
                .collect())
        };
        let mut sessions = HashMap::<_, Vec<_>>::new();
        for head in &heads {
            if let Some(session) = &head.session {
                sessions.entry(session).or_default().push(head);
            }
            if let (RunStatus::Suspended, Some(tenant)) = (head.status, &head.tenant) {
                self.add_suspended(&head.run_id, tenant)?;
            }
        }
        create_directory(&self.dir.join(SESSION))?;
        for (session, heads) in sessions {
            let path = self.session(session);
            self.replace(&path, with_noted(&heads, &path)?, false)?;
        }
        let path = self.recent();
        self.replace(&path, with_noted(&heads.iter().collect::<Vec<_>>(), &path)?, false)?;
        drop(before);
        open(&complete, true).map(|_| ()).map_err(storage("write", &complete))
    }

    /// Makes the next list rebuild the index if the index lacks one of `all`, the heads of all logs.
    pub(super) fn check(&self, all: &[RunHead]) {
        let mut sessions = HashMap::<_, HashSet<_>>::new();
        for head in all {
            if let Some(session) = &head.session {
                sessions.entry(session).or_default().insert(&head.run_id);
            }
        }
        let lacks = |(session, mut runs): (&SessionId, HashSet<&RunId>)| {
            for (note, _) in self.notes(Some(session), None).into_iter().flatten().flatten() {
                runs.remove(&note.run);
            }
            !runs.is_empty()
        };
        if self.dir.join(COMPLETE).exists() && sessions.into_iter().any(lacks) {
            let _ = fs::remove_file(self.dir.join(COMPLETE));
        }
    }

    /// Appends a line, and compacts the file when its size passes a power of two, from [`TIDY`] on. The
    /// caller holds the lock of `recent`.
    fn append(&self, file: &mut File, path: &Path, note: &Note, tenant: &str) -> Result<(), JournalError> {
        let (before, after) = append(file, note, tenant).map_err(storage("write", path))?;
        match after >= TIDY && before.leading_zeros() != after.leading_zeros() {
            true => self.tidy(path),
            false => Ok(()),
        }
    }

    /// Keeps only the newest note of each existing run. The caller holds the lock of `recent`.
    fn tidy(&self, path: &Path) -> Result<(), JournalError> {
        let lines = open_file(path).and_then(newest).map_err(storage("read", path))?;
        self.replace(path, lines.into_iter().filter(|line| self.is_there(line)).collect(), true)
    }

    /// Replaces the lines of a file. A file without lines is removed, except `recent`. With `synced`, a
    /// power cut leaves either the old file or the new one.
    fn replace(&self, path: &Path, lines: Vec<Line>, synced: bool) -> Result<(), JournalError> {
        if lines.is_empty() && *path != self.recent() {
            return if_exists(fs::remove_file(path)).map(drop).map_err(storage("remove", path));
        }
        let (mut text, mut latest) = (String::new(), Timestamp::default());
        for line in lines {
            latest = latest.max(line.note.at);
            text.push_str(&line.text(latest));
        }
        let new = path.with_extension("new");
        let write = |mut file: File| {
            file.write_all(text.as_bytes())?;
            if synced { file.sync_data() } else { Ok(()) }
        };
        open(&new, true).and_then(write).map_err(storage("write", &new))?;
        fs::rename(&new, path).map_err(storage("name", path))
    }

    /// Returns true if the line's run has a log; the log may be empty if the run is just beginning.
    fn is_there(&self, line: &Line) -> bool {
        RunFiles::new(&self.runs, line.note.run.clone()).log.exists()
    }

    /// Opens and locks `recent`, for one process at a time.
    fn lock(&self) -> Result<File, JournalError> {
        create_directory(&self.dir)?;
        let path = self.recent();
        loop {
            let file = open(&path, false).map_err(storage("write", &path))?;
            file.lock().map_err(storage("lock", &path))?;
            // If another process has replaced the file meanwhile, the new one must be locked.
            if Identity::of(&file.metadata().map_err(storage("lock", &path))?).is_at(&path) {
                return Ok(file);
            }
        }
    }

    fn recent(&self) -> PathBuf {
        self.dir.join("recent")
    }

    fn waiting(&self, tenant: &TenantId) -> PathBuf {
        self.dir.join(WAITS).join(key(tenant.as_str()))
    }

    fn session(&self, session: &SessionId) -> PathBuf {
        self.dir.join(SESSION).join(key(session.as_str()))
    }
}

/// Returns the hash of a name, for use as a file name.
fn key(name: &str) -> String {
    blob::hash(name.as_bytes())
}

/// The session and tenant of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) session: SessionId,
    pub(super) tenant: TenantId,
}

impl Owner {
    /// Returns the session and tenant in a run's first record; `None` if `record` is not a first record.
    pub(super) fn of(record: &Record) -> Option<Self> {
        match &record.body {
            RecordBody::RunStarted(started) => {
                Some(Self { session: started.session.clone(), tenant: started.tenant.clone() })
            }
            _ => None,
        }
    }
}

/// One line of the index: the time of the note, the latest time up to that note, the status of a suspended or
/// ended run, whether the run is at top level, the hash of the tenant, and the run.
struct Line {
    note: Note,
    latest: Timestamp,
    tenant: String,
}

impl Line {
    fn of(head: &RunHead) -> Self {
        let rests = Some(head.status).filter(|status| status.has_ended() || *status == RunStatus::Suspended);
        let (at, top_level) = (head.updated_at, head.called_by.is_none());
        let note = Note { run: head.run_id.clone(), at, rests, top_level };
        let tenant = head.tenant.as_ref().map_or_else(|| "-".to_owned(), |tenant| key(tenant.as_str()));
        Self { note, latest: at, tenant }
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let mut time = || words.next()?.parse().ok().map(Timestamp::from_millis);
        let (at, latest) = (time()?, time()?);
        let rests = match words.next()? {
            "-" => None,
            name => Some(RunStatus::of_name(name)?),
        };
        let top_level = words.next()? == "top";
        let (tenant, run) = (words.next()?.to_owned(), RunId::new(words.next()?));
        words.next().is_none().then_some(Self { note: Note { run, at, rests, top_level }, latest, tenant })
    }

    fn text(&self, latest: Timestamp) -> String {
        text(&self.note, latest, &self.tenant)
    }
}

fn text(note: &Note, latest: Timestamp, tenant: &str) -> String {
    let rests = note.rests.map_or("-", RunStatus::as_str);
    let level = if note.top_level { "top" } else { "called" };
    format!("{} {} {rests} {level} {tenant} {}\n", note.at.as_millis(), latest.as_millis(), note.run)
}

/// Appends the line of a note. Returns the length of the file before and after.
fn append(file: &mut File, note: &Note, tenant: &str) -> io::Result<(u64, u64)> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LINE)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let before = end.rsplit(|b| *b == b'\n').find_map(Line::parse).map(|line| line.latest);
    let torn = if end.is_empty() || end.ends_with(b"\n") { "" } else { "\n" };
    let line = text(note, before.unwrap_or_default().max(note.at), tenant);
    file.write_all([torn, &line].concat().as_bytes())?;
    Ok((length, length + (torn.len() + line.len()) as u64))
}

/// Returns the newest line of each run, in the order of the file.
fn newest(file: File) -> io::Result<Vec<Line>> {
    let (mut known, mut newest, mut lines) = (HashSet::new(), Vec::new(), Backwards::new(file)?);
    while let Some(line) = lines.next()? {
        newest.extend(Line::parse(&line).filter(|line| known.insert(line.note.run.clone())));
    }
    newest.reverse();
    Ok(newest)
}

/// Reads the lines of a file from its end.
struct Backwards {
    file: File,
    /// The number of bytes that are not read yet.
    unread: u64,
    /// Bytes that were read and not returned yet.
    text: Vec<u8>,
}

impl Backwards {
    fn new(file: File) -> io::Result<Self> {
        let unread = file.metadata()?.len();
        Ok(Self { file, unread, text: Vec::new() })
    }

    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(newline) = self.text.iter().rposition(|b| *b == b'\n') {
                let line = self.text.split_off(newline + 1);
                self.text.pop();
                return Ok(Some(line));
            }
            if self.unread == 0 {
                let line = std::mem::take(&mut self.text);
                return Ok(Some(line).filter(|line| !line.is_empty()));
            }
            let start = self.unread.saturating_sub(BLOCK);
            let mut block = Vec::new();
            self.file.seek(SeekFrom::Start(start))?;
            (&self.file).take(self.unread - start).read_to_end(&mut block)?;
            block.append(&mut self.text);
            (self.text, self.unread) = (block, start);
        }
    }
}

fn open(path: &Path, anew: bool) -> io::Result<File> {
    let mut options = private();
    options.read(true).create(true);
    if anew {
        options.write(true).truncate(true)
    } else {
        options.append(true)
    };
    options.open(path)
}

fn touch(dir: &Path, run: &RunId) -> Result<(), JournalError> {
    open_in(dir, &dir.join(run.as_str())).map(|_| ())
}

/// Opens a file for appending, and creates its directory if that does not exist.
fn open_in(dir: &Path, path: &Path) -> Result<File, JournalError> {
    // Another process that removes the last file of a directory may remove the directory too.
    loop {
        match open(path, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => make_directory(dir)?,
            opened => return opened.map_err(storage("write", path)),
        }
    }
}

/// Returns the names of the files in a directory; no names if the directory does not exist.
fn names(dir: &Path) -> Result<Vec<String>, JournalError> {
    Ok(entries(dir)?.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner { session: SessionId::new("s"), tenant: TenantId::new("t") }
    }

    fn note(run: &str, ms: u64) -> Note {
        Note { run: RunId::new(run), at: Timestamp::from_millis(ms), rests: None, top_level: true }
    }

    #[test]
    fn note_of_a_run_that_works_for_days_keeps_the_files_small() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        fs::create_dir(&runs).unwrap();
        let index = Index::of(&runs);
        for run in ["r1", "r2"] {
            fs::write(runs.join(format!("{run}.jsonl")), "").unwrap();
        }
        index.note(&note("gone", 0), &owner()).unwrap();
        index.note(&note("r1", 1), &owner()).unwrap();
        for n in 2..2_000 {
            index.note(&note("r2", n), &owner()).unwrap();
        }
        for path in [index.recent(), index.session(&owner().session)] {
            assert!(fs::metadata(&path).unwrap().len() < TIDY, "{}", path.display());
        }
        for session in [None, Some(&owner().session)] {
            let notes = index.notes(session, Some(&owner().tenant)).unwrap();
            let (mut runs, mut newest) = (Vec::new(), None);
            for noted in notes {
                let (note, latest) = noted.unwrap();
                newest = newest.or(Some(latest));
                if runs.last() != Some(&note.run) {
                    runs.push(note.run);
                }
            }
            assert_eq!(
                (runs, newest),
                (vec![RunId::new("r2"), RunId::new("r1")], Some(Timestamp::from_millis(1_999)))
            );
            assert_eq!(index.notes(session, Some(&TenantId::new("other"))).unwrap().count(), 0);
        }
    }
}
