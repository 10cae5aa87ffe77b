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
/// Dropping this value does not end the group. If the group must end when this process dies, let the leader of the
/// group read an input that this process holds open, and end the group at the end of that input.
#[derive(Debug)]
pub struct KeptGroup(ProcessGroup);

/// The groups that this process keeps.
static KEPT: Mutex<Option<HashSet<ProcessGroup>>> = Mutex::new(None);

impl KeptGroup {
    /// Keeps the group that the process `leader` leads. On Linux, the first call in a process also ends orphans:
    /// processes that left their group before the process that kept it died.
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

    /// Returns the name and value of an environment variable that names this process as the keeper of a group. Set this
    /// variable for the processes of the group: then the next process that keeps a group finds and ends those that
    /// outlived this process. `None` if this process has no unique name, as on systems other than Linux.
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
