//! Tests of the machine with arbitrary records: it never panics, it ends within its limits, every request
//! pairs calls and results, and a deserialized machine behaves like the original.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use archon_react_loop::{CallStage, CallState, Machine, Next, ReactMachine, ReactTask, decode_answer};
use archon_types::{
    AssistantMessage, AuxiliaryCall, CallId, CircuitBreaker, CommandId, CompactionPolicy, Content,
    ContextConfig, Effect, Encoded, FailurePolicy, FallbackModel, FallbackStep, GoalCheck, GoalVerdict,
    HookPoint, Lease, LimitReached, Message, ModelErrorCode, ModelFailure, ModelPrice, OnLimit, Outcome,
    OutcomeStatus, OutputCheck, ProcessGroup, PromptSource, ProviderError, QueueMode, Record, RecordBody,
    RequestOptions, ResponseFormat, RunConfig, RunId, RunStarted, SchemaProblem, Spending, StopReason,
    Summary, Timestamp, ToolCall, ToolError, ToolMode, ToolResult, ToolSpec, Usage,
};
use proptest::prelude::*;
use serde_json::json;

/// A run of random choices: a driver that follows the machine, with invalid records in between.
struct Walk {
    machine: ReactMachine,
    seq: u64,
    at: u64,
    asked: u32,
    /// Messages that must not be lost.
    said: Vec<String>,
}

impl Walk {
    fn new(mode: ToolMode, on_limit: OnLimit, max_turns: u32) -> Self {
        let mut config = RunConfig::default();
        config.tool_mode = mode;
        config.result_tag = (mode == ToolMode::Text).then(|| "0badcafe".to_owned());
        config.limits.max_turns = max_turns;
        config.limits.on_limit = on_limit;
        config.price = Some(ModelPrice::new(3_000_000, 15_000_000));
        config.failure_policy = Some(failure_policy());
        config.tools = Arc::new(Encoded::new(vec![ToolSpec::new("t", "A tool.", json!({"type": "object"}))]));
        let started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
        let machine = ReactMachine::new(&started, Timestamp::from_millis(0), Default::default());
        Self { machine, seq: 1, at: 1, asked: 0, said: Vec::new() }
    }

    /// Starts again with another configuration.
    fn change(&mut self, change: impl FnOnce(&mut RunConfig)) {
        let mut config = self.machine.config().clone();
        change(&mut config);
        let started = RunStarted::new(RunId::new("r"), "s".into(), "a".into(), "l".into(), config);
        self.machine = ReactMachine::new(&started, Timestamp::from_millis(0), Default::default());
    }

    fn apply(&mut self, body: RecordBody) {
        self.at += 1;
        self.machine.apply(&Record { seq: self.seq, at: Timestamp::from_millis(self.at), body });
        self.seq += 1;
        check_pairs(&self.machine);
    }

    /// Adds a message with a unique text.
    fn say(&mut self, source: PromptSource) {
        let text = format!("<said {}>", self.seq);
        self.said.push(text.clone());
        let message = Message::user(text, Timestamp::from_millis(self.at)).into();
        self.apply(RecordBody::MessageAdded { message, source });
    }

    /// Applies a record that answers nothing, answers twice, or comes at the wrong time; or a message of
    /// a person.
    fn disturb(&mut self, choice: u8, n: u64) {
        match choice % HOSTILE {
            9 => self.say(PromptSource::Prompt),
            12 | 13 => self.say(PromptSource::Steer),
            14 => self.say(PromptSource::FollowUp),
            _ => self.apply(hostile(choice, n)),
        }
    }

    /// Executes the machine's command, as `choice` determines. Returns false when the run has ended.
    fn follow(&mut self, choice: u8) -> bool {
        let body = match self.machine.next() {
            Next::Done(_) => return false,
            Next::Append(body) => body,
            Next::AwaitPrompt => prompt(),
            Next::Do(ReactTask::WaitUntil(until)) => {
                self.at = self.at.max(until.as_millis());
                match self.machine.open_request() {
                    Some((command, attempt)) => lost(command, attempt),
                    None => RecordBody::ClockRead,
                }
            }
            Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
                if attempt == 0 {
                    self.asked += 1;
                }
                self.apply(RecordBody::ModelCallStarted {
                    command,
                    attempt,
                    turn,
                    request_hash: String::new(),
                });
                answer(command, attempt, choice, self.machine.config().tool_mode)
            }
            Next::Do(ReactTask::RunCalls) => {
                let now = Timestamp::from_millis(self.at);
                let due = |c: &&CallState| match &c.stage {
                    CallStage::Waiting { due, .. } => *due <= now,
                    _ => c.result().is_none(),
                };
                let open = self.machine.calls().iter().find(due).expect("a call without a result");
                act(open.id, &open.stage, choice)
            }
            Next::Do(ReactTask::Summarize(due)) => {
                let usage = Usage { input: 3, output: 1, ..Usage::default() };
                let text = choice.is_multiple_of(2).then(|| "they talked".to_owned());
                RecordBody::Summarized(Summary { from: due.from, to: due.to, text, usage })
            }
            Next::Do(ReactTask::CheckGoal(_)) => {
                let usage = Usage { input: 3, output: 1, ..Usage::default() };
                let met = [Some(true), Some(false), None][usize::from(choice % 3)];
                RecordBody::GoalChecked(GoalVerdict { met, reason: "because".into(), usage })
            }
            Next::Do(ReactTask::CheckOutput) => {
                let problem = (!choice.is_multiple_of(3)).then(|| SchemaProblem::new("/a", "no"));
                RecordBody::OutputChecked { problems: problem.into_iter().collect() }
            }
            other => panic!("{other:?}"),
        };
        self.apply(body);
        true
    }
}

/// Returns a policy with two keys, a more expensive fallback, and a breaker that opens soon and for a
/// short time.
fn failure_policy() -> FailurePolicy {
    let mut policy = FailurePolicy::default();
    policy.key_count = 2;
    policy.fallbacks = vec![FallbackModel::new("other", "small")];
    policy.fallbacks[0].price = Some(ModelPrice::new(5_000_000, 20_000_000));
    policy.circuit_breaker = Some(CircuitBreaker::new(2, std::time::Duration::from_millis(9)));
    policy
}

/// Returns a window that is full after a few turns, and asks a model for summaries.
fn small_window(tokens: u64) -> ContextConfig {
    let mut config = ContextConfig::new(tokens);
    (config.system_prompt_tokens, config.min_interval_ms) = (0, 0);
    (config.policy, config.summary_tokens) = (CompactionPolicy::Summarize, Some(20));
    config
}

fn prompt() -> RecordBody {
    let message = Message::user("do it", Timestamp::default()).into();
    RecordBody::MessageAdded { message, source: PromptSource::Prompt }
}

fn lost(command: CommandId, attempt: u32) -> RecordBody {
    let failure = ModelFailure::new(&ProviderError::Network("late".into()), 0.0);
    RecordBody::ModelCallFailed { command, attempt, failure }
}

fn answer(command: CommandId, attempt: u32, choice: u8, mode: ToolMode) -> RecordBody {
    let call = |id: &str, args| Content::from(ToolCall::from_json_text(id, "t", args));
    let (content, stop_reason) = match choice % 12 {
        0 => (vec![Content::text("Final Answer: done")], StopReason::Stop),
        1 => (vec![Content::text("prose")], StopReason::Length),
        2 => (vec![], StopReason::Aborted),
        3 => (vec![], StopReason::Error),
        4 => return lost(command, attempt),
        5 => {
            let failure = ModelFailure::new(&ProviderError::Auth("no".into()), 0.0);
            return RecordBody::ModelCallFailed { command, attempt, failure };
        }
        6 => (vec![call("a", "{}"), call("a", "{}"), call("", "{\"x\":")], StopReason::ToolUse),
        7 => (vec![Content::text("Action: {\"tool\": \"t\"}")], StopReason::Stop),
        8 => (vec![call("a", "{\"n\": 1}")], StopReason::Length),
        n => (vec![call("a", &format!("{{\"n\": {n}, \"c\": {}}}", command.0))], StopReason::ToolUse),
    };
    let message = AssistantMessage { content, stop_reason, ..AssistantMessage::default() };
    RecordBody::ModelCallFinished {
        command,
        attempt,
        message: Box::new(decode_answer(message, mode, command)),
    }
}

fn act(call: CallId, stage: &CallStage, choice: u8) -> RecordBody {
    let result = Box::new(ToolResult::success("ok"));
    match stage {
        CallStage::Requested { attempts } if choice.is_multiple_of(4) => RecordBody::ToolCallStarted {
            call,
            attempt: *attempts,
            effect: Effect::SideEffect,
            child_run: None,
        },
        CallStage::Requested { attempts } if choice % 4 == 1 => RecordBody::ToolCallStarted {
            call,
            attempt: *attempts,
            effect: Effect::ReadOnly,
            child_run: None,
        },
        CallStage::Waiting { attempts, .. } if choice.is_multiple_of(2) => RecordBody::ToolCallStarted {
            call,
            attempt: *attempts,
            effect: Effect::Idempotent,
            child_run: None,
        },
        CallStage::Started { attempt, .. } if choice % 8 == 2 => {
            let result = ToolResult::from(ToolError::Timeout(std::time::Duration::from_secs(1)));
            RecordBody::ToolCallFailed {
                call,
                attempt: *attempt,
                result: result.into(),
                jitter: f64::from(choice) / 255.0,
            }
        }
        CallStage::Requested { .. } => RecordBody::ToolCallRefused { call, result: result.into() },
        _ if choice % 8 > 4 => {
            RecordBody::ToolCallFinished { call, result: Arc::new(ToolResult::error("no")) }
        }
        _ => RecordBody::ToolCallFinished { call, result: result.into() },
    }
}

/// Number of kinds of invalid records.
const HOSTILE: u8 = 28;

/// Returns a record that answers nothing, answers twice, or comes at the wrong time.
#[allow(clippy::too_many_lines, reason = "a list")]
fn hostile(choice: u8, n: u64) -> RecordBody {
    let (command, call) = (CommandId(n), CallId::new(CommandId(n), choice.into()));
    let result = Box::new(ToolResult::error("late"));
    match choice % HOSTILE {
        0 => answer(command, 0, choice / HOSTILE, ToolMode::Native),
        1 => lost(command, 1),
        2 => RecordBody::ToolCallFinished { call, result: result.into() },
        3 => RecordBody::ToolCallStarted { call, attempt: 9, effect: Effect::SideEffect, child_run: None },
        4 if n > 2 => RecordBody::FallbackSelected {
            command,
            attempt: 0,
            fallback: FallbackStep::NextModel { fallback: 7, provider: "p".into(), model: "m".into() },
            code: ModelErrorCode::Auth,
            reason: "no".into(),
        },
        4 => RecordBody::ToolCallRefused { call, result: result.into() },
        5 => RecordBody::Resumed,
        6 => RecordBody::ModelCallLost { command, attempt: 0 },
        7 => RecordBody::ModelCallStarted { command, attempt: 3, turn: 77, request_hash: String::new() },
        8 => RecordBody::HintAdded { text: "psst".into() },
        10 => RecordBody::CancelRequested { reason: "stop".into() },
        11 if n > 3 => RecordBody::InstructionsRead { text: "Use tabs. ".repeat(choice.into()) },
        11 if n > 1 => {
            RecordBody::ToolCallFailed { call, attempt: choice.into(), result: result.into(), jitter: 9.0 }
        }
        11 if n > 0 => RecordBody::OutputChecked { problems: vec![SchemaProblem::new("", "late")] },
        11 => RecordBody::GoalChecked(GoalVerdict::default()),
        15 => RecordBody::InboxMessageReceived { message_id: format!("in_{n}") },
        16 => RecordBody::InputRejected { reason: "no".into() },
        17 => RecordBody::StoppedByHook {
            hook: if n > 2 { HookPoint::BeforeLoop } else { HookPoint::BeforeTurn },
        },
        18 => RecordBody::ConversationRestored { messages: elsewhere(n) },
        19 => {
            // Nobody may put a call or a result into somebody's mouth.
            let message = elsewhere(n).swap_remove((n % 2) as usize).into();
            RecordBody::MessageAdded { message, source: PromptSource::Steer }
        }
        20 => {
            let mut lease = Lease::new(n * 1_000, n);
            lease.cost_micros = (n > 2).then_some(n);
            RecordBody::LeaseGranted { call, child_run: "c".into(), lease }
        }
        // More than was granted, and by whom nothing was granted to. Its money is the caller's to watch.
        21 => RecordBody::LeaseSettled { call, child_run: "c".into(), spent: Spending::new(n * 100_000, 0) },
        22 => RecordBody::ProcessStarted { call, process_group: ProcessGroup::new(2, "then") },
        26 => RecordBody::ChildRunCreated { call, child_run: "c".into() },
        23 => RecordBody::ParallelStarted { prompts: Vec::new(), branches: Vec::new() },
        24 => RecordBody::LogUnavailable { reason: "full".into() },
        25 if n > 2 => RecordBody::AuxiliaryCallStarted {
            purpose: AuxiliaryCall::Summary,
            reserved_cost_micros: n * 1_000,
        },
        25 => RecordBody::Summarized(Summary::default()),
        _ => RecordBody::ClockRead,
    }
}

/// Returns a conversation from outside the journal, complete or incomplete.
fn elsewhere(n: u64) -> Vec<Message> {
    let call = ToolCall::new("x", "t", json!({}));
    let answer =
        AssistantMessage { content: vec![Content::from(call.clone())], ..AssistantMessage::default() };
    let result = Message::tool_result(&call, &ToolResult::success("ok"), Timestamp::default());
    let mut messages = vec![Message::Assistant(answer), result.clone()];
    match n {
        0 => messages.push(result),
        1 => messages.insert(1, Message::user("between", Timestamp::default())),
        2 => messages.swap(0, 1),
        _ => {}
    }
    messages
}

/// Checks that every call in the window has exactly one result, directly after the message with the call.
fn check_pairs(machine: &ReactMachine) {
    let mut open: Vec<String> = Vec::new();
    for message in machine.messages().iter() {
        match &**message {
            Message::ToolResult(result) => {
                let at = open.iter().position(|id| *id == result.tool_call_id.to_string());
                open.swap_remove(at.expect("a result without its call"));
            }
            other => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                let calls = other.content().iter().filter_map(Content::as_tool_call);
                open.extend(calls.map(|c| c.id.to_string()));
                let mut ids = open.clone();
                ids.sort();
                ids.dedup();
                assert_eq!(ids.len(), open.len(), "two calls with one id");
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn stored_and_loaded(machine: &ReactMachine) -> ReactMachine {
    let text = serde_json::to_string(machine).expect("a machine can be stored");
    serde_json::from_str(&text).expect("a stored machine can be loaded")
}

fn cases() -> u32 {
    if std::env::var_os("ARCHON_ACCEPT").is_some_and(|v| v == "full") { 100_000 } else { 500 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    // spec: R-09, R-14, R-39, T-28
    #[test]
    fn any_sequence_ends_in_time_with_paired_requests_and_survives_storage(
        text_mode in any::<bool>(),
        on_limit in prop_oneof![Just(OnLimit::Stop), Just(OnLimit::Error), Just(OnLimit::ForceSummary)],
        max_turns in 1u32..8,
        max_cost in prop_oneof![Just(None), (0u64..1_000_000).prop_map(Some)],
        all_at_once in any::<bool>(),
        max_tokens in prop_oneof![2 => Just(1_000_000), 1 => 0u64..400],
        max_duration_ms in prop_oneof![2 => Just(600_000), 1 => 0u64..3_000],
        window in prop_oneof![2 => Just(None), 1 => (200u64..2_000).prop_map(Some)],
        goal in prop_oneof![Just(None), Just(Some(GoalCheck::Text)), Just(Some(GoalCheck::Model))],
        form in prop_oneof![Just(None), (0u32..4).prop_map(Some)],
        choices in prop::collection::vec((any::<u8>(), any::<u8>(), 0u64..6), 1..80),
    ) {
        let mode = if text_mode { ToolMode::Text } else { ToolMode::Native };
        let mut walk = Walk::new(mode, on_limit, max_turns);
        walk.change(|config| {
            config.limits.max_cost_micros = max_cost;
            config.limits.max_total_tokens = max_tokens;
            config.limits.max_duration_ms = max_duration_ms;
            config.context = window.map(small_window);
            config.steering_mode = if all_at_once { QueueMode::All } else { QueueMode::OneAtATime };
            config.follow_up_mode = config.steering_mode;
            config.goal_check = goal;
            config.expected_output = Some("a miracle".into());
            config.output_check = form.map(OutputCheck::new);
            let mut options = RequestOptions::default();
            options.response_format = Some(ResponseFormat { name: "a".into(), schema: true.into() });
            config.options = options.into();
        });
        for (choice, other, n) in &choices {
            if other.is_multiple_of(4) {
                walk.disturb(*choice, *n);
            }
            let loaded = stored_and_loaded(&walk.machine);
            prop_assert_eq!(&loaded, &walk.machine);
            walk.machine = loaded;
            walk.follow(*choice);
        }
        // Left alone, with a model that calls tools for ever, it ends.
        let mut steps = 0;
        while walk.follow(9) {
            steps += 1;
            prop_assert!(steps < 2_000, "it does not end: {:?}", walk.machine.next());
        }
        prop_assert!(walk.machine.ended().is_some());
        let summaries = u32::from(on_limit == OnLimit::ForceSummary);
        // A resumed run asks again for what its cancelled or failed attempt was to answer.
        let again = choices.iter().filter(|(c, o, _)| o % 4 == 0 && c % HOSTILE == 5).count() as u32;
        let stopped = choices.len() as u32;
        prop_assert!(walk.asked <= max_turns + summaries + again * stopped, "asked {} times", walk.asked);
        // Every call was charged as it was set aside, so the cap holds to the last unit.
        let cost = walk.machine.ended().and_then(|outcome| outcome.cost_micros).unwrap_or(0);
        prop_assert!(max_cost.is_none_or(|max| cost <= max), "{cost} of {max_cost:?}");
        let history = walk.machine.into_history();
        let texts: Vec<String> = history.messages().iter().map(|m| m.text()).collect();
        // What was said long ago may be in a digest.
        for said in walk.said.iter().filter(|_| window.is_none()) {
            let heard = texts.iter().filter(|text| text.contains(said)).count();
            prop_assert_eq!(heard, 1, "{}", said);
        }
    }
}

fn run_with(
    limits: impl FnOnce(&mut RunConfig),
    mut choose: impl FnMut(u32) -> u8,
) -> (Outcome, Vec<String>) {
    let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
    walk.change(limits);
    while {
        let choice = choose(walk.asked);
        walk.follow(choice)
    } {}
    let texts =
        walk.machine.messages().iter().filter(|m| matches!(&***m, Message::User(_))).map(|m| m.text());
    (walk.machine.ended().cloned().expect("an outcome"), texts.collect())
}

// spec: R-14, A-06
#[test]
fn limit_stops_the_run_exactly_and_is_in_the_outcome() {
    for max in [3, 5] {
        let (outcome, texts) = run_with(|c| c.limits.max_turns = max, |_| 9);
        assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max }));
        assert_eq!(outcome.turns, max);
        assert_eq!(
            texts.last().map(String::as_str),
            Some(&*format!("[Agent stopped: Max turns reached ({max})]"))
        );
    }
}

// spec: R-15
#[test]
fn on_limit_setting_decides_between_error_and_summary() {
    let (outcome, _) = run_with(
        |c| {
            c.limits.max_turns = 2;
            c.limits.on_limit = OnLimit::Error;
        },
        |_| 9,
    );
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.as_deref(), Some("Max turns reached (2)"));

    let (outcome, texts) = run_with(
        |c| {
            c.limits.max_turns = 2;
            c.limits.on_limit = OnLimit::ForceSummary;
        },
        |asked| if asked < 2 { 9 } else { 1 },
    );
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Turns { max: 2 }));
    assert_eq!((outcome.last_text().unwrap_or_default(), outcome.turns), ("prose", 3));
    assert!(texts.last().is_some_and(|t| t.starts_with("You have executed enough steps.")), "{texts:?}");
}

// spec: R-24
#[test]
fn a_repeated_call_is_pointed_out_and_ends_the_run_in_the_end() {
    let (outcome, texts) = run_with(|_| {}, |_| 8);
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Repeats { max: 3 }));
    assert_eq!(outcome.turns, 4);
    let hints = texts.iter().filter(|t| t.starts_with("You already tried this action")).count();
    assert_eq!(hints, 3);
}

// spec: R-22
#[test]
fn three_parse_failures_in_a_row_fail_the_run() {
    let (outcome, texts) = run_with(|c| c.tool_mode = ToolMode::Text, |_| 1);
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.turns, 3);
    let reminder = "Could not parse your action. Please output Action: as valid JSON only.";
    assert_eq!(texts.iter().filter(|t| t.contains(reminder)).count(), 2);
}

// spec: P-31, P-32
#[test]
fn a_failed_call_is_tried_again_and_then_given_up() {
    let mut attempts = Vec::new();
    let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 5);
    walk.change(|config| config.failure_policy = None);
    loop {
        if let Next::Do(ReactTask::AskModel { command, attempt, .. }) = walk.machine.next() {
            attempts.push((command.0, attempt, walk.at));
        }
        if !walk.follow(4) {
            break;
        }
    }
    let outcome = walk.machine.ended().expect("an outcome");
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.as_deref(), Some("network: late"));
    let waits: Vec<_> = attempts.windows(2).map(|w| (w[1].1, (w[1].2 - w[0].2) / 1000)).collect();
    assert_eq!(waits, [(1, 1), (2, 2), (3, 4)]);
}

/// Returns a turn of three calls, of which the first runs when a steering message arrives.
fn spoken_into(config: impl FnOnce(&mut RunConfig)) -> Walk {
    let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
    walk.change(config);
    walk.apply(prompt());
    let Next::Do(ReactTask::AskModel { command, .. }) = walk.machine.next() else { panic!("no question") };
    walk.apply(RecordBody::ModelCallStarted { command, attempt: 0, turn: 0, request_hash: String::new() });
    let call = |n: usize| Content::from(ToolCall::new(format!("c{n}"), "t", json!({ "n": n })));
    walk.apply(answered(command, vec![call(0), call(1), call(2)]));
    let first = CallId::new(command, 0);
    walk.apply(RecordBody::ToolCallStarted {
        call: first,
        attempt: 0,
        effect: Effect::SideEffect,
        child_run: None,
    });
    walk
}

fn answered(command: CommandId, content: Vec<Content>) -> RecordBody {
    let message = Box::new(AssistantMessage { content, ..AssistantMessage::default() });
    RecordBody::ModelCallFinished { command, attempt: 0, message }
}

/// Gives a text as the answer of the model.
fn answer_text(walk: &mut Walk) {
    let Next::Do(ReactTask::AskModel { command, turn, .. }) = walk.machine.next() else {
        panic!("{:?}", walk.machine.next())
    };
    walk.apply(RecordBody::ModelCallStarted { command, attempt: 0, turn, request_hash: String::new() });
    walk.apply(answered(command, vec![Content::text("ok")]));
}

fn results(walk: &Walk) -> Vec<String> {
    let results = walk.machine.messages().iter().filter_map(|m| match &**m {
        Message::ToolResult(result) => Some(format!("{} {}", m.text(), result.is_error)),
        _ => None,
    });
    results.collect()
}

fn texts(walk: &Walk) -> String {
    let texts =
        walk.machine.messages().iter().filter(|m| matches!(&***m, Message::User(_))).map(|m| m.text());
    texts.collect::<Vec<_>>().join(" ")
}

// spec: R-09
#[test]
fn steer_skips_calls_that_have_not_started_and_cancel_marks_them() {
    for (cancel, expected) in [(false, "Skipped due to queued user message. true"), (true, "Cancelled true")]
    {
        let mut walk = spoken_into(|_| {});
        match cancel {
            true => walk.apply(RecordBody::CancelRequested { reason: "stop".into() }),
            false => walk.say(PromptSource::Steer),
        }
        for _ in 0..2 {
            let Next::Append(refused @ RecordBody::ToolCallRefused { .. }) = walk.machine.next() else {
                panic!("{:?}", walk.machine.next())
            };
            walk.apply(refused);
        }
        assert!(matches!(walk.machine.next(), Next::Do(ReactTask::RunCalls)), "the first call still runs");
        let (call, result) = (CallId::new(CommandId(0), 0), Box::new(ToolResult::success("done")));
        walk.apply(RecordBody::ToolCallFinished { call, result: result.into() });
        assert_eq!(results(&walk), ["done false", expected, expected]);
        assert_eq!(texts(&walk), [&["do it".to_owned()], &walk.said[..]].concat().join(" "));
    }
}

// spec: R-10, R-11
#[test]
fn queue_mode_decides_between_one_message_and_all() {
    for (mode, rounds) in [(QueueMode::OneAtATime, [2, 3, 4, 5]), (QueueMode::All, [3, 5, 5, 5])] {
        let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
        walk.change(|config| (config.steering_mode, config.follow_up_mode) = (mode, mode));
        walk.apply(prompt());
        let Next::Do(ReactTask::AskModel { command, .. }) = walk.machine.next() else {
            panic!("no question")
        };
        walk.apply(RecordBody::ModelCallStarted {
            command,
            attempt: 0,
            turn: 0,
            request_hash: String::new(),
        });
        for source in
            [PromptSource::FollowUp, PromptSource::Steer, PromptSource::FollowUp, PromptSource::Steer]
        {
            walk.say(source);
        }
        walk.apply(answered(command, vec![Content::text("ok")]));
        let mut read = Vec::new();
        while !matches!(walk.machine.next(), Next::Append(RecordBody::RunFinished(_))) {
            read.push(texts(&walk).matches("<said").count() + 1);
            answer_text(&mut walk);
        }
        let mut expected = rounds.to_vec();
        expected.dedup();
        assert_eq!(read, expected, "{mode:?}");
        let order: Vec<_> = texts(&walk).split('<').skip(1).map(|t| t.trim().to_owned()).collect();
        let said = |i: usize| walk.said[i].trim_start_matches('<').to_owned();
        assert_eq!(order, [said(1), said(3), said(0), said(2)], "steers before follow-ups, in order");
    }
}

// spec: R-10
#[test]
fn a_follow_up_that_comes_with_the_last_answer_still_makes_a_turn() {
    let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
    walk.apply(prompt());
    answer_text(&mut walk);
    assert!(matches!(walk.machine.next(), Next::Append(RecordBody::RunFinished(_))));
    walk.say(PromptSource::FollowUp);
    answer_text(&mut walk);
    let Next::Append(RecordBody::RunFinished(outcome)) = walk.machine.next() else { panic!("goes on") };
    assert_eq!(outcome.turns, 2);
}

// spec: R-14, R-15
#[test]
fn cost_is_reserved_before_each_call_and_the_limit_is_never_exceeded() {
    // One call is set aside with 4,096 tokens of output at 15 and, from the second on, the 1,000 tokens
    // of the call before at 3; it costs 1,000 * 3 + 1,000 * 15 = 18,000.
    let price = ModelPrice::new(3_000_000, 15_000_000);
    let usage = archon_types::Usage { input: 1_000, output: 1_000, ..Default::default() };
    let cap = |max_cost: u64, on_limit| {
        let mut walk = Walk::new(ToolMode::Native, on_limit, 50);
        walk.change(|config| {
            config.price = Some(price);
            config.limits.max_cost_micros = Some(max_cost);
        });
        walk.apply(prompt());
        while let Next::Do(ReactTask::AskModel { command, turn, .. }) = walk.machine.next() {
            walk.apply(RecordBody::ModelCallStarted {
                command,
                attempt: 0,
                turn,
                request_hash: String::new(),
            });
            let content = vec![Content::from(ToolCall::new("c", "t", json!({ "n": turn })))];
            let message = Box::new(AssistantMessage { content, usage, ..AssistantMessage::default() });
            walk.apply(RecordBody::ModelCallFinished { command, attempt: 0, message });
            let (call, result) = (CallId::new(command, 0), Box::new(ToolResult::success("ok")));
            walk.apply(RecordBody::ToolCallFinished { call, result: result.into() });
        }
        while walk.follow(0) {}
        let outcome = walk.machine.ended().cloned().expect("an outcome");
        (outcome.turns, outcome.cost_micros, outcome.status, texts(&walk))
    };
    let stopped = |max| OutcomeStatus::Limit(LimitReached::Cost { max_cost_micros: max });
    let (turns, cost, status, texts) = cap(61_439, OnLimit::Stop);
    assert_eq!((turns, cost, status), (0, Some(0), stopped(61_439)), "not even the first call");
    assert_eq!(texts, "do it [Agent stopped: Max cost reached (0.061439)]");
    assert_eq!(cap(61_440, OnLimit::Stop).0, 1);
    // 18,000 + 6,000 + 61,440.
    assert_eq!((cap(85_439, OnLimit::Stop).0, cap(85_440, OnLimit::Stop).0), (1, 2));
    // What two calls may cost, less the first: the last words are paid for, whatever the first one cost.
    let (turns, cost, status, texts) = cap(2 * 61_440, OnLimit::ForceSummary);
    assert_eq!((turns, cost, status), (2, Some(85_440), stopped(2 * 61_440)));
    assert!(texts.contains("You have executed enough steps."), "{texts}");
    assert_eq!(cap(61_439, OnLimit::ForceSummary).0, 0, "not even last words");
    assert_eq!(cap(85_440, OnLimit::Stop).1, Some(36_000));
}

// spec: R-24, R-30
#[test]
fn turns_without_progress_are_pointed_out_in_a_record() {
    let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
    walk.apply(prompt());
    for turn in 0..3 {
        let Next::Do(ReactTask::AskModel { command, turn: asked, .. }) = walk.machine.next() else {
            panic!("{:?}", walk.machine.next())
        };
        walk.apply(RecordBody::ModelCallStarted {
            command,
            attempt: 0,
            turn: asked,
            request_hash: String::new(),
        });
        let call = ToolCall::new("c", "t", json!({ "n": turn }));
        walk.apply(answered(command, vec![Content::from(call)]));
        let result = Box::new(ToolResult::error("no such file"));
        walk.apply(RecordBody::ToolCallFinished { call: CallId::new(command, 0), result: result.into() });
    }
    let Next::Append(body @ RecordBody::HintAdded { .. }) = walk.machine.next() else {
        panic!("{:?}", walk.machine.next())
    };
    assert!(!body.is_input());
    walk.apply(body);
    assert!(texts(&walk).contains("The last 3 turns brought no progress"), "{}", texts(&walk));
}

// spec: R-11
#[test]
fn queue_mode_limits_the_steers_in_the_next_request() {
    for (mode, read) in [(QueueMode::OneAtATime, 1), (QueueMode::All, 2)] {
        let mut walk = Walk::new(ToolMode::Native, OnLimit::Stop, 50);
        walk.change(|config| config.steering_mode = mode);
        walk.apply(prompt());
        walk.say(PromptSource::Steer);
        walk.say(PromptSource::Steer);
        assert_eq!(texts(&walk).matches("<said").count(), read, "{mode:?}");
        answer_text(&mut walk);
        assert_eq!(texts(&walk).matches("<said").count(), 2, "{mode:?}");
    }
}
