//! The calls of a turn: the step that they need next, and their starts and results.

use std::sync::Arc;

use archon_run::Ledger;
use archon_types::{CallId, Effect, RecordBody, Timestamp, ToolMode, ToolResult};

use super::{Phase, ReactMachine, Step};
use crate::{CallStage, CallState, ToolGate, calls::refusal, text_mode};

impl ReactMachine {
    pub(super) fn next_of_calls(&self, calls: &[CallState]) -> Step {
        let decided = self.end_of_retry(calls).or_else(|| self.decided(calls));
        if let Some(end) = decided.or_else(|| self.wait_for_calls(calls)) {
            return end;
        }
        let Some(call) = calls.iter().find(|call| self.is_skipped(call)) else {
            return self.run_or_wait(calls);
        };
        let result = match self.window.tool_gate(calls.len()) {
            _ if self.cancelled => ToolResult::cancelled(CANCELLED),
            _ if self.is_steered() => ToolResult::cancelled(SKIPPED),
            ToolGate::Blocked(text) => refusal(text, "context_limit"),
            _ => return self.refusal_due(calls).unwrap_or_else(|| self.run_or_wait(calls)),
        };
        Step::Append(RecordBody::ToolCallRefused { call: call.id, result: Arc::new(result) })
    }

    /// Returns true if a cancel, a steering message or a refusal may settle the call now, because its tool
    /// does not run. After a steering message, a call that a crash cut off still runs to its end.
    fn is_skipped(&self, call: &CallState) -> bool {
        match call.stage {
            CallStage::Requested { attempts } => self.cancelled || !self.is_steered() || attempts == 0,
            CallStage::Asked { .. } => self.cancelled || self.is_steered(),
            _ => false,
        }
    }

    pub(super) fn with_call(&mut self, id: CallId, change: impl FnOnce(&mut CallState)) {
        if let Phase::Acting { calls, .. } = &mut self.phase
            && let Some(call) = calls.iter_mut().find(|c| c.id == id)
        {
            change(call);
        }
    }

    pub(super) fn tool_call_started(&mut self, id: CallId, attempt: u32, effect: Effect) {
        self.with_call(id, |c| c.start(attempt, effect));
        if let Some(call) = self.call(id).filter(|_| effect == Effect::SideEffect) {
            let call = call.call.clone();
            self.repetition.world_changed_by(&call);
        }
    }

    pub(super) fn tool_ended(&mut self, id: CallId, result: &Arc<ToolResult>, at: Timestamp) {
        self.with_lease(id, Ledger::close);
        self.with_call(id, |call| call.finish(result.clone(), at));
        let Phase::Acting { calls, .. } = &self.phase else { return };
        if self.config.tool_mode == ToolMode::Native
            && let Some(call) = calls.iter().find(|call| call.id == id)
        {
            self.window.arrived(call);
        }
        if calls.iter().any(|c| c.result().is_none()) {
            return;
        }
        let Phase::Acting { answer, calls } = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return;
        };
        let hint = self.repetition.turn_ended(&calls, &self.config.limits);
        match self.config.tool_mode {
            ToolMode::Text => {
                self.window.push_spoken(*answer);
                for call in &calls {
                    self.window.push_result(call, text_mode::observation(call, &self.config, at));
                }
            }
            _ => self.window.push_turn(*answer, &calls),
        }
        match hint {
            Some(hint) if !self.cancelled => self.note(hint),
            _ => self.ready(),
        }
    }
}

/// The result of a call that was not started because the run was cancelled.
const CANCELLED: &str = "Cancelled";
/// The result of a call that was not started because of a steering message.
const SKIPPED: &str = "Skipped due to queued user message.";
