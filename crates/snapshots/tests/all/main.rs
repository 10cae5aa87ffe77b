//! Snapshots of a workspace, and undo.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod pruning;
mod random;
mod snapshots;
mod undo;
mod world;
