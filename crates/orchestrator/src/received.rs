//! What others left for a run and stands in its log already: a process may die before it is taken out of the inbox.

use std::{collections::HashSet, sync::Arc};

use archon_types::{Record, RecordBody};

/// The messages that a log has already; one at its very end did not arrive.
pub(crate) fn received(records: &[Arc<Record>]) -> HashSet<String> {
    let ids = records.windows(2).filter_map(|pair| match &pair[0].body {
        RecordBody::Received { id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}
