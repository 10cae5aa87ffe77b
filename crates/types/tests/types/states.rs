//! Tables of states: their names and what may follow what.

use archon_types::{
    AgentState, ExecutionLimits, LimitReached, ModeSource, OnLimit, OutcomeStatus, PromptSource, ReactState,
    SessionMode, SubTaskStatus, ToolMode, TurnTrigger,
};
use expect_test::expect;

use crate::support::{names, round_trip, transitions};

// spec: T-20, T-24
#[test]
fn subtask_states() {
    use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
    let all = [Pending, Executing, Completed, Failed, Blocked];
    names(&all, "pending executing completed failed blocked");
    assert_eq!(all.map(|s| s.to_string()).join(" "), "pending executing completed failed blocked");
    transitions(
        &all,
        SubTaskStatus::may_become,
        &expect![[r#"
            Pending -> Executing Blocked
            Executing -> Completed Failed
            Completed ->
            Failed ->
            Blocked -> Pending
        "#]],
    );
}

// spec: T-27
#[test]
fn agent_states() {
    use AgentState::{Error, Executing, Finished, Idle, Planning, Replanning};
    let all = [Idle, Planning, Executing, Replanning, Finished, Error];
    names(&all, "idle planning executing replanning finished error");
    assert_eq!(AgentState::default(), Idle);
}

// spec: T-28
#[test]
fn loop_states() {
    use ReactState::{Acting, Error, Finished, Idle, Observing, Thinking};
    let all = [Idle, Thinking, Acting, Observing, Finished, Error];
    names(&all, "idle thinking acting observing finished error");
    transitions(
        &all,
        ReactState::may_become,
        &expect![[r#"
            Idle -> Thinking Finished Error
            Thinking -> Acting Observing Finished Error
            Acting -> Thinking Observing Finished Error
            Observing -> Thinking Finished Error
            Finished ->
            Error ->
        "#]],
    );
}

// spec: T-34
#[test]
fn plain_enums_are_lower_case_words() {
    names(&[ToolMode::Native, ToolMode::Text], "native text");
    names(&[PromptSource::Prompt, PromptSource::Steer, PromptSource::FollowUp], "prompt steer follow_up");
    names(&SessionMode::ALL, "ask accept_edits plan");
    names(&[ModeSource::Person, ModeSource::AgreedPlan], "person agreed_plan");
    names(&[OnLimit::ForceSummary, OnLimit::Error, OnLimit::Stop], "force_summary error stop");
    use TurnTrigger::{Branch, Continuation, SubAgent, User};
    names(&[User, SubAgent, Continuation, Branch], "user sub_agent continuation branch");
}

#[test]
fn limits_and_outcomes() {
    round_trip(
        &ExecutionLimits::default(),
        &expect![[
            r#"{"max_turns":50,"max_total_tokens":1000000,"max_duration_ms":600000,"max_repeats":3,"max_parse_failures":3,"max_depth":1,"on_limit":"stop"}"#
        ]],
    );
    let subtask = ExecutionLimits::subtask();
    assert_eq!((subtask.max_turns, subtask.on_limit), (10, OnLimit::Error));
    let limit = LimitReached::Duration { max_ms: 1500 };
    round_trip(
        &OutcomeStatus::Limit(limit),
        &expect![[r#"{"status":"limit","detail":{"limit":"duration","max_ms":1500}}"#]],
    );
    round_trip(&OutcomeStatus::Finished, &expect![[r#"{"status":"finished"}"#]]);
    let texts = [
        LimitReached::Turns { max: 5 },
        LimitReached::Tokens { max: 6 },
        limit,
        LimitReached::Repeats { max: 3 },
    ];
    expect![[r#"
        Max turns reached (5)
        Max tokens reached (6)
        Max duration reached (1.5 s)
        The same tool call was repeated 3 times"#]]
    .assert_eq(&texts.map(|l| l.to_string()).join("\n"));
}
