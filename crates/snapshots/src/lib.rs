//! Snapshots of a workspace, and the undo that they make possible.
//!
//! A snapshot is the tree of all files of a folder that git would not ignore. A store keeps each content once;
//! snapshots leave the store out. Git is not needed, and no `.git` is changed. In a git repository, the ignore rules
//! of the folders above the workspace and of `.git/info/exclude` count, too; nothing else of the repository is read.
//!
//! An undo compares three states of each path: before the work, after it, and now. A file that only the work changed
//! is restored. A file that a person changed since is left as it is, and the result names it. All paths are opened
//! step by step without following links, so that no link leads out of the workspace.
//!
//! Use this crate alone to undo what any program changes in a folder; it needs no agent.
//!
//! *Invariants*
//!
//! - Nothing is written outside of the workspace and the store.
//! - A file is replaced or removed only if it is as the work left it.
//! - A file that was moved into the workspace is not removed, unless a snapshot has it.
//! - A snapshot whose id was returned is complete.
//!
//! # Example
//!
//! ```
//! use archon_snapshots::{SnapshotLimits, Snapshots, UndoStep};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (store, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! # let (store, workspace) = (store.path(), workspace.path());
//! let snapshots = Snapshots::open(store, workspace, SnapshotLimits::default())?;
//! let before = snapshots.take()?;
//! std::fs::write(workspace.join("notes.txt"), "written by a tool")?;
//! let after = snapshots.take_after(&before)?;
//!
//! let undone = snapshots.undo("session_1", &[UndoStep::new("run_1/0", before, Some(after))])?;
//! assert_eq!(undone.removed, [std::path::PathBuf::from("notes.txt")]);
//! snapshots.redo("session_1")?;
//! assert!(workspace.join("notes.txt").exists());
//! # Ok(())
//! # }
//! ```
//!
//! There is no undo on systems other than Unix: the crate is empty there.
//!
//! # The store
//!
//! Each workspace has a folder of its own in the store. In it, `objects` has the contents and trees, named by their
//! SHA-256. `kept` lists the kept snapshots: the latest 200, or fewer so that the store has at most 4 GB. `index` has
//! the stamp and hash of each file, so that an unchanged file is not read again. `undone` lists the undos of each
//! session that can be redone.
//!
//! Files are written under another name and renamed, so a process that is killed leaves no broken snapshot; a lock
//! lets one process at a time work on a workspace. Contents are not synced to the disk: after a power cut, a
//! damaged content is noticed by its hash and not restored, and the next snapshot stores it again if a file still has
//! it.

// | concept | file |
// |---|---|
// | `Snapshots`, the snapshots of one workspace | `snapshots.rs` |
// | `UndoStep` and `Restored`: what is undone, and what an undo does | `plan.rs`, `restore.rs` |
// | `Undone`, what can be redone | `history.rs` |
// | which files belong to a snapshot | `scan.rs`, `rules.rs` |
// | files that were not changed, and so are not read | `index.rs` |
// | trees and contents | `tree.rs`, `trees.rs`, `objects.rs` |
// | paths that lead nowhere else | `beneath.rs` |

#![cfg(unix)]

mod beneath;
mod error;
mod history;
mod index;
mod limits;
mod objects;
mod plan;
mod restore;
mod rules;
mod scan;
mod snapshots;
mod store;
mod tree;
mod trees;

pub use error::SnapshotError;
pub use history::Undone;
pub use limits::SnapshotLimits;
pub use plan::{Left, Restored, UndoStep};
pub use snapshots::{Difference, Snapshots};
pub use tree::SnapshotId;
