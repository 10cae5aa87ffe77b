//! Tests of the ways in which an answer of the model ends: cut off, paused, refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use archon_react_loop::{Machine, Next, ReactMachine, ReactTask, decode_answer};
use archon_types::{
    AssistantMessage, CommandId, Content, Encoded, Message, Outcome, OutcomeStatus, OutputCheck,
    PromptSource, Record, RecordBody, RequestOptions, ResponseFormat, RunConfig, RunStarted, StopReason,
    Timestamp, ToolCall, ToolMode, ToolSpec,
};
use serde_json::json;

/// A run with a prompt.
struct Run {
    machine: ReactMachine,
    seq: u64,
}

impl Run {
    fn new(change: impl FnOnce(&mut RunConfig)) -> Self {
        let mut config = RunConfig::default();
        config.tools = Arc::new(Encoded::new(vec![ToolSpec::new("t", "A tool.", json!({"type": "object"}))]));
        change(&mut config);
        let started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
        let mut run = Self { machine: ReactMachine::new(&started, at(0), Default::default()), seq: 0 };
        let message = Message::user("do it", at(0)).into();
        run.apply(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
        run
    }

    fn in_text() -> Self {
        Self::new(|config| config.tool_mode = ToolMode::Text)
    }

    fn apply(&mut self, body: RecordBody) {
        self.seq += 1;
        self.machine.apply(&Record { seq: self.seq, at: at(self.seq), body });
    }

    /// Starts the model's turn, and gives its answer.
    fn answer(&mut self, content: Vec<Content>, stop_reason: StopReason) {
        let Next::Do(ReactTask::AskModel { command, attempt, turn }) = self.machine.next() else {
            panic!("{:?}", self.machine.next())
        };
        self.apply(RecordBody::ModelCallStarted { command, attempt, turn, request_hash: String::new() });
        let message = AssistantMessage { content, stop_reason, ..AssistantMessage::default() };
        let message = decode_answer(message, self.machine.config().tool_mode, command);
        self.apply(RecordBody::ModelCallFinished { command, attempt, message: Box::new(message) });
    }

    /// Returns the calls that are due.
    fn calls(&self) -> Vec<ToolCall> {
        match self.machine.next() {
            Next::Do(ReactTask::RunCalls) => {
                self.machine.calls().iter().map(|call| ToolCall::clone(&call.call)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn outcome(&mut self) -> Outcome {
        while let Next::Append(body) = self.machine.next() {
            self.apply(body);
        }
        self.machine.ended().expect("the run has ended").clone()
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn call(arguments: &str) -> Content {
    ToolCall::from_json_text("a", "t", arguments).into()
}

// spec: P-11, TE-09
#[test]
fn truncated_answer_marks_its_last_call_as_malformed() {
    for arguments in ["", "{}", "{\"n\": 1}", "{\"n\": ", "null"] {
        let mut run = Run::new(|_| {});
        run.answer(vec![Content::text("I look."), call("{\"n\": 0}"), call(arguments)], StopReason::Length);
        let malformed: Vec<_> = run.calls().iter().map(|call| call.malformed.is_some()).collect();
        assert_eq!(malformed, [false, true], "{arguments}");
    }
    // Text behind a call shows that the call was whole.
    let mut run = Run::new(|_| {});
    run.answer(vec![call("{}"), Content::text("Next I")], StopReason::Length);
    assert_eq!(run.calls()[0].malformed, None);
    let mut run = Run::new(|_| {});
    run.answer(vec![call("{}")], StopReason::ToolUse);
    assert_eq!(run.calls()[0].malformed, None);
}

// spec: R-20, R-22
#[test]
fn text_mode_truncated_answer_is_not_completed() {
    let torn = "Action: {\"tool\": \"t\", \"arguments\": {\"path\": \"/tmp/x\"";
    let mut run = Run::in_text();
    run.answer(vec![Content::text(torn)], StopReason::Length);
    let Next::Append(RecordBody::HintAdded { text }) = run.machine.next() else {
        panic!("{:?}", run.machine.next())
    };
    assert!(text.contains("it may have been cut off, so it was not run"), "{text}");
    let mut run = Run::in_text();
    run.answer(vec![Content::text(format!("{torn}}}}}\nObservation: I see"))], StopReason::Length);
    assert_eq!(run.calls().len(), 1);
}

// spec: R-20
#[test]
fn in_text_mode_all_calls_of_an_answer_run_and_one_behind_a_made_up_result_does_not() {
    let mut run = Run::in_text();
    let text = "Action: {\"tool\": \"t\"}\nAction: {\"tool\": \"t\", \"arguments\": {\"n\": 1}}\n\
                Observation: fine\nAction: {\"tool\": \"t\", \"arguments\": {\"n\": 2}}";
    run.answer(vec![Content::text(text)], StopReason::Stop);
    let calls = run.calls();
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["action_0", "action_0_1", "action_0_2"]);
    let refused = calls[2].malformed.as_ref().unwrap();
    assert_eq!(refused.text, "{\"n\":2}");
    assert!(refused.error.contains("an observation that you wrote yourself"), "{}", refused.error);
    assert!(calls[..2].iter().all(|call| call.malformed.is_none()));
}

#[test]
fn outcome_of_a_truncated_answer_is_cut() {
    for (stop_reason, is_cut) in [(StopReason::Length, true), (StopReason::Stop, false)] {
        let mut run = Run::new(|_| {});
        run.answer(vec![call("{}")], StopReason::ToolUse);
        assert_eq!(run.calls().len(), 1);
        run.apply(RecordBody::ToolCallRefused {
            call: archon_types::CallId::new(CommandId(0), 0),
            result: Arc::new(archon_types::ToolResult::success("ok")),
        });
        run.answer(vec![Content::text("It is")], stop_reason);
        let outcome = run.outcome();
        assert_eq!(
            (outcome.is_finished(), outcome.is_cut(), outcome.last_text().unwrap_or_default()),
            (true, is_cut, "It is")
        );
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(json.contains("\"stop_reason\":\"length\""), is_cut, "{json}");
    }
    let mut run = Run::in_text();
    run.answer(vec![Content::text("Final Answer: It is")], StopReason::Length);
    let outcome = run.outcome();
    assert_eq!((outcome.is_cut(), outcome.last_text().unwrap_or_default()), (true, "It is"));
}

// spec: P-10
#[test]
fn paused_turn_is_requested_again_with_the_partial_answer() {
    for mode in [ToolMode::Native, ToolMode::Text] {
        let mut run = Run::new(|config| config.tool_mode = mode);
        run.answer(vec![Content::text("I search.")], StopReason::Pause);
        let said: Vec<_> = run.machine.messages().iter().map(|message| message.text()).collect();
        assert_eq!(said.last().unwrap(), "I search.");
        run.answer(vec![Content::text("Final Answer: found")], StopReason::Stop);
        let outcome = run.outcome();
        assert_eq!((outcome.is_finished(), outcome.turns), (true, 2));
        assert!(outcome.last_text().unwrap_or_default().ends_with("found"));
    }
    // It is a turn like another: a service that always pauses does not go on for ever.
    let mut run = Run::new(|config| config.limits.max_turns = 3);
    for _ in 0..3 {
        run.answer(vec![], StopReason::Pause);
    }
    assert!(matches!(run.machine.next(), Next::Append(RecordBody::LimitReached(_))));
}

// spec: P-10
#[test]
fn child_run_result_of_a_truncated_answer_is_marked_for_its_caller() {
    for (stop, expected) in [
        (StopReason::Stop, "Once upon"),
        (
            StopReason::Length,
            "Once upon\n[Cut off: the limit of tokens of one answer; the answer is not complete]",
        ),
    ] {
        let mut run = Run::new(|_| {});
        run.answer(vec![Content::text("Once upon")], stop);
        assert_eq!(run.outcome().to_result("ann").text(), expected);
    }
}

// spec: R-28
#[test]
fn child_run_result_has_conversation_turns_and_final_state() {
    for (max_turns, turns, state) in [(9, 2, "finished"), (1, 1, "limit")] {
        let mut run = Run::new(|config| config.limits.max_turns = max_turns);
        run.answer(vec![call("{}")], StopReason::ToolUse);
        run.apply(RecordBody::ToolCallRefused {
            call: archon_types::CallId::new(CommandId(0), 0),
            result: Arc::new(archon_types::ToolResult::success("ok")),
        });
        if max_turns > 1 {
            run.answer(vec![Content::text("It is")], StopReason::Stop);
        }
        let result = run.outcome().to_result("ann");
        for (key, value) in [
            ("agent", json!("ann")),
            ("conversation_history", json!("r")),
            ("iterations", json!(turns)),
            ("final_state", json!(state)),
        ] {
            assert_eq!(result.metadata[key], value, "{key} after {max_turns}");
        }
        assert_eq!(result.child_run, Some("r".into()));
    }
}

// spec: R-29
#[test]
fn outcome_of_a_refusal_has_its_stop_reason() {
    let no = || vec![Content::text("Not this.")];
    // In words: it is shown.
    let mut run = Run::new(|_| {});
    run.answer(no(), StopReason::Refusal);
    let outcome = run.outcome();
    assert_eq!(
        (outcome.is_finished(), outcome.is_refusal(), outcome.last_text().unwrap_or_default()),
        (true, true, "Not this.")
    );
    let mut run = Run::new(|_| {});
    run.answer(no(), StopReason::Stop);
    assert!(!run.outcome().is_refusal());
    // It has no form, and nobody is asked again for one.
    let mut run = Run::new(|config| {
        let mut options = RequestOptions::default();
        options.response_format =
            Some(ResponseFormat { name: "f".into(), schema: json!({"type": "object"}) });
        config.options = Arc::new(options);
        config.output_check = Some(OutputCheck::new(3));
    });
    run.answer(no(), StopReason::Refusal);
    let outcome = run.outcome();
    assert_eq!((outcome.status, outcome.is_refusal()), (OutcomeStatus::Failed, true));
    assert_eq!(outcome.error.unwrap(), "the model refused to answer: Not this.");
}
