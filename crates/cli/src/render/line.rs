//! Formats a record as one line: sequence number, time, content.

use archon::types::{
    AgentId, AgentMessage, AssistantMessage, Claim, Content, GoalVerdict, Member, Message, ParallelChoice,
    PlanDiff, PlanRecord, Record, RecordBody, SchemaProblem, SubTask, SubTaskId, TeamRecord, ToolResult,
    WorkspaceSnapshot, format_money,
};

use crate::text::one_line;

/// The maximum number of shown characters of a text.
const SHOWN: usize = 120;

/// Formats a record as a line, for people who read logs.
pub(crate) fn record_line(record: &Record) -> String {
    format!("{:>5}  {}  {}", record.seq, record.at, body_line(&record.body))
}

/// Formats a record's content as a line: its type as in the log, then its distinctive content.
pub(crate) fn body_line(body: &RecordBody) -> String {
    format!("{:<22} {}", body.name(), about(body)).trim_end().to_owned()
}

fn about(body: &RecordBody) -> String {
    match body {
        RecordBody::RunStarted(s) => {
            let (model, provider) = (&s.config.model, &s.config.provider);
            one_line(&format!("session {}, model {model} ({provider})", s.session), SHOWN)
        }
        RecordBody::MessageAdded { message, .. } => one_line(&written_text(message), SHOWN),
        RecordBody::ModelCallStarted { turn, attempt, request_hash, .. } => {
            format!("turn {turn}, attempt {attempt}, request {request_hash}")
        }
        RecordBody::ModelCallFinished { message, .. } => answer_line(message),
        RecordBody::ModelCallFailed { attempt, failure, .. } => {
            format!("attempt {attempt}, {}: {}", failure.code, one_line(&failure.message, SHOWN))
        }
        RecordBody::FallbackSelected { attempt, fallback: step, code, .. } => {
            format!("attempt {attempt}, {code}: {}", one_line(&step.to_string(), SHOWN))
        }
        RecordBody::ModelCallLost { attempt, .. } => format!("attempt {attempt}"),
        RecordBody::CancelRequested { reason: text }
        | RecordBody::LogUnavailable { reason: text }
        | RecordBody::HintAdded { text }
        | RecordBody::ContextStatus { text, .. }
        | RecordBody::CompactionRequested { instructions: Some(text) }
        | RecordBody::InstructionsRead { text } => one_line(text, SHOWN),
        RecordBody::WorkspaceSnapshot(snapshot) => snapshot_line(snapshot),
        RecordBody::GoalChecked(verdict) => verdict_line(verdict),
        RecordBody::OutputChecked { problems } => problems_line(problems),
        RecordBody::AuxiliaryCallStarted { purpose, reserved_cost_micros } => {
            format!("{purpose:?}, at most ${}", format_money(*reserved_cost_micros))
        }
        RecordBody::Summarized(summary) => {
            format!("messages {}..{}, {} tokens", summary.from, summary.to, summary.usage.total())
        }
        RecordBody::Compacted(c) => {
            format!("{:?}, {} to {} tokens", c.level, c.tokens_before, c.tokens_after)
        }
        RecordBody::ParallelStarted { branches, .. } => {
            let runs: Vec<_> = branches.iter().map(|branch| branch.run.as_str()).collect();
            one_line(&runs.join(", "), SHOWN)
        }
        RecordBody::ParallelFinished(choice) => choice_line(choice),
        RecordBody::Plan(record) => one_line(&about_plan(record), 2 * SHOWN),
        RecordBody::Team(record) => one_line(&about_team(record), 2 * SHOWN),
        RecordBody::LimitReached(limit) => limit.to_string(),
        RecordBody::ModeChanged { mode, .. } => mode.to_string(),
        RecordBody::Suspended { waiting } => {
            let calls: Vec<_> = waiting.iter().map(ToString::to_string).collect();
            format!("waiting for {}", calls.join(", "))
        }
        RecordBody::RunFinished(outcome) => {
            let why = outcome.error.as_deref().or(outcome.last_text()).unwrap_or_default();
            format!("{:?}, {} turns: {}", outcome.status, outcome.turns, one_line(why, SHOWN))
        }
        of_a_call => about_call(of_a_call),
    }
}

fn choice_line(choice: &ParallelChoice) -> String {
    match choice.selected {
        Some(index) => format!("{} chose branch {index}", choice.strategy),
        None => format!("{} chose no branch", choice.strategy),
    }
}

fn snapshot_line(snapshot: &WorkspaceSnapshot) -> String {
    let what = snapshot.problem.as_ref().or(snapshot.tree.as_ref()).map_or("", String::as_str);
    format!("turn {}, {:?}: {}", snapshot.turn, snapshot.place, one_line(what, SHOWN))
}

fn verdict_line(verdict: &GoalVerdict) -> String {
    let met = match verdict.met {
        Some(true) => "as expected",
        Some(false) => "not as expected",
        None => "no verdict",
    };
    one_line(&format!("{met} {}", verdict.reason), SHOWN)
}

fn problems_line(problems: &[SchemaProblem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    match problems.is_empty() {
        true => "the output matches its schema".to_owned(),
        false => one_line(&problems.join("; "), SHOWN),
    }
}

fn about_call(body: &RecordBody) -> String {
    match body {
        RecordBody::ToolCallRefused { call, result }
        | RecordBody::ToolCallFailed { call, result, .. }
        | RecordBody::ToolCallFinished { call, result } => {
            format!("{call}  {}", result_line(result))
        }
        RecordBody::ApprovalRequested { call, request } => {
            format!("{call}  {}", one_line(&request.action_summary, SHOWN))
        }
        RecordBody::ApprovalAnswered { call, .. } => call.to_string(),
        RecordBody::ToolCallStarted { call, attempt, effect, child_run } => {
            let child = child_run.as_ref().map(|run| format!(", run {run}")).unwrap_or_default();
            format!("{call}  attempt {attempt}, {effect:?}{child}")
        }
        RecordBody::LeaseGranted { call, child_run: child, lease } => {
            let cost = lease.cost_micros.map(|cost| format!(", ${}", format_money(cost))).unwrap_or_default();
            format!("{call}  run {child}, {} tokens{cost}", lease.tokens)
        }
        RecordBody::LeaseSettled { call, child_run: child, spent } => {
            format!("{call}  run {child}, {} tokens, ${}", spent.tokens, format_money(spent.cost_micros))
        }
        RecordBody::ChildRunCreated { call, child_run: child } => format!("{call}  run {child}"),
        RecordBody::ProcessStarted { call, process_group: group } => {
            format!("{call}  process group {}", group.id)
        }
        _ => String::new(),
    }
}

fn names(subtasks: &[SubTask]) -> String {
    subtasks.iter().map(|subtask| subtask.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn another_plan(diff: &PlanDiff) -> String {
    let removed: Vec<_> = diff.remove.iter().map(SubTaskId::as_str).collect();
    let (added, replaced, removed) = (names(&diff.add), names(&diff.replace), removed.join(", "));
    format!("a new plan; adds: {added}; restarts: {replaced}; removes: {removed}")
}

fn about_plan(record: &PlanRecord) -> String {
    match record {
        PlanRecord::Settings(settings) => format!("settings, {} at the same time", settings.max_concurrent),
        PlanRecord::Inputs { context: values, memories, background } => {
            let background = if background.is_empty() { "" } else { ", a background" };
            format!("given, {} values, {} memories{background}", values.len(), memories.len())
        }
        PlanRecord::FixedPlan { subtasks } => format!("fixed: {}", names(subtasks)),
        PlanRecord::PlanningStarted { attempt, reason, .. } => {
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("asked, attempt {attempt}{why}")
        }
        PlanRecord::PlanningPaid { spent, .. } => {
            format!("planning used {} tokens, ${}", spent.tokens, format_money(spent.cost_micros))
        }
        PlanRecord::Planned { task, .. } => {
            format!("made, {} subtasks: {}", task.subtasks.len(), names(&task.subtasks))
        }
        PlanRecord::Rejected { attempt, problems, .. } => {
            format!("rejected, attempt {attempt}: {}", problems.join("; "))
        }
        PlanRecord::Replanned { diff, .. } => another_plan(diff),
        PlanRecord::ReplanRequested { reason, .. } => format!("replan requested: {reason}"),
        PlanRecord::Skipped { call, reason } => format!("skipped {call}: {reason}"),
        PlanRecord::LoopExpanded { call, subtasks, results } => {
            format!("unfolded {call}, {} items: {}", results.len(), names(subtasks))
        }
        PlanRecord::LoopFinished { call } => format!("joined {call}"),
        PlanRecord::Paused { reason } => format!("paused: {reason}"),
        PlanRecord::Unpaused => "unpaused".to_owned(),
        PlanRecord::AnswerStarted { .. } => "concluding".to_owned(),
        PlanRecord::AnswerFailed { problem, .. } => format!("no answer: {problem}"),
        PlanRecord::AnswerFinished { answer, citations, .. } => {
            format!("concluded from {} subtasks: {answer}", citations.len())
        }
        _ => String::new(),
    }
}

fn about_team(record: &TeamRecord) -> String {
    match record {
        TeamRecord::Formed { members, lead, .. } => {
            format!("formed of {}", members_line(members, lead.as_ref()))
        }
        TeamRecord::Inputs { agents, plan, background } => {
            let plan =
                plan.as_ref().map(|plan| format!(", a plan of {} subtasks", plan.len())).unwrap_or_default();
            let background = if background.is_empty() { "" } else { ", a background" };
            format!("given, {} agents{plan}{background}", agents.len())
        }
        TeamRecord::Planned { task, .. } => {
            format!("planned, {} subtasks: {}", task.subtasks.len(), names(&task.subtasks))
        }
        TeamRecord::Replanned { diff, .. } => another_plan(diff),
        TeamRecord::PlanningFailed { problem, .. } => format!("no plan: {problem}"),
        TeamRecord::Delegated { call, member, task, .. } => format!("{call} delegated to {member}: {task}"),
        TeamRecord::DelegationFailed { command, reason } => {
            format!("{command:?} was not delegated: {reason}")
        }
        TeamRecord::Heartbeat { call, last_seen: heard } => format!("{call} had a heartbeat at {heard}"),
        TeamRecord::DelegationRevoked { call, member, reason } => {
            format!("{call} revoked from {member}: {reason}")
        }
        TeamRecord::LateAnswer { call, member, answer } => {
            format!("{call} ignored, {member} was late: {answer}")
        }
        TeamRecord::DelegationRequested { requester: by, task, assignee: to } => {
            format!("{by} asks {to}: {task}")
        }
        TeamRecord::MemberWaiting { call, .. } => {
            format!("{call} waits for child runs that wait for a person")
        }
        TeamRecord::ValueShared { writer: by, key, value, .. } => format!("{by} shares {key}: {value}"),
        TeamRecord::ConflictFound { number: conflict, key, claims } => {
            format!("conflict {conflict} about {key}: {}", claims_line(claims))
        }
        TeamRecord::ConflictResolved { number: conflict, value, resolution: how } => {
            format!("conflict {conflict} settled: {value}, {how}")
        }
        TeamRecord::AnswerFinished { answer } => format!("concluded: {answer}"),
        _ => String::new(),
    }
}

/// Formats the members of a team with their roles, and its lead.
pub(super) fn members_line(members: &[Member], lead: Option<&AgentId>) -> String {
    let members: Vec<_> = members.iter().map(|m| format!("{} ({})", m.id, m.roles.join(", "))).collect();
    let lead = lead.map(|lead| format!("; {lead} leads")).unwrap_or_default();
    format!("{}{lead}", members.join(", "))
}

/// Formats the contradicting claims of members.
pub(super) fn claims_line(claims: &[Claim]) -> String {
    claims.iter().map(|claim| format!("{} says {}", claim.by, claim.value)).collect::<Vec<_>>().join(", ")
}

/// Returns the text of a message, without the memories and the files that it carries: their author did not write
/// these.
pub(super) fn written_text(message: &AgentMessage) -> String {
    match message.as_llm() {
        Some(Message::User(user)) => Content::join_text(user.written_content()).into_owned(),
        Some(other) => other.text(),
        None => String::new(),
    }
}

fn answer_line(message: &AssistantMessage) -> String {
    let part = |block: &Content| match block {
        Content::Text { text } => Some(text.clone()),
        Content::ToolCall(call) => Some(format!("-> {} {}", call.name, call.arguments)),
        _ => None,
    };
    one_line(&message.content.iter().filter_map(part).collect::<Vec<_>>().join(" "), 2 * SHOWN)
}

pub(super) fn result_line(result: &ToolResult) -> String {
    let failed = if result.is_error() { "failed: " } else { "" };
    format!("{failed}{}", one_line(&result.text(), SHOWN))
}
