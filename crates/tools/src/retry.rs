//! Retries of tool calls outside of a run. Within a run the loop retries, because each attempt is in the
//! run's log.

use std::{pin::pin, time::Duration};

use archon_types::{CallId, CancellationToken, Clock, ToolContext, ToolResult, ToolSpec};
use futures_util::future::{Either, select};

use crate::{output::error_type, progress::Partial};

/// The retries of failed calls outside of a run. Only calls of read-only and idempotent tools are retried.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolRetryPolicy {
    /// Maximum number of retries. Default 2.
    pub max_retries: u32,
    /// Error codes ([`ToolError::code`](archon_types::ToolError::code)) of failures that are retried.
    /// Default `timeout` and `resource_error`.
    pub retry_on: Vec<String>,
    /// Wait before the first retry. Default 1 s.
    pub initial_delay: Duration,
    /// Factor by which each wait is longer than the one before. Default 1.5.
    pub backoff_multiplier: f64,
    /// Maximum wait before a retry. Default 10 s.
    pub max_delay: Duration,
    /// Factor by which the time limit of each attempt is longer than that of the one before. Default 2.
    pub timeout_multiplier: f64,
    /// Maximum to which `timeout_multiplier` can raise the time limit. A time limit that is longer from the
    /// start is kept. Default 300 s.
    pub max_timeout: Duration,
}

impl Default for ToolRetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            retry_on: vec!["timeout".to_owned(), "resource_error".to_owned()],
            initial_delay: Duration::from_secs(1),
            backoff_multiplier: 1.5,
            max_delay: Duration::from_secs(10),
            timeout_multiplier: 2.0,
            max_timeout: Duration::from_secs(300),
        }
    }
}

impl ToolRetryPolicy {
    /// Returns a policy without retries.
    pub fn never() -> Self {
        Self { max_retries: 0, ..Self::default() }
    }

    /// Returns whether a call is retried after this result. `attempt` is the number of the attempt that had
    /// the result, counted from 1.
    pub(crate) fn again(&self, spec: &ToolSpec, result: &ToolResult, attempt: u32) -> bool {
        let kind = error_type(result).unwrap_or_default();
        let annotations = &spec.annotations;
        result.is_error()
            && attempt <= self.max_retries
            && annotations.effect.may_repeat()
            && !annotations.agent
            && self.retry_on.iter().any(|code| code == kind)
            // A call that could not be stopped may still be running.
            && !result.metadata.contains_key("left_behind")
    }

    /// Returns the wait before attempt number `attempt` of a call; `attempt` is at least 2.
    pub(crate) fn delay_before(&self, attempt: u32) -> Duration {
        scaled(self.initial_delay, self.backoff_multiplier, attempt.saturating_sub(2)).min(self.max_delay)
    }

    /// Returns the time limit of attempt number `attempt` of a call; `limit` is the time limit of the first
    /// attempt.
    pub(crate) fn limit(&self, limit: Duration, attempt: u32) -> Duration {
        match attempt {
            0 | 1 => limit,
            _ => scaled(limit, self.timeout_multiplier, attempt - 1).min(self.max_timeout.max(limit)),
        }
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Tried {
    /// Number of attempts, the one under way included.
    pub(crate) attempts: u32,
    /// The error of the previous attempt.
    pub(crate) last_error: Option<String>,
}

impl Tried {
    /// Returns the state of the first attempt.
    pub(crate) fn first() -> Self {
        Self { attempts: 1, last_error: None }
    }

    /// Counts another attempt, which follows this failed result, and reports it to the run's watchers.
    pub(crate) fn again(&mut self, result: &ToolResult, id: CallId, context: &mut ToolContext) {
        let error = result.error_message.clone().unwrap_or_default();
        // The listener of the previous attempt is closed.
        context.progress = Some(Partial::default().listener(&context.run, id));
        context.on_progress(format!("Retry {} after: {error}\n", self.attempts));
        self.attempts += 1;
        self.last_error = Some(error);
    }
}

/// Waits for the time `delay`; returns true if the call was cancelled meanwhile.
pub(crate) async fn wait(clock: &dyn Clock, delay: Duration, cancel: &CancellationToken) -> bool {
    let slept = clock.sleep_until(clock.now() + delay);
    matches!(select(pin!(cancel.cancelled()), slept).await, Either::Left(_))
}

fn scaled(duration: Duration, factor: f64, times: u32) -> Duration {
    let exponent = i32::try_from(times).unwrap_or(i32::MAX);
    let seconds = duration.as_secs_f64() * factor.max(1.0).powi(exponent);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-19
    #[test]
    fn waits_and_limits_grow_to_their_bounds() {
        let policy = ToolRetryPolicy::default();
        let ms = |attempt| policy.delay_before(attempt).as_millis();
        assert_eq!(
            [ms(2), ms(3), ms(4), ms(7), ms(8), ms(4_000_000)],
            [1_000, 1_500, 2_250, 7_593, 10_000, 10_000]
        );
        let limit = |seconds, attempt| policy.limit(Duration::from_secs(seconds), attempt).as_secs();
        assert_eq!(
            [limit(30, 1), limit(30, 2), limit(30, 3), limit(30, 5), limit(30, 9)],
            [30, 60, 120, 300, 300]
        );
        assert_eq!([limit(600, 1), limit(600, 2)], [600, 600]);
    }
}
