//! The process groups of one call, from their registration to their end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon_types::{BoxFuture, CallId, Clock, Context, ProcessGroup, ProcessLog, Processes, ToolError};
use rustix::process::Signal;

use super::{GRACE, REMOVAL, Table, signal, table, until_gone};

/// Ends a call's process groups: gracefully with [`end`](Self::end), or at once when this value is dropped.
pub struct CallProcesses {
    registered: Arc<Registered>,
    table: Table,
}

struct Registered {
    call: CallId,
    log: Option<Arc<dyn ProcessLog>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    groups: Vec<ProcessGroup>,
    is_over: bool,
}

impl CallProcesses {
    /// Creates an empty list of the groups of a call. Pass a clone of one `table` to all calls, so that calls that end
    /// together read the processes of the system only once.
    pub fn new(call: CallId, run: &Context, table: Table) -> Self {
        let registered = Registered { call, log: run.processes.clone(), state: Mutex::default() };
        Self { registered: Arc::new(registered), table }
    }

    /// Returns the registry in which the call's tool registers its process groups.
    pub fn registry(&self) -> Arc<dyn Processes> {
        self.registered.clone()
    }

    /// Ends all remaining processes of the call: sends SIGTERM, and SIGKILL after 150 ms.
    pub async fn end(self, clock: &dyn Clock) {
        let mut remaining = self.registered.close();
        remaining.retain(table::is_alive);
        if remaining.is_empty() {
            return;
        }
        remaining.iter().for_each(|group| signal(group, Signal::TERM));
        until_gone(&mut remaining, GRACE, clock, &self.table).await;
        remaining.iter().for_each(|group| signal(group, Signal::KILL));
        until_gone(&mut remaining, REMOVAL, clock, &self.table).await;
        for group in remaining {
            tracing::error!(target: "archon::process", group = group.id, "a process group cannot be ended");
        }
    }
}

impl Drop for CallProcesses {
    fn drop(&mut self) {
        let remaining = self.registered.close();
        remaining.iter().filter(|group| table::is_alive(group)).for_each(|group| signal(group, Signal::KILL));
    }
}

impl Registered {
    /// Refuses groups from now on, and returns the groups registered so far.
    fn close(&self) -> Vec<ProcessGroup> {
        let mut state = self.state();
        state.is_over = true;
        state.groups.clone()
    }

    /// Adds a group; returns `false` if the call is over.
    fn add(&self, group: &ProcessGroup) -> bool {
        let mut state = self.state();
        if !state.is_over {
            state.groups.push(group.clone());
        }
        !state.is_over
    }

    /// Logs a group; returns `false` if the call is over. Without a log, does nothing and returns `true`.
    async fn logged(&self, group: &ProcessGroup) -> bool {
        match &self.log {
            Some(log) => log.spawned(self.call, group.clone()).await,
            None => true,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Processes for Registered {
    fn register<'a>(&'a self, leader: u32) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let group = table::group_of(leader)?;
            #[cfg(target_os = "linux")]
            if let Some(leader) = super::number(leader) {
                super::mark(leader, group.id);
            }
            if self.add(&group) && self.logged(&group).await {
                return Ok(());
            }
            signal(&group, Signal::KILL);
            Err(ToolError::Cancelled)
        })
    }

    fn uses<'a>(&'a self, group: &'a ProcessGroup) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let is_logged = !self.state().is_over && self.logged(group).await;
            if is_logged { Ok(()) } else { Err(ToolError::Cancelled) }
        })
    }
}
