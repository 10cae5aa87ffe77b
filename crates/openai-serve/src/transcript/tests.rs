//! Tests of the text of a run: turns, retries, late watchers, checked answers.

use std::sync::Arc;

use archon_types::{Json, OutputCheck, Record, RunConfig, Timestamp, ToolCall};

use super::*;

const RUN: &str = "run_1";

fn record(body: RecordBody) -> Event {
    let record = Record { seq: 0, at: Timestamp::from_millis(1), body };
    Event::Record { run: RUN.into(), record: Arc::new(record) }
}

fn start(change: impl FnOnce(&mut RunConfig)) -> Event {
    let mut config = RunConfig::default();
    change(&mut config);
    record(RecordBody::RunStarted(Box::new(RunStarted::new(
        RUN.into(),
        "s".into(),
        "desk".into(),
        "s.1".into(),
        config,
    ))))
}

fn delta(command: u64, attempt: u32, offset: u64, text: &str) -> Event {
    let kind = DeltaKind::Text { text: text.to_owned() };
    Event::Delta(Delta { run: RUN.into(), command: CommandId(command), attempt, offset, kind })
}

fn answer(command: u64, attempt: u32, content: Vec<Content>) -> Event {
    let message = Box::new(AssistantMessage { content, ..AssistantMessage::default() });
    record(RecordBody::ModelCallFinished { command: CommandId(command), attempt, message })
}

fn stopped_answer(command: u64, text: &str, stop_reason: StopReason) -> Event {
    let content = texts(&[text]);
    let message = Box::new(AssistantMessage { content, stop_reason, ..AssistantMessage::default() });
    record(RecordBody::ModelCallFinished { command: CommandId(command), attempt: 0, message })
}

fn texts(texts: &[&str]) -> Vec<Content> {
    texts.iter().copied().map(Content::text).collect()
}

fn call() -> Content {
    ToolCall::new("c", "look", Json::Null).into()
}

fn outcome(answer: &str) -> Outcome {
    Outcome::new(RUN.into(), OutcomeStatus::Finished).with_answer(answer)
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

/// Takes the events in order, and returns the pieces and the whole text. The parts must be those of the log alone.
fn check(events: &[Event], outcome: &Outcome, expected: &[Piece]) -> String {
    let mut transcript = Transcript::new(RUN.into(), false);
    let mut pieces: Vec<_> = events.iter().flat_map(|event| transcript.apply(event)).collect();
    pieces.extend(transcript.finish(outcome));
    assert_eq!(pieces, expected);
    let mut of_log = Transcript::new(RUN.into(), false);
    for event in events.iter().filter(|event| matches!(event, Event::Record { .. })) {
        of_log.apply(event);
    }
    of_log.finish(outcome);
    assert_eq!(transcript.parts(), of_log.parts());
    transcript.text()
}

#[test]
fn transcript_passes_deltas_on_and_ends_each_turn_with_its_record() {
    use Phase::{Commentary, FinalAnswer};
    let events = [
        start(|_| {}),
        delta(0, 0, 0, "I look"),
        delta(0, 0, 6, " it up."),
        answer(0, 0, vec![Content::text("I look it up."), call()]),
        delta(1, 0, 0, "It is 42."),
        answer(1, 0, texts(&["It is 42."])),
    ];
    let expected = [
        text("I look"),
        text(" it up."),
        Piece::Complete(Commentary),
        text("It is 42."),
        Piece::Complete(FinalAnswer),
    ];
    assert_eq!(check(&events, &outcome("It is 42."), &expected), "I look it up.\n\nIt is 42.");
}

#[test]
fn transcript_of_a_retry_with_the_same_words_sends_nothing_twice() {
    let events = [
        start(|_| {}),
        delta(0, 0, 0, "It is"),
        delta(0, 1, 0, "It"),
        delta(0, 1, 2, " is 42."),
        answer(0, 1, texts(&["It is 42."])),
    ];
    let expected = [text("It is"), text(" 42."), Piece::Complete(Phase::FinalAnswer)];
    assert_eq!(check(&events, &outcome("It is 42."), &expected), "It is 42.");
}

#[test]
fn transcript_of_a_retry_with_other_words_ends_the_part_and_sends_the_whole_answer() {
    let events = [
        start(|_| {}),
        delta(0, 0, 0, "It is"),
        delta(0, 1, 0, "Forty"),
        delta(0, 1, 5, "-two."),
        answer(0, 1, texts(&["Forty-two."])),
    ];
    let expected = [text("It is"), Piece::BrokenOff, text("Forty-two."), Piece::Complete(Phase::FinalAnswer)];
    assert_eq!(check(&events, &outcome("Forty-two."), &expected), "Forty-two.");
}

#[test]
fn transcript_of_a_run_that_fails_ends_the_part_that_broke_off() {
    let events = [start(|_| {}), delta(0, 0, 0, "It is")];
    let failed = Outcome::new(RUN.into(), OutcomeStatus::Failed).with_answer("partial");
    assert_eq!(check(&events, &failed, &[text("It is"), Piece::BrokenOff]), "");
}

#[test]
fn transcript_of_a_run_that_is_cancelled_or_waits_has_no_final_answer() {
    for status in [OutcomeStatus::Cancelled, OutcomeStatus::Suspended] {
        let stopped = Outcome::new(RUN.into(), status).with_answer("so far");
        let expected = [text("so far"), Piece::Complete(Phase::Commentary)];
        check(&[start(|_| {})], &stopped, &expected);
    }
    let aborted = stopped_answer(0, "It", StopReason::Aborted);
    let cancelled = Outcome::new(RUN.into(), OutcomeStatus::Cancelled).with_answer("It");
    let expected = [text("It"), Piece::Complete(Phase::Commentary)];
    check(&[start(|_| {}), aborted], &cancelled, &expected);
}

#[test]
fn transcript_of_a_turn_that_paused_goes_on_without_a_blank_line() {
    let events = [
        start(|_| {}),
        stopped_answer(0, "I search and ", StopReason::Pause),
        answer(1, 0, texts(&["found it."])),
    ];
    let expected = [
        text("I search and "),
        Piece::Complete(Phase::Paused),
        text("found it."),
        Piece::Complete(Phase::FinalAnswer),
    ];
    assert_eq!(check(&events, &outcome("found it."), &expected), "I search and found it.");
    assert_eq!(Phase::Paused.as_str(), "commentary");
}

#[test]
fn transcript_of_a_late_watcher_gets_the_whole_answer_from_the_record() {
    let events = [
        start(|_| {}),
        delta(0, 0, 6, " it up."),
        answer(0, 0, texts(&["I look it up."])),
        // Queued before the watcher read the log.
        delta(0, 0, 0, "I look it up."),
    ];
    let expected = [text("I look it up."), Piece::Complete(Phase::FinalAnswer)];
    check(&events, &outcome("I look it up."), &expected);
}

#[test]
fn transcript_leaves_blanks_before_a_call_and_events_of_child_runs_out() {
    let kind = DeltaKind::Text { text: "of a child".to_owned() };
    let child = Delta { run: "run_1.0-0".into(), command: CommandId(0), attempt: 0, offset: 0, kind };
    let events = [
        start(|_| {}),
        delta(0, 0, 0, "\n\n"),
        answer(0, 0, vec![Content::text("\n\n"), call()]),
        Event::Delta(child),
        answer(1, 0, texts(&["Done."])),
    ];
    check(&events, &outcome("Done."), &[text("Done."), Piece::Complete(Phase::FinalAnswer)]);
}

#[test]
fn transcript_of_blocks_is_that_of_the_deltas() {
    let events = [
        start(|_| {}),
        delta(0, 0, 0, "one, "),
        delta(0, 0, 5, "two"),
        answer(0, 0, texts(&["one, ", "two"])),
    ];
    let expected = [text("one, "), text("two"), Piece::Complete(Phase::FinalAnswer)];
    // The outcome has a line break between the blocks, and is the same answer.
    assert_eq!(check(&events, &outcome("one, \ntwo"), &expected), "one, two");
}

#[test]
fn transcript_sends_a_checked_answer_at_the_end_only() {
    let checks: [fn(&mut RunConfig); 2] = [
        |config| config.output_check = Some(OutputCheck::default()),
        |config| config.tool_mode = ToolMode::Text,
    ];
    for change in checks {
        let events = [
            start(change),
            delta(0, 0, 0, "{}"),
            answer(0, 0, texts(&["{}"])),
            delta(1, 0, 0, "{\"a\":1}"),
            answer(1, 0, texts(&["{\"a\":1}"])),
        ];
        let expected = [text("{\"a\":1}"), Piece::Complete(Phase::FinalAnswer)];
        check(&events, &outcome("{\"a\":1}"), &expected);
    }
}

#[test]
fn transcript_of_the_final_answer_only_is_the_answer() {
    let mut transcript = Transcript::new(RUN.into(), true);
    for event in [start(|_| {}), delta(0, 0, 0, "a"), answer(0, 0, vec![Content::text("a"), call()])] {
        assert_eq!(transcript.apply(&event), []);
    }
    let expected = [text("b"), Piece::Complete(Phase::FinalAnswer)];
    assert_eq!(transcript.finish(&outcome("b")), expected);
}
