//! Tests that no text of a model or a tool reaches the terminal as an escape sequence.

use std::sync::Arc;

use archon_terminal::{
    Cells, Frame, FullAction, FullView, Inline, Input, Key, KeyCode, Note, Printed, Row, Screen, Size,
    Status, Support, Work,
};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{
    Answer, ApprovalRequest, DeltaKind, Outcome, OutcomeStatus, RecordBody, SessionMode, ToolCall, ToolResult,
};
use serde_json::json;

use crate::{
    conversation::{Log, apply, call_id, page},
    emulator::{Emulator, check_sequences},
};

/// A text of anything that a terminal may obey.
fn hostile(chance: &mut Chance) -> String {
    const PIECES: [&str; 21] = [
        // Code is written as it is, by another way.
        "\n```\n",
        "\x1b[2J",
        "\x1b[3J",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGk=\x1b\\",
        "\x1b[1;5r",
        "\x1bc",
        "\u{9b}2J",
        "\u{90}q",
        "\r",
        "\n",
        "\t",
        "\x08\x08",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{feff}",
        "\u{e0041}",
        "\0",
        "word ",
        "日",
    ];
    let count = chance.below(12);
    let mut text = String::new();
    for _ in 0..count {
        match chance.below(4) {
            0 => text.extend(char::from_u32(u32::try_from(chance.below(0x11_0000)).unwrap())),
            _ => text.push_str(PIECES[usize::try_from(chance.below(21)).unwrap()]),
        }
    }
    text
}

fn hostile_log(chance: &mut Chance) -> Log {
    let mut log = Log::new(&hostile(chance));
    log.message(&hostile(chance));
    log.model_call_started(0, 0);
    log.failed(0, 0, &hostile(chance), chance.percent(50));
    log.model_call_started(0, 1);
    let text = hostile(chance);
    log.text(0, 1, 0, &text);
    let call = ToolCall::new("c", hostile(chance), json!({ "command": hostile(chance), hostile(chance): 1 }));
    log.answered(0, &text, &[call.clone(), call]);
    let first = call_id(0, 0);
    log.question_with_answer(first, &hostile(chance), Answer::Cancel { reason: hostile(chance) });
    log.question_with_answer(first, &hostile(chance), Answer::Trust { rules: vec![hostile(chance)] });
    let request = ApprovalRequest::new(hostile(chance), hostile(chance), json!({ "a": hostile(chance) }));
    log.push(RecordBody::ApprovalRequested { call: call_id(0, 1), request: Box::new(request) });
    log.call_started(first);
    log.delta(0, 0, 0, DeltaKind::ToolProgress { call: first, text: hostile(chance) });
    log.call_finished(first, ToolResult::success(hostile(chance)).with_metadata("diff", hostile(chance)));
    let result = Arc::new(ToolResult::error(hostile(chance)));
    log.push(RecordBody::ToolCallRefused { call: call_id(0, 1), result });
    log.push(RecordBody::HintAdded { text: hostile(chance) });
    log.push(RecordBody::LogUnavailable { reason: hostile(chance) });
    log.push(RecordBody::InputRejected { reason: hostile(chance) });
    let mut outcome = Outcome::new("run_1".into(), OutcomeStatus::Failed).with_answer(hostile(chance));
    outcome.error = Some(hostile(chance));
    log.push(RecordBody::RunFinished(Box::new(outcome)));
    log
}

#[test]
fn nothing_of_a_record_reaches_the_terminal_as_a_control_sequence() {
    let size = Size::new(30, 12);
    for seed in first_seed()..first_seed() + cases(500, 50_000) {
        let mut chance = Chance(seed);
        let log = hostile_log(&mut chance);
        let (mut cells, mut printed) = (Cells::default(), Printed::default());
        let mut screen = Inline::new(Emulator::new(size), Support::default());
        let page = page(size.width()).with_details(true);
        let model = hostile(&mut chance);
        for event in &log.events {
            apply(&mut cells, event);
            if chance.percent(10) {
                cells.note(Note::warning(hostile(&mut chance)));
            }
            let committed = printed.take(&cells, &page);
            let mut live = printed.open(&cells, &page, size.live_rows());
            let (meter, questions) = (cells.meter(), cells.questions().count());
            let (branch, mode, work) = (Some(model.as_str()), SessionMode::Plan, Work::Model);
            let (vi, is_sandboxed) = (None, true);
            let status = Status { meter, model: &model, vi, mode, work, branch, is_sandboxed, questions };
            live.push(status.row(&page));
            let frame = Frame { committed: &committed, live: &live, caret: None, caret_is_real: false, size };
            screen.frame(&frame).unwrap();
        }
        screen.leave().unwrap();
        check_sequences(&screen.out().bytes);
    }
}

#[test]
fn nothing_of_a_record_reaches_the_full_view_or_its_clipboard_as_a_control_character() {
    let is_harmless = |c: char| !c.is_control() && !archon_types::is_hidden(c);
    for seed in first_seed()..first_seed() + cases(200, 20_000) {
        let mut chance = Chance(seed);
        let log = hostile_log(&mut chance);
        let (mut cells, mut view) = (Cells::default(), FullView::default());
        log.events.iter().for_each(|event| apply(&mut cells, event));
        let page = page(29).with_details(true);
        let keys = [Key::char('/'), Key::plain(KeyCode::Enter), Key::plain(KeyCode::Up), Key::char('y')];
        for key in keys.into_iter().cycle().take(60) {
            let (rows, _) = view.rows(&cells, &page, 12, Work::Asking);
            let text: String = rows.iter().map(Row::text).collect();
            assert!(text.chars().all(is_harmless), "seed {seed}: {text:?}");
            let action = view.apply(&Input::Key(key), &cells);
            if let FullAction::Copy(text) = action {
                assert!(
                    text.chars().all(|c| matches!(c, '\n' | '\t') || is_harmless(c)),
                    "seed {seed}: {text:?}"
                );
            }
            if key == Key::char('/') {
                view.apply(&Input::Paste(hostile(&mut chance)), &cells);
            }
        }
    }
}
