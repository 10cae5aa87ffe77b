//! Answers that are compared with what was expected, answers that decline, and answers that make no sense.

use archon::{
    OutcomeStatus,
    react_loop::replay,
    types::{
        ExecutionLimits, GoalCheck, ModelPrice, OnLimit, Record, RecordBody, Request, Timestamp, ToolMode,
    },
    views::RunReport,
};
use archon_testkit::FnProvider;

use crate::shared::stage::{Answer, Show, Stage};

async fn checked(
    check: GoalCheck,
    answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
) -> (archon::Outcome, Show) {
    let stage = Stage::new(answer).with(|b| b.expected_output("42 kilograms").goal_check(check));
    let (outcome, show) = stage.play("How heavy is it?").await;
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    (outcome, show)
}

fn notes(show: &Show) -> Vec<String> {
    let note = |body| match body {
        RecordBody::HintAdded { text } => Some(text),
        _ => None,
    };
    show.bodies().into_iter().filter_map(note).collect()
}

// spec: R-27
#[tokio::test]
async fn goal_check_text_sends_an_answer_back_at_most_twice() {
    let (outcome, show) = checked(GoalCheck::Text, |n, _| match n {
        0 => FnProvider::text("Quite heavy."),
        _ => FnProvider::text("It weighs 42\nKilograms."),
    })
    .await;
    assert_eq!((outcome.last_text().unwrap_or_default(), outcome.turns), ("It weighs 42\nKilograms.", 2));
    assert_eq!(
        notes(&show),
        [
            "Your answer is not what was expected yet (it is not in your answer). Expected output: 42 kilograms\n\
          Go on until it is, or say plainly why that cannot be done."
        ]
    );
    let (outcome, show) = checked(GoalCheck::Text, |_, _| FnProvider::text("Quite heavy.")).await;
    assert_eq!((outcome.status, outcome.turns, notes(&show).len()), (OutcomeStatus::Finished, 3, 2));

    let stage =
        Stage::new(|_, _| FnProvider::text("Quite heavy.")).with(|b| b.expected_output("42 kilograms"));
    assert_eq!(stage.play("How heavy is it?").await.0.turns, 1, "nobody looks by default");
}

fn is_check(request: &Request) -> bool {
    request.messages.iter().any(|m| m.text().contains("<expected>\n42 kilograms\n</expected>"))
}

// spec: R-27
#[tokio::test]
async fn goal_check_model_counts_its_usage() {
    let (outcome, show) = checked(GoalCheck::Model, |n, request| match n {
        0 => FnProvider::text("42"),
        1 => {
            assert!(is_check(request) && request.tools.is_empty() && request.messages.len() == 1);
            FnProvider::text("NOT MET: the unit is missing")
        }
        2 => FnProvider::text("42 kilograms"),
        _ => FnProvider::text("MET"),
    })
    .await;
    assert_eq!(
        (outcome.last_text().unwrap_or_default(), outcome.turns, show.model.requests().len()),
        ("42 kilograms", 2, 4)
    );
    assert!(notes(&show)[0].contains("(the unit is missing)"));
}

// spec: R-27
#[tokio::test]
async fn goal_check_without_a_verdict_accepts_the_answer() {
    let (outcome, _) = checked(GoalCheck::Model, |_, request| match is_check(request) {
        true => vec![Err(archon::types::ProviderError::Auth("no".into()))],
        false => FnProvider::text("42"),
    })
    .await;
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "42"));
    // A question that cannot be paid for is not asked.
    let mut limits = ExecutionLimits::default();
    limits.max_cost_micros = Some(70_000);
    let stage = Stage::new(|_, request| {
        assert!(!is_check(request));
        FnProvider::text("42")
    });
    let priced = stage.with(|b| {
        let price = ModelPrice::new(1_000_000, 15_000_000);
        b.price(price).limits(limits).expected_output("42 kilograms").goal_check(GoalCheck::Model)
    });
    assert_eq!(priced.play("How heavy is it?").await.0.last_text(), Some("42"));
}

// spec: R-29
#[tokio::test]
async fn goal_check_accepts_a_refusal() {
    let (outcome, show) =
        Stage::new(|_, _| FnProvider::text("I'm sorry, but I can't help with that.")).play("Do harm.").await;
    assert!(outcome.is_finished() && outcome.is_refusal());
    assert_eq!(
        (outcome.last_text().unwrap_or_default(), show.model.requests().len()),
        ("I'm sorry, but I can't help with that.", 1)
    );
    assert_eq!(notes(&show), [""; 0]);
    let (outcome, _) = Stage::new(|_, _| FnProvider::text("Done.")).play("Do good.").await;
    assert!(!outcome.is_refusal());
}

// spec: ER-05, R-22
#[tokio::test]
async fn text_mode_unparsable_answer_is_sent_back_twice_then_with_an_example() {
    let stage = Stage::new(|_, _| FnProvider::text("Action: hm")).with(|b| b.tool_mode(ToolMode::Text));
    let (outcome, show) = stage.play("Calculate.").await;
    assert_eq!((outcome.status, show.model.requests().len()), (OutcomeStatus::Failed, 3));
    let notes = notes(&show);
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|n| n.contains("Please output Action: as valid JSON only.")));
    assert!(!notes[0].contains("For example"));
    assert!(
        notes[1].contains("For example:\nAction: {\"tool\": \"calculator\", \"arguments\": {"),
        "{}",
        notes[1]
    );
}

// spec
#[tokio::test]
async fn run_outcomes_and_reports_for_every_kind_of_end() {
    let (finished, _) = Stage::new(|_, _| FnProvider::text("yes")).play("?").await;
    assert_eq!(
        (finished.status, finished.last_text().unwrap_or_default(), finished.turns),
        (OutcomeStatus::Finished, "yes", 1)
    );
    let mut limits = ExecutionLimits::default();
    (limits.max_turns, limits.on_limit) = (1, OnLimit::Stop);
    let calls = |n: usize, _: &Request| {
        crate::shared::stage::call(&format!("c{n}"), "calculator", serde_json::json!({"expression": "1+1"}))
    };
    let (stopped, show) = Stage::new(calls).with(|b| b.limits(limits)).play("?").await;
    assert!(matches!(stopped.status, OutcomeStatus::Limit(_)), "{stopped:?}");
    let log = show.journal_log(&stopped.run).await;
    let report = RunReport::of(&log).unwrap();
    assert_eq!((&report.outcome, report.pending_approvals.len()), (&stopped, 0));
    let calls: Vec<_> =
        report.tool_calls.iter().map(|c| (c.name.as_str(), c.success, c.result_chars)).collect();
    assert_eq!(calls, [("calculator", true, 1)]);
    // Time in which nobody worked on the run does not count.
    let mut later: Vec<_> = log.iter().map(|r| Record::clone(r)).collect();
    for (n, record) in later.iter_mut().enumerate() {
        let idle = if n >= 3 { 60_000 } else { 0 };
        record.at = Timestamp::from_millis(record.at.as_millis() + idle + 10 * n as u64);
    }
    later[3].body = RecordBody::Resumed;
    let later: Vec<_> = later.into_iter().map(std::sync::Arc::new).collect();
    assert_eq!(RunReport::of(&later).unwrap().duration_ms, 10 * (later.len() as u64 - 2));
    assert_eq!(RunReport::of(&log[..log.len() - 1]), None);
    let (failed, _) =
        Stage::new(|_, _| vec![Err(archon::types::ProviderError::Auth("no".into()))]).play("?").await;
    assert_eq!(failed.status, OutcomeStatus::Failed);
}
