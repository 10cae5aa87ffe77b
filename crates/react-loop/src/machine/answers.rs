//! Handles an answer of the model: tool calls, a final answer, or a reminder of the format.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, CallId, CommandId, FailureKind, OutcomeStatus, StopReason, ToolCall, ToolMode,
};

use super::{Phase, ReactMachine};
use crate::{
    CallState,
    action_parser::{Written, parse_answer},
    text_mode,
    window::unique_calls,
};

impl ReactMachine {
    pub(super) fn answered(&mut self, command: CommandId, answer: &AssistantMessage) {
        let price = self.price().copied();
        self.meter.answered(answer, price.as_ref());
        self.window.answered(answer.usage);
        match answer.stop_reason {
            // The calls of an aborted answer were not confirmed, so the answer stays out of the window.
            StopReason::Aborted => {
                self.ended_saying(answer.text(), answer);
                self.output_truncated();
                self.cancelled = true;
                self.phase = Phase::Ready;
            }
            StopReason::Error => {
                let error = answer.error_message.clone().unwrap_or_else(|| answer.text());
                self.phase = Phase::Finishing(Box::new(self.failure(FailureKind::Model, error)));
            }
            StopReason::Refusal => self.refused(answer),
            // The window has the text so far, and the next request asks for the rest.
            StopReason::Pause if self.limit.is_none() && answer.tool_calls().next().is_none() => {
                self.window.push_spoken(answer.clone());
                self.ready();
            }
            _ if self.limit.is_some() => self.summarised(answer),
            _ => self.act_or_end(command, answer),
        }
    }

    fn act_or_end(&mut self, command: CommandId, answer: &AssistantMessage) {
        let calls = unique_calls(answer, command.0);
        if !calls.is_empty() {
            self.meter.parse_failures = 0;
            return self.act(command, calls, answer);
        }
        if self.config.tool_mode != ToolMode::Text {
            return self.final_answer(answer.text(), answer);
        }
        match parse_answer(&answer.text(), answer.stop_reason) {
            Ok(Written::Final(text)) => self.final_answer(text, answer),
            // Calls in text were added to the answer as blocks before. Without a block, the text was no
            // valid call.
            Ok(Written::Calls(_)) => self.misunderstood("the action has no tool name", answer),
            Err(failure) => self.misunderstood(&failure.to_string(), answer),
        }
    }

    fn misunderstood(&mut self, error: &str, answer: &AssistantMessage) {
        self.meter.parse_failures += 1;
        self.window.push_spoken(answer.clone());
        if self.meter.parse_failures >= self.config.limits.max_parse_failures {
            let error = format!(
                "the model's answer could not be understood {} times in a row: {error}",
                self.meter.parse_failures
            );
            self.phase = Phase::Finishing(Box::new(self.failure(FailureKind::UnparsableAnswer, error)));
        } else {
            self.note(text_mode::format_reminder(error, self.meter.parse_failures, &self.config.tools));
        }
    }

    fn act(&mut self, command: CommandId, calls: Vec<Arc<ToolCall>>, answer: &AssistantMessage) {
        let is_deferring = !self.config.deferred_tools.is_empty();
        let requested = (0..).zip(calls).map(|(index, call)| {
            let call = CallState::requested(CallId::new(command, index), call);
            if is_deferring { call.resolve_name() } else { call }
        });
        let calls = requested.collect();
        self.phase = Phase::Acting { answer: Box::new(answer.clone()), calls };
    }

    fn final_answer(&mut self, text: String, answer: &AssistantMessage) {
        self.window.push_spoken(answer.clone());
        self.ended_saying(text, answer);
        self.check_output();
    }

    /// Ends the run with the model's refusal as its answer. If a schema is required, the run fails.
    fn refused(&mut self, answer: &AssistantMessage) {
        self.ended_saying(answer.text(), answer);
        let why = match (&answer.error_message, self.output_format()) {
            (Some(why), _) => Some(why.clone()),
            (None, Some(_)) => Some(format!("the model refused to answer: {}", self.last_answer)),
            (None, None) => None,
        };
        self.misfits.clear();
        self.phase = Phase::Finishing(Box::new(match why {
            Some(why) => self.failure(FailureKind::Declined, why),
            None if self.limit.is_some() => self.outcome_at_limit(),
            None => {
                self.window.push_spoken(answer.clone());
                self.outcome(OutcomeStatus::Finished)
            }
        }));
        self.take_follow_ups();
    }

    fn summarised(&mut self, answer: &AssistantMessage) {
        let text = match parse_answer(&answer.text(), answer.stop_reason) {
            Ok(Written::Final(text)) if self.config.tool_mode == ToolMode::Text => text,
            _ => answer.text(),
        };
        self.final_answer(text, answer);
    }

    /// Stores the latest answer and the reason why the model ended it.
    fn ended_saying(&mut self, text: String, answer: &AssistantMessage) {
        self.last_answer = text;
        self.last_stop = match answer.stop_reason {
            // The calls are no part of the answer.
            StopReason::ToolUse => StopReason::Stop,
            reason => reason,
        };
    }
}
