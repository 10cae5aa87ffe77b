//! The fold over records that makes the audit trail of a run.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    AgentMessage, Answer, CallId, ContinuationKind, Effect, Json, MoreLimits, Origin, Outcome, OutcomeStatus,
    PlanDiff, PlanRecord, PromptSource, Record, RecordBody, RunId, RunStarted, RunStatus, Speaker,
    TeamRecord, ToolResult, ToolResultStatus,
};

use crate::audit::{AuditAction, AuditActor, AuditEntry, AuditTrail};

impl AuditTrail {
    /// Returns the audit trail of a run from its records; `None` if the log does not begin with the start of a run. Turns
    /// of the model, hints and compactions are left out.
    pub fn of(records: &[Arc<Record>]) -> Option<Self> {
        let started = RunStarted::of(records)?;
        let mut fold = Fold::default();
        for record in records {
            fold.push(record);
        }
        Some(Self {
            run: started.run.clone(),
            tenant: started.tenant.clone(),
            session: started.session.clone(),
            agent: started.agent.clone(),
            entries: fold.entries,
        })
    }
}

impl AuditEntry {
    fn new(record: &Record, actor: AuditActor, action: AuditAction) -> Self {
        let (seq, at) = (record.seq, record.at);
        let (target, outcome, call) = (None, None, None);
        Self { seq, at, actor, action, target, outcome, call, effect: None, run: None, spent: None }
    }

    fn on(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    fn because(mut self, outcome: impl Into<String>) -> Self {
        self.outcome = Some(outcome.into());
        self
    }

    fn of_call(mut self, call: CallId) -> Self {
        self.call = Some(call.to_string());
        self
    }
}

#[derive(Default)]
struct Fold {
    entries: Vec<AuditEntry>,
    is_called: bool,
    /// The names of tools and members, by call.
    names: HashMap<CallId, String>,
    /// The index of the entry of each call; `questions` has the index of the entry of each question, by its call.
    calls: HashMap<CallId, usize>,
    questions: HashMap<CallId, usize>,
}

impl Fold {
    fn push(&mut self, record: &Record) {
        use AuditAction as Action;
        use AuditActor::{Archon, Person};
        let entry = |actor, action| AuditEntry::new(record, actor, action);
        let new = match &record.body {
            RecordBody::RunStarted(started) => self.start(record, started),
            RecordBody::MessageAdded { message, source } => {
                entry(self.author(message), Action::MessageAdded).on(source_name(*source))
            }
            RecordBody::ConversationRestored { messages } => {
                let count = format!("{} messages", messages.len());
                entry(self.starter(), Action::MessageAdded).on("restored").because(count)
            }
            RecordBody::ModelCallFinished { command, message, .. } => {
                let names = message.tool_calls().map(|call| call.target().name);
                self.names.extend((0..).map(|index| CallId::new(*command, index)).zip(names));
                return;
            }
            RecordBody::ToolCallStarted { call, effect, child_run, .. } => {
                return self.start_call(record, *call, *effect, child_run.as_ref());
            }
            RecordBody::ToolCallFinished { call, result } => {
                return self.end_call(record, *call, status(result));
            }
            RecordBody::ToolCallRefused { call, result } => {
                return self.end_call(record, *call, format!("refused, {}", status(result)));
            }
            RecordBody::ApprovalRequested { call, request } => {
                self.questions.insert(*call, self.entries.len());
                entry(Archon, Action::Asked).on(&request.request_id).of_call(*call)
            }
            RecordBody::ApprovalAnswered { call, answer } => self.answer(record, *call, answer),
            RecordBody::ModeChanged { mode, .. } => entry(Person, Action::ModeChanged).on(mode.as_str()),
            RecordBody::CompactionRequested { .. } => entry(Person, Action::CompactionRequested),
            RecordBody::CancelRequested { reason } => entry(Person, Action::CancelRequested).because(reason),
            RecordBody::LimitsRaised(more) => entry(Person, Action::LimitsRaised).because(limits(more)),
            RecordBody::Resumed => entry(Archon, Action::Resumed),
            RecordBody::InputRejected { reason } => entry(Archon, Action::InputRejected).because(reason),
            RecordBody::InstructionsRead { text } => {
                let characters = text.chars().count();
                entry(Archon, Action::InstructionsRead).because(format!("{characters} characters"))
            }
            RecordBody::StoppedByHook { .. } => entry(Archon, Action::StoppedByHook),
            RecordBody::FallbackSelected { fallback, reason, .. } => {
                entry(Archon, Action::FallbackSelected).on(fallback.to_string()).because(cut(reason))
            }
            RecordBody::LimitReached(limit) => entry(Archon, Action::LimitReached).because(limit.to_string()),
            RecordBody::Plan(plan) => return self.entries.extend(of_plan(record, plan)),
            RecordBody::Team(team) => return self.push_team(record, team),
            RecordBody::RunFinished(outcome) => end(record, outcome),
            _ => return,
        };
        self.entries.push(new);
    }

    fn start(&mut self, record: &Record, started: &RunStarted) -> AuditEntry {
        let (action, run) = match &started.origin {
            Origin::Continues { run, continuation: ContinuationKind::Branch { .. }, .. } => {
                (AuditAction::Forked, Some(run))
            }
            Origin::Continues { run, .. } => (AuditAction::Started, Some(run)),
            Origin::CalledBy { run, .. } => {
                self.is_called = true;
                (AuditAction::Started, Some(run))
            }
            _ => (AuditAction::Started, None),
        };
        let mut entry = AuditEntry::new(record, self.starter(), action).on(started.agent.to_string());
        entry.run = run.cloned();
        entry
    }

    /// Returns the party that starts the run and sends it messages.
    fn starter(&self) -> AuditActor {
        if self.is_called { AuditActor::Agent } else { AuditActor::Person }
    }

    fn author(&self, message: &AgentMessage) -> AuditActor {
        match message.speaker() {
            None | Some(Speaker::Person) => self.starter(),
            Some(Speaker::Model) => AuditActor::Agent,
            Some(_) => AuditActor::Other,
        }
    }

    fn start_call(&mut self, record: &Record, call: CallId, effect: Effect, child_run: Option<&RunId>) {
        // An entry stands for all attempts at a call.
        if self.calls.contains_key(&call) {
            return;
        }
        let mut entry = self.call(record, call);
        (entry.effect, entry.run) = (Some(effect), child_run.cloned());
        self.calls.insert(call, self.entries.len());
        self.entries.push(entry);
    }

    fn end_call(&mut self, record: &Record, call: CallId, outcome: String) {
        match self.calls.get(&call).and_then(|index| self.entries.get_mut(*index)) {
            Some(entry) => entry.outcome = Some(outcome),
            // The call never ran: it was refused, or a person gave its result.
            None => {
                let entry = self.call(record, call).because(outcome);
                self.entries.push(entry);
            }
        }
    }

    /// Creates the entry of a call. For the call of a plan's subtask no tool name is known, so the entry has no target;
    /// its child run shows the work.
    fn call(&self, record: &Record, call: CallId) -> AuditEntry {
        let mut entry = AuditEntry::new(record, AuditActor::Model, AuditAction::ToolCalled).of_call(call);
        entry.target = self.names.get(&call).cloned();
        entry
    }

    fn answer(&mut self, record: &Record, call: CallId, answer: &Answer) -> AuditEntry {
        let (actor, outcome) = match answer {
            Answer::Approve => (AuditActor::Person, "approve".to_owned()),
            Answer::Edit { .. } => (AuditActor::Person, "edit".to_owned()),
            Answer::Cancel { reason } => (AuditActor::Person, with_reason("cancel", reason)),
            Answer::Trust { rules } => (AuditActor::Person, with_reason("trust", &rules.join(", "))),
            Answer::Reply { .. } => (AuditActor::Person, "reply".to_owned()),
            Answer::Expired => (AuditActor::Archon, "expired".to_owned()),
            Answer::Withdrawn { reason } => (AuditActor::Archon, with_reason("withdrawn", reason)),
            _ => (AuditActor::Person, "other".to_owned()),
        };
        let mut entry = AuditEntry::new(record, actor, AuditAction::Answered).of_call(call);
        let asked = self.questions.get(&call).and_then(|index| self.entries.get_mut(*index));
        if let Some(asked) = asked {
            entry.target.clone_from(&asked.target);
            asked.outcome = Some(outcome.clone());
        }
        entry.because(outcome)
    }

    fn push_team(&mut self, record: &Record, team: &TeamRecord) {
        if let TeamRecord::Delegated { call, member, .. } = team {
            self.names.insert(*call, member.to_string());
        }
        self.entries.extend(of_team(record, team));
    }
}

fn of_plan(record: &Record, plan: &PlanRecord) -> Option<AuditEntry> {
    use AuditAction as Action;
    use AuditActor::{Archon, Person, Planner};
    let entry = |actor, action| AuditEntry::new(record, actor, action);
    Some(match plan {
        PlanRecord::FixedPlan { subtasks } => entry(Person, Action::Planned).on(count(subtasks.len())),
        PlanRecord::Planned { task, .. } => entry(Planner, Action::Planned).on(count(task.subtasks.len())),
        PlanRecord::Rejected { problems, .. } => {
            entry(Planner, Action::PlanRejected).because(cut(&problems.join("; ")))
        }
        PlanRecord::Replanned { diff, .. } => entry(Planner, Action::PlanChanged).because(change(diff)),
        PlanRecord::ReplanRequested { reason, .. } => {
            entry(Person, Action::ReplanRequested).because(cut(reason))
        }
        PlanRecord::Skipped { call, reason } => {
            entry(Archon, Action::StepSkipped).of_call(*call).because(cut(reason))
        }
        PlanRecord::Paused { reason } => entry(Person, Action::PlanPaused).because(cut(reason)),
        PlanRecord::Unpaused => entry(Person, Action::PlanUnpaused),
        _ => return None,
    })
}

fn of_team(record: &Record, team: &TeamRecord) -> Option<AuditEntry> {
    use AuditAction as Action;
    use AuditActor::{Agent, Archon, Planner};
    let entry = |actor, action| AuditEntry::new(record, actor, action);
    Some(match team {
        TeamRecord::Planned { task, .. } => entry(Planner, Action::Planned).on(count(task.subtasks.len())),
        TeamRecord::Replanned { diff, .. } => entry(Planner, Action::PlanChanged).because(change(diff)),
        TeamRecord::PlanningFailed { problem, .. } => {
            entry(Planner, Action::PlanRejected).because(cut(problem))
        }
        TeamRecord::Delegated { call, member, .. } => {
            entry(Archon, Action::Delegated).on(member.to_string()).of_call(*call)
        }
        TeamRecord::DelegationFailed { reason, .. } => {
            entry(Archon, Action::DelegationFailed).because(cut(reason))
        }
        TeamRecord::DelegationRevoked { call, member, reason } => {
            let entry = entry(Archon, Action::DelegationRevoked).on(member.to_string());
            entry.of_call(*call).because(cut(reason))
        }
        TeamRecord::DelegationRequested { requester, assignee, .. } => {
            entry(Agent, Action::DelegationRequested).on(assignee).of_call(*requester)
        }
        TeamRecord::ConflictResolved { resolution, .. } => {
            entry(Archon, Action::ConflictResolved).because(cut(resolution))
        }
        _ => return None,
    })
}

fn end(record: &Record, outcome: &Outcome) -> AuditEntry {
    let name = RunStatus::from(outcome.status).as_str();
    let reason = match outcome.status {
        OutcomeStatus::Limit(limit) => limit.to_string(),
        _ => outcome.error.clone().unwrap_or_default(),
    };
    let mut entry = AuditEntry::new(record, AuditActor::Archon, AuditAction::Ended);
    entry.spent = Some(outcome.spending());
    entry.because(with_reason(name, &reason))
}

fn source_name(source: PromptSource) -> &'static str {
    match source {
        PromptSource::Steer => "steer",
        PromptSource::FollowUp => "follow_up",
        _ => "prompt",
    }
}

fn status(result: &ToolResult) -> String {
    let name = match result.status {
        ToolResultStatus::Success => return "success".to_owned(),
        ToolResultStatus::Timeout => "timeout",
        ToolResultStatus::Cancelled => "cancelled",
        _ => "error",
    };
    with_reason(name, result.error_message.as_deref().unwrap_or_default())
}

fn limits(more: &MoreLimits) -> String {
    let Ok(Json::Object(limits)) = serde_json::to_value(more) else { return String::new() };
    limits.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn count(subtasks: usize) -> String {
    format!("{subtasks} subtasks")
}

fn change(diff: &PlanDiff) -> String {
    let PlanDiff { add, replace, remove, .. } = diff;
    format!("{} added, {} replaced, {} removed", add.len(), replace.len(), remove.len())
}

fn with_reason(name: &str, reason: &str) -> String {
    if reason.is_empty() { name.to_owned() } else { format!("{name}: {}", cut(reason)) }
}

/// Shortens a text to `LONGEST` characters. The record has the full text.
fn cut(text: &str) -> String {
    archon_types::shorten(text, LONGEST, "...")
}

/// The maximum number of characters of an outcome.
const LONGEST: usize = 300;
