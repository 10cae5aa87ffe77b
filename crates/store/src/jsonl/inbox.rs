//! Keeps messages to runs, one file each: `{dir}/runs/{run}.inbox/{id}.json`.
//!
//! A file is a line of JSON, with a [seal](crate::inbox_key) if the journal has a key; messages without a
//! valid seal are rejected. A file with its final name is complete, since it is written under another name
//! first. Messages of other processes are noticed by the directory's modification time; see
//! [`doorbell`](crate::doorbell). The directory exists only while there are messages.

use std::{
    fs::{self, File},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Write},
    path::Path,
};

use archon_types::{BoxFuture, Inbox, InboxEntry, JournalError, RunId};

use super::{JsonlJournal, RunFiles};
use crate::{
    blocking::blocking,
    files::{self, create_directory, create_file, if_exists, name_new, read_file, storage, sync_directory},
    inbox_key::{InboxKey, Opener, close},
    rules::{check_id, unknown},
    skipped::Skipped,
};

/// The maximum number of attempts to create a file in an inbox while readers keep removing the directory.
const PATIENCE: u32 = 100;

impl Inbox for JsonlJournal {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            check_id(&RunId::new(entry.id.clone()))?;
            let key = self.inbox_key.clone();
            self.work(run, move |files| write(&files, &entry, key.as_ref())).await?;
            self.bell.ring();
            Ok(())
        })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(async move {
            let files = self.files(run)?;
            let (key, skipped) = (self.inbox_key.clone(), self.skipped.clone());
            // Most runs never get a message, so the usual case does not use a blocking thread.
            match files.inbox.exists() {
                false => Ok(Vec::new()),
                true => blocking(move || read(&files, key.as_ref(), &skipped)).await,
            }
        })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        let ids = ids.to_vec();
        Box::pin(self.work(run, move |files| remove(&files.inbox, &ids)))
    }

    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        self.bell.changed(self.runs.join(format!("{run}.inbox")))
    }
}

fn write(files: &RunFiles, entry: &InboxEntry, key: Option<&InboxKey>) -> Result<(), JournalError> {
    if !files.log.exists() {
        return Err(unknown(&files.run));
    }
    let text = close(key, &files.run, entry)?;
    let path = files.inbox.join(format!("{}.json", entry.id));
    let unfinished =
        files.inbox.join(format!("{}.{:016x}", entry.id, RandomState::new().build_hasher().finish()));
    let written = create_in(&files.inbox, &unfinished)?.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    });
    let named = written.and_then(|()| name_new(&unfinished, &path));
    let _ = fs::remove_file(&unfinished);
    named.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => JournalError::Posted { run: files.run.clone(), id: entry.id.clone() },
        _ => storage("write", &path)(error),
    })?;
    match sync_directory(&files.inbox) {
        // A reader has taken the message already and removed the directory.
        Err(_) if !files.inbox.exists() => Ok(()),
        synced => synced,
    }
}

/// Creates a file in the inbox. The reader of the last message removes the directory, so the directory may
/// be missing when the file is created; with the file in it, the directory stays.
fn create_in(inbox: &Path, path: &Path) -> Result<io::Result<File>, JournalError> {
    for _ in 0..PATIENCE {
        create_directory(inbox)?;
        match create_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            created => return Ok(created),
        }
    }
    Ok(create_file(path))
}

fn read(
    files: &RunFiles,
    key: Option<&InboxKey>,
    skipped: &Skipped,
) -> Result<Vec<InboxEntry>, JournalError> {
    let opener = Opener::new(key, &files.run)?;
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for path in files::entries(&files.inbox)?.iter().map(fs::DirEntry::path) {
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let bytes = match read_file(&path) {
            // Another process has removed it meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                problems.push(format!("{e}; remove {}", path.display()));
                continue;
            }
            bytes => bytes.map_err(storage("read", &path))?,
        };
        match opener.open(&bytes) {
            // The file is removed by the name that its content says, so the two must agree.
            Ok(entry) if path.file_stem().is_none_or(|name| name != entry.id.as_str()) => {
                let (id, path) = (&entry.id, path.display());
                problems.push(format!("its id {id:?} differs from its file name; remove {path}"));
            }
            Ok(entry) => entries.push(entry),
            // The message may be another program's or a newer version's, so it is left in place.
            Err(problem) => problems.push(format!("{problem}; look at {} and remove it", path.display())),
        }
    }
    skipped.warn(&files.run, &problems);
    entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(entries)
}

fn remove(inbox: &Path, ids: &[String]) -> Result<(), JournalError> {
    for id in ids {
        check_id(&RunId::new(id.as_str()))?;
        let path = inbox.join(format!("{id}.json"));
        if_exists(fs::remove_file(&path)).map_err(storage("remove", &path))?;
    }
    // Without messages there is no directory, so that checking for messages is cheap. Removing fails if it
    // is not empty.
    let _ = fs::remove_dir(inbox);
    Ok(())
}
