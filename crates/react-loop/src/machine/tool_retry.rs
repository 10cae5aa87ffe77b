//! Retries of tool calls: which failures are retried, when, and which events end the wait.

use std::sync::Arc;

use archon_types::{
    CallId, Json, RecordBody, Timestamp, ToolExecutionStrategy, ToolResult, ToolResultStatus, ToolSpec,
    metadata,
};

use super::{ReactMachine, ReactTask, Step};
use crate::{CallStage, CallState};

impl ReactMachine {
    /// Returns the record that a call failed and is retried; `None` if the call is not retried.
    pub(crate) fn tool_retry(
        &self,
        call: CallId,
        result: &ToolResult,
        at: Timestamp,
        jitter: impl FnOnce() -> f64,
    ) -> Option<RecordBody> {
        let attempt = self.retry_of(call, result, at)?;
        let result = Arc::new(result.clone());
        Some(RecordBody::ToolCallFailed { call, attempt, result, jitter: jitter() })
    }

    /// Returns the number of the failed start, if the call is retried after it.
    fn retry_of(&self, id: CallId, result: &ToolResult, at: Timestamp) -> Option<u32> {
        let policy = self.config.failure_policy.as_ref()?;
        let call = self.call(id)?;
        let CallStage::Started { attempt, effect } = call.stage else { return None };
        let spec = self.config.tool(&call.call.name)?;
        let tries = policy.tool_retry.max_retries.min(tries_after(result, spec));
        let is_last = |breaker| self.circuits.is_last_try(&spec.name, breaker);
        let may = effect.may_repeat()
            && attempt < tries
            && !self.cancelled
            && !self.is_steered()
            && !policy.circuit_breaker.as_ref().is_some_and(is_last)
            // Checked with the maximum delay, so that the jitter does not matter.
            && at + policy.tool_retry.delay_for_attempt(attempt, 1.0) < self.deadline();
        may.then_some(attempt)
    }

    pub(super) fn tool_call_failed(
        &mut self,
        id: CallId,
        attempt: u32,
        result: &Arc<ToolResult>,
        jitter: f64,
        at: Timestamp,
    ) {
        let due = match (self.retry_of(id, result, at), &self.config.failure_policy) {
            (Some(failed), Some(policy)) if failed == attempt => {
                at + policy.tool_retry.delay_for_attempt(attempt, jitter)
            }
            (Some(_), _) => return,
            // Ends the call, so that no call waits forever, whatever the log contains.
            (None, _) => return self.tool_call_finished(id, result, at),
        };
        self.count_failure(id, result, at);
        self.with_call(id, |call| call.wait(result.clone(), due));
    }

    /// Returns the calls of the turn that may be worked on now, in order. If calls run one after the other, a
    /// call that waits for its retry delays the calls after it. A batch waits for the batch before it.
    pub(crate) fn due_calls(&self) -> Vec<CallState> {
        let now = self.meter.now();
        let mut open = self.open_calls(self.calls());
        match self.run_together(open.iter().copied()) {
            true => open.retain(|call| call.is_due(now)),
            false => open.truncate(open.iter().take_while(|call| call.is_due(now)).count()),
        }
        open.into_iter().cloned().collect()
    }

    /// Returns the calls that have neither a result nor an open question, of the first batch that has such calls.
    /// Calls that a person answered are in the order of the answers.
    fn open_calls<'c>(&self, calls: &'c [CallState]) -> Vec<&'c CallState> {
        let size = match self.config.tool_execution {
            ToolExecutionStrategy::Batched { size } => usize::try_from(size.max(1)).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let is_open = |call: &&CallState| call.result().is_none() && !call.is_asked();
        let mut batches = calls.chunks(size).map(|batch| batch.iter().filter(is_open).collect::<Vec<_>>());
        let mut open = batches.find(|open| !open.is_empty()).unwrap_or_default();
        open.sort_by_key(|call| call.answer_place);
        open
    }

    /// Returns true if the call failed and waits for its retry.
    pub(crate) fn is_waiting(&self, id: CallId) -> bool {
        self.call(id).is_some_and(|call| matches!(call.stage, CallStage::Waiting { .. }))
    }

    /// Returns true if the call runs.
    pub(crate) fn is_started(&self, id: CallId) -> bool {
        self.call(id).is_some_and(|call| matches!(call.stage, CallStage::Started { .. }))
    }

    /// Returns true if all these calls may run concurrently.
    pub(crate) fn run_together<'c>(&self, mut calls: impl Iterator<Item = &'c CallState>) -> bool {
        let is_safe = |call: &CallState| {
            self.config.tool(&call.call.name).is_some_and(|tool| tool.annotations.concurrency_safe)
        };
        self.config.tool_execution != ToolExecutionStrategy::Sequential
            && calls.all(|call| is_safe(call) && !self.is_on_trial(call))
    }

    /// Returns the command to wait, if the next calls wait for their retries.
    pub(super) fn wait_for_calls(&self, calls: &[CallState]) -> Option<Step> {
        let due = |call: &CallState| match &call.stage {
            CallStage::Waiting { due, .. } => Some(*due),
            _ => None,
        };
        if calls.iter().filter_map(due).next().is_none() || !self.due_calls().is_empty() {
            return None;
        }
        let open = self.open_calls(calls);
        let next = match self.run_together(open.iter().copied()) {
            true => open.into_iter().filter_map(due).min(),
            false => open.first().copied().and_then(due),
        };
        next.map(|due| Step::Do(ReactTask::WaitUntil(due)))
    }

    /// Returns the record that ends a call instead of its retry: after a cancel, after a steering
    /// message, or if the circuit breaker of its tool has opened.
    pub(super) fn end_of_retry(&self, calls: &[CallState]) -> Option<Step> {
        let now = self.meter.now();
        let all = self.cancelled || self.is_steered();
        calls.iter().find_map(|call| match &call.stage {
            CallStage::Waiting { result, .. } if all || self.circuits.is_open(&call.call.name, now) => {
                Some(Step::Append(RecordBody::ToolCallRefused { call: call.id, result: result.clone() }))
            }
            _ => None,
        })
    }
}

/// Returns the maximum number of retries of a call after this failure.
fn tries_after(result: &ToolResult, spec: &ToolSpec) -> u32 {
    let kind = || result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str);
    match result.status {
        // A child run is found again, and its time has passed.
        _ if spec.annotations.agent => 0,
        // A timeout is retried only once.
        ToolResultStatus::Timeout => 1,
        ToolResultStatus::Error
            if spec.annotations.network
                && matches!(kind(), None | Some("execution_error" | "resource_error" | "timeout")) =>
        {
            u32::MAX
        }
        _ => 0,
    }
}
