//! Ends calls of a plan. After a failure, another attempt, a fallback tool or a replan follows, or all
//! subtasks that depend on the failed one become unreachable.

use std::time::Duration;

use archon_types::{
    Answer, CallId, Content, Effect, OnCritical, OnFailure, SubTaskId, Timestamp, ToolResult,
    ToolResultStatus, metadata,
};
use petgraph::graph::NodeIndex;

use super::{Ask, NodeState, PlanMachine};
use crate::texts::one_line;

impl PlanMachine {
    pub(super) fn finished(&mut self, call: CallId, result: &ToolResult, at: Timestamp) {
        let Some(index) = self.nodes.index_of(call) else { return };
        let node = self.nodes.get_mut(index);
        let NodeState::Running { effect, child } = node.state.clone() else { return };
        self.budget.ledger.close(&mut node.money);
        let may_have_effect = effect == Effect::SideEffect && child.is_none();
        if result.status == ToolResultStatus::Cancelled && self.is_stopping() && !may_have_effect {
            // The call did not fail: it starts again when the run is resumed.
            return self.nodes.again(index, result.clone(), at, at);
        }
        if result.status == ToolResultStatus::Cancelled && self.is_stopping() {
            return self.nodes.stopped(index, result.clone(), at);
        }
        if !result.is_error() && !self.is_unsure(result) {
            return self.done(index, result.clone(), at);
        }
        // A tool that was stopped may have had an effect. A child run is a new run for each call.
        let is_in_doubt = matches!(result.status, ToolResultStatus::Timeout | ToolResultStatus::Cancelled);
        let may_repeat = !(may_have_effect && is_in_doubt);
        self.failed(index, result, at, may_repeat);
    }

    /// Stores a person's text as the result of a call, instead of a result of its tool.
    pub(super) fn replied(&mut self, call: CallId, text: &str, at: Timestamp) {
        let Some(index) = self.nodes.index_of(call) else { return };
        self.budget.ledger.close(&mut self.nodes.get_mut(index).money);
        self.done(index, ToolResult::success(text).with_metadata(metadata::ANSWERED_BY, "person"), at);
    }

    /// Applies a person's decision about a failed subtask, except the decision to try again. A text becomes the
    /// result of the subtask. With an empty text, the plan continues without a result. A refusal fails the subtask,
    /// so that the subtasks that depend on it are not executed.
    pub(super) fn decided(&mut self, call: CallId, answer: &Answer, at: Timestamp) {
        let Some(index) = self.nodes.index_of(call) else { return };
        let failure = self.nodes.get(index).result.as_deref().cloned();
        match answer {
            Answer::Reply { text } if text.trim().is_empty() => {
                self.nodes.end(index, NodeState::DoneWithout, failure, at);
            }
            Answer::Reply { text } => self.replied(call, text, at),
            no => {
                let failure = failure.map(|failure| not_again(failure, &refusal(no)));
                self.nodes.end(index, NodeState::Failed, failure, at);
            }
        }
    }

    pub(super) fn done(&mut self, index: NodeIndex, result: ToolResult, at: Timestamp) {
        self.streak.clear();
        if self.nodes.get(index).subtask.rules.review.is_some() {
            return self.nodes.ask_about_end(index, NodeState::ToReview, result, at);
        }
        self.nodes.end(index, NodeState::Done, Some(result), at);
    }

    pub(super) fn refused(&mut self, call: CallId, result: &ToolResult, at: Timestamp) {
        let Some(index) = self.nodes.index_of(call) else { return };
        let node = self.nodes.get_mut(index);
        if matches!(
            node.state,
            NodeState::Ready | NodeState::Running { .. } | NodeState::Asked | NodeState::Gated
        ) {
            self.budget.ledger.close(&mut node.money);
            // The same call would be refused again.
            self.failed(index, result, at, false);
        }
    }

    fn is_unsure(&self, result: &ToolResult) -> bool {
        let sure = result.metadata.get(metadata::CONFIDENCE_SCORE).and_then(serde_json::Value::as_f64);
        self.settings.replan.confidence.zip(sure).is_some_and(|(least, sure)| sure < least)
    }

    fn failed(&mut self, index: NodeIndex, result: &ToolResult, at: Timestamp, may_repeat: bool) {
        let policy = self.settings.replan;
        let node = self.nodes.get_mut(index);
        node.failures += 1;
        if !self.streak.contains(&node.command) {
            self.streak.push(node.command);
        }
        let rules = &node.subtask.rules;
        let most = rules.max_attempts.unwrap_or(policy.same_subtask).max(1);
        let has_fallback = rules.fallback_tools.len() > node.tool;
        let on_failure = rules.on_failure;
        let is_critical = policy.critical == OnCritical::Replan && (node.subtask.critical || node.is_central);
        let is_streak = policy.consecutive.is_some_and(|n| self.streak.len() >= (n.max(1) as usize));
        let may_replan = on_failure == OnFailure::Replan && self.replans < policy.max_replans;
        let failures = node.failures;
        if may_replan && !has_fallback && (is_critical || is_streak) {
            return self.nodes.end(index, NodeState::Troubled, Some(result.clone()), at);
        }
        if may_repeat && failures < most {
            let until = at + Duration::from_millis(self.settings.retry_delay_ms);
            return self.nodes.again(index, result.clone(), at, until);
        }
        if has_fallback {
            (node.tool, node.failures) = (node.tool + 1, 0);
            (node.agreed, node.edited) = (None, None);
            return self.nodes.again(index, result.clone(), at, at);
        }
        let state = match on_failure {
            OnFailure::Ask => {
                return self.nodes.ask_about_end(index, NodeState::ToDecide, result.clone(), at);
            }
            OnFailure::Skip => NodeState::DoneWithout,
            _ if may_replan => NodeState::Troubled,
            _ => NodeState::Failed,
        };
        self.nodes.end(index, state, Some(result.clone()), at);
    }

    /// Requests a replan if subtasks failed and no replan is requested yet.
    pub(super) fn begin_replan(&mut self) {
        let troubled = self.nodes.troubled();
        if self.replan.is_some() || troubled.is_empty() {
            return;
        }
        if self.replans >= self.settings.replan.max_replans {
            troubled.into_iter().for_each(|index| self.nodes.fail_troubled(index));
            return;
        }
        let reasons: Vec<String> = troubled.iter().map(|index| self.reason(*index)).collect();
        let targets = troubled.iter().map(|index| self.nodes.get(*index).subtask.id.clone()).collect();
        self.ask_again(reasons.join("; "), targets);
    }

    pub(super) fn want_replan(&mut self, reason: String, targets: Vec<SubTaskId>) {
        if self.replan.is_none() && self.replans < self.settings.replan.max_replans {
            self.ask_again(reason, targets);
        }
    }

    fn ask_again(&mut self, reason: String, targets: Vec<SubTaskId>) {
        self.replans += 1;
        self.streak.clear();
        let ask = self.ask(Some(reason), targets);
        self.replan = Some(ask);
    }

    fn reason(&self, index: NodeIndex) -> String {
        let node = self.nodes.get(index);
        let why = node.result.as_deref().map(why).unwrap_or_default();
        let (times, hint) = match node.failures {
            0 | 1 => ("failed".to_owned(), ""),
            n => (format!("failed {n} times"), " Break it down into smaller steps, or go another way."),
        };
        format!("subtask {} ({}) {times}: {why}.{hint}", node.subtask.id, node.subtask.description)
    }

    /// Fails the subtasks for which no replan was found.
    pub(super) fn replan_failed(&mut self, ask: &Ask, why: &str) {
        let reason = ask.reason.as_deref().unwrap_or_default();
        self.reasons_against_plans.push(format!("{reason} No other plan was found: {why}"));
        self.fail_targets(&ask.targets);
    }

    pub(super) fn fail_targets(&mut self, targets: &[SubTaskId]) {
        for id in targets {
            if let Some(index) = self.nodes.index_of_id(id) {
                self.nodes.fail_troubled(index);
            }
        }
    }
}

/// Returns the failure text of a result without a leading `Error: `, in one line of at most 500 characters.
pub(super) fn why(result: &ToolResult) -> String {
    let text = result.error_message.clone().unwrap_or_else(|| result.text());
    let line = one_line(&text);
    let line = line.strip_prefix("Error: ").unwrap_or(&line).trim_end_matches('.');
    line.chars().take(LONGEST).collect()
}

/// Returns a failure with the reason why a person allows no other attempt.
fn not_again(mut failure: ToolResult, reason: &str) -> ToolResult {
    let said = format!("It is not tried again: {reason}");
    // A long failure leaves room for the reason.
    let why: String = why(&failure).chars().take(LONGEST / 2).collect();
    failure.error_message = Some(format!("{why}. {said}"));
    failure.content.push(Content::text(said));
    failure
}

/// Maximum length of a failure text, in characters.
const LONGEST: usize = 500;

/// Returns the reason of an answer that is not an approval.
pub(super) fn refusal(answer: &Answer) -> String {
    match answer {
        Answer::Cancel { reason } | Answer::Withdrawn { reason } if !reason.is_empty() => reason.clone(),
        Answer::Cancel { .. } | Answer::Withdrawn { .. } => "no reason was given".to_owned(),
        Answer::Expired => "nobody answered in time".to_owned(),
        _ => "the answer was not a yes".to_owned(),
    }
}

/// Returns the result of a call that was cut off and must not run again.
pub(super) fn unknown(why: &str) -> ToolResult {
    let text =
        format!("it was cut off, nobody knows whether it did its work, and it is not to run again: {why}");
    ToolResult::error(text).with_metadata(metadata::ERROR_TYPE, "unknown_effect")
}
