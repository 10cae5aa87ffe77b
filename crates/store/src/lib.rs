//! Journals, which keep the logs of runs.
//!
//! Use this crate alone to keep or read the logs of runs without an agent, for instance in a tool that
//! inspects them.
//!
//! | | [`InMemoryJournal`] | [`JsonlJournal`] | [`SqliteJournal`] |
//! |---|---|---|---|
//! | feature | always there | `jsonl`, a default | `sqlite`, which compiles SQLite in |
//! | for | tests, short-lived runs, benchmarks | one person's runs, read with `jq` and `grep` | many runs, many at once |
//! | a run is | records in this process, unserialised | a file, one line per record | rows of one database |
//! | survives the death of the process | no | every record | every record |
//! | survives a power cut | no | up to the last synced append | up to the last synced append |
//! | one append costs | nothing | a write; synced: one sync of a file | a transaction; synced: one sync of the database's write-ahead log |
//! | many runs at once | independent | each syncs its own file | take turns; one sync covers all earlier appends |
//! | a torn end | — | cut off when the run is opened | cut off when the database is opened |
//! | a damaged record | — | an error with run and record; earlier records can be salvaged | the same |
//! | a large record | shared | its body in a file next to the log, named by its hash | the same, in a table |
//! | a full disk | — | rolls back the append that meets it | the same |
//! | a directory without write permission | — | logs can be read | refuses to open |
//! | the second writer of a run | [`Locked`] | [`Locked`], across processes | [`Locked`], across processes |
//! | messages to a run of another process | — | a file each, noticed within 250 ms | a row each, noticed within 250 ms |
//! | a list of all runs | reads all | reads the ends of every file | reads the ends of every log |
//! | one page of runs, a session's runs, suspended runs | reads all | reads the ends of those files, by an index | the same, by indexes |
//! | works on a network file system | — | if it has locks | no |
//!
//! All journals follow the same rules: a run has one writer, records are numbered from 0 without gaps, ids
//! can be file names, and a log without records is a run that does not exist. A run that another run
//! continues, or waits for, cannot be deleted.
//!
//! Memories are not logs. They are kept in their own database, [`SqliteMemory`] (feature `sqlite-memory`),
//! or in their own schema in PostgreSQL with pgvector, [`PostgresMemory`] (feature `postgres-memory`).
//!
//! Credentials are the accounts that tools use. They are kept in [`InMemoryCredentials`], or in
//! [`SqliteCredentials`] (feature `sqlite`), encrypted with a key (feature `encryption`).
//!
//! The index of suspended runs, which is built from logs, can be shared by several processes in a
//! [`SqlitePoolIndex`] (feature `sqlite`).
//!
//! Tasks that start runs by themselves are kept in an [`InMemoryTaskStore`] or a [`SqliteTaskStore`] (feature `sqlite`).
//!
//! Sessions, which are computed from logs, can be written to files for other programs by a
//! [`FileSystemSessionStore`] (feature `jsonl`).
//!
//! # Example
//!
//! ```
//! use archon_store::InMemoryJournal;
//! use archon_types::{Journal, OpenMode, RunFilter, RunId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), archon_types::JournalError> {
//! let journal = InMemoryJournal::default();
//! let run = RunId::new("run_1");
//! let opened = journal.open(&run, OpenMode::Create).await?;
//! assert!(opened.records.is_empty());
//! // A log without records is not a run.
//! assert!(journal.list(&RunFilter::default()).await?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! [`Locked`]: archon_types::JournalError::Locked

// | concept | file |
// |---|---|
// | the three journals | `memory.rs`, `jsonl.rs`, `sqlite.rs` |
// | a record as a line; the body of a large record | `line.rs`, `records.rs`; `blob.rs` |
// | the rules that every journal checks | `rules.rs` |
// | the lock of a run's writer | `lock.rs` |
// | messages to a run: notice and seal | `doorbell.rs`, `inbox_key.rs` |
// | lists of runs | `listing.rs` |
// | sessions as files | `session_files.rs` |
// | memories | `memories.rs`, `sqlite_memory.rs`, `postgres_memory.rs` |
// | credentials | `memory_credentials.rs`, `sqlite_credentials.rs` |
// | tasks that start runs | `memory_tasks.rs`, `sqlite_tasks.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "jsonl"), doc = "\n[`JsonlJournal`]: #\n[`FileSystemSessionStore`]: #")]
#![cfg_attr(not(feature = "sqlite-memory"), doc = "\n[`SqliteMemory`]: #")]
#![cfg_attr(not(feature = "postgres-memory"), doc = "\n[`PostgresMemory`]: #")]
#![cfg_attr(
    not(feature = "sqlite"),
    doc = "\n[`SqliteJournal`]: #\n[`SqliteCredentials`]: #\n[`SqlitePoolIndex`]: #\n[`SqliteTaskStore`]: #"
)]

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod blob;
#[cfg(any(feature = "jsonl", feature = "sqlite", feature = "sqlite-memory"))]
mod blocking;
#[cfg(any(feature = "sqlite", feature = "sqlite-memory"))]
mod database_file;
mod doorbell;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod files;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod inbox_key;
#[cfg(feature = "jsonl")]
mod jsonl;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod key_file;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod line;
mod listing;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod lock;
#[cfg(any(feature = "sqlite-memory", feature = "postgres-memory"))]
mod memories;
mod memory;
mod memory_credentials;
mod memory_tasks;
#[cfg(feature = "postgres-memory")]
mod postgres_memory;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod records;
mod rules;
#[cfg(feature = "jsonl")]
mod session_files;
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod skipped;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_credentials;
#[cfg(feature = "sqlite-memory")]
mod sqlite_memory;
#[cfg(feature = "sqlite")]
mod sqlite_tasks;

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub use inbox_key::InboxKey;
#[cfg(feature = "jsonl")]
pub use jsonl::JsonlJournal;
pub use memory::InMemoryJournal;
pub use memory_credentials::InMemoryCredentials;
pub use memory_tasks::InMemoryTaskStore;
#[cfg(feature = "postgres-memory")]
pub use postgres_memory::PostgresMemory;
#[cfg(feature = "jsonl")]
pub use session_files::FileSystemSessionStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteJournal, SqlitePoolIndex};
#[cfg(feature = "encryption")]
pub use sqlite_credentials::SealingKey;
#[cfg(feature = "sqlite")]
pub use sqlite_credentials::SqliteCredentials;
#[cfg(feature = "sqlite-memory")]
pub use sqlite_memory::SqliteMemory;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite_tasks::SqliteTaskStore;
