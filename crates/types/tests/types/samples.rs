//! One sample of every kind of record and delta, for the golden log and the schema.

use std::{sync::Arc, time::Duration};

use archon_types::{
    AgentMessage, Answer, ApiErrorKind, ApprovalRequest, ApprovalSettings, AssistantMessage, AuxiliaryCall,
    CallId, CircuitBreaker, Citation, Claim, CommandId, Compaction, CompactionLevel, ConflictStrategy,
    Content, ContextConfig, ContextLevel, ContinuationKind, Delta, DeltaKind, Effect, Encoded, Event,
    ExtensionMessage, FailureKind, FailurePolicy, FallbackModel, FallbackStep, GoalCheck, GoalVerdict,
    HookPoint, Lease, LimitReached, LlmMessage, MalformedArguments, Member, Message, MessageMetadata,
    MessageType, ModeSource, ModelFailure, ModelPrice, MoreLimits, OnDeny, OnExpiry, OnFailure, Origin,
    Outcome, OutcomeStatus, OutputCheck, ParallelBranch, ParallelChoice, PlanDiff, PlanRecord, PlanSettings,
    ProcessGroup, PromptSource, ProviderError, QuestionKind, QueueMode, Record, RecordBody, RunConfig,
    RunStarted, SchemaProblem, SessionMode, SessionSnapshot, SnapshotMessage, SnapshotPlace, SnapshotResult,
    SnapshotSpending, Speaker, Spending, StopReason, SubTask, SubTaskRules, Summary, Task, TeamPattern,
    TeamRecord, TeamRole, TeamSettings, ThinkingLevel, Tokenizer, ToolAnnotations, ToolCall, ToolMode,
    ToolResult, ToolResultMessage, ToolSpec, Trust, TurnTrigger, Usage, UserMessage, ViewPart,
    WorkspaceSnapshot, metadata,
};
use serde_json::json;

use crate::support::at;

/// Every kind of record at least once, as the log of one run.
pub(crate) fn records() -> Vec<Arc<Record>> {
    let bodies = starts().into_iter().chain(prompts()).chain(model_calls()).chain(tool_calls()).chain(ends());
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// What a run records about its context window, in a log of its own.
pub(crate) fn window_records() -> Vec<Arc<Record>> {
    let mut started = started();
    started.config.context = Some(ContextConfig::default());
    let view = vec![
        ViewPart::Keep { from: 0, to: 2 },
        ViewPart::Digest { from: 2, to: 6, text: "[Earlier turns in short]\n- user: hi".into() },
        ViewPart::Rewrite { at: 7, text: "[a.rs was read again later]".into() },
        ViewPart::Truncate { at: 9, lines: 50 },
    ];
    let mut compaction = Compaction::new(CompactionLevel::DigestTurns, 10, view);
    (compaction.tokens_before, compaction.tokens_after) = (90_000, 40_000);
    let mut forced = Compaction::new(CompactionLevel::ForceTrim, 10, vec![ViewPart::Keep { from: 0, to: 1 }]);
    forced.overflow = true;
    let note = "[Cleaned up - no results]: nothing in src".to_owned();
    let view = vec![ViewPart::Keep { from: 0, to: 2 }, ViewPart::Rewrite { at: 2, text: note }];
    let cleanup = Compaction::new(CompactionLevel::CleanUp, 3, view);
    let bodies = [
        RecordBody::RunStarted(Box::new(started)),
        RecordBody::Summarized(Summary {
            from: 2,
            to: 6,
            text: Some("They greeted.".into()),
            usage: usage(),
        }),
        RecordBody::Summarized(Summary { from: 2, to: 6, ..Summary::default() }),
        RecordBody::Compacted(compaction),
        RecordBody::Compacted(forced),
        RecordBody::ContextStatus { level: ContextLevel::Moderate, text: "Notice: 70% context used".into() },
        RecordBody::ModelCallStarted {
            command: CommandId(1),
            attempt: 0,
            turn: 1,
            request_hash: "cbf29ce484222325".into(),
        },
        RecordBody::AuxiliaryCallStarted { purpose: AuxiliaryCall::Summary, reserved_cost_micros: 1_200 },
        RecordBody::AuxiliaryCallStarted { purpose: AuxiliaryCall::GoalCheck, reserved_cost_micros: 0 },
        RecordBody::AuxiliaryCallStarted { purpose: AuxiliaryCall::BranchChoice, reserved_cost_micros: 7 },
        RecordBody::Compacted(cleanup),
        RecordBody::SessionSnapshot(Box::new(carried())),
        RecordBody::SessionSnapshot(Box::default()),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// What the runs before a run left, with everything in it.
fn carried() -> SessionSnapshot {
    let message = |text: &str| Arc::new(Message::user(text, at(1)));
    let mut carried = SessionSnapshot::default();
    (carried.runs, carried.base) = (17, Some("run_9".into()));
    carried.messages = vec![SnapshotMessage {
        message: message("[a.rs was read again later]"),
        tokens: 9,
        speaker: Speaker::Tool,
        trust: Trust::Untrusted,
        original: Some(message("fn main() {}")),
        pinned: None,
    }];
    let seen = ToolResult::default().with_metadata(metadata::SEEN, json!({"file": "/w/a.rs", "version": {}}));
    carried.seen = vec![SnapshotResult { tool: "read_file".into(), result: seen }];
    (carried.tokenizer, carried.context_level) = (Some(Tokenizer::Cl100k), ContextLevel::Moderate);
    carried.spent = SnapshotSpending { turns: 3, tokens: 900, cost_micros: 12 };
    (carried.trusted_rules, carried.workspace) = (vec!["bash(ls:*)".into()], Some("/w".into()));
    (carried.bytes, carried.message_bytes, carried.snapshot_bytes) = (300, 4_000, 9_000);
    carried
}

/// What others want of a run, what stopped it, and what it cost, in a log of its own.
pub(crate) fn steering_records() -> Vec<Arc<Record>> {
    let mut started = started();
    started.config.price = Some(ModelPrice::new(3_000_000, 15_000_000));
    (started.config.steering_mode, started.config.follow_up_mode) = (QueueMode::All, QueueMode::All);
    let limits = &mut started.config.limits;
    (limits.max_cost_micros, limits.max_depth, limits.stuck_after) = (Some(500_000), 1, 2);
    let restored = vec![Message::user("hello", at(1)), Message::Assistant(answer(vec![Content::text("hi")]))];
    let mut outcome =
        Outcome::new("run_1".into(), OutcomeStatus::Limit(LimitReached::Cost { max_cost_micros: 500_000 }));
    outcome.cost_micros = Some(499_000);
    let bodies = [
        RecordBody::RunStarted(Box::new(started)),
        RecordBody::ConversationRestored { messages: restored },
        RecordBody::InboxMessageReceived { message_id: "in_1".into() },
        prompted("the other one", PromptSource::Steer),
        RecordBody::InputRejected { reason: "no secrets, please".into() },
        RecordBody::StoppedByHook { hook: HookPoint::BeforeLoop },
        RecordBody::StoppedByHook { hook: HookPoint::BeforeTurn },
        RecordBody::LimitReached(LimitReached::Cost { max_cost_micros: 500_000 }),
        RecordBody::RunFinished(Box::new(outcome)),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// The log of a run whose model gives no answer.
pub(crate) fn failure_records() -> Vec<Arc<Record>> {
    let mut started = started();
    let mut policy = FailurePolicy::default();
    policy.key_count = 2;
    policy.fallbacks = vec![FallbackModel::new("other", "small")];
    policy.fallbacks[0].key_count = 3;
    policy.fallbacks[0].price = Some(ModelPrice::new(1, 2));
    policy.circuit_breaker = Some(CircuitBreaker::new(3, std::time::Duration::from_secs(5)));
    started.config.failure_policy = Some(policy);
    let refused = |kind| ProviderError::Api { status: 400, kind, message: "no".into() };
    let failed = |error: &ProviderError| ModelFailure::new(error, 0.0);
    let mut cut_off = failed(&ProviderError::Network("reset".into()));
    cut_off.had_output = true;
    let failures = [failed(&refused(ApiErrorKind::Quota)), failed(&refused(ApiErrorKind::Thinking)), cut_off];
    let steps = [
        FallbackStep::NextKey { key: 1 },
        FallbackStep::LowerThinking { level: ThinkingLevel::Low },
        FallbackStep::NextModel { fallback: 1, provider: "other".into(), model: "small".into() },
    ];
    let mut bodies = vec![RecordBody::RunStarted(Box::new(started))];
    for (attempt, (failure, step)) in (0..).zip(failures.into_iter().zip(steps)) {
        let (command, code, reason) = (CommandId(0), failure.code, failure.message.clone());
        bodies.push(RecordBody::ModelCallFailed { command, attempt, failure });
        bodies.push(RecordBody::FallbackSelected { command, attempt, fallback: step, code, reason });
    }
    bodies.push(RecordBody::LogUnavailable { reason: "the disk is full".into() });
    let call = CallId::new(CommandId(0), 0);
    bodies
        .push(RecordBody::ProcessStarted { call, process_group: ProcessGroup::new(4711, "0b1cf0b2/123456") });
    bodies.push(RecordBody::ChildRunCreated { call, child_run: "run_1.0-0".into() });
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// What a run records about the runs that it calls, in a log of its own.
pub(crate) fn delegation_records() -> Vec<Arc<Record>> {
    let mut started = started();
    let mut agent = spec();
    agent.annotations.agent = true;
    started.config.tools = Arc::new(Encoded::new(vec![agent]));
    let calls = [0, 1].map(|i| CallId::new(CommandId(0), i));
    let mut lease = Lease::new(450_000, 599_000);
    let mut granted = |call, cost| {
        lease.cost_micros = cost;
        RecordBody::LeaseGranted { call, child_run: "run_1.0-0".into(), lease }
    };
    let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Finished);
    outcome.child_spending = Spending::new(1_200, 900);
    let bodies = [
        RecordBody::RunStarted(Box::new(started)),
        granted(calls[0], None),
        granted(calls[1], Some(250_000)),
        RecordBody::LeaseSettled {
            call: calls[0],
            child_run: "run_1.0-0".into(),
            spent: outcome.child_spending,
        },
        RecordBody::RunFinished(Box::new(outcome)),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// Several configurations side by side, and a branch of them, in a log of its own.
pub(crate) fn parallel_records() -> Vec<Arc<Record>> {
    let mut branch = started();
    branch.parallel_run = Some("run_0".into());
    let prompts = vec![Message::user("which?", at(1)).into()];
    let branches = vec![ParallelBranch { run: "run_0-0".into(), loop_id: "s_1.default.1.branch.0".into() }];
    let outcome = Outcome::new("run_0".into(), OutcomeStatus::Failed);
    let none = ParallelChoice::none("pick_first", outcome);
    let mut chosen = none.clone();
    chosen.selected = Some(0);
    chosen.usage = usage();
    chosen.reason = Some("BEST: 0".into());
    chosen.warnings = vec!["the judge's window is too small".into()];
    let bodies = [
        RecordBody::RunStarted(Box::new(branch)),
        RecordBody::ParallelStarted { prompts, branches },
        RecordBody::ParallelFinished(Box::new(none)),
        RecordBody::ParallelFinished(Box::new(chosen)),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// The life of a plan, in a log of its own.
pub(crate) fn plan_records() -> Vec<Arc<Record>> {
    let mut settings = PlanSettings::default();
    settings.resources.insert("browser".into(), 1);
    let mut rules = SubTaskRules::default();
    rules.when = Some("{a} == 'x'".into());
    rules.on_failure = OnFailure::Skip;
    let steps = vec![SubTask::new("a", "Search"), SubTask::new("b", "Write").after(["a"]).with_rules(rules)];
    let task = Box::new(Task::new("run_1", "A report").with_subtasks(steps.clone()));
    let mut diff = PlanDiff::default();
    diff.add = vec![SubTask::new("c", "Ask").with_tool("ask", Some(json!({"who": "{a}"}))).after(["a"])];
    diff.replace = vec![steps[1].clone()];
    diff.remove = vec!["b".into()];
    let values = json!({"city": "Paris"}).as_object().cloned().unwrap();
    let command = CommandId(0);
    let citations = vec![Citation::new(&steps[0], Some("run_1.1-0".into()))];
    let bodies = [
        PlanRecord::Settings(settings),
        PlanRecord::Inputs {
            context: values,
            memories: vec!["likes museums".into()],
            background: "It is about Paris.".into(),
        },
        PlanRecord::PlanningStarted { command, attempt: 0, reason: None },
        PlanRecord::Rejected {
            command,
            attempt: 0,
            problems: vec!["b is there twice".into()],
            retryable: true,
            failure: None,
        },
        PlanRecord::Planned { command, task, warnings: vec!["many steps".into()] },
        PlanRecord::Skipped {
            call: CallId::new(CommandId(2), 0),
            reason: "its condition does not hold".into(),
        },
        PlanRecord::ReplanRequested { reason: "later".into(), targets: vec!["b".into()] },
        PlanRecord::PlanningStarted { command: CommandId(3), attempt: 0, reason: Some("a failed".into()) },
        PlanRecord::Replanned { command: CommandId(3), diff: Box::new(diff), warnings: vec![] },
        PlanRecord::Paused { reason: "by hand".into() },
        PlanRecord::Unpaused,
        PlanRecord::AnswerStarted { command: CommandId(5) },
        PlanRecord::AnswerFinished {
            command: CommandId(5),
            answer: "Done [a].".into(),
            citations,
            spent: Spending::new(10, 1),
        },
        PlanRecord::PlanningPaid { command: CommandId(6), spent: Spending::new(20, 2) },
        PlanRecord::FixedPlan { subtasks: vec![SubTask::new("a", "Look")] },
        PlanRecord::LoopExpanded {
            call: CallId::new(CommandId(7), 0),
            subtasks: vec![SubTask::new("d_1", "Read the first").after(["a"])],
            results: vec![vec!["d_1".into()]],
        },
        PlanRecord::LoopFinished { call: CallId::new(CommandId(7), 0) },
    ];
    let bodies = bodies.into_iter().map(|plan| RecordBody::Plan(Box::new(plan)));
    let first = RecordBody::RunStarted(Box::new(started()));
    (0..)
        .zip(std::iter::once(first).chain(bodies))
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// The life of a team, in a log of its own.
pub(crate) fn team_records() -> Vec<Arc<Record>> {
    let mut settings = TeamSettings::default();
    settings.max_replans = 0;
    settings.pattern = TeamPattern::Committee { size: 3 };
    settings.conflicts.by_role.insert("analyst".into(), ConflictStrategy::Expert { role: "judge".into() });
    let mut rules = SubTaskRules::default();
    rules.role = Some("writer".into());
    let steps = vec![SubTask::new("a", "Search"), SubTask::new("b", "Write").after(["a"]).with_rules(rules)];
    let mut diff = PlanDiff::default();
    (diff.add, diff.remove) = (vec![SubTask::new("c", "Ask")], vec!["b".into()]);
    let mut role = TeamRole::new("writer", "You write.").with_tools(["draft"]);
    role.messages = vec![MessageType::HelpRequest];
    let call = CallId::new(CommandId(1), 0);
    let other = CallId::new(CommandId(1), 1);
    let bodies = [
        TeamRecord::Inputs {
            agents: [("ada".into(), RunConfig::default())].into(),
            plan: Some(vec![SubTask::new("a", "Look")]),
            background: "It is about Paris.".into(),
        },
        TeamRecord::Formed {
            settings,
            roles: vec![role],
            members: vec![Member::new("ann", "writer").with_tools(["draft"]).with_authority(2)],
            lead: Some("lead".into()),
        },
        TeamRecord::PlanningFailed { problem: "no model".into(), failure: None, spent: Spending::default() },
        TeamRecord::Planned {
            task: Box::new(Task::new("run_1", "A report").with_subtasks(steps)),
            spent: Spending::default(),
        },
        TeamRecord::Delegated {
            call,
            member: "ann".into(),
            chain: vec!["lead".into()],
            task: "Write".into(),
        },
        TeamRecord::DelegationFailed { command: CommandId(2), reason: "ann → bob → ann".into() },
        TeamRecord::Heartbeat { call, last_seen: at(1_700_000_000_000) },
        TeamRecord::DelegationRevoked { call, member: "ann".into(), reason: "silent for 15 s".into() },
        TeamRecord::LateAnswer { call, member: "ann".into(), answer: "Here".into() },
        TeamRecord::DelegationRequested {
            requester: call,
            task: "What is 2 + 2?".into(),
            assignee: "calculator".into(),
        },
        TeamRecord::ValueShared {
            writer: call,
            key: "rain".into(),
            value: json!(12),
            expected_version: Some(0),
        },
        TeamRecord::ConflictFound {
            number: 0,
            key: "trend".into(),
            claims: vec![
                Claim::new("ann".into(), call, json!(0.3)).with_confidence(Some(0.5)),
                Claim::new("bob".into(), other, json!(0.15)),
            ],
        },
        TeamRecord::ConflictResolved {
            number: 0,
            value: json!(0.15),
            resolution: "bob has more authority".into(),
        },
        TeamRecord::AnswerFinished { answer: "Done.".into() },
        TeamRecord::Replanned { diff: Box::new(diff), spent: Spending::new(20, 2) },
        TeamRecord::MemberWaiting { call, requests: vec![CommandId(3)] },
    ];
    let bodies = bodies.into_iter().map(|team| RecordBody::Team(Box::new(team)));
    let first = RecordBody::RunStarted(Box::new(started()));
    (0..)
        .zip(std::iter::once(first).chain(bodies))
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// What a run records about calls that are tried again, the project's instructions and what its answer was
/// expected to be, in a log of its own.
pub(crate) fn check_records() -> Vec<Arc<Record>> {
    let mut started = started();
    started.config.goal_check = Some(GoalCheck::Model);
    let call = CallId::new(CommandId(0), 0);
    let result = Box::new(ToolResult::error("connection reset"));
    let verdict = |met, reason: &str| {
        RecordBody::GoalChecked(GoalVerdict { met, reason: reason.into(), usage: usage() })
    };
    let snapshot = |place, taken: Result<&str, &str>| {
        let taken = taken.map(str::to_owned).map_err(str::to_owned);
        RecordBody::WorkspaceSnapshot(WorkspaceSnapshot::new(place, 0, taken))
    };
    let bodies = [
        RecordBody::RunStarted(Box::new(started)),
        RecordBody::InstructionsRead { text: "Use tabs.".into() },
        RecordBody::ToolCallFailed { call, attempt: 0, result: result.into(), jitter: -0.5 },
        verdict(Some(false), "the unit is missing"),
        verdict(None, ""),
        snapshot(SnapshotPlace::Before, Ok("ba7816bf")),
        snapshot(SnapshotPlace::After, Err("undo is off")),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// The records of the requests of a person about the session, in a log of their own.
pub(crate) fn mode_records() -> Vec<Arc<Record>> {
    let changed = |mode, source| RecordBody::ModeChanged { mode, source };
    let compact =
        |text: Option<&str>| RecordBody::CompactionRequested { instructions: text.map(str::to_owned) };
    let bodies = [
        RecordBody::RunStarted(Box::new(started())),
        changed(SessionMode::Plan, ModeSource::Person),
        changed(SessionMode::Ask, ModeSource::AgreedPlan),
        changed(SessionMode::AcceptEdits, ModeSource::Person),
        compact(Some("Keep the paths.")),
        compact(None),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// What a run records about the form that its answer must have, in a log of its own.
pub(crate) fn form_records() -> Vec<Arc<Record>> {
    let mut started = started();
    started.config.output_check = Some(OutputCheck::new(1));
    let problem = SchemaProblem::new("/days", "\"three\" is not of type \"integer\"");
    let bodies = [
        RecordBody::RunStarted(Box::new(started)),
        RecordBody::OutputChecked { problems: vec![SchemaProblem::new("", "it is empty"), problem] },
        RecordBody::OutputChecked { problems: Vec::new() },
        RecordBody::Plan(Box::new(PlanRecord::AnswerFailed {
            command: CommandId(5),
            problem: "no key".into(),
            failure: FailureKind::Auth,
        })),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}

/// Every kind of delta.
pub(crate) fn deltas() -> Vec<Delta> {
    let call = CallId::new(CommandId(0), 0);
    let kinds = [
        DeltaKind::Text { text: "Hel".into() },
        DeltaKind::Thinking { text: "hm".into() },
        DeltaKind::ToolCallStarted { index: 0, id: "c1".into(), name: "calculator".into() },
        DeltaKind::ToolCallArguments { index: 0, id: "c1".into(), text: "{\"a\":".into() },
        DeltaKind::ToolProgress { call, text: "half way".into() },
        DeltaKind::ToolPartialResult { call, result: Box::new(ToolResult::success("so far")) },
        DeltaKind::TurnEnd,
    ];
    let delta = |kind| Delta { run: "run_1".into(), command: CommandId(0), attempt: 0, offset: 3, kind };
    kinds.map(delta).into()
}

/// A record or delta as watchers see it.
pub(crate) fn events() -> Vec<Event> {
    let records = records()
        .into_iter()
        .chain(window_records())
        .chain(steering_records())
        .chain(failure_records())
        .chain(delegation_records())
        .chain(parallel_records())
        .chain(plan_records())
        .chain(team_records())
        .chain(check_records())
        .chain(mode_records())
        .chain(form_records())
        .map(|record| Event::Record { run: "run_1".into(), record });
    records.chain(deltas().into_iter().map(Event::Delta)).collect()
}

pub(crate) fn spec() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}});
    let mut annotations = ToolAnnotations::read_only();
    annotations.timeout_ms = Some(5_000);
    annotations.permissions = vec!["compute".into()];
    let mut spec = ToolSpec::new("calculator", "Calculates.", schema).with_annotations(annotations);
    spec.label = "Calculator".into();
    spec.examples = vec![json!({"expression": "1+1"})];
    spec
}

pub(crate) fn config() -> RunConfig {
    let mut config = RunConfig::default();
    config.provider = "scripted".into();
    config.model = "test-1".into();
    config.system = Some(Arc::new(Encoded::new("Be brief.".into())));
    config.tools = Arc::new(Encoded::new(vec![spec()]));
    // What logs mean that say nothing of it.
    config.limits.max_depth = 5;
    config
}

pub(crate) fn started() -> RunStarted {
    RunStarted::new("run_1".into(), "s_1".into(), "agent_1".into(), "s_1.default.1".into(), config())
}

pub(crate) fn usage() -> Usage {
    Usage { input: 10, output: 5, cache_read: 30, cache_write: 0, total_tokens: 45 }
}

pub(crate) fn answer(content: Vec<Content>) -> AssistantMessage {
    let stop_reason = match content.iter().any(|c| c.as_tool_call().is_some()) {
        true => StopReason::ToolUse,
        false => StopReason::Stop,
    };
    AssistantMessage {
        content,
        stop_reason,
        model: "test-1".into(),
        provider: "scripted".into(),
        usage: usage(),
        timestamp: at(7),
        error_message: None,
        stop_sequence: None,
        engine: None,
    }
}

pub(crate) fn prompted(text: &str, source: PromptSource) -> RecordBody {
    RecordBody::MessageAdded { message: Message::user(text, at(1)).into(), source }
}

pub(crate) fn answered(command: u64, content: Vec<Content>) -> RecordBody {
    RecordBody::ModelCallFinished {
        command: CommandId(command),
        attempt: 0,
        message: Box::new(answer(content)),
    }
}

pub(crate) fn model_call_started(command: u64, attempt: u32) -> RecordBody {
    RecordBody::ModelCallStarted {
        command: CommandId(command),
        attempt,
        turn: 0,
        request_hash: String::new(),
    }
}

pub(crate) fn finished(answer: &str) -> RecordBody {
    let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Finished);
    outcome.set_answer(answer);
    outcome.turns = 1;
    outcome.usage = usage();
    RecordBody::RunFinished(Box::new(outcome))
}

pub(crate) fn ended(status: OutcomeStatus, error: Option<&str>) -> RecordBody {
    let mut outcome = Outcome::new("run_1".into(), status);
    outcome.error = error.map(str::to_owned);
    RecordBody::RunFinished(Box::new(outcome))
}

fn starts() -> Vec<RecordBody> {
    let mut branch = started();
    branch.tenant = "team:eng:alice".into();
    let continuation = ContinuationKind::Branch { tag: "2026-01-31T08:00:00Z".into() };
    branch.origin = Origin::Continues { run: "run_0".into(), records: 4, continuation };
    branch.config.tool_mode = ToolMode::Text;
    branch.config.expected_output = Some("a number".into());
    let mut child = started();
    child.origin = Origin::CalledBy { run: "run_0".into(), call: CallId::new(CommandId(2), 1) };
    child.first_trigger = TurnTrigger::SubAgent;
    child.config = RunConfig::default();
    child.config.limits.max_depth = 5;
    [started(), branch, child].map(|s| RecordBody::RunStarted(Box::new(s))).into()
}

fn prompts() -> Vec<RecordBody> {
    let image = Content::Image { data: "aGk=".into(), mime_type: "image/png".into() };
    let message = Message::User(UserMessage::new(vec![Content::text("What is this?"), image], at(1)));
    let metadata = Some(MessageMetadata::new("msg_1", at(1_700_000_000_123)));
    let turn_id = Some("turn_1".into());
    let said = AgentMessage::Llm(LlmMessage { message, turn_id, metadata, speaker: None, mark: None });
    let extension = ExtensionMessage::new("ui_update", json!({"pane": 2})).into();
    let result = Message::ToolResult(ToolResultMessage {
        tool_call_id: "c0".into(),
        tool_name: "clock".into(),
        content: vec!["noon".into()],
        is_error: false,
        timestamp: at(2),
    });
    vec![
        RecordBody::MessageAdded { message: said, source: PromptSource::Prompt },
        RecordBody::MessageAdded { message: extension, source: PromptSource::Steer },
        RecordBody::MessageAdded { message: result.into(), source: PromptSource::FollowUp },
    ]
}

fn model_calls() -> Vec<RecordBody> {
    let command = CommandId(0);
    let retry_after = Some(Duration::from_millis(1500));
    let error = ProviderError::RateLimited { retry_after, message: "slow down".into() };
    let thinking = Content::Thinking { thinking: "Let me see.".into(), signature: Some("sig".into()) };
    let call = ToolCall::new("c1", "calculator", json!({"expression": "15% of 200"}));
    let mut broken = ToolCall::new("c2", "calculator", json!({}));
    broken.malformed = Some(MalformedArguments { text: "{\"expression\":".into(), error: "cut off".into() });
    vec![
        model_call_started(0, 0),
        RecordBody::ModelCallFailed { command, attempt: 0, failure: ModelFailure::new(&error, 0.25) },
        RecordBody::ModelCallLost { command, attempt: 1 },
        answered(0, vec![thinking, "I calculate.".into(), call.into(), broken.into()]),
    ]
}

fn tool_calls() -> Vec<RecordBody> {
    let [first, second] = [0, 1].map(|i| CallId::new(CommandId(0), i));
    let mut request = ApprovalRequest::new("ask_1", "Calculate", json!({"tool": "calculator"}));
    request.agent_name = "agent_1".into();
    request.expires_at = Some(at(1_700_000_900_000));
    let mut result = ToolResult::success("30").measured(Duration::from_millis(12), "1.0.0");
    result.child_run = Some("run_2".into());
    let answer = |answer| RecordBody::ApprovalAnswered { call: first, answer };
    let start =
        |attempt, effect, child_run| RecordBody::ToolCallStarted { call: first, attempt, effect, child_run };
    vec![
        RecordBody::ToolCallRefused { call: second, result: Arc::new(ToolResult::error("not JSON")) },
        RecordBody::ApprovalRequested { call: first, request: Box::new(request) },
        answer(Answer::Approve),
        answer(Answer::Edit { arguments: json!({"expression": "0.15*200"}) }),
        answer(Answer::Cancel { reason: "no".into() }),
        start(0, Effect::ReadOnly, None),
        start(1, Effect::Idempotent, Some("run_2".into())),
        start(2, Effect::SideEffect, None),
        RecordBody::ToolCallFinished { call: first, result: Arc::new(result) },
    ]
}

fn ends() -> Vec<RecordBody> {
    let limits = [
        LimitReached::Turns { max: 50 },
        LimitReached::Tokens { max: 1_000_000 },
        LimitReached::Duration { max_ms: 600_000 },
        LimitReached::Repeats { max: 3 },
    ];
    let mut more = MoreLimits::default();
    (more.max_turns, more.max_duration_ms) = (Some(100), Some(3_600_000));
    let mut bodies = vec![
        RecordBody::CancelRequested { reason: "Ctrl-C".into() },
        RecordBody::LimitsRaised(more),
        RecordBody::Resumed,
        RecordBody::ClockRead,
        RecordBody::HintAdded { text: "[Agent stopped: Max turns reached (50)]".into() },
        RecordBody::Suspended { waiting: vec![CallId::new(CommandId(0), 0)] },
    ];
    bodies.extend(limits.map(RecordBody::LimitReached));
    bodies.extend(limits.map(|limit| ended(OutcomeStatus::Limit(limit), None)));
    bodies.extend([
        ended(OutcomeStatus::Failed, Some("no model")),
        ended(OutcomeStatus::Cancelled, None),
        ended(OutcomeStatus::Suspended, None),
        finished("30"),
    ]);
    bodies
}

/// What waits for a person, and what one may say.
pub(crate) fn approval_records() -> Vec<Arc<Record>> {
    let call = CallId::new(CommandId(0), 0);
    let mut surfaced = ApprovalRequest::new("ask_2", "Run it again?", json!({"tool": "calculator"}))
        .from_below("run_1.0-0".into(), call);
    surfaced.kind = QuestionKind::InDoubt;
    surfaced.timeout_ms = Some(1_000);
    surfaced.binding = "a1b2".into();
    surfaced.rules = vec!["calculator".into()];
    surfaced.allow_modification = false;
    let answer = |answer| RecordBody::ApprovalAnswered { call, answer };
    let mut config = RunConfig::default();
    let mut settings = ApprovalSettings::default();
    settings.on_deny = OnDeny::Abort;
    settings.on_expiry = OnExpiry::Escalate;
    config.approvals = Some(settings);
    let started =
        RunStarted::new("run_1".into(), "s_1".into(), "agent_1".into(), "s_1.default.1".into(), config);
    let bodies = vec![
        RecordBody::RunStarted(Box::new(started)),
        RecordBody::ApprovalRequested { call, request: Box::new(surfaced) },
        answer(Answer::Trust { rules: vec!["bash(git status:*)".into()] }),
        answer(Answer::Reply { text: "I did it myself.".into() }),
        answer(Answer::Expired),
    ];
    (0..)
        .zip(bodies)
        .map(|(seq, body)| Arc::new(Record { seq, at: at(1_700_000_000_000 + seq), body }))
        .collect()
}
