//! Turns that state a fact which has ended. A turn has the keys and objects of the facts that were learnt from it, so
//! that a prompt can say which of its statements no longer hold.

use std::collections::{BTreeMap, HashMap};

use archon_types::{MemoryEntry, MemoryError};
use serde_json::json;

use super::{Knowledge, timeline};
use crate::fact::object_of;

/// The name of the facts in a turn's metadata: a key and a normalized object each.
const STATES: &str = "states";

/// Notes the facts that were learnt from a turn.
pub(super) fn note(turn: &mut MemoryEntry, stated: Vec<(String, String)>) {
    if stated.is_empty() {
        return;
    }
    let mut all = facts_of(turn);
    all.extend(stated);
    turn.metadata.insert(STATES.to_owned(), json!(all));
}

fn facts_of(turn: &MemoryEntry) -> Vec<(String, String)> {
    let stated = turn.metadata.get(STATES).cloned().unwrap_or_default();
    serde_json::from_value(stated).unwrap_or_default()
}

impl Knowledge {
    /// Returns the positions of those entries that state a fact which has ended, and which no other statement
    /// upholds.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn outdated<'a>(
        &self,
        entries: impl Iterator<Item = &'a MemoryEntry>,
    ) -> Result<Vec<u64>, MemoryError> {
        let now = self.memory.now();
        let (mut lines, mut outdated) = (BTreeMap::new(), Vec::new());
        for entry in entries {
            for (key, object) in facts_of(entry) {
                let line = (entry.collection.clone(), key);
                if !lines.contains_key(&line) {
                    let (facts, _) = self.timeline(&line.1, &line.0).await?;
                    let mut holds = HashMap::<_, bool>::new();
                    for fact in &facts {
                        *holds.entry(object_of(fact)).or_default() |= timeline::holds(fact, now);
                    }
                    lines.insert(line.clone(), holds);
                }
                if lines[&line].get(&Some(object)) == Some(&false) {
                    outdated.push(entry.position);
                }
            }
        }
        Ok(outdated)
    }
}
