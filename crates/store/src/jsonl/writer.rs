//! Appends to a log: all records of an append or none, synced before the append returns if the caller asks
//! for that.
//!
//! A line is written on the caller's own thread, since that only copies some hundred bytes into the system's
//! cache. The write does not await, so a caller that drops the future cannot split a line. A sync and a blob
//! wait for the medium (milliseconds), so both run on a thread that may block.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{
    BoxFuture, Durability, JournalError, OpenMode, OpenRun, Origin, Record, RunHead, RunId, RunStatus,
    RunWriter, Salvaged,
};

use super::{
    RunFiles,
    index::{Index, Owner},
    log,
};
use crate::{
    blob::{self, Blob},
    blocking::blocking,
    files::{Identity, private, refuse_irregular, storage, sync_directory},
    listing::{Note, Notes},
    lock::{self, RunLock, Wait, lost_writer},
    records::for_writing,
    rules::{self, check_records},
};

/// The maximum capacity in bytes of a buffer that is reused; a larger one is freed after the append.
const KEEP_BUFFER: usize = 64 * 1024;

/// Takes the lock of a run, reads its log, removes a record that a crash cut off at the end, and returns the
/// writer.
pub(super) fn open(files: RunFiles, mode: OpenMode, wait: &mut Wait<'_>) -> Result<OpenRun, JournalError> {
    if mode == OpenMode::Existing && !files.log.exists() {
        return Err(rules::unknown(&files.run));
    }
    let mut lock = RunLock::take(&files.runs, &files.run, wait)?;
    let file = open_file(&files.log).map_err(storage("open", &files.log))?;
    // Somebody may remove the lock's file and think it is unused, so the log itself is locked too on systems
    // where that does not keep readers out.
    if cfg!(unix) {
        lock::lock(&file, &files.log, &files.run, wait)?;
    }
    let Salvaged { records, torn_bytes, .. } = for_writing(&files.run, mode, log::read(&files))?;
    lock.accept();
    let metadata = file.metadata().map_err(storage("open", &files.log))?;
    let (length, identity) = (metadata.len(), Identity::of(&metadata));
    let good = if records.is_empty() { 0 } else { length - torn_bytes };
    if good < length {
        tracing::warn!(run = %files.run, bytes = length - good, "dropped a record that a crash had cut off");
        file.set_len(good).and_then(|()| file.sync_data()).map_err(storage("repair", &files.log))?;
    }
    let next = records.len() as u64;
    let indexing = Indexing::of(&files, &records);
    let mut writer =
        JsonlWriter::new(files, LogFile { file, identity }, Place { bytes: good, next }, Some(lock));
    writer.indexing = Some(indexing);
    Ok(OpenRun { records, writer: Box::new(writer) })
}

fn open_file(path: &Path) -> io::Result<File> {
    refuse_irregular(path)?;
    private().append(true).create(true).open(path)
}

/// The file of a log; a trait so that tests can simulate a full disk.
trait Medium: Send + Sync + 'static {
    fn write_at_end(&self, bytes: &[u8]) -> io::Result<()>;
    fn truncate(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;

    /// Describes the change if the log is no longer at `path` or not `length` bytes long; otherwise `None`.
    fn changed(&self, path: &Path, length: u64) -> Option<String>;
}

/// An open log, with the identity of its file.
struct LogFile {
    file: File,
    identity: Identity,
}

impl Medium for LogFile {
    fn write_at_end(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Compares the file at `path` with the open one, by one system call.
    fn changed(&self, path: &Path, length: u64) -> Option<String> {
        match fs::metadata(path) {
            Ok(found) if Identity::of(&found) == self.identity => (found.len() != length).then(|| {
                format!("was changed by another program: it has {} bytes instead of {length}", found.len())
            }),
            _ => Some("was removed or replaced".to_owned()),
        }
    }
}

/// The end of the log: its length and the number of the next record.
#[derive(Clone, Copy, Debug)]
struct Place {
    bytes: u64,
    next: u64,
}

/// The part of a writer that keeps the index up to date.
struct Indexing {
    index: Index,
    notes: Notes,
    top_level: bool,
    /// The session and tenant of the run; `None` before the first record.
    owner: Option<Owner>,
    /// True if this writer began the run.
    begun: bool,
    /// True if the index lists the run as suspended.
    waits: bool,
}

impl Indexing {
    fn of(files: &RunFiles, records: &[Arc<Record>]) -> Self {
        let head = RunHead::of(files.run.clone(), records);
        let waits = head.status == RunStatus::Suspended;
        let (index, notes) = (Index::of(&files.runs), Notes::default());
        let owner = records.first().and_then(|first| Owner::of(first));
        Self { index, notes, top_level: head.called_by.is_none(), owner, begun: false, waits }
    }
}

struct JsonlWriter<M: Medium> {
    files: Arc<RunFiles>,
    medium: Arc<M>,
    /// The end of the log as readers may see it. Bytes beyond it remained after a failed append.
    end: Place,
    /// True if there may be bytes beyond `end`.
    dirty: bool,
    /// True if the directory entry of the file is synced.
    name_synced: bool,
    buffer: Vec<u8>,
    /// The part that keeps the index up to date; `None` only in tests.
    indexing: Option<Indexing>,
    /// The lock of the run; `None` only in tests. The thread that writes blobs locks this mutex, since it
    /// continues after the caller dropped the future.
    lock: Arc<Mutex<Option<RunLock>>>,
}

impl<M: Medium> JsonlWriter<M> {
    fn new(files: RunFiles, medium: M, end: Place, lock: Option<RunLock>) -> Self {
        let (dirty, name_synced) = (false, end.bytes > 0);
        let (files, medium, lock) = (Arc::new(files), Arc::new(medium), Arc::new(Mutex::new(lock)));
        Self { files, medium, end, dirty, name_synced, buffer: Vec::new(), indexing: None, lock }
    }

    fn run(&self) -> &RunId {
        &self.files.run
    }

    /// Encodes the records into the buffer, and returns what is stored as blobs: the bodies of large records and
    /// the data of media.
    fn encode(&mut self, records: &[Arc<Record>]) -> Result<Vec<Blob>, JournalError> {
        check_records(self.run(), self.end.next, records)?;
        self.buffer.clear();
        let mut blobs = Vec::new();
        for record in records {
            let parts = blob::encode(&mut self.buffer, record);
            blobs.extend(parts.map_err(storage("encode", &self.files.log))?);
            self.buffer.push(b'\n');
        }
        Ok(blobs)
    }

    /// Writes the encoded records. If that fails, removes the bytes that were written.
    fn write(&mut self, records: &[Arc<Record>]) -> Result<(), JournalError> {
        self.clean()?;
        if let Err(e) = self.medium.write_at_end(&self.buffer) {
            self.take_back();
            return Err(storage("write", &self.files.log)(e));
        }
        self.end.bytes += self.buffer.len() as u64;
        self.end.next += records.len() as u64;
        if self.buffer.capacity() > KEEP_BUFFER {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Checks that this is still the run's only writer, and that the open file is still the log at its path.
    fn check(&mut self) -> Result<(), JournalError> {
        self.clean()?;
        if let Some(lock) = &*self.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            lock.check(self.run())?;
        }
        let log = &self.files.log;
        match self.medium.changed(log, self.end.bytes) {
            None => Ok(()),
            Some(problem) => Err(lost_writer(self.run(), format!("its log {} {problem}", log.display()))),
        }
    }

    async fn sync(&mut self) -> Result<(), JournalError> {
        let (medium, files) = (self.medium.clone(), self.files.clone());
        if self.name_synced {
            return blocking(move || medium.sync().map_err(storage("sync", &files.log))).await;
        }
        let begun = self.indexing.as_ref().filter(|of| of.begun);
        let begun = begun.and_then(|of| Some((of.index.clone(), of.owner.clone()?)));
        blocking(move || {
            medium.sync().map_err(storage("sync", &files.log))?;
            if let Some((index, owner)) = begun {
                index.sync(&owner.session)?;
            }
            sync_directory(&files.runs)
        })
        .await?;
        self.name_synced = true;
        Ok(())
    }

    /// Writes the index entries that must exist before these records are written to the log.
    async fn announce(&mut self, records: &[Arc<Record>]) -> Result<Option<Note>, JournalError> {
        let Some((indexing, last)) = self.indexing.as_mut().zip(records.last()) else { return Ok(None) };
        if let Some(first) = records.first().filter(|first| first.seq == 0) {
            indexing.top_level = !matches!(rules::origin(first), Some(Origin::CalledBy { .. }));
            (indexing.owner, indexing.begun) = (Owner::of(first), true);
        }
        let Some((at, rests)) = indexing.notes.due(last) else { return Ok(None) };
        let note = Note { run: self.files.run.clone(), at, rests, top_level: indexing.top_level };
        let Some(owner) = indexing.owner.clone() else { return Ok(Some(note)) };
        let (index, mut begins) = (indexing.index.clone(), note.clone());
        let is_first = records.first().is_some_and(|first| first.seq == 0);
        blocking(move || {
            if begins.rests == Some(RunStatus::Suspended) {
                index.add_suspended(&begins.run, &owner.tenant)?;
            }
            if begins.rests.is_none() || is_first {
                begins.rests = None;
                index.note(&begins, &owner)?;
            }
            Ok(())
        })
        .await
        .inspect_err(|_| indexing.notes = Notes::default())?;
        Ok(Some(note))
    }

    /// Notes in the index that the run is suspended or has ended, after its log has that record. A failure is
    /// harmless, since lists read the log.
    async fn note_rest(&mut self, note: Option<Note>) -> Result<(), JournalError> {
        let Some((indexing, note)) = self.indexing.as_mut().zip(note) else { return Ok(()) };
        let waited = std::mem::replace(&mut indexing.waits, note.rests == Some(RunStatus::Suspended));
        let (index, waits) = (indexing.index.clone(), indexing.waits);
        let Some(owner) = indexing.owner.clone().filter(|_| note.rests.is_some() || waited) else {
            return Ok(());
        };
        let done = blocking(move || {
            if waited && !waits {
                index.remove_suspended(&note.run, &owner.tenant);
            }
            if note.rests.is_some() { index.note(&note, &owner) } else { Ok(()) }
        });
        if let Err(problem) = done.await {
            tracing::debug!("the index does not know that run {} rests: {problem}", self.files.run);
        }
        Ok(())
    }

    /// Removes the bytes of a failed append. If that fails as well, the next append tries again first, and
    /// the next process that opens the run finds a torn line and drops it.
    fn take_back(&mut self) {
        self.dirty = true;
        let _ = self.clean();
    }

    fn clean(&mut self) -> Result<(), JournalError> {
        if self.dirty {
            self.medium.truncate(self.end.bytes).map_err(storage("repair", &self.files.log))?;
            self.dirty = false;
        }
        Ok(())
    }
}

/// Removes a log without records, so that no file remains of a run that never began.
impl<M: Medium> Drop for JsonlWriter<M> {
    fn drop(&mut self) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = || fs::metadata(&self.files.log).is_ok_and(|log| log.len() == 0);
        if self.end.next == 0 && lock.is_some() && is_empty() {
            let _ = fs::remove_file(&self.files.log);
        }
    }
}

impl<M: Medium> RunWriter for JsonlWriter<M> {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if durability == Durability::Synced {
                self.check()?;
            }
            let before = self.end;
            let blobs = self.encode(records)?;
            if !blobs.is_empty() {
                // Blobs are synced with any durability, since the next sync is of the log only.
                let (files, lock) = (self.files.blobs.clone(), self.lock.clone());
                blocking(move || {
                    let _one_at_a_time = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    files.store(&blobs)
                })
                .await?;
            }
            let due = self.announce(records).await?;
            self.write(records)?;
            if durability == Durability::Buffered {
                return self.note_rest(due).await;
            }
            // After a failed sync the state of the medium is unknown: the records count as not appended, so
            // that appending them again does not write them twice.
            self.sync().await.inspect_err(|_| {
                self.end = before;
                self.take_back();
            })?;
            if let Some(lock) = &*self.lock.lock().unwrap_or_else(PoisonError::into_inner) {
                lock.note(self.end.bytes);
            }
            self.note_rest(due).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for a given number of bytes.
    #[derive(Default)]
    struct SmallDisk {
        state: Mutex<Disk>,
    }

    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        sync_fails: bool,
        truncate_fails: bool,
    }

    impl Medium for Arc<SmallDisk> {
        fn write_at_end(&self, bytes: &[u8]) -> io::Result<()> {
            let mut disk = self.state.lock().unwrap();
            let fits = bytes.len().min(disk.room - disk.bytes.len());
            disk.bytes.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn truncate(&self, length: u64) -> io::Result<()> {
            let mut disk = self.state.lock().unwrap();
            if disk.truncate_fails {
                return Err(io::ErrorKind::Other.into());
            }
            disk.bytes.truncate(length as usize);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            let disk = self.state.lock().unwrap();
            if disk.sync_fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }

        fn changed(&self, _: &Path, length: u64) -> Option<String> {
            let found = self.state.lock().unwrap().bytes.len() as u64;
            (found != length).then(|| format!("has {found} bytes instead of {length}"))
        }
    }

    fn writer(room: usize) -> (Arc<SmallDisk>, JsonlWriter<Arc<SmallDisk>>) {
        let disk = Arc::new(SmallDisk::default());
        disk.state.lock().unwrap().room = room;
        let files = RunFiles::new(&std::env::temp_dir(), RunId::new("r"));
        (disk.clone(), JsonlWriter::new(files, disk, Place { bytes: 0, next: 0 }, None))
    }

    fn note(seq: u64) -> Arc<Record> {
        let json = serde_json::json!({"seq": seq, "at": 1, "type": "hint_added", "text": "x"});
        Arc::new(serde_json::from_value(json).unwrap())
    }

    fn lines(disk: &SmallDisk) -> usize {
        let disk = disk.state.lock().unwrap();
        assert!(disk.bytes.is_empty() || disk.bytes.ends_with(b"\n"), "half a line is left");
        disk.bytes.iter().filter(|b| **b == b'\n').count()
    }

    #[tokio::test]
    async fn a_full_disk_leaves_the_log_as_it_was_and_the_writer_usable() {
        let mut line = Vec::new();
        blob::encode(&mut line, &note(0)).unwrap();
        line.push(b'\n');
        for room in line.len()..3 * line.len() {
            let (disk, mut writer) = writer(room);
            writer.append(&[note(0)], Durability::Buffered).await.unwrap();
            let e = writer.append(&[note(1), note(2)], Durability::Buffered).await.unwrap_err();
            assert!(
                matches!(&e, JournalError::Storage { action: "write", source, .. }
                    if source.kind() == io::ErrorKind::StorageFull),
                "{e}"
            );
            assert_eq!(lines(&disk), 1, "room for {room} bytes");
            disk.state.lock().unwrap().room = usize::MAX;
            writer.append(&[note(1)], Durability::Synced).await.unwrap();
            assert_eq!(lines(&disk), 2);
        }
    }

    #[tokio::test]
    async fn failed_truncation_is_repeated_before_the_next_append() {
        let (disk, mut writer) = writer(10);
        disk.state.lock().unwrap().truncate_fails = true;
        writer.append(&[note(0)], Durability::Buffered).await.unwrap_err();
        disk.state.lock().unwrap().room = usize::MAX;
        let e = writer.append(&[note(0)], Durability::Buffered).await.unwrap_err();
        assert!(matches!(e, JournalError::Storage { action: "repair", .. }), "{e}");
        disk.state.lock().unwrap().truncate_fails = false;
        writer.append(&[note(0)], Durability::Buffered).await.unwrap();
        assert_eq!(lines(&disk), 1);
    }

    #[tokio::test]
    async fn records_that_could_not_be_synced_count_as_not_appended() {
        let (disk, mut writer) = writer(usize::MAX);
        disk.state.lock().unwrap().sync_fails = true;
        let e = writer.append(&[note(0)], Durability::Synced).await.unwrap_err();
        assert!(matches!(e, JournalError::Storage { action: "sync", .. }), "{e}");
        assert_eq!(lines(&disk), 0);
        disk.state.lock().unwrap().sync_fails = false;
        writer.append(&[note(0)], Durability::Synced).await.unwrap();
        assert_eq!(lines(&disk), 1);
    }

    #[tokio::test]
    async fn a_record_out_of_order_is_not_written() {
        let (disk, mut writer) = writer(usize::MAX);
        for wrong in [&[note(1)][..], &[note(0), note(2)], &[note(0), note(0)]] {
            let e = writer.append(wrong, Durability::Buffered).await.unwrap_err();
            assert!(matches!(e, JournalError::Corrupt { .. }), "{e}");
        }
        assert_eq!(lines(&disk), 0);
    }
}
