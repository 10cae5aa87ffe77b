//! Groups of processes that belong to this process, not to a call or a run.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use archon_types::{ProcessGroup, ToolError};

use super::table;

/// A process group that calls of several runs may use. While this value exists, no run that is resumed in this
/// process ends the group ([`end_surviving`](crate::end_surviving)).
///
/// The value does not end the group. Its leader does that when this process dies, if it waits for the end of an
/// input that this process holds.
#[derive(Debug)]
pub struct KeptGroup(ProcessGroup);

/// The groups that this process keeps.
static KEPT: Mutex<Option<HashSet<ProcessGroup>>> = Mutex::new(None);

impl KeptGroup {
    /// Keeps the group that the process `leader` leads. The first call in a process also ends processes whose keeper
    /// died, and which had left their group before.
    ///
    /// # Errors
    /// The process is gone, or leads no group.
    pub fn of(leader: u32) -> Result<Self, ToolError> {
        #[cfg(target_os = "linux")]
        super::orphans::end_orphans();
        let group = table::group_of(leader)?;
        groups().get_or_insert_default().insert(group.clone());
        Ok(Self(group))
    }

    /// Returns the group.
    pub fn group(&self) -> &ProcessGroup {
        &self.0
    }

    /// Returns the environment variable by which the next process finds processes of the group that outlived this
    /// process. `None` if the system has no such names.
    pub fn variable() -> Option<(&'static str, String)> {
        #[cfg(target_os = "linux")]
        return Some((super::KEEPER_VARIABLE, super::orphans::keeper()?));
        #[cfg(not(target_os = "linux"))]
        None
    }
}

impl Drop for KeptGroup {
    fn drop(&mut self) {
        groups().get_or_insert_default().remove(&self.0);
    }
}

/// Returns whether this process keeps the group.
pub(super) fn is_kept_here(group: &ProcessGroup) -> bool {
    groups().as_ref().is_some_and(|groups| groups.contains(group))
}

fn groups() -> MutexGuard<'static, Option<HashSet<ProcessGroup>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}
