//! Tests of the cells: which rows each record gives, live and later.

use archon_terminal::{CellKind, Cells, Look, Note, Page, Printed, Status, Theme, Work, Wrap};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{
    Answer, ApprovalRequest, Compaction, CompactionLevel, ContextConfig, DeltaKind, Event, Lease,
    LimitReached, Message, ModelPrice, Origin, Outcome, OutcomeStatus, PromptSource, RecordBody, RunConfig,
    RunStarted, SessionMode, Speaker, Spending, Timestamp, ToolCall, ToolResult,
};
use serde_json::json;

use crate::conversation::{Log, any_conversation, apply, call_id, page, paper, paper_live, texts};

fn records(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| matches!(event, Event::Record { .. })).cloned().collect()
}

/// The rows that are shown for what is not printed.
fn open(events: &[Event]) -> Vec<String> {
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    events.iter().for_each(|event| apply(&mut cells, event));
    printed.take(&cells, &page(60));
    texts(&printed.open(&cells, &page(60), 99))
}

fn bash(command: &str) -> ToolCall {
    ToolCall::new("c1", "bash", json!({ "timeout_seconds": 5, "command": command }))
}

#[test]
fn a_conversation_is_shown_message_by_message() {
    let mut log = Log::new("run_1");
    log.message("what is new?\nand old?");
    log.model_call_started(0, 0);
    log.answered(0, "I look at the log.", &[bash("git log")]);
    log.call_started(call_id(0, 0));
    log.now += 1_190;
    log.call_finished(call_id(0, 0), ToolResult::success("one\ntwo\n"));
    log.answer(1, "Nothing is **new**.\n\n\n```sh\nls   -l\n\nexit\n```\nBye.\n");
    log.finished(OutcomeStatus::Finished, "Nothing is **new**.");
    assert_eq!(
        texts(&paper(&log.events, &page(60))),
        [
            "› what is new?",
            "  and old?",
            "",
            "I look at the log.",
            "",
            "✓ bash git log   1.2 s",
            "  one",
            "  two",
            "",
            "Nothing is new.",
            "",
            "```sh",
            "ls   -l",
            "",
            "exit",
            "```",
            "Bye.",
        ]
    );
}

#[test]
fn answer_wraps_paragraphs_and_leaves_code_to_the_terminal() {
    let mut log = Log::new("run_1");
    log.answer(0, "one two three four\n```\nlet a = \"one two three four\";\n```");
    let rows = paper(&log.events, &page(10));
    assert_eq!(texts(&rows), ["one two", "three four", "```", "let a = \"one two three four\";", "```"]);
    assert_eq!(rows[3].wrap, Wrap::Terminal);
}

// spec: CL-12
#[test]
fn rows_of_a_conversation_are_equal_live_and_later_and_come_once() {
    for seed in first_seed()..first_seed() + cases(200, 5_000) {
        let mut chance = Chance(seed);
        let events = any_conversation(&mut chance);
        let page = page(8 + usize::try_from(chance.below(80)).unwrap());
        let late = paper(&records(&events), &page);
        let live = paper_live(&events, &page);
        assert_eq!(texts(&live), texts(&late), "seed {seed}");
        assert_eq!(live, late, "seed {seed}");
        // Somebody who comes later: the log so far at once, then live.
        let from = usize::try_from(chance.below(events.len() as u64)).unwrap();
        let (mut cells, mut printed) = (Cells::default(), Printed::default());
        records(&events[..from]).iter().for_each(|event| apply(&mut cells, event));
        let mut joined = printed.take(&cells, &page);
        for event in &events[from..] {
            apply(&mut cells, event);
            joined.extend(printed.take(&cells, &page));
        }
        assert_eq!(joined, late, "seed {seed}, from event {from}");
        let is_narrow =
            |row: &archon_terminal::Row| row.wrap == Wrap::Terminal || row.width() <= page.width + 24;
        assert!(late.iter().all(is_narrow), "seed {seed}");
    }
}

// spec: CL-12
#[test]
fn apply_of_a_record_for_the_second_time_changes_nothing() {
    for seed in first_seed()..first_seed() + cases(20, 500) {
        let events = any_conversation(&mut Chance(seed));
        let twice: Vec<Event> = events.iter().flat_map(|event| [event.clone(), event.clone()]).collect();
        assert_eq!(paper(&twice, &page(60)), paper(&events, &page(60)), "seed {seed}");
    }
}

// spec: CL-05
#[test]
fn work_follows_the_records_of_a_run() {
    let mut log = Log::new("run_1");
    let mut cells = Cells::default();
    let mut seen = 0;
    let mut now = |log: &Log| {
        log.events[seen..].iter().for_each(|event| apply(&mut cells, event));
        seen = log.events.len();
        cells.work()
    };
    log.message("hi");
    assert_eq!(now(&log), Work::Model);
    log.model_call_started(0, 0);
    assert_eq!(now(&log), Work::Model);
    log.answered(0, "", &[bash("ls")]);
    assert_eq!(now(&log), Work::Tools);
    let request = Box::new(ApprovalRequest::new("ask_1", "Run `ls`", json!({})));
    log.push(RecordBody::ApprovalRequested { call: call_id(0, 0), request });
    assert_eq!(now(&log), Work::Asking);
    log.push(RecordBody::Suspended { waiting: vec![call_id(0, 0)] });
    assert_eq!(now(&log), Work::Asking);
    log.push(RecordBody::ApprovalAnswered { call: call_id(0, 0), answer: Answer::Approve });
    log.push(RecordBody::Resumed);
    log.call_started(call_id(0, 0));
    assert_eq!(now(&log), Work::Tools);
    log.call_finished(call_id(0, 0), ToolResult::success("a"));
    log.model_call_started(1, 0);
    assert_eq!(now(&log), Work::Model);
    log.finished(OutcomeStatus::Cancelled, "");
    assert_eq!(now(&log), Work::Idle);
}

// spec: CL-05
#[test]
fn work_takes_no_other_step_than_those_between_its_states() {
    let legal = |from, to| match (from, to) {
        (from, to) if from == to => true,
        // A new run begins, also after one whose process died.
        (_, Work::Model | Work::Idle) => true,
        (Work::Model, Work::Tools) => true,
        (Work::Tools, Work::Asking) | (Work::Asking, Work::Tools) => true,
        _ => false,
    };
    for seed in first_seed()..first_seed() + cases(50, 2_000) {
        let mut cells = Cells::default();
        let mut before = Work::Idle;
        for event in any_conversation(&mut Chance(seed)) {
            apply(&mut cells, &event);
            assert!(
                legal(before, cells.work()),
                "seed {seed}: {before:?} to {:?} by {event:?}",
                cells.work()
            );
            before = cells.work();
        }
    }
}

#[test]
fn answer_is_shown_row_by_row_while_it_streams() {
    let mut log = Log::new("run_1");
    log.message("hi");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "one two three ");
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(texts(&printed.take(&cells, &page(8))), ["› hi", "", "one two"]);
    assert_eq!(texts(&printed.open(&cells, &page(8), 9)), ["three"]);
    let before = log.events.len();
    log.text(0, 0, 14, "four");
    // A piece that is known already.
    log.text(0, 0, 4, "two three");
    log.events[before..].iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(texts(&printed.take(&cells, &page(8))), ["three"]);
    assert_eq!(texts(&printed.open(&cells, &page(8), 9)), ["four"]);
}

#[test]
fn answer_after_a_resize_goes_on_in_the_new_width() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "one two three four five six");
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(texts(&printed.take(&cells, &page(8))), ["one two", "three", "four"]);
    log.answered(0, "one two three four five six", &[]);
    apply(&mut cells, log.events.last().unwrap());
    assert_eq!(texts(&printed.take(&cells, &page(30))), ["five six"]);
}

#[test]
fn a_piece_after_a_gap_waits_for_the_whole_answer() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "one\n");
    log.text(0, 0, 8, "three\n");
    assert_eq!(texts(&paper(&log.events, &page(20))), ["one"]);
    log.answered(0, "one\ntwo\nthree\n", &[]);
    assert_eq!(texts(&paper_live(&log.events, &page(20))), ["one", "two", "three"]);
}

#[test]
fn text_after_a_tool_call_is_a_block_of_its_own_live_and_later() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "first");
    log.delta(0, 0, 0, DeltaKind::Thinking { text: "hm".into() });
    log.text(0, 0, 5, "second");
    let live = paper_live(&log.events, &page(20));
    assert_eq!(texts(&live), ["first", ""]);
    assert_eq!(open(&log.events), ["second"]);
}

// spec: CL-12
#[test]
fn next_attempt_with_the_same_beginning_goes_on_behind_it() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "one\ntwo\nthr");
    log.failed(0, 0, "connection reset", true);
    log.model_call_started(0, 1);
    log.text(0, 1, 0, "one\n");
    log.text(0, 1, 4, "two\nfour\n");
    log.answered(0, "one\ntwo\nfour\n", &[]);
    let expected = [
        "one",
        "two",
        "four",
        "",
        "the model call failed (attempt 1, its partial answer is void): connection reset",
    ];
    assert_eq!(texts(&paper_live(&log.events, &page(99)))[..4], expected[..4]);
    assert!(
        texts(&paper_live(&log.events, &page(99)))[4]
            .starts_with("the model call failed (attempt 1, its partial")
    );
}

// spec: CL-12
#[test]
fn next_attempt_with_another_beginning_is_told_and_shown_whole() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "one\ntwo\n");
    log.failed(0, 0, "connection reset", true);
    log.model_call_started(0, 1);
    log.text(0, 1, 0, "one\n");
    log.text(0, 1, 4, "three\n");
    log.answered(0, "one\nthree", &[]);
    let rows = texts(&paper_live(&log.events, &page(99)));
    assert_eq!(rows[..5], ["one", "two", "— the answer was interrupted and begins again —", "one", "three"]);
}

#[test]
fn failed_attempts_without_text_stand_before_the_answer_and_equal_ones_once() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.failed(0, 0, "connection reset", false);
    log.model_call_started(0, 1);
    log.failed(0, 1, "connection reset", false);
    log.model_call_started(0, 2);
    log.answered(0, "here", &[]);
    let rows = texts(&paper(&log.events, &page(99)));
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].starts_with("the model call failed (attempt 1): ") && rows[2] == "here", "{rows:?}");
}

#[test]
fn call_that_runs_is_open_with_the_end_of_its_progress() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[bash("make"), bash("not yet")]);
    log.call_started(call_id(0, 0));
    let text = (1..=9).map(|n| format!("line {n}\n")).collect();
    log.delta(0, 0, 0, DeltaKind::ToolProgress { call: call_id(0, 0), text });
    assert_eq!(
        open(&log.events),
        ["● bash make", "  line 5", "  line 6", "  line 7", "  line 8", "  line 9", "  … 4 more lines"]
    );
}

#[test]
fn call_output_is_folded_to_the_beginning_or_for_a_command_to_the_end() {
    let output: String = (1..=8).map(|n| format!("line {n}\n")).collect();
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    let read = ToolCall::new("c1", "read_file", json!({ "content": "no", "path": "a.rs" }));
    log.answered(0, "", &[read, bash("make")]);
    log.call_started(call_id(0, 0));
    log.call_finished(call_id(0, 0), ToolResult::success(output.clone()));
    log.call_started(call_id(0, 1));
    log.call_finished(call_id(0, 1), ToolResult::success(output).with_metadata("exit_code", 2));
    let rows = texts(&paper(&log.events, &page(40)));
    assert_eq!(rows[1], "✓ read_file a.rs   10 ms");
    assert_eq!(rows[2..8], ["  line 1", "  line 2", "  line 3", "  line 4", "  line 5", "  … 3 more lines"]);
    assert_eq!(rows[8], "✗ bash make   10 ms");
    assert_eq!(rows[9..], ["  line 4", "  line 5", "  line 6", "  line 7", "  line 8", "  … 3 more lines"]);
}

#[test]
fn call_with_a_difference_shows_its_lines_in_colors() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[ToolCall::new("c1", "edit_file", json!({ "path": "a.rs" }))]);
    log.call_started(call_id(0, 0));
    log.call_finished(call_id(0, 0), ToolResult::success("edited").with_metadata("diff", diff));
    let rows = paper(&log.events, &page(40));
    assert_eq!(texts(&rows)[1..], ["  1  one", "  2 -two", "  2 +three"]);
    let theme = page(40).theme;
    let style = |row: usize| rows[row].spans[2].style();
    assert_eq!((style(2), style(3)), (theme.style(Look::Removed), theme.style(Look::Added)));
}

// spec: CL-09
#[test]
fn call_with_a_difference_in_odd_lines_shows_them_all() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[ToolCall::new("c1", "edit_file", json!({ "path": "a.rs" }))]);
    log.call_started(call_id(0, 0));
    let lines: String = (1..=25).map(|n| format!("+line {n}\n")).collect();
    log.call_finished(call_id(0, 0), ToolResult::success("edited").with_metadata("diff", lines));
    let rows = texts(&paper(&log.events, &page(40)));
    assert_eq!((rows.len(), rows[20].as_str(), rows[21].as_str()), (22, "    +line 20", "  … 5 more lines"));
}

// spec: CL-10
#[test]
fn calls_of_one_turn_stand_between_a_head_and_the_number_of_their_differences() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    let edit = |path: &str| ToolCall::new("c1", "edit_file", json!({ "path": path }));
    log.answered(0, "", &[edit("a"), bash("ls"), edit("b")]);
    for index in [2, 0, 1] {
        log.call_started(call_id(0, index));
        let result = ToolResult::success("done");
        let result = if index == 1 { result } else { result.with_metadata("diff", "@@ -1 +1 @@\n-a\n+b\n") };
        log.call_finished(call_id(0, index), result);
    }
    assert_eq!(
        texts(&paper_live(&log.events, &page(60))),
        [
            "Multiple Operations",
            "✓ edit_file b   10 ms",
            "  1 -a",
            "  1 +b",
            "✓ edit_file a   10 ms",
            "  1 -a",
            "  1 +b",
            "✓ bash ls   10 ms",
            "  done",
            "Previewed 2 file modification(s) above",
        ]
    );
}

#[test]
fn call_line_is_never_wider_than_its_page() {
    for width in 1..60 {
        let mut log = Log::new("run_1");
        log.model_call_started(0, 0);
        log.answered(
            0,
            "",
            &[ToolCall::new("c1", "a_long_tool_name", json!({ "path": "日本語".repeat(20) }))],
        );
        log.call_started(call_id(0, 0));
        log.call_finished(call_id(0, 0), ToolResult::success("x".repeat(99)));
        let rows = paper(&log.events, &page(width));
        assert!(rows.iter().all(|row| row.width() <= width.max(12)), "{width}: {:?}", texts(&rows));
    }
}

// spec: CL-11
#[test]
fn call_of_an_agent_keeps_its_answer_for_the_caller() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[ToolCall::new("c1", "reviewer", json!({ "task": "look at it" }))]);
    log.call_started(call_id(0, 0));
    let mut result = ToolResult::success("a secret opinion");
    result.child_run = Some("run_1.0-0".into());
    log.call_finished(call_id(0, 0), result);
    assert_eq!(texts(&paper(&log.events, &page(40))), ["→ reviewer (look at it)", "  Complete (0.0s)"]);
}

// spec: CL-11
#[test]
fn calls_of_a_child_run_are_nested_lines_until_their_call_ends() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[ToolCall::new("c1", "reviewer", json!({ "task": "look at it" }))]);
    let (call, child) = (call_id(0, 0), "run_2");
    let child_run = Some(child.into());
    let effect = archon_types::Effect::ReadOnly;
    log.push(RecordBody::ToolCallStarted { call, attempt: 0, effect, child_run });
    let mut below = Log::new(child);
    below.events.clear();
    let mut started =
        RunStarted::new(child.into(), "s".into(), "a".into(), "s.default.2".into(), RunConfig::default());
    started.origin = Origin::CalledBy { run: "run_1".into(), call };
    below.push(RecordBody::RunStarted(Box::new(started)));
    below.message("look at it");
    below.model_call_started(0, 0);
    below.answered(0, "I look.", &[bash("ls"), bash("make"), bash("a"), bash("b"), bash("c")]);
    below.call_started(call_id(0, 0));
    below.call_finished(call_id(0, 0), ToolResult::error("no"));
    below.call_started(call_id(0, 1));
    let mut events = log.events.clone();
    events.append(&mut below.events);
    assert_eq!(
        open(&events),
        [
            "→ reviewer (look at it)",
            "     … 1 more call",
            "     ● bash make",
            "     ○ bash a",
            "     ○ bash b",
            "     ○ bash c",
        ]
    );
    let mut result = ToolResult::success("a secret opinion");
    result.child_run = Some(child.into());
    log.now += 2_300;
    log.call_finished(call, result);
    events.push(log.events.last().unwrap().clone());
    let rows = paper_live(&events, &page(40));
    assert_eq!(texts(&rows), ["→ reviewer (look at it)", "  Complete (2.3s)"]);
    // The log of the run alone gives the same.
    assert_eq!(paper(&log.events, &page(40)), rows);
}

// spec: CL-11
#[test]
fn agents_that_work_at_the_same_time_are_counted() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    let tasks = ["look", "write"].map(|task| ToolCall::new(task, "helper", json!({ "task": task })));
    log.answered(0, "", &tasks);
    for index in 0..2 {
        let (call, effect) = (call_id(0, index), archon_types::Effect::Idempotent);
        let child_run = Some(format!("run_1.0-{index}").as_str().into());
        log.push(RecordBody::ToolCallStarted { call, attempt: 0, effect, child_run });
    }
    assert_eq!(open(&log.events), ["→ helper (look)", "→ helper (write)", "2 Agents Processing"]);
    // The second one began 10 ms later.
    let began = log.now - 20;
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    for (ms, shown, beat) in
        [(0, "0.0s", 500), (499, "0.0s", 500), (500, "0.5s", 1_000), (61_300, "61.0s", 61_500)]
    {
        let now = Timestamp::from_millis(began + ms);
        let rows = texts(&Printed::default().open(&cells, &page(60).at(now), 1));
        assert_eq!(rows, [format!("2 Agents Processing ({shown})")]);
        assert_eq!(cells.next_beat(now), Some(Timestamp::from_millis(began + beat)), "{ms}");
    }
    log.call_finished(call_id(0, 0), ToolResult::success("seen"));
    assert_eq!(open(&log.events), ["→ helper (write)"]);
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.next_beat(Timestamp::from_millis(log.now)), None);
}

fn update_plan(log: &mut Log, command: u64, explanation: &str, states: &[&str]) {
    log.model_call_started(command, 0);
    let steps: Vec<_> =
        (1..).zip(states).map(|(n, s)| json!({ "step": format!("step {n}"), "status": s })).collect();
    let arguments = json!({ "explanation": explanation, "steps": steps });
    log.answered(command, "", &[ToolCall::new("c1", "update_plan", arguments)]);
    log.call_started(call_id(command, 0));
    log.call_finished(call_id(command, 0), ToolResult::success("Plan updated"));
}

#[test]
fn list_of_steps_is_a_cell_when_it_changed_and_live_until_it_is_completed() {
    let mut log = Log::new("run_1");
    update_plan(&mut log, 0, "two parts", &["completed", "in_progress", "pending"]);
    assert_eq!(
        texts(&paper(&log.events, &page(40))),
        ["Plan  two parts", "  ☑ step 1", "  ◐ step 2", "  ☐ step 3"]
    );
    assert_eq!(open(&log.events), ["  ☑ step 1", "  ◐ step 2", "  ☐ step 3"]);
    let ascii = Page::new(40, Theme::new(false).with_ascii_signs());
    assert_eq!(texts(&paper(&log.events, &ascii))[1..], ["  [x] step 1", "  [~] step 2", "  [ ] step 3"]);
    // The same list again is a call as any other.
    update_plan(&mut log, 1, "two parts", &["completed", "in_progress", "pending"]);
    assert_eq!(
        texts(&paper(&log.events, &page(40)))[4..],
        ["✓ update_plan two parts   10 ms", "  Plan updated"]
    );
    update_plan(&mut log, 2, "", &["completed", "completed", "completed"]);
    assert_eq!(open(&log.events), Vec::<String>::new());
    assert_eq!(
        texts(&paper(&log.events, &page(40)))[6..],
        ["Plan", "  ☑ step 1", "  ☑ step 2", "  ☑ step 3"]
    );
    assert_eq!(paper_live(&log.events, &page(40)), paper(&log.events, &page(40)));
}

#[test]
fn list_of_steps_takes_half_of_the_live_area_around_the_current_step() {
    let mut log = Log::new("run_1");
    let states = ["completed", "completed", "completed", "in_progress", "pending", "pending", "pending"];
    update_plan(&mut log, 0, "", &states);
    log.model_call_started(1, 0);
    log.text(1, 0, 0, "```\n1\n2\n3\n4\n5\n6");
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(texts(&printed.open(&cells, &page(40), 4)), ["5", "6", "  ☑ step 3", "  ◐ step 4"]);
    printed.take(&cells, &page(40));
    assert_eq!(texts(&printed.open(&cells, &page(40), 1)), ["6"]);
    log.finished(OutcomeStatus::Finished, "");
    apply(&mut cells, log.events.last().unwrap());
    assert!(printed.open(&cells, &page(40), 9).iter().all(|row| !row.text().contains("step")));
}

#[test]
fn call_of_update_plan_in_another_form_is_a_call_as_any_other() {
    for arguments in [json!({}), json!({ "steps": 1 }), json!({ "steps": [{ "step": "a", "status": "x" }] })]
    {
        let mut log = Log::new("run_1");
        log.model_call_started(0, 0);
        log.answered(0, "", &[ToolCall::new("c1", "update_plan", arguments)]);
        log.call_started(call_id(0, 0));
        log.call_finished(call_id(0, 0), ToolResult::success("ok"));
        assert!(texts(&paper(&log.events, &page(60)))[0].starts_with("✓ update_plan"));
    }
}

#[test]
fn question_is_open_until_it_is_answered_and_then_one_line() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[bash("cargo test")]);
    let call = call_id(0, 0);
    let ask = |id: &str| Box::new(ApprovalRequest::new(id, "Run `cargo test`", json!({})));
    log.push(RecordBody::ApprovalRequested { call, request: ask("ask_1") });
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.questions().map(|asked| asked.request_id.as_str()).collect::<Vec<_>>(), ["ask_1"]);
    assert!(open(&log.events).is_empty(), "the program shows it with its keys");
    let before = log.events.len();
    // A question that is asked again is the same one.
    log.push(RecordBody::ApprovalRequested { call, request: ask("ask_1") });
    log.push(RecordBody::ApprovalAnswered { call, answer: Answer::Cancel { reason: "use\nnextest".into() } });
    log.events[before..].iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.questions().count(), 0);
    assert_eq!(texts(&paper(&log.events, &page(60))), ["? Run `cargo test`  no: use nextest"]);
}

#[test]
fn answer_to_one_question_leaves_the_others_open() {
    let mut log = Log::new("run_1");
    for index in 0..2 {
        let request = ApprovalRequest::new(format!("ask_{index}"), "Run it", json!({}));
        log.push(RecordBody::ApprovalRequested { call: call_id(0, index), request: Box::new(request) });
    }
    log.push(RecordBody::ApprovalAnswered { call: call_id(0, 0), answer: Answer::Approve });
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.questions().map(|asked| asked.request_id.as_str()).collect::<Vec<_>>(), ["ask_1"]);
}

#[test]
fn questions_of_a_child_run_are_open_until_the_call_goes_on() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[bash("cargo test")]);
    let call = call_id(0, 0);
    for id in ["ask_1", "ask_2"] {
        let request = ApprovalRequest::new(id, "Run it", json!({})).from_below("run_2".into(), call_id(3, 0));
        log.push(RecordBody::ApprovalRequested { call, request: Box::new(request) });
    }
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.questions().count(), 2);
    log.call_started(call);
    apply(&mut cells, log.events.last().unwrap());
    assert_eq!(cells.questions().count(), 0);
    assert_eq!(paper(&log.events, &page(60)), [], "the answer is in the log of the child run");
}

#[test]
fn stop_lets_a_run_rest_until_it_is_resumed() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[bash("make")]);
    log.call_started(call_id(0, 0));
    log.model_call_started(1, 0);
    log.text(1, 0, 0, "half an ans");
    let (mut cells, mut printed, page) = (Cells::default(), Printed::default(), page(60));
    log.events.drain(..).for_each(|event| apply(&mut cells, &event));
    cells.stop(&"run_1".into());
    assert_eq!(cells.work(), Work::Idle);
    assert_eq!(texts(&printed.take(&cells, &page)), ["half an ans"]);
    assert_eq!(printed.open(&cells, &page, 9), []);
    log.push(RecordBody::Resumed);
    log.call_finished(call_id(0, 0), ToolResult::success("made"));
    log.events.drain(..).for_each(|event| apply(&mut cells, &event));
    assert_eq!(cells.work(), Work::Tools);
    assert_eq!(texts(&printed.take(&cells, &page)), ["", "✓ bash make", "  made"]);
}

#[test]
fn paused_question_is_not_shown() {
    let mut log = Log::new("run_1");
    let request = ApprovalRequest::new("ask_1", "Run it", json!({})).pause(Timestamp::from_millis(1));
    log.push(RecordBody::ApprovalRequested { call: call_id(0, 0), request: Box::new(request) });
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    assert_eq!(cells.questions().count(), 0);
}

#[test]
fn end_is_told_only_if_there_is_something_to_say() {
    let ended = |status, error: Option<&str>, answer: &str| {
        let mut log = Log::new("run_1");
        log.answer(0, "the answer, whole");
        let mut outcome = Outcome::new("run_1".into(), status).with_answer(answer);
        outcome.error = error.map(str::to_owned);
        log.push(RecordBody::RunFinished(Box::new(outcome)));
        texts(&paper(&log.events, &page(80)))[1..].join("|")
    };
    let limit = LimitReached::Turns { max: 5 };
    for (status, error, answer, expected) in [
        (OutcomeStatus::Finished, None, "the answer, whole", ""),
        (OutcomeStatus::Finished, None, "", "|the model gave an empty answer"),
        (OutcomeStatus::Finished, None, "the plan's result", "|the plan's result"),
        (OutcomeStatus::Failed, Some("no key\nfor it"), "", "|✗ no key for it"),
        (OutcomeStatus::Cancelled, None, "", "|stopped"),
        (
            OutcomeStatus::Limit(limit),
            None,
            "Max turns reached (5)",
            "|the run stopped: Max turns reached (5)",
        ),
    ] {
        assert_eq!(ended(status, error, answer), expected, "{status:?}");
    }
}

#[test]
fn run_that_only_compacts_has_no_end_and_is_named_if_it_changed_nothing() {
    let compacting = |compacted: Option<Compaction>| {
        let mut log = Log::new("run_1");
        log.push(RecordBody::CompactionRequested { instructions: None });
        compacted.into_iter().for_each(|compaction| log.push(RecordBody::Compacted(compaction)));
        log.finished(OutcomeStatus::Finished, "");
        texts(&paper(&log.events, &page(60)))
    };
    assert_eq!(compacting(None), ["the conversation is too short to be compacted"]);
    let mut compaction = Compaction::new(CompactionLevel::DigestTurns, 2, Vec::new());
    (compaction.tokens_before, compaction.tokens_after) = (1_000, 400);
    assert_eq!(compacting(Some(compaction)), ["conversation compacted: 1000 to 400 tokens"]);
}

#[test]
fn text_in_markdown_comes_on_paper_at_its_place() {
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    cells.markdown("\n1. **Read** it\n");
    cells.note(Note::new(Look::Plain, "a note"));
    let rows = texts(&printed.take(&cells, &page(60)));
    let rows: Vec<_> = rows.iter().filter(|row| !row.is_empty()).collect();
    assert_eq!(rows, ["1. Read it", "a note"]);
}

#[test]
fn cells_of_a_run_whose_process_died_are_closed_when_the_next_run_begins() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.answered(0, "", &[bash("make")]);
    log.call_started(call_id(0, 0));
    log.model_call_started(1, 0);
    let mut next = Log::new("run_2");
    next.answer(0, "here again");
    log.events.append(&mut next.events);
    assert_eq!(texts(&paper(&log.events, &page(40))), ["✗ bash make", "  cut off", "", "here again"]);
}

#[test]
fn message_of_a_program_is_dim_and_a_mark_of_an_interruption_hidden() {
    let mut log = Log::new("run_1");
    for (text, speaker) in [("event", Speaker::Tool), ("[Request interrupted by user]", Speaker::Program)] {
        let message = archon_types::AgentMessage::from(Message::user(text, Timestamp::default()));
        let message = message.with_speaker(speaker);
        log.push(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
    }
    let rows = paper(&log.events, &page(40));
    assert_eq!(texts(&rows), ["› event"]);
    assert_eq!(rows[0].spans[0].style(), page(40).theme.style(Look::Dim));
}

#[test]
fn details_are_shown_only_on_a_page_with_details() {
    let mut log = Log::new("run_1");
    log.push(RecordBody::HintAdded { text: "go on".into() });
    log.answer(0, "yes");
    assert_eq!(texts(&paper(&log.events, &page(40))), ["yes"]);
    assert_eq!(texts(&paper(&log.events, &page(40).with_details(true))), ["go on", "", "yes"]);
}

#[test]
fn leave_out_keeps_the_newest_cells() {
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    (0..5).for_each(|n| cells.note(Note::new(Look::Dim, format!("note {n}"))));
    assert_eq!(printed.leave_out(&cells, 2), 3);
    assert_eq!(texts(&printed.take(&cells, &page(40))), ["note 3", "note 4"]);
    assert_eq!(printed.leave_out(&cells, 2), 0);
}

#[test]
fn open_is_cut_to_its_newest_rows() {
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    log.text(0, 0, 0, "```\n1\n2\n3");
    let mut cells = Cells::default();
    log.events.iter().for_each(|event| apply(&mut cells, event));
    let rows = Printed::default().open(&cells, &page(40), 2);
    assert_eq!(texts(&rows), ["2", "3"]);
}

#[test]
fn meter_counts_tokens_money_and_the_window() {
    let mut config = RunConfig::default();
    config.model = "m".into();
    config.price = Some(ModelPrice::new(1_000_000, 10_000_000));
    config.context = Some(ContextConfig::new(4_000));
    config.limits = config.limits.with_max_cost_micros(2_000_000);
    let started = RunStarted::new("run_1".into(), "s".into(), "a".into(), "s.default.1".into(), config);
    let mut log = Log::new("run_0");
    log.events.clear();
    log.run = "run_1".into();
    log.push(RecordBody::RunStarted(Box::new(started)));
    log.answer(0, "yes");
    let call = call_id(0, 0);
    for tokens in [500, 700] {
        let (child_run, spent) = ("run_2".into(), Spending::new(tokens, tokens * 1_000));
        log.push(RecordBody::LeaseSettled { call, child_run, spent });
    }
    let mut cells = Cells::default();
    let apply_new =
        |log: &mut Log, cells: &mut Cells| log.events.drain(..).for_each(|event| apply(cells, &event));
    apply_new(&mut log, &mut cells);
    let meter = cells.meter();
    assert_eq!((meter.spent.tokens, meter.share(), meter.filled), (1_700, Some(25), 1_000));
    assert_eq!(meter.money().as_deref(), Some("$0.71 of 2"));
    let mut compaction = Compaction::new(CompactionLevel::DigestTurns, 2, Vec::new());
    (compaction.tokens_before, compaction.tokens_after) = (1_000, 400);
    log.push(RecordBody::Compacted(compaction));
    log.push(RecordBody::LeaseGranted { call, child_run: "run_2".into(), lease: Lease::new(1, 1) });
    apply_new(&mut log, &mut cells);
    assert_eq!(cells.meter().share(), Some(10));
    let CellKind::Note(note) = &cells.all().last().unwrap().kind else { panic!("no note") };
    assert_eq!(note.text, "conversation compacted: 1000 to 400 tokens");
    let (meter, branch) = (cells.meter(), Some("main"));
    let mode = SessionMode::Ask;
    let status = Status {
        meter,
        model: "",
        vi: None,
        mode,
        work: Work::Idle,
        branch,
        is_sandboxed: true,
        questions: 2,
    };
    assert_eq!(status.row(&page(99)).text(), "m · 10 % · $0.71 of 2 · main · sandbox · 2 questions wait");
    let accepting = Status { mode: SessionMode::AcceptEdits, ..status };
    assert!(accepting.row(&page(99)).text().starts_with("edits accepted · m · "));
    assert_eq!(status.row(&page(9)).text(), "m · 10 %…");
}
