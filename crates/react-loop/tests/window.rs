//! Tests of the context window with the machine: its records, the model's view, the cost, and that a log
//! always folds to the same state.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use archon_react_loop::{
    ContextParts, Machine, Next, ReactMachine, ReactTask, decode_answer, fold, fold_with,
};
use archon_types::{
    AssistantMessage, CLEANUP_TOOL, CallId, CleanedUp, CommandId, Compaction, CompactionInput,
    CompactionLevel, CompactionStrategy, Content, ContextConfig, ContextLevel, Message, ModelFailure,
    OutcomeStatus, PromptSource, ProviderError, Record, RecordBody, ResultTokens, RunConfig, RunId,
    RunStarted, StopReason, Summary, Timestamp, TokenCounter, TokenEstimate, ToolCall, ToolMode, ToolResult,
    ToolSpec, Usage, ViewPart, metadata,
};
use proptest::prelude::*;
use serde_json::json;

/// A run that follows its machine, with all its records.
struct Run {
    machine: ReactMachine,
    log: Vec<Arc<Record>>,
    now: u64,
    asked: u64,
}

/// The answer of the model.
enum Answer {
    Call { result: String },
    Calls(usize),
    Text(&'static str),
    Overflow,
    Network,
}

fn context(budget: u64) -> ContextConfig {
    let mut config = ContextConfig::new(budget);
    config.system_prompt_tokens = 0;
    config.max_tool_result_share = 1_000.0;
    let all = 1_000_000;
    config.tool_result_max_tokens =
        ResultTokens { normal: all, moderate: all, aggressive: all, critical: all };
    config
}

impl Run {
    fn new(context: ContextConfig) -> Self {
        Self::with(ToolMode::Native, Some(context), ContextParts::default())
    }

    fn with(mode: ToolMode, context: Option<ContextConfig>, parts: ContextParts) -> Self {
        let mut config = RunConfig::default();
        config.tool_mode = mode;
        config.result_tag = (mode == ToolMode::Text).then(|| "0badcafe".to_owned());
        config.context = context;
        config.limits.max_turns = 1_000;
        config.limits.max_repeats = 1_000_000;
        config.limits.max_total_tokens = u64::MAX;
        config.limits.max_duration_ms = u64::MAX;
        let started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
        let machine = ReactMachine::with_parts(&started, at(0), Default::default(), parts);
        let first = Record { seq: 0, at: at(0), body: RecordBody::RunStarted(Box::new(started)) };
        let mut run = Self { machine, log: vec![Arc::new(first)], now: 0, asked: 0 };
        run.prompt("the goal");
        run
    }

    fn apply(&mut self, body: RecordBody) {
        self.now += 1;
        let record = Record { seq: self.log.len() as u64, at: at(self.now), body };
        self.machine.apply(&record);
        self.log.push(Arc::new(record));
        check_pairs(&self.machine);
    }

    fn prompt(&mut self, text: &str) {
        let message = Message::user(text, at(self.now)).into();
        self.apply(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
    }

    /// Follows the machine to the next request, and gives the answer of `answer`. Returns false when the
    /// run has ended.
    fn turn(&mut self, answer: impl FnOnce(u64) -> Answer) -> bool {
        let (command, attempt) = loop {
            match self.machine.next() {
                Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
                    self.apply(RecordBody::ModelCallStarted {
                        command,
                        attempt,
                        turn,
                        request_hash: String::new(),
                    });
                    break (command, attempt);
                }
                Next::Append(body) => self.apply(body),
                Next::Do(ReactTask::WaitUntil(until)) => {
                    self.now = until.as_millis();
                    self.apply(RecordBody::ClockRead);
                }
                Next::Do(ReactTask::Summarize(due)) => {
                    let text = Some("a summary by a model".to_owned());
                    let usage = Usage { output: 7, ..Usage::default() };
                    self.apply(RecordBody::Summarized(Summary { from: due.from, to: due.to, text, usage }));
                }
                Next::Done(_) => return false,
                other => panic!("{other:?}"),
            }
        };
        self.asked += 1;
        let n = self.asked;
        let mode = self.machine.config().tool_mode;
        let call = |id: String| Content::from(ToolCall::new(id, "t", json!({ "n": n })));
        let (content, results) = match answer(n) {
            Answer::Call { result } => (vec![call(format!("c{n}"))], vec![result]),
            Answer::Calls(count) => {
                ((0..count).map(|i| call(format!("c{n}-{i}"))).collect(), vec!["ok".to_owned(); count])
            }
            Answer::Text(text) => (vec![Content::text(text)], vec![]),
            Answer::Overflow => {
                return self.fail(command, attempt, ProviderError::ContextOverflow("no".into()));
            }
            Answer::Network => return self.fail(command, attempt, ProviderError::Network("reset".into())),
        };
        let message = AssistantMessage { content, stop_reason: StopReason::ToolUse, ..Default::default() };
        let message = Box::new(decode_answer(message, mode, command));
        self.apply(RecordBody::ModelCallFinished { command, attempt, message });
        for result in results {
            match self.machine.next() {
                Next::Do(ReactTask::RunCalls) => {
                    let call = self.machine.calls().iter().find(|c| c.result().is_none()).expect("a call").id;
                    let result = Box::new(ToolResult::success(result));
                    self.apply(RecordBody::ToolCallFinished { call, result: result.into() });
                }
                Next::Append(body) => self.apply(body),
                other => panic!("{other:?}"),
            }
        }
        true
    }

    fn fail(&mut self, command: CommandId, attempt: u32, error: ProviderError) -> bool {
        let failure = ModelFailure::new(&error, 0.0);
        self.apply(RecordBody::ModelCallFailed { command, attempt, failure });
        true
    }

    fn compactions(&self) -> Vec<&Compaction> {
        self.log.iter().filter_map(|record| compaction(record)).collect()
    }

    fn texts(&self) -> Vec<String> {
        self.machine.messages().iter().map(|m| m.text()).collect()
    }

    fn whole(&self) -> Vec<Arc<Message>> {
        self.machine.window().whole().cloned().collect()
    }

    fn folded(&self) -> ReactMachine {
        fold(&RunId::new("r"), &self.log, Default::default()).unwrap()
    }

    /// The machine of the log without its compactions.
    fn lossless(&self) -> ReactMachine {
        let log: Vec<_> = self.log.iter().filter(|record| compaction(record).is_none()).cloned().collect();
        fold(&RunId::new("r"), &log, Default::default()).unwrap()
    }
}

fn compaction(record: &Record) -> Option<&Compaction> {
    match &record.body {
        RecordBody::Compacted(compaction) => Some(compaction),
        _ => None,
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn work(chars: usize) -> impl Fn(u64) -> Answer {
    move |n| Answer::Call { result: format!("{n:<9}\n").repeat(chars / 10) }
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
                open.extend(
                    other.content().iter().filter_map(Content::as_tool_call).map(|c| c.id.to_string()),
                );
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn stored_and_loaded(machine: &ReactMachine) -> ReactMachine {
    serde_json::from_str(&serde_json::to_string(machine).unwrap()).unwrap()
}

// spec: C-07, C-04, R-18
#[test]
fn an_overflow_is_answered_by_smaller_requests_and_then_given_up() {
    let mut run = Run::new(ContextConfig::default());
    for _ in 0..50 {
        run.turn(work(1_000));
    }
    let before = run.asked;
    let mut sizes = Vec::new();
    while run.turn(|_| Answer::Overflow) {
        sizes.push(run.machine.messages().len());
    }
    assert_eq!(run.asked - before, 4, "one question and three smaller ones");
    assert_eq!(sizes, [101, 42, 42, 6]);
    let levels: Vec<_> = run.compactions().iter().map(|c| (c.level, c.overflow)).collect();
    assert_eq!(
        levels,
        [
            (CompactionLevel::Trim, true),
            (CompactionLevel::TruncateAll, true),
            (CompactionLevel::ForceTrim, true)
        ]
    );
    let outcome = run.machine.ended().unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.as_deref(), Some("Conversation too long, please start a new conversation"));
    assert_eq!(run.folded(), run.machine);
}

// spec: C-07, C-10
#[test]
fn a_run_goes_on_after_an_overflow_and_may_overflow_again() {
    let mut run = Run::new(ContextConfig::default());
    for _ in 0..3 {
        for _ in 0..30 {
            run.turn(work(100));
        }
        // Three overflows are one too few to give up, and a broken line counts for itself. No time
        // passes between them: recovery waits for no cool-down.
        for answer in [Answer::Overflow, Answer::Network, Answer::Overflow, Answer::Network, Answer::Overflow]
        {
            assert!(run.turn(|_| answer));
        }
        assert!(run.turn(|_| Answer::Network));
    }
    run.turn(|_| Answer::Text("done"));
    run.turn(|_| panic!("asked after the end"));
    assert_eq!(run.machine.ended().unwrap().status, OutcomeStatus::Finished);
    assert_eq!(run.compactions().len(), 9);
    assert_eq!(run.folded(), run.machine);
}

// spec: C-01
#[test]
fn without_a_window_nothing_is_counted_and_an_overflow_is_the_end() {
    let mut run = Run::with(ToolMode::Native, None, ContextParts::default());
    for _ in 0..50 {
        run.turn(work(100_000));
    }
    assert_eq!((run.machine.window().usage().tokens, run.machine.messages().len()), (0, 101));
    run.turn(|_| Answer::Overflow);
    run.turn(|_| panic!("asked again"));
    let error = run.machine.ended().unwrap().error.clone().unwrap();
    assert_eq!(error, "the conversation does not fit into the model's context window: no");
    assert!(run.compactions().is_empty());
}

// spec: C-11
#[test]
fn at_95_percent_every_call_gets_a_refusal_for_a_result() {
    let mut run = Run::new(context(10_000));
    run.prompt(&"x".repeat(36_500));
    run.turn(|_| Answer::Calls(3));
    let texts = run.texts();
    let results = &texts[texts.len() - 3..];
    for result in results {
        // Each refusal takes room, too.
        let rest = result.strip_prefix("CRITICAL CONTEXT LIMIT: 9").expect(result);
        assert_eq!(
            &rest[1..],
            "% used.\nTool execution has been BLOCKED to prevent context overflow.\n\
            You MUST provide a summary of work completed so far and conclude your response now.\n\
            Do NOT attempt further tool calls - they will fail."
        );
    }
    let refused = run.log.iter().filter(|r| matches!(r.body, RecordBody::ToolCallRefused { .. })).count();
    assert_eq!(refused, 3);
    assert_eq!(run.folded(), run.machine);
}

// spec: C-12
#[test]
fn context_status_is_sent_once_per_level() {
    let mut config = context(10_000);
    config.trigger = 2.0; // Never compacted.
    let mut run = Run::new(config);
    let told = |run: &Run| -> Vec<(ContextLevel, u8)> {
        let status = |record: &Arc<Record>| match &record.body {
            RecordBody::ContextStatus { level, text } => {
                let pct = text.split(": ").nth(1).unwrap().split('%').next().unwrap();
                Some((*level, pct.parse().unwrap()))
            }
            _ => None,
        };
        run.log.iter().filter_map(status).collect()
    };
    while run.machine.window().usage().percent() < 60 {
        run.turn(work(1_000));
        run.turn(|_| Answer::Calls(1));
    }
    assert_eq!(told(&run), []);
    while run.machine.window().usage().percent() < 94 {
        run.turn(work(380));
    }
    run.turn(work(1_000));
    run.turn(|_| Answer::Text("I stop."));
    let levels: Vec<_> = told(&run).iter().map(|(level, pct)| (*level, ContextLevel::at(*pct))).collect();
    let expected = [ContextLevel::Moderate, ContextLevel::Aggressive, ContextLevel::Critical].map(|l| (l, l));
    assert_eq!(levels, expected);
    let last_note = run.texts().into_iter().rev().nth(1).unwrap();
    assert!(last_note.starts_with("CRITICAL: "), "{last_note}");
    assert_eq!(run.folded(), run.machine);
}

// spec: C-17
#[test]
fn summarize_policy_asks_the_model_for_a_summary() {
    let mut config = context(4_000);
    config.summary_tokens = Some(500);
    let mut run = Run::new(config);
    for _ in 0..30 {
        run.turn(work(500));
    }
    let summed = run.log.iter().filter(|r| matches!(r.body, RecordBody::Summarized(_))).count();
    assert_eq!(summed, run.compactions().len(), "one for each compaction");
    let first = run.compactions()[0];
    assert_eq!(first.level, CompactionLevel::Summarize);
    let [ViewPart::Keep { .. }, ViewPart::Digest { text, .. }, ViewPart::Keep { .. }] = &first.view[..]
    else {
        panic!("{first:?}")
    };
    assert_eq!(text, "[Earlier conversation summarized]\na summary by a model");
    run.turn(|_| Answer::Text("done"));
    run.turn(|_| panic!("asked after the end"));
    assert_eq!(run.machine.ended().unwrap().usage.total(), 7 * summed as u64, "its tokens count");
    assert_eq!(run.folded(), run.machine);
}

// spec: C-17
#[test]
fn without_a_summary_old_turns_are_digested() {
    let mut config = context(4_000);
    config.summary_tokens = Some(500);
    let mut run = Run::new(config);
    let due = loop {
        match run.machine.next() {
            Next::Do(ReactTask::Summarize(due)) => break due,
            Next::Append(asked @ RecordBody::AuxiliaryCallStarted { .. }) => run.apply(asked),
            _ => assert!(run.turn(work(500))),
        }
    };
    assert!(due.transcript.starts_with("Tool result: ") || due.transcript.starts_with("Assistant: "));
    let none = Summary { from: due.from, to: due.to, ..Summary::default() };
    run.apply(RecordBody::Summarized(none));
    run.turn(work(500));
    assert_eq!(run.compactions().iter().map(|c| c.level).collect::<Vec<_>>(), [CompactionLevel::DigestTurns]);
}

/// A token counter that counts its calls for each text.
#[derive(Default)]
struct Counting {
    calls: AtomicU64,
    seen: std::sync::Mutex<std::collections::HashMap<String, u64>>,
}

impl TokenCounter for Counting {
    fn count(&self, text: &str) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.seen.lock().unwrap().entry(text.to_owned()).or_default() += 1;
        TokenEstimate.count(text)
    }
}

fn counting() -> (Arc<Counting>, ContextParts) {
    let counter = Arc::new(Counting::default());
    let mut parts = ContextParts::default();
    parts.counter = Some(counter.clone());
    (counter, parts)
}

// spec: C-15, C-16
#[test]
fn in_300_turns_each_message_is_counted_once_and_encoded_once() {
    let (counter, parts) = counting();
    let mut run = Run::with(ToolMode::Native, Some(ContextConfig::new(10_000_000)), parts);
    let encoded = Cell::new(0);
    for _ in 0..300 {
        let request = run.machine.request();
        request.messages.encode_into("test", &mut String::new(), |_, out| {
            encoded.set(encoded.get() + 1);
            out.push('x');
        });
        drop(request);
        run.turn(work(1_000));
    }
    assert!(run.compactions().is_empty());
    assert_eq!(run.machine.messages().len(), 601);
    assert_eq!(encoded.get(), 599, "the last turn was not sent");
    let seen = counter.seen.lock().unwrap();
    let results: Vec<u64> = seen.iter().filter(|(text, _)| text.len() >= 1_000).map(|(_, n)| *n).collect();
    assert_eq!((results.len(), results.iter().max()), (300, Some(&1)));
    // A goal, and for each turn the tool's name, the arguments and the result.
    assert_eq!(counter.calls.load(Ordering::Relaxed), 1 + 300 * 3);
}

// spec: C-02
#[test]
fn compaction_cost_grows_with_new_messages_only() {
    let cost = |turns: u64| {
        let (counter, parts) = counting();
        let mut run = Run::with(ToolMode::Native, Some(context(20_000)), parts);
        let encoded = Cell::new(0);
        for _ in 0..turns {
            run.turn(work(4_000));
            run.machine.request().messages.encode_into("test", &mut String::new(), |_, out| {
                encoded.set(encoded.get() + 1);
                out.push('x');
            });
        }
        assert!(run.compactions().len() as u64 > turns / 100);
        (counter.calls.load(Ordering::Relaxed), encoded.get(), run.compactions().len())
    };
    let (short, long) = (cost(200), cost(800));
    assert!(long.0 <= short.0 * 5, "{short:?} {long:?}");
    assert!(long.1 <= short.1 * 5, "{short:?} {long:?}");
}

// spec: C-03
#[test]
fn fold_needs_no_compaction_strategy() {
    struct KeepOne;
    impl CompactionStrategy for KeepOne {
        fn compact(&self, input: CompactionInput<'_>) -> Option<(CompactionLevel, Vec<ViewPart>)> {
            let goal = input.items.iter().find(|item| item.pinned)?;
            Some((CompactionLevel::Trim, vec![goal.part.clone()]))
        }
    }
    let mut parts = ContextParts::default();
    parts.strategy = Some(Arc::new(KeepOne));
    let mut run = Run::with(ToolMode::Native, Some(context(5_000)), parts.clone());
    for _ in 0..60 {
        run.turn(work(1_000));
    }
    assert!(run.compactions().len() > 1);
    assert_eq!(run.compactions()[0].view, [ViewPart::Keep { from: 0, to: 1 }]);
    assert_eq!(run.folded(), run.machine);
    assert_eq!(fold_with(&RunId::new("r"), &run.log, Default::default(), parts).unwrap(), run.machine);
}

// spec: C-16, TE-24
#[test]
fn a_large_result_is_cut_as_it_enters_and_stays_whole_underneath() {
    let mut run = Run::new(ContextConfig::new(100_000));
    run.turn(|_| Answer::Call { result: "x".repeat(120_001) });
    let seen = run.texts().pop().unwrap();
    assert_eq!(seen, format!("{}\n[...truncated]", "x".repeat(120_000)));
    assert_eq!(run.whole().pop().unwrap().text().len(), 120_001);
    assert_eq!(stored_and_loaded(&run.machine), run.machine);
    // A run that goes on from here sees what this one saw, and counts nothing again.
    let tokens = run.machine.window().usage().tokens;
    let mut parts = ContextParts::default();
    let counter = Arc::new(Counting::default());
    parts.counter = Some(counter.clone());
    let RecordBody::RunStarted(started) = &run.log[0].body else { panic!("no start") };
    let next = ReactMachine::with_parts(started, at(0), run.machine.clone().into_history(), parts);
    assert_eq!(next.messages(), run.machine.messages());
    assert_eq!(next.window().usage().tokens, tokens);
    assert_eq!(counter.calls.load(Ordering::Relaxed), 0);
}

/// Returns a compaction that was not made for this conversation.
fn hostile(a: u64, b: u64) -> RecordBody {
    let (at, to) = (a % 40, b % 40);
    let part = match a % 4 {
        0 => ViewPart::Keep { from: at, to },
        1 => ViewPart::Truncate { at, lines: 1 },
        2 => ViewPart::Rewrite { at, text: "x".into() },
        _ => ViewPart::Digest { from: at, to, text: "x".into() },
    };
    let view = vec![ViewPart::Keep { from: 0, to: b % 7 }, part, ViewPart::Keep { from: to, to: to + b % 9 }];
    let mut compaction = Compaction::new(CompactionLevel::Trim, a % 50, view);
    compaction.overflow = true;
    RecordBody::Compacted(compaction)
}

fn cases() -> u32 {
    if std::env::var_os("ARCHON_ACCEPT").is_some_and(|v| v == "full") { 10_000 } else { 100 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    // spec: C-02, C-04, C-07
    #[test]
    fn compaction_random_runs_keep_pairs_and_goal_and_fold_equal(
        text_mode in any::<bool>(),
        budget in 300u64..4_000,
        summary in any::<bool>(),
        turns in prop::collection::vec((0u8..10, 1usize..3_000, 0u64..200_000), 1..40),
    ) {
        let mode = if text_mode { ToolMode::Text } else { ToolMode::Native };
        let mut config = context(budget);
        config.summary_tokens = summary.then_some(100);
        let mut run = Run::with(mode, Some(config), ContextParts::default());
        for (choice, chars, wait) in turns {
            run.now += wait;
            if choice == 0 {
                run.prompt(&"p".repeat(chars / 20));
            }
            if choice == 9 {
                run.apply(hostile(chars as u64, wait));
            }
            run.turn(|n| match choice {
                1 => Answer::Overflow,
                2 => Answer::Calls(chars % 7 + 1),
                _ => work(chars)(n),
            });
            prop_assert!(run.texts()[0].contains("the goal"));
        }
        prop_assert_eq!(&stored_and_loaded(&run.machine), &run.machine);
        for compaction in run.compactions() {
            let target = budget * 8 / 10;
            let highest = compaction.level == CompactionLevel::TruncateAll;
            let fits = compaction.tokens_after <= target;
            prop_assert!(fits || highest || compaction.overflow, "{compaction:?}");
        }
        prop_assert_eq!(run.folded(), run.machine.clone());
        let lossless = run.lossless();
        prop_assert_eq!(lossless.messages().to_vec(), run.whole());
        check_pairs(&lossless);
    }
}

/// Returns a run whose model can give up results, with two results of these texts and a third turn that
/// gives up `ids`.
fn after_cleanup(context: Option<ContextConfig>, texts: [&str; 2], ids: &[&str]) -> Run {
    let mut config = RunConfig::default();
    config.context = context;
    let spec = ToolSpec::new(CLEANUP_TOOL, "", json!({ "type": "object" }));
    config.tools = Arc::new(vec![spec].into());
    let started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
    let machine = ReactMachine::with_parts(&started, at(0), Default::default(), Default::default());
    let first = Record { seq: 0, at: at(0), body: RecordBody::RunStarted(Box::new(started)) };
    let mut run = Run { machine, log: vec![Arc::new(first)], now: 0, asked: 0 };
    run.prompt("the goal");
    for text in texts {
        run.turn(|_| Answer::Call { result: text.to_owned() });
    }
    run.give_up(ids);
    run
}

impl Run {
    /// Adds a turn in which the model gives up the results of these calls.
    fn give_up(&mut self, ids: &[&str]) {
        let (command, attempt) = loop {
            match self.machine.next() {
                Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
                    let request_hash = String::new();
                    self.apply(RecordBody::ModelCallStarted { command, attempt, turn, request_hash });
                    break (command, attempt);
                }
                Next::Append(body) => self.apply(body),
                other => panic!("{other:?}"),
            }
        };
        let call = ToolCall::new(format!("g{}", command.0), CLEANUP_TOOL, json!({}));
        let content = vec![Content::from(call)];
        let message = AssistantMessage { content, stop_reason: StopReason::ToolUse, ..Default::default() };
        let message = Box::new(decode_answer(message, ToolMode::Native, command));
        self.apply(RecordBody::ModelCallFinished { command, attempt, message });
        let seen = self.machine.window().results();
        let of = |id: &&str| seen.iter().find(|result| result.call.as_str() == *id).expect("a result");
        let given_up: Vec<_> = ids
            .iter()
            .map(|id| CleanedUp::new(of(id), "no results", Some(format!("{id} was dull"))))
            .collect();
        let marks = serde_json::to_value(given_up).unwrap();
        let result = Box::new(ToolResult::success("{}").with_metadata(metadata::CLEANED_UP, marks));
        let call = CallId::new(command, 0);
        self.apply(RecordBody::ToolCallFinished { call, result: result.into() });
        // It counts at once, for a second call of the same turn as well.
        let seen = self.machine.window().results();
        assert!(seen.iter().all(|r| r.is_cleaned_up == ids.contains(&r.call.as_str())), "{seen:?}");
    }
}

// spec: TE-49, TE-51
#[test]
fn cleanup_replaces_a_result_by_a_note_and_keeps_it_in_the_log() {
    let long = "a line of a long result\n".repeat(200);
    for context in [None, Some(ContextConfig::default())] {
        let counts = context.is_some();
        let mut run = after_cleanup(context, [&long, "short"], &["c1"]);
        let before = run.machine.window().usage();
        run.turn(|_| Answer::Text("done"));
        let compaction = run.compactions()[0].clone();
        assert_eq!((run.compactions().len(), compaction.level), (1, CompactionLevel::CleanUp));
        let note = "[Cleaned up - no results]: c1 was dull";
        assert!(compaction.view.contains(&ViewPart::Rewrite { at: 2, text: note.into() }), "{compaction:?}");
        let texts = run.texts();
        assert_eq!((texts[2].as_str(), texts[4].as_str()), (note, "[tool_call_id: c2]\nshort"));
        // The conversation as it came, without marks.
        assert_eq!((run.whole()[2].text(), run.whole()[4].text()), (long.clone(), "short".to_owned()));
        assert_eq!(counts, run.machine.window().usage().tokens + 500 < before.tokens);
        // Whoever folds the log, or loads the machine, sees the same; without the record it was never so.
        assert_eq!(run.folded(), run.machine);
        assert_eq!(stored_and_loaded(&run.machine), run.machine);
        let undone = run.lossless();
        assert!(undone.messages()[2].text().starts_with("[tool_call_id: c1]\na line"));
        let results = run.machine.window().results();
        let marks: Vec<_> = results.iter().map(|r| (r.call.as_str(), r.is_cleaned_up)).collect();
        assert_eq!(marks, [("c1", true), ("c2", false), ("g2", false)]);
    }
}

// spec: TE-49
#[test]
fn cleanup_is_kept_by_a_later_compaction() {
    let long = "a line of a long result\n".repeat(200);
    let mut run = after_cleanup(Some(context(4_000)), [&long, &long], &["c1"]);
    while run.compactions().len() < 3 {
        run.turn(work(3_000));
    }
    assert_ne!(run.compactions().last().unwrap().level, CompactionLevel::CleanUp);
    assert!(!run.texts().iter().any(|text| text.contains("[tool_call_id: c1]")), "{:?}", run.texts());
    assert_eq!(run.folded(), run.machine);
}
