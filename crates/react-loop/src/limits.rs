//! When a run ends whatever the model says: turns, tokens, time, and the same call again and again.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use archon_types::{ExecutionLimits, LimitReached, Timestamp, ToolCall, Usage};
use serde::{Deserialize, Serialize};

/// What a run has used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meter {
    pub(crate) turns: u32,
    pub(crate) usage: Usage,
    /// Answers in a row that could not be understood.
    pub(crate) parse_failures: u32,
    /// What was spent before the run began, of the same budget.
    #[serde(default)]
    carried: Spent,
    started_at: Timestamp,
    /// Time that does not count: the run was not being worked on.
    idle_ms: u64,
    last_seen: Timestamp,
    /// How often each call was made, by its hash.
    repeats: BTreeMap<u64, u32>,
    most_repeats: u32,
}

/// What a run, and the runs that it branched off, took of their budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    turns: u32,
    tokens: u64,
}

impl Meter {
    /// Counts what was spent before against the limits, too.
    pub(crate) fn carry(&mut self, spent: Spent) {
        self.carried = spent;
    }

    /// All that was spent of the budget.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            turns: self.carried.turns.saturating_add(self.turns),
            tokens: self.carried.tokens.saturating_add(self.usage.total()),
        }
    }

    pub(crate) fn start(&mut self, at: Timestamp) {
        self.started_at = at;
        self.last_seen = at;
    }

    pub(crate) fn see(&mut self, at: Timestamp) {
        self.last_seen = self.last_seen.max(at);
    }

    /// A process took the run up at `at`; the time since the last record was nobody's.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        self.idle_ms += u64::try_from(at.since(self.last_seen).as_millis()).unwrap_or(u64::MAX);
        self.see(at);
    }

    /// When the time is up.
    pub(crate) fn deadline(&self, limits: &ExecutionLimits) -> Timestamp {
        let all = limits.max_duration_ms.saturating_add(self.idle_ms);
        Timestamp::from_millis(self.started_at.as_millis().saturating_add(all))
    }

    /// Counts a call; true if the same tool was already asked with the same arguments.
    pub(crate) fn count_call(&mut self, call: &ToolCall) -> bool {
        let seen = self.repeats.entry(key(call)).or_default();
        *seen += 1;
        self.most_repeats = self.most_repeats.max(*seen);
        *seen > 1
    }

    /// The call changes the world, so other questions may have other answers now.
    pub(crate) fn world_changed_by(&mut self, call: &ToolCall) {
        let key = key(call);
        self.repeats.retain(|k, _| *k == key);
    }

    /// The latest time that a record told.
    pub(crate) fn now(&self) -> Timestamp {
        self.last_seen
    }

    /// The limit that forbids another turn.
    pub(crate) fn reached(&self, limits: &ExecutionLimits) -> Option<LimitReached> {
        let spent = self.spent();
        if spent.turns >= limits.max_turns {
            Some(LimitReached::Turns { max: limits.max_turns })
        } else if spent.tokens >= limits.max_total_tokens {
            Some(LimitReached::Tokens { max: limits.max_total_tokens })
        } else if self.last_seen >= self.deadline(limits) {
            Some(LimitReached::Duration { max_ms: limits.max_duration_ms })
        } else if self.most_repeats > limits.max_repeats {
            Some(LimitReached::Repeats { max: limits.max_repeats })
        } else {
            None
        }
    }
}

fn key(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    call.arguments.to_string().hash(&mut hasher);
    hasher.finish()
}
