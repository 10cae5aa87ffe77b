//! The limits of a run, and the behaviour when one is reached.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The limits of a run. By default a run that reaches one stops without an error; see [`OnLimit`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionLimits {
    /// The most model calls, without retries. Default 50.
    pub max_turns: u32,
    /// The most tokens of all model calls together. Default 1,000,000. It is checked before each call, so the
    /// last call may go beyond it.
    pub max_total_tokens: u64,
    /// The most active time in milliseconds. Time of waiting for people does not count, nor does time in
    /// which no process works on the run: between the last record of a process that died and the first of the
    /// next, while the machine sleeps, and while the process is stopped. Default 600,000.
    pub max_duration_ms: u64,
    /// The most calls of the same tool with the same arguments, in a row or not. Default 3.
    pub max_repeats: u32,
    /// The number of answers in a row that cannot be parsed at which the run fails. Default 3.
    pub max_parse_failures: u32,
    /// The most money in millionths of a currency unit, see [`ModelPrice`](crate::ModelPrice). The highest
    /// cost of the next call is reserved before it is made: the price of its prompt and of the longest answer,
    /// which is `RequestOptions::max_tokens`, or 4,096 tokens. Default none; needs a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// The most levels of child runs below the run: with 1, the default, a child run can start no other. In a
    /// log it is the [`Context::depth`](crate::Context::depth) of the deepest run.
    #[serde(default = "depth_where_none_is_written", skip_serializing_if = "is_not_written")]
    pub max_depth: u32,
    /// The number of turns in a row in which every call failed after which the model is told that it is
    /// stuck; 0 for never. Default 3.
    #[serde(skip_serializing_if = "is_default_stuck")]
    pub stuck_after: u32,
    /// The behaviour at a limit.
    pub on_limit: OnLimit,
}

const MAX_DEPTH: u32 = 1;

const STUCK_AFTER: u32 = 3;

/// Logs from before agents could call agents have no depth, or this one.
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
            max_cost_micros: None,
            max_depth: MAX_DEPTH,
            stuck_after: STUCK_AFTER,
            on_limit: OnLimit::Stop,
        }
    }
}

impl ExecutionLimits {
    /// Raises each limit to the given one, if that is larger.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.max_turns = self.max_turns.max(more.max_turns.unwrap_or_default());
        self.max_total_tokens = self.max_total_tokens.max(more.max_total_tokens.unwrap_or_default());
        self.max_duration_ms = self.max_duration_ms.max(more.max_duration_ms.unwrap_or_default());
        self.max_cost_micros =
            self.max_cost_micros.map(|cost| cost.max(more.max_cost_micros.unwrap_or_default()));
    }

    /// Sets the limit of turns.
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns;
        self
    }

    /// Sets the limit of tokens.
    pub fn with_max_total_tokens(mut self, tokens: u64) -> Self {
        self.max_total_tokens = tokens;
        self
    }

    /// Sets the limit of active time.
    pub fn with_max_duration(mut self, duration: Duration) -> Self {
        self.max_duration_ms = millis(duration);
        self
    }

    /// Sets the limit of money, in millionths of a currency unit: `50_000` is five cents. It needs a price,
    /// which known models have.
    pub fn with_max_cost_micros(mut self, micros: u64) -> Self {
        self.max_cost_micros = Some(micros);
        self
    }

    /// Sets the most levels of child runs.
    pub fn with_max_depth(mut self, levels: u32) -> Self {
        self.max_depth = levels;
        self
    }

    /// Sets the most calls that repeat each other.
    pub fn with_max_repeats(mut self, repeats: u32) -> Self {
        self.max_repeats = repeats;
        self
    }

    /// Sets the number of answers in a row that may not be parsed.
    pub fn with_max_parse_failures(mut self, failures: u32) -> Self {
        self.max_parse_failures = failures;
        self
    }

    /// Sets [`stuck_after`](Self::stuck_after).
    pub fn with_stuck_after(mut self, turns: u32) -> Self {
        self.stuck_after = turns;
        self
    }

    /// Sets the behaviour at a limit.
    pub fn with_on_limit(mut self, end: OnLimit) -> Self {
        self.on_limit = end;
        self
    }

    /// Returns the preset for one subtask of a plan: 10 turns, and a limit is a failure.
    pub fn subtask() -> Self {
        Self { max_turns: 10, on_limit: OnLimit::Error, ..Self::default() }
    }

    /// Returns the limit of active time.
    pub fn max_duration(&self) -> Duration {
        Duration::from_millis(self.max_duration_ms)
    }
}

/// Larger limits for a run that is resumed. Each is for the whole run, including what it used before; a limit
/// that is not set, or is smaller than the run's own, changes nothing.
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
    /// [`ExecutionLimits::max_cost_micros`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
}

impl MoreLimits {
    /// Sets a larger limit of turns.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use archon_types::{ExecutionLimits, MoreLimits};
    ///
    /// let more = MoreLimits::default().with_max_turns(20).with_max_total_tokens(9_000_000);
    /// let more = more.with_max_duration(Duration::from_secs(3_600)).with_max_cost_micros(90_000);
    /// let mut limits = ExecutionLimits::default().with_max_turns(10).with_max_cost_micros(50_000);
    /// limits.raise(&more);
    /// assert_eq!((limits.max_turns, limits.max_total_tokens), (20, 9_000_000));
    /// assert_eq!((limits.max_duration_ms, limits.max_cost_micros), (3_600_000, Some(90_000)));
    /// ```
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Sets a larger limit of tokens.
    pub fn with_max_total_tokens(mut self, tokens: u64) -> Self {
        self.max_total_tokens = Some(tokens);
        self
    }

    /// Sets a larger limit of active time.
    pub fn with_max_duration(mut self, duration: Duration) -> Self {
        self.max_duration_ms = Some(millis(duration));
        self
    }

    /// Sets a larger limit of money, in millionths of a currency unit: `50_000` is five cents. A run that was
    /// started without one gets none.
    pub fn with_max_cost_micros(mut self, micros: u64) -> Self {
        self.max_cost_micros = Some(micros);
        self
    }

    /// Returns true if no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The behaviour when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnLimit {
    /// One more model call without tools asks for the best answer so far. A tenth of the time, 30 seconds at
    /// most, and the highest cost of a call are reserved for it.
    ForceSummary,
    /// The run fails with an error that names the limit.
    Error,
    /// The run stops, and its outcome names the limit.
    #[default]
    Stop,
}

/// The limit that was reached.
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
    /// Repetitions of the same call.
    Repeats {
        /// The limit.
        max: u32,
    },
    /// Money: the next call might cost more than is left.
    Cost {
        /// The limit in millionths of a currency unit.
        max_cost_micros: u64,
    },
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns { max } => write!(f, "Max turns reached ({max})"),
            Self::Tokens { max } => write!(f, "Max tokens reached ({max})"),
            Self::Duration { max_ms } => write!(f, "Max duration reached ({} s)", *max_ms as f64 / 1000.0),
            Self::Repeats { max } => write!(f, "The same tool call was repeated {max} times"),
            Self::Cost { max_cost_micros: max } => write!(f, "Max cost reached ({})", *max as f64 / 1e6),
        }
    }
}
