//! Rebuilds the machine of a plan from its log.

use std::sync::Arc;

use archon_types::Record;

use crate::PlanMachine;

/// Returns the machine of a plan's log, which has the state of every subtask. `None` for a log of another
/// kind.
pub fn fold(records: &[Arc<Record>]) -> Option<PlanMachine> {
    archon_run::fold(records, PlanMachine::new)
}
