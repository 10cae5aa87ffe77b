//! Turns that state a fact which has ended. A turn has the keys and objects of the facts that were learnt from it, so
//! that a prompt can say which of its statements no longer hold.

use std::collections::BTreeMap;

use archon_types::{MemoryEntry, Recalled};
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
    /// Returns the positions of the memories that state a fact which has ended and which no other statement upholds.
    /// A fact that cannot be read counts as one that holds.
    pub(crate) async fn outdated(&self, memories: &[Recalled]) -> Vec<u64> {
        let now = self.memory.now();
        let (mut lines, mut outdated) = (BTreeMap::new(), Vec::new());
        for entry in memories.iter().map(|memory| &memory.entry) {
            for (key, object) in facts_of(entry) {
                let line = (entry.collection.clone(), key);
                if !lines.contains_key(&line) {
                    let facts = self.timeline(&line.1, &line.0).await;
                    let facts = facts.inspect_err(
                        |error| tracing::warn!(%error, "it is not known which memories no longer hold"),
                    );
                    lines.insert(line.clone(), facts.map(|(facts, _)| facts).unwrap_or_default());
                }
                let mut facts =
                    lines[&line].iter().filter(|fact| object_of(fact).as_ref() == Some(&object)).peekable();
                if facts.peek().is_some() && !facts.any(|fact| timeline::holds(fact, now)) {
                    outdated.push(entry.position);
                }
            }
        }
        outdated
    }
}
