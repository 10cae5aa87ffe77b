//! Snapshots of a workspace, and undo.

#![cfg(unix)]

mod pruning;
mod random;
mod snapshots;
mod undo;
mod world;
