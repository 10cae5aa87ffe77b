//! Conversation rounds, derived from the log of a run.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, Content, Message, OutcomeStatus, PromptSource, RecalledText, Record, RecordBody,
    ToolCall, ToolResult, Trust, UserMessage,
};
use archon_views::{ConversationRound, RoundStatus};
use expect_test::expect;
use serde_json::json;

use crate::{
    samples::{answered, ended, finished, model_call_started, prompted, started},
    support::{at, round_trip},
};

/// The rounds of a log whose records are 10 ms apart.
fn rounds(bodies: Vec<RecordBody>) -> Vec<ConversationRound> {
    let start = RecordBody::RunStarted(Box::new(started()));
    let bodies = std::iter::once(start).chain(bodies);
    let records = (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at: at(seq * 10), body }));
    ConversationRound::of(&records.collect::<Vec<_>>())
}

fn ask(text: &str) -> RecordBody {
    prompted(text, PromptSource::Prompt)
}

fn call(id: &str, name: &str, arguments: archon_types::Json) -> Content {
    ToolCall::new(id, name, arguments).into()
}

fn result(index: u32, result: ToolResult) -> RecordBody {
    RecordBody::ToolCallFinished { call: CallId::new(CommandId(0), index), result: Arc::new(result) }
}

// spec: T-36
#[test]
fn round_user_message_excludes_recalled_memories() {
    let mut user = UserMessage::new(vec!["Where do I live?".into()], at(0));
    user.add_recalled(RecalledText::new("You live in Bern.", Trust::Trusted));
    let message = Message::User(user).into();
    let rounds = rounds(vec![
        RecordBody::MessageAdded { message, source: PromptSource::Prompt },
        ask("And since when?"),
    ]);
    assert_eq!(rounds[0].user_message, "Where do I live?\nAnd since when?");
}

// spec: T-36
#[test]
fn a_round_with_thoughts_tools_and_an_answer() {
    let thinking = Content::Thinking { thinking: "15% is 0.15".into(), signature: None };
    let rounds = rounds(vec![
        ask("What is 15% of 200?"),
        model_call_started(0, 0),
        answered(
            0,
            vec![
                thinking,
                "I calculate.".into(),
                call("c1", "calculator", json!({"expression": "0.15*200"})),
                call("c2", "activate_skill", json!({"skill_name": "math"})),
                call("c3", "activate_skill", json!({"skill_name": "unknown"})),
            ],
        ),
        result(1, ToolResult::success("Be exact.")),
        result(0, ToolResult::success("30")),
        result(2, ToolResult::error("no such skill")),
        model_call_started(1, 0),
        answered(1, vec!["It is 30.".into()]),
        finished("It is 30."),
    ]);
    let [round] = &rounds[..] else { panic!("{rounds:#?}") };
    round_trip(
        round,
        &expect![[
            r#"{"round_id":"run_1","conversation_id":"s_1","user_message":"What is 15% of 200?","thoughts":["15% is 0.15","I calculate."],"tool_calls":[{"id":"c1","name":"calculator","arguments":{"expression":"0.15*200"}},{"id":"c2","name":"activate_skill","arguments":{"skill_name":"math"}},{"id":"c3","name":"activate_skill","arguments":{"skill_name":"unknown"}}],"tool_observations":["Be exact.","30","Error: no such skill"],"skill_activations":["math"],"final_answer":"It is 30.","tokens_used":90,"latency_ms":80,"status":"completed"}"#
        ]],
    );
}

// spec: T-36
#[test]
fn round_status_follows_from_its_records() {
    use RoundStatus::{Completed, Error, InProgress, Pending};
    let tool = || answered(0, vec![call("c1", "t", json!({}))]);
    let cancelled = || ended(OutcomeStatus::Cancelled, None);
    let table = [
        (vec![], Pending, None),
        (vec![model_call_started(0, 0)], InProgress, None),
        (vec![model_call_started(0, 0), tool()], InProgress, None),
        (vec![model_call_started(0, 0), answered(0, vec!["30".into()])], Completed, Some("30")),
        (vec![model_call_started(0, 0), ended(OutcomeStatus::Failed, Some("no"))], Error, None),
        (vec![model_call_started(0, 0), cancelled()], Error, None),
        (vec![model_call_started(0, 0), cancelled(), RecordBody::Resumed], InProgress, None),
        // The loop did not accept the answer.
        (
            vec![
                model_call_started(0, 0),
                answered(0, vec!["?".into()]),
                RecordBody::HintAdded { text: "!".into() },
            ],
            InProgress,
            None,
        ),
    ];
    for (mut bodies, status, answer) in table {
        bodies.insert(0, ask("q"));
        let rounds = rounds(bodies.clone());
        assert_eq!((rounds[0].status, rounds[0].final_answer.as_deref()), (status, answer), "{bodies:?}");
    }
}

// spec: T-36
#[test]
fn a_steer_joins_the_round_and_a_follow_up_makes_the_next() {
    let rounds = rounds(vec![
        ask("one"),
        model_call_started(0, 0),
        prompted("by the way", PromptSource::Steer),
        prompted("two", PromptSource::FollowUp),
        prompted("and three", PromptSource::FollowUp),
        answered(0, vec!["first".into()]),
        model_call_started(1, 0),
        answered(1, vec!["second".into()]),
        finished("second"),
    ]);
    let seen: Vec<_> = rounds
        .iter()
        .map(|r| (r.round_id.as_str(), r.user_message.as_str(), r.final_answer.as_deref(), r.latency_ms))
        .collect();
    let expected =
        [("run_1", "one\nby the way", Some("first"), 50), ("run_1.1", "two\nand three", Some("second"), 50)];
    assert_eq!(seen, expected);
    assert!(rounds.iter().all(|r| r.status == RoundStatus::Completed && r.tokens_used == 45));
}
