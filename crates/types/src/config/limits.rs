//! The limits of a run, and the behaviour when one is reached.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The limits of a run. By default a run that reaches a limit stops without an error; see [`OnLimit`].
///
/// ```
/// use std::time::Duration;
///
/// use archon_types::{ExecutionLimits, OnLimit};
///
/// let limits = ExecutionLimits::default()
///     .with_max_turns(10)
///     .with_max_total_tokens(50_000)
///     .with_max_duration(Duration::from_secs(120))
///     .with_max_cost_micros(50_000) // five cents
///     .with_max_depth(2)
///     .with_max_repeats(2)
///     .with_max_parse_failures(2)
///     .with_stuck_after(4)
///     .with_on_limit(OnLimit::ForceSummary);
/// assert_eq!(limits.max_duration_ms, 120_000);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionLimits {
    /// The maximum number of model calls; retries do not count. Default 50.
    pub max_turns: u32,
    /// The maximum number of tokens of all model calls together. Default 1,000,000. The limit is checked
    /// before each call, so the last call may exceed it.
    pub max_total_tokens: u64,
    /// The maximum active time in milliseconds. Time in which the run waits for people does not count. Time
    /// in which no process works on the run does not count either: after a process died (from its last record
    /// to the first record of the next process), while the machine sleeps, and while the process is stopped.
    /// Default 600,000.
    pub max_duration_ms: u64,
    /// The maximum number of calls of the same tool with the same arguments, in a row or not. Default 3.
    pub max_repeats: u32,
    /// The run fails after this number of answers in a row that cannot be parsed. Default 3.
    pub max_parse_failures: u32,
    /// The maximum cost in millionths of a currency unit, see [`ModelPrice`](crate::ModelPrice). Before each
    /// call, the run reserves the highest possible cost of the call: the price of the prompt and of the
    /// longest answer (`RequestOptions::max_tokens`, or 4,096 tokens if that is not set). The limit needs the
    /// price of the model. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// The maximum number of levels of child runs below the run. With 1, the default, a child run cannot
    /// start another one. A log stores this limit in another form: as the maximum
    /// [`Context::depth`](crate::Context::depth), which counts from the run at the top.
    #[serde(default = "depth_where_none_is_written", skip_serializing_if = "is_not_written")]
    pub max_depth: u32,
    /// The number of turns in a row in which every call failed, after which the model is told that it is
    /// stuck; 0 for never. Default 3.
    #[serde(skip_serializing_if = "is_default_stuck")]
    pub stuck_after: u32,
    /// The behaviour at a limit. Default [`OnLimit::Stop`].
    pub on_limit: OnLimit,
}

const STUCK_AFTER: u32 = 3;

/// Returns the `max_depth` of a log that has no such field. Such logs are from a time when agents could not
/// call agents.
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
            max_depth: 1,
            stuck_after: STUCK_AFTER,
            on_limit: OnLimit::Stop,
        }
    }
}

impl ExecutionLimits {
    /// Raises the limits that `more` sets, each only if its new value is larger. A run without a cost limit
    /// stays without one.
    pub fn raise(&mut self, more: &MoreLimits) {
        self.max_turns = self.max_turns.max(more.max_turns.unwrap_or_default());
        self.max_total_tokens = self.max_total_tokens.max(more.max_total_tokens.unwrap_or_default());
        self.max_duration_ms = self.max_duration_ms.max(more.max_duration_ms.unwrap_or_default());
        self.max_cost_micros =
            self.max_cost_micros.map(|cost| cost.max(more.max_cost_micros.unwrap_or_default()));
    }

    /// Returns the limits for one subtask of a plan: at most 10 turns, and the subtask fails at a limit.
    pub fn subtask() -> Self {
        Self { max_turns: 10, on_limit: OnLimit::Error, ..Self::default() }
    }

    /// Returns the maximum active time; waiting for people does not count as active.
    pub fn max_duration(&self) -> Duration {
        Duration::from_millis(self.max_duration_ms)
    }
}

crate::setters! {
impl ExecutionLimits {
    /// Sets the maximum number of model calls; retries do not count. Default 50.
    pub fn with_max_turns(self, turns: u32) -> Self { self.max_turns = turns }

    /// Sets the maximum number of tokens of all model calls together. Default 1,000,000.
    pub fn with_max_total_tokens(self, tokens: u64) -> Self { self.max_total_tokens = tokens }

    /// Sets the maximum active time; waiting for people does not count as active. Default 10 minutes.
    pub fn with_max_duration(self, duration: Duration) -> Self { self.max_duration_ms = millis(duration) }

    /// Sets the maximum cost, in millionths of a currency unit: `50_000` is five cents. Default none. The
    /// limit needs the price of the model; the catalogue of models has the prices of well-known ones.
    pub fn with_max_cost_micros(self, micros: u64) -> Self { self.max_cost_micros = Some(micros) }

    /// Sets the maximum number of levels of child runs below the run. Default 1: a child run cannot start
    /// another one.
    pub fn with_max_depth(self, levels: u32) -> Self { self.max_depth = levels }

    /// Sets the maximum number of calls of the same tool with the same arguments, in a row or not. Default 3.
    pub fn with_max_repeats(self, repeats: u32) -> Self { self.max_repeats = repeats }

    /// Sets the number of answers in a row that cannot be parsed, after which the run fails. Default 3.
    pub fn with_max_parse_failures(self, failures: u32) -> Self { self.max_parse_failures = failures }

    /// Sets the number of turns in a row in which every call failed, after which the model is told that it is
    /// stuck; 0 for never. Default 3.
    pub fn with_stuck_after(self, turns: u32) -> Self { self.stuck_after = turns }

    /// Sets the behaviour when the run reaches a limit. Default [`OnLimit::Stop`].
    pub fn with_on_limit(self, end: OnLimit) -> Self { self.on_limit = end }
}
}

/// Larger limits for a run that is resumed. Each limit is for the whole run, including what the run used
/// before. A limit that is not set, or is smaller than the run's own, changes nothing.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct MoreLimits {
    /// The new [`ExecutionLimits::max_turns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The new [`ExecutionLimits::max_total_tokens`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// The new [`ExecutionLimits::max_duration_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// The new [`ExecutionLimits::max_cost_micros`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
}

impl MoreLimits {
    /// Returns true if no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

crate::setters! {
impl MoreLimits {
    /// Sets a larger maximum number of model calls, including those that the run already made.
    pub fn with_max_turns(self, turns: u32) -> Self { self.max_turns = Some(turns) }

    /// Sets a larger maximum number of tokens, including those that the run already used.
    pub fn with_max_total_tokens(self, tokens: u64) -> Self { self.max_total_tokens = Some(tokens) }

    /// Sets a larger maximum active time, including the time that the run already used.
    pub fn with_max_duration(self, duration: Duration) -> Self {
        self.max_duration_ms = Some(millis(duration))
    }

    /// Sets a larger maximum cost, including the costs so far, in millionths of a currency unit: `50_000` is
    /// five cents. A run that was started without a cost limit stays without one.
    pub fn with_max_cost_micros(self, micros: u64) -> Self { self.max_cost_micros = Some(micros) }
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
    /// The model is asked for its best answer so far, in one more call without tools. A tenth of the maximum
    /// time, at most 30 s, and the highest cost of a call are reserved for this call.
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
    /// The maximum number of model calls.
    Turns {
        /// The limit.
        max: u32,
    },
    /// The maximum number of tokens.
    Tokens {
        /// The limit.
        max: u64,
    },
    /// The maximum active time.
    Duration {
        /// The limit in milliseconds.
        max_ms: u64,
    },
    /// The maximum number of calls of the same tool with the same arguments.
    Repeats {
        /// The limit.
        max: u32,
    },
    /// The maximum cost: the next call could exceed it.
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
