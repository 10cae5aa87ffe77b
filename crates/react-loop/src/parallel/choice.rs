//! Chooses a branch of a parallel loop by its strategy, or gives the reason why no branch can be chosen.

use std::sync::Arc;

use archon_types::{
    AgentMessage, AssistantMessage, BranchResult, Content, Evaluation, EvaluationError, Event, FailureKind,
    JournalError, Message, Outcome, OutcomeStatus, ParallelChoice, Record, RecordBody, RunId, Usage,
};
use archon_views::{AgentEvent, AgentEvents};

use super::Work;
use crate::resume::is_finished;

/// The branches that can be chosen.
pub(super) struct Candidates {
    results: Vec<BranchResult>,
    /// For each of `results`: true if the branch has a complete log, false if only its answer is known.
    has_log: Vec<bool>,
}

impl Work {
    /// Estimates the cost of the choice; `None` if the choice asks no model.
    pub(super) fn may_cost(&self, candidates: &Candidates) -> Option<u64> {
        let is_asked = !self.context.cancel.is_cancelled() && !candidates.results.is_empty();
        let evaluation = Evaluation::new(&self.prompts, self.history.messages(), &candidates.results);
        is_asked.then(|| self.parallel.strategy.estimate(&evaluation)).flatten()
    }

    pub(super) async fn choose(&self, branches: &[Outcome], candidates: Candidates) -> ParallelChoice {
        let strategy = &self.parallel.strategy;
        let (usage, cost) = spent(branches);
        let cost = cost.map(|cost| cost.saturating_add(self.lost));
        let none = |status, error: String| {
            let mut outcome = Outcome::new(self.context.run.clone(), status);
            outcome.error = (!error.is_empty()).then_some(error);
            outcome.failure = (status == OutcomeStatus::Failed).then(|| common_failure(branches));
            (outcome.usage, outcome.cost_micros) = (usage, cost);
            ParallelChoice::none(strategy.name(), outcome)
        };
        let Candidates { results, has_log } = candidates;
        if self.context.cancel.is_cancelled() {
            return none(OutcomeStatus::Cancelled, String::new());
        }
        let waits = |outcome: &Outcome| outcome.status == OutcomeStatus::Suspended;
        if results.is_empty() && branches.iter().any(waits) {
            return none(OutcomeStatus::Suspended, String::new());
        }
        if results.is_empty() {
            return none(OutcomeStatus::Failed, no_answer(branches));
        }
        let evaluation = Evaluation::new(&self.prompts, self.history.messages(), &results);
        let verdict = match strategy.evaluate(evaluation, &self.context).await {
            Ok(verdict) => verdict,
            Err(EvaluationError::Cancelled) => return none(OutcomeStatus::Cancelled, String::new()),
            Err(error) => return none(OutcomeStatus::Failed, format!("no branch was chosen: {error}")),
        };
        let Some(result) = results.get(verdict.selected) else {
            let (name, n, of) = (strategy.name(), verdict.selected, results.len());
            let error = format!("no branch was chosen: the strategy {name} took number {n} of {of}, from 0");
            return none(OutcomeStatus::Failed, error);
        };
        let mut choice = ParallelChoice::none(strategy.name(), result.outcome.clone());
        choice.outcome.run = self.context.run.clone();
        (choice.outcome.usage, choice.outcome.cost_micros) = (usage, cost);
        choice.outcome.usage += verdict.usage;
        choice.outcome.cost_micros =
            choice.outcome.cost_micros.zip(verdict.cost_micros).map(|(a, b)| a.saturating_add(b));
        choice.selected = u32::try_from(result.config).ok();
        (choice.usage, choice.reason, choice.warnings) = (verdict.usage, verdict.reason, verdict.warnings);
        if !has_log[verdict.selected] {
            choice.warnings.push(NO_LOG.to_owned());
        }
        choice
    }

    /// Returns the branches that finished or, if there are none, those that a limit stopped.
    pub(super) async fn candidates(&self, branches: &[Outcome]) -> Result<Candidates, JournalError> {
        let finished = |outcome: &Outcome| outcome.is_finished();
        let limited = |outcome: &Outcome| matches!(outcome.status, OutcomeStatus::Limit(_));
        let any = branches.iter().any(finished);
        let (mut results, mut has_log) = (Vec::new(), Vec::new());
        for (index, outcome) in branches.iter().enumerate() {
            if finished(outcome) || (!any && limited(outcome)) {
                let log = match self.parallel.journal.read(&outcome.run).await {
                    Ok(log) => Some(log).filter(|log| is_finished(log)),
                    Err(JournalError::UnknownRun { .. }) => None,
                    Err(error) => return Err(error),
                };
                let said = match &log {
                    Some(log) => added_messages(&outcome.run, log),
                    None => self.answered(outcome),
                };
                has_log.push(log.is_some());
                results.push(BranchResult::new(index, outcome.clone(), said));
            }
        }
        Ok(Candidates { results, has_log })
    }

    /// Returns the conversation of a branch without a log, made from its prompts and its answer.
    fn answered(&self, outcome: &Outcome) -> Vec<AgentMessage> {
        let answer = AssistantMessage {
            content: vec![Content::text(outcome.last_text().unwrap_or_default())],
            usage: outcome.usage,
            timestamp: self.context.clock.now(),
            ..AssistantMessage::default()
        };
        self.prompts.iter().cloned().chain([Message::Assistant(answer).into()]).collect()
    }
}

const NO_LOG: &str = "the chosen branch has no complete log, so the session continues without it";

/// Returns the reserved cost of model calls that should choose a branch and whose answers were never recorded.
pub(super) fn lost_reservation(records: &[Arc<Record>]) -> u64 {
    let since = records.iter().rev().take_while(|r| !matches!(r.body, RecordBody::ParallelFinished(_)));
    let reserved = since.map(|record| match record.body {
        RecordBody::AuxiliaryCallStarted { reserved_cost_micros: reserved, .. } => reserved,
        _ => 0,
    });
    reserved.fold(0, u64::saturating_add)
}

/// Returns the sums of the usage and the cost of all branches. The cost is `None` if it is unknown for a
/// branch that used tokens.
fn spent(branches: &[Outcome]) -> (Usage, Option<u64>) {
    let mut usage = Usage::default();
    let mut cost = branches.iter().any(|branch| branch.cost_micros.is_some()).then_some(0_u64);
    for branch in branches {
        usage += branch.usage;
        let own = branch.cost_micros.or_else(|| (branch.usage.total() == 0).then_some(0));
        cost = cost.zip(own).map(|(all, one)| all.saturating_add(one));
    }
    (usage, cost)
}

/// Returns the kind of failure that all branches share, or `NoBranch`.
fn common_failure(branches: &[Outcome]) -> FailureKind {
    let mut kinds = branches.iter().map(Outcome::failure_kind);
    match kinds.next().flatten() {
        Some(kind) if kinds.all(|other| other == Some(kind)) => kind,
        _ => FailureKind::NoBranch,
    }
}

fn no_answer(branches: &[Outcome]) -> String {
    let why = |(index, outcome): (usize, &Outcome)| {
        let status = match outcome.status {
            OutcomeStatus::Cancelled => "cancelled",
            _ => "failed",
        };
        format!("{index}: {}", outcome.error.as_deref().unwrap_or(status))
    };
    let why: Vec<String> = branches.iter().enumerate().map(why).collect();
    let of =
        if why.len() == 1 { "the only branch".to_owned() } else { format!("none of {} branches", why.len()) };
    let has = if why.len() == 1 { "has no answer" } else { "has an answer" };
    format!("{of} {has} ({})", why.join("; "))
}

/// Returns the messages that a run added to its conversation, from its log.
fn added_messages(run: &RunId, log: &[Arc<Record>]) -> Vec<AgentMessage> {
    let mut events = AgentEvents::new();
    let mut said = Vec::new();
    for record in log {
        for event in events.push(&Event::Record { run: run.clone(), record: record.clone() }) {
            if let AgentEvent::AgentEnd { messages, .. } = event {
                said.extend(messages);
            }
        }
    }
    said
}
