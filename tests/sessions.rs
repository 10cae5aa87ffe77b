//! Conversations of several runs: continue, fork, steer, replay.

pub(crate) mod auto_save;
pub(crate) mod compaction;
pub(crate) mod fork;
pub(crate) mod going_back;
pub(crate) mod interruptions;
pub(crate) mod long_sessions;
pub(crate) mod modes;
pub(crate) mod project_file;
pub(crate) mod replay;
pub(crate) mod steering;
pub(crate) mod unread_messages;
