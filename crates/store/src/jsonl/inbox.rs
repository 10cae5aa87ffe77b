//! Messages to runs, one file each: `{dir}/runs/{run}.inbox/{id}.json`.
//!
//! A file that has its name is whole: it is written under another one first. Messages of other processes
//! are noticed by looking at the directory's time of change, [`PERIOD`] after they came at the latest.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use archon_types::{BoxFuture, Inbox, InboxEntry, JournalError, RunId};

use super::{JsonlJournal, RunFiles};
use crate::{
    blocking::blocking,
    files::{create_directory, storage, sync_directory},
    rules::check_id,
};

/// How often the directory of a run that is being driven is looked at.
const PERIOD: Duration = Duration::from_millis(250);

/// Longer than the tick of any file system's clock.
const TICK: Duration = Duration::from_secs(2);

impl Inbox for JsonlJournal {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let files = self.files(run)?;
            check_id(&RunId::new(entry.id.clone()))?;
            blocking(move || write(&files, &entry)).await?;
            self.bell.ring();
            Ok(())
        })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(async move {
            let inbox = self.files(run)?.inbox;
            // Most runs never get a message.
            match changed_at(&inbox) {
                None => Ok(Vec::new()),
                Some(_) => blocking(move || read(&inbox)).await,
            }
        })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let inbox = self.files(run)?.inbox;
            let ids = ids.to_vec();
            blocking(move || remove(&inbox, &ids)).await
        })
    }

    /// Messages of other processes are noticed within a tokio runtime only, which needs its timers.
    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        let inbox = self.runs.join(format!("{run}.inbox"));
        let (before, rung) = (changed_at(&inbox), self.bell.rung());
        Box::pin(async move {
            if tokio::runtime::Handle::try_current().is_err() {
                return rung.await;
            }
            let elsewhere = async {
                // Of two changes within one tick of the file system's clock the second cannot be seen.
                let settled = before.is_none_or(|at| at.elapsed().is_ok_and(|age| age > TICK));
                loop {
                    tokio::time::sleep(PERIOD).await;
                    if !settled || changed_at(&inbox) != before {
                        break;
                    }
                }
            };
            tokio::select! {
                () = rung => {}
                () = elsewhere => {}
            }
        })
    }
}

/// When something was last added to or removed from the directory; `None` if it is not there.
fn changed_at(inbox: &Path) -> Option<SystemTime> {
    fs::metadata(inbox).and_then(|m| m.modified()).ok()
}

fn write(files: &RunFiles, entry: &InboxEntry) -> Result<(), JournalError> {
    if !files.log.exists() {
        return Err(JournalError::UnknownRun { run: files.run.clone() });
    }
    create_directory(&files.inbox)?;
    let path = files.inbox.join(format!("{}.json", entry.id));
    let unfinished = files.inbox.join(format!("{}.unfinished", entry.id));
    let written = create(&unfinished).and_then(|mut file| {
        file.write_all(&serde_json::to_vec(entry)?)?;
        file.sync_data()
    });
    written.map_err(storage("write", &path)).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })?;
    fs::rename(&unfinished, &path).map_err(storage("name", &path))?;
    sync_directory(&files.inbox)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn read(inbox: &PathBuf) -> Result<Vec<InboxEntry>, JournalError> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(inbox).map_err(storage("list", inbox))? {
        let path = entry.map_err(storage("list", inbox))?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let bytes = fs::read(&path).map_err(storage("read", &path))?;
        match serde_json::from_slice::<InboxEntry>(&bytes) {
            Ok(entry) => entries.push(entry),
            // Somebody else's, or a newer version's: left for who can read it.
            Err(error) => tracing::warn!(path = %path.display(), %error, "a message cannot be read"),
        }
    }
    entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(entries)
}

fn remove(inbox: &Path, ids: &[String]) -> Result<(), JournalError> {
    for id in ids {
        let path = inbox.join(format!("{id}.json"));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(storage("remove", &path)(e)),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the messages of a run that is gone.
pub(super) fn delete(inbox: &Path) -> Result<(), JournalError> {
    match fs::remove_dir_all(inbox) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(storage("remove", inbox)(e)),
        _ => Ok(()),
    }
}
