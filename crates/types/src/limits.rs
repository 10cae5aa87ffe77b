//! The limits of a run, and what happens when one is reached.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// How far a run may go. Reaching a limit ends the run in order, it is not an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionLimits {
    /// Model calls, retries left out. Default 50.
    pub max_turns: u32,
    /// Tokens of all model calls together. Default 1,000,000.
    pub max_total_tokens: u64,
    /// Active time in milliseconds. Time of waiting for people does not count, nor does time in which no process works
    /// on the run: between the last record of a process that died and the first of the next, while the machine sleeps,
    /// and while the process is stopped. Default 600,000.
    pub max_duration_ms: u64,
    /// The same tool with the same arguments, in a row or not, before the run ends. Default 3.
    pub max_repeats: u32,
    /// Answers in a row that could not be understood before the run fails. Default 3.
    pub max_parse_failures: u32,
    /// Money in millionths of a currency unit, see [`ModelPrice`](crate::ModelPrice). What the next
    /// call may cost is set aside before it is made. Default none; needs a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
    /// How many levels of agents there may be below the run: at 1, the default, an agent that is called
    /// calls no other. In a log it is the [`Context::depth`](crate::Context::depth) of the deepest run.
    #[serde(default = "depth_where_none_is_written", skip_serializing_if = "is_not_written")]
    pub max_depth: u32,
    /// Turns in a row in which every call failed, before the model is told that it is stuck; 0 never
    /// tells it. Default 3.
    #[serde(skip_serializing_if = "is_default_stuck")]
    pub stuck_after: u32,
    /// What happens at a limit.
    pub on_limit: OnLimit,
}

const MAX_DEPTH: u32 = 1;
const STUCK_AFTER: u32 = 3;

/// Logs from before there were agents that could be called say nothing of depth, or this.
fn depth_where_none_is_written() -> u32 {
    5
}

fn is_not_written(depth: &u32) -> bool {
    *depth == depth_where_none_is_written()
}

fn is_default_stuck(turns: &u32) -> bool {
    *turns == STUCK_AFTER
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            max_total_tokens: 1_000_000,
            max_duration_ms: 600_000,
            max_repeats: 3,
            max_parse_failures: 3,
            max_cost: None,
            max_depth: MAX_DEPTH,
            stuck_after: STUCK_AFTER,
            on_limit: OnLimit::Stop,
        }
    }
}

impl ExecutionLimits {
    /// The larger of its own and of what is given.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.max_turns = self.max_turns.max(more.max_turns.unwrap_or_default());
        self.max_total_tokens = self.max_total_tokens.max(more.max_total_tokens.unwrap_or_default());
        self.max_duration_ms = self.max_duration_ms.max(more.max_duration_ms.unwrap_or_default());
        self.max_cost = self.max_cost.map(|cost| cost.max(more.max_cost.unwrap_or_default()));
    }

    /// The same limits with another one of turns.
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns;
        self
    }

    /// The same limits with another one of tokens.
    pub fn with_max_total_tokens(mut self, tokens: u64) -> Self {
        self.max_total_tokens = tokens;
        self
    }

    /// The same limits with another one of active time.
    pub fn with_max_duration(mut self, duration: Duration) -> Self {
        self.max_duration_ms = millis(duration);
        self
    }

    /// The same limits with one of money, in millionths of a currency unit: `50_000` are five cents. It needs a price,
    /// which known models have.
    pub fn with_max_cost(mut self, millionths: u64) -> Self {
        self.max_cost = Some(millionths);
        self
    }

    /// The same limits with another depth of agents that call agents.
    pub fn with_max_depth(mut self, levels: u32) -> Self {
        self.max_depth = levels;
        self
    }

    /// The same limits with another number of calls that may repeat each other.
    pub fn with_max_repeats(mut self, repeats: u32) -> Self {
        self.max_repeats = repeats;
        self
    }

    /// The same limits with another number of answers in a row that may not be understood.
    pub fn with_max_parse_failures(mut self, failures: u32) -> Self {
        self.max_parse_failures = failures;
        self
    }

    /// The same limits with another [`stuck_after`](Self::stuck_after).
    pub fn with_stuck_after(mut self, turns: u32) -> Self {
        self.stuck_after = turns;
        self
    }

    /// The same limits with another end at a limit.
    pub fn with_on_limit(mut self, end: OnLimit) -> Self {
        self.on_limit = end;
        self
    }

    /// The preset for one subtask of a plan: 10 turns, and a limit is a failure.
    pub fn subtask() -> Self {
        Self { max_turns: 10, on_limit: OnLimit::Error, ..Self::default() }
    }

    /// Active time that is allowed.
    pub fn max_duration(&self) -> Duration {
        Duration::from_millis(self.max_duration_ms)
    }
}

/// Larger limits for a run that is taken up. Each is for the whole run, what was used before included; one that is not
/// given, or is smaller than the run's own, changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct MoreLimits {
    /// [`ExecutionLimits::max_turns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// [`ExecutionLimits::max_total_tokens`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// [`ExecutionLimits::max_duration_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// [`ExecutionLimits::max_cost`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
}

impl MoreLimits {
    /// The same with a larger limit of turns.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use archon_types::{ExecutionLimits, MoreLimits};
    ///
    /// let more = MoreLimits::default().with_max_turns(20).with_max_total_tokens(9_000_000);
    /// let more = more.with_max_duration(Duration::from_secs(3_600)).with_max_cost(90_000);
    /// let mut limits = ExecutionLimits::default().with_max_turns(10).with_max_cost(50_000);
    /// limits.raise(&more);
    /// assert_eq!((limits.max_turns, limits.max_total_tokens), (20, 9_000_000));
    /// assert_eq!((limits.max_duration_ms, limits.max_cost), (3_600_000, Some(90_000)));
    /// ```
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// The same with a larger limit of tokens.
    pub fn with_max_total_tokens(mut self, tokens: u64) -> Self {
        self.max_total_tokens = Some(tokens);
        self
    }

    /// The same with a larger limit of active time.
    pub fn with_max_duration(mut self, duration: Duration) -> Self {
        self.max_duration_ms = Some(millis(duration));
        self
    }

    /// The same with a larger limit of money, in millionths of a currency unit: `50_000` are five cents. A run that was
    /// started without one gets none.
    pub fn with_max_cost(mut self, millionths: u64) -> Self {
        self.max_cost = Some(millionths);
        self
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What happens when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnLimit {
    /// One more model call without tools, which is asked for the best answer so far. Of the time a tenth, 30 seconds at
    /// most, is kept for it, and of the money as much as the next call may cost.
    ForceSummary,
    /// The run fails and says which limit.
    Error,
    /// The run stops and says which limit.
    #[default]
    Stop,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "limit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitReached {
    /// Model calls.
    Turns {
        /// The limit.
        max: u32,
    },
    /// Tokens.
    Tokens {
        /// The limit.
        max: u64,
    },
    /// Active time.
    Duration {
        /// The limit in milliseconds.
        max_ms: u64,
    },
    /// The same call again and again.
    Repeats {
        /// The limit.
        max: u32,
    },
    /// Money: the next call might cost more than is left.
    Cost {
        /// The limit in millionths of a currency unit.
        max: u64,
    },
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns { max } => write!(f, "Max turns reached ({max})"),
            Self::Tokens { max } => write!(f, "Max tokens reached ({max})"),
            Self::Duration { max_ms } => write!(f, "Max duration reached ({} s)", *max_ms as f64 / 1000.0),
            Self::Repeats { max } => write!(f, "The same tool call was repeated {max} times"),
            Self::Cost { max } => write!(f, "Max cost reached ({})", *max as f64 / 1e6),
        }
    }
}
