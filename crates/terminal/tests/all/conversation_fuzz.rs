//! Random conversations on a terminal that changes its size: each line of deltas, outputs and questions is in the
//! scrollback once and in order.

use std::{collections::BTreeSet, io::Write};

use archon_terminal::{Cells, Frame, Inline, Page, Place, Printed, Row, Screen, Style, Support, Theme};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{Answer, DeltaKind, Event, OutcomeStatus, ToolCall, ToolResult};
use serde_json::json;

use crate::{
    conversation::{Log, apply, call_id, page, paper},
    emulator::{Emulator, any_size, check_sequences},
};

/// The records and the deltas of a conversation, each line of which has a number.
struct Script {
    chance: Chance,
    log: Log,
    number: usize,
}

impl Script {
    fn events(seed: u64) -> Vec<Event> {
        let mut script = Self { chance: Chance(seed), log: Log::new("run_1"), number: 0 };
        let message = script.line("message");
        script.log.message(&message);
        let turns = 1 + script.chance.below(5);
        for command in 0..turns {
            script.turn(command, command + 1 < turns);
        }
        script.log.finished(OutcomeStatus::Finished, "");
        script.log.events
    }

    fn line(&mut self, what: &str) -> String {
        self.number += 1;
        let long = [0, 3, 12, 40][usize::try_from(self.chance.below(4)).unwrap()];
        format!("#{:05} {what}{}", self.number - 1, " word".repeat(long))
    }

    fn lines(&mut self, what: &str, end: &str) -> String {
        let count = 1 + self.chance.below(8);
        (0..count).map(|_| self.line(what) + end).collect()
    }

    /// An answer that streams, and its calls.
    fn turn(&mut self, command: u64, has_calls: bool) {
        self.log.model_call_started(command, 0);
        let text = self.lines("answer", "\n\n");
        let mut from = 0;
        while from < text.len() {
            let to = (from + 1 + usize::try_from(self.chance.below(30)).unwrap()).min(text.len());
            self.log.text(command, 0, from, &text[from..to]);
            from = to;
        }
        let count = if has_calls { 1 + u32::try_from(self.chance.below(3)).unwrap() } else { 0 };
        let call = |n| ToolCall::new(format!("c{n}"), "bash", json!({ "command": "ls" }));
        let calls: Vec<ToolCall> = (0..count).map(call).collect();
        self.log.answered(command, &text, &calls);
        (0..count).for_each(|index| self.call(command, index));
    }

    /// A call, sometimes with a question before it and with output while it runs.
    fn call(&mut self, command: u64, index: u32) {
        let call = call_id(command, index);
        if self.chance.percent(40) {
            let question = self.line("question");
            self.log.question_with_answer(call, &question, Answer::Approve);
        }
        self.log.call_started(call);
        for _ in 0..self.chance.below(3) {
            let text = "~output so far".repeat(1 + usize::try_from(self.chance.below(9)).unwrap());
            self.log.delta(command, 0, 0, DeltaKind::ToolProgress { call, text });
        }
        let output = self.lines("output", "\n");
        self.log.call_finished(call, ToolResult::success(output));
    }
}

/// The numbers of lines, in the order of the rows.
fn numbers(rows: impl IntoIterator<Item = String>) -> Vec<usize> {
    let number = |row: String| row.split_once('#')?.1.get(..5)?.parse().ok();
    rows.into_iter().filter_map(number).collect()
}

/// A conversation on a terminal of any size.
struct Session {
    chance: Chance,
    cells: Cells,
    printed: Printed,
    screen: Inline<Emulator>,
    is_key_recent: bool,
    suspended: usize,
    /// The numbers of the lines in the live area, and whether the cursor stands in the draft below it.
    live: (Vec<usize>, bool),
    /// The numbers of lines that were in the live area at a resize, while the cursor stood in the draft.
    left: BTreeSet<usize>,
}

impl Session {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed ^ 0x5eed);
        let screen = Inline::new(Emulator::new(any_size(&mut chance)), Support::default());
        Self {
            chance,
            cells: Cells::default(),
            printed: Printed::default(),
            screen,
            is_key_recent: false,
            suspended: 0,
            live: (Vec::new(), false),
            left: BTreeSet::new(),
        }
    }

    /// Resizes, suspends or redraws sometimes. Keys let the cursor stand in the draft, if `has_keys`.
    fn disturb(&mut self, has_keys: bool) {
        match self.chance.below(20) {
            0 | 1 => {
                if self.live.1 {
                    self.left.extend(&self.live.0);
                }
                let size = any_size(&mut self.chance);
                self.screen.out_mut().resize(size);
            }
            2 => {
                self.screen.leave().unwrap();
                self.live.0.clear();
                writeln!(self.screen.out_mut(), "%{:05}\r", self.suspended).unwrap();
                self.suspended += 1;
            }
            3 => self.screen.redraw(),
            4 => self.is_key_recent = has_keys && !self.is_key_recent,
            _ => {}
        }
    }

    fn frame(&mut self) {
        let size = self.screen.out().size;
        let page = Page::new(size.width(), Theme::new(true));
        let committed = self.printed.take(&self.cells, &page);
        let mut live = self.printed.open(&self.cells, &page, size.live_rows().saturating_sub(2));
        let caret = Some(Place { row: live.len(), column: 2 });
        live.extend(["› ", "~status"].map(|text| Row::new(text, Style::PLAIN)));
        let caret_is_real = self.is_key_recent;
        self.live = (numbers(live.iter().map(Row::text)), caret_is_real);
        self.screen.frame(&Frame { committed: &committed, live: &live, caret, caret_is_real, size }).unwrap();
    }

    /// Plays all events, with frames as they come, and returns the printed rows.
    fn play(&mut self, events: &[Event], has_keys: bool) -> Vec<String> {
        for event in events {
            apply(&mut self.cells, event);
            self.disturb(has_keys);
            if self.chance.percent(60) {
                self.frame();
            }
        }
        self.frame();
        self.screen.leave().unwrap();
        let paper = self.screen.out_mut().paper();
        let shells = paper.iter().filter(|row| row.starts_with('%')).count();
        assert_eq!(shells, self.suspended, "what the shell wrote is lost: {paper:#?}");
        paper
    }
}

#[test]
fn conversation_with_resizes_has_each_line_once_and_in_order() {
    for seed in first_seed()..first_seed() + cases(200, 2_000) {
        let events = Script::events(seed);
        let expected = numbers(paper(&events, &page(200)).iter().map(Row::text));
        let mut session = Session::new(seed);
        let rows = session.play(&events, false);
        assert_eq!(numbers(rows.clone()), expected, "seed {seed}: {rows:#?}");
        assert!(rows.iter().all(|row| !row.starts_with("~status")), "seed {seed}: {rows:#?}");
        let own = String::from_utf8(session.screen.out().bytes.clone()).unwrap();
        let own: String = own.split_inclusive('\n').filter(|line| !line.starts_with('%')).collect();
        check_sequences(own.as_bytes());
    }
}

/// While the cursor stands in the draft, a resize may leave rows of the live area behind, among them the beginning of
/// a line that streams. Such a line is there again when it is committed; each other line is there once.
#[test]
fn conversation_with_resizes_while_a_person_types_repeats_only_lines_that_stream_at_a_resize() {
    let mut repeated = 0;
    for seed in first_seed()..first_seed() + cases(200, 2_000) {
        let events = Script::events(seed);
        let expected = numbers(paper(&events, &page(200)).iter().map(Row::text));
        let mut session = Session::new(seed);
        let rows = session.play(&events, true);
        let all = numbers(rows.iter().cloned());
        let is_left =
            |(at, number): (usize, &usize)| session.left.contains(number) && all[at + 1..].contains(number);
        let lines = all.iter().enumerate().filter(|line| !is_left(*line)).map(|(_, number)| *number);
        let found: Vec<usize> = lines.collect();
        assert_eq!(found, expected, "seed {seed}: {rows:#?}");
        repeated += all.len() - found.len();
    }
    println!("{repeated} beginnings of lines are left behind by resizes while a person types");
}
