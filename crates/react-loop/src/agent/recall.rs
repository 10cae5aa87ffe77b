//! Restores the state of the tools of a run from its session.

use std::sync::Arc;

use archon_types::{Context, Record, RecordBody, SnapshotResult};

use super::ReactAgent;
use crate::{
    History,
    resume::{marked, seen_by_fork, seen_results},
};

impl ReactAgent {
    /// Restores the state of the tools for a resumed run, from the results of the earlier runs (`history`) and of
    /// the run itself (`records`).
    pub(super) fn recall_for_resume(&self, history: &History, records: &[Arc<Record>], context: &Context) {
        self.recall(&history.seen, context);
        self.recall(&seen_by_fork(&context.run, records, &history.seen), context);
        self.recall(&seen_results(&context.run, records), context);
    }

    /// Gives each mark of the run's messages to the tool that it is for.
    pub(super) fn recall_marks(&self, bodies: &[RecordBody], context: &Context) {
        let marks: Vec<_> = bodies.iter().filter_map(|body| marked(&context.run, body)).collect();
        self.recall(&marks, context);
    }

    /// Tells the tools which files earlier calls of the session have read or written, which commands they have
    /// started, and which skills are active.
    pub(super) fn recall(&self, seen: &[SnapshotResult], context: &Context) {
        for SnapshotResult { tool, result } in seen {
            self.driver.toolbox.recall(&context.session, tool, result);
        }
    }
}
