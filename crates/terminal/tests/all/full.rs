//! Tests of the full view, and of the alternate screen that it is written to.

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
};

use archon_terminal::{
    Alternate, Cells, Frame, FullAction, FullView, Inline, Input, Key, KeyCode, Look, Note, Place, Printed,
    Row, Screen, Size, Style, Support, Work,
};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{ToolCall, ToolResult};
use serde_json::json;

use crate::{
    conversation::{Log, any_conversation, apply, call_id, page, texts},
    emulator::{Emulator, any_size},
};

/// A person who reads a conversation in the full view.
struct Reader {
    cells: Cells,
    view: FullView,
    size: Size,
    work: Work,
}

impl Reader {
    fn new(log: &Log) -> Self {
        let mut reader = Self {
            cells: Cells::default(),
            view: FullView::default(),
            size: Size::new(61, 9),
            work: Work::Idle,
        };
        reader.take(log);
        reader
    }

    /// A conversation of a note with this number of rows, `row 0` and so on.
    fn of_rows(count: usize) -> Self {
        let mut reader = Self::new(&Log::new("run_1"));
        reader.note(&(0..count).map(|n| format!("row {n}\n")).collect::<String>());
        reader
    }

    fn take(&mut self, log: &Log) {
        log.events.iter().for_each(|event| apply(&mut self.cells, event));
    }

    fn note(&mut self, text: &str) {
        self.cells.note(Note::new(Look::Plain, text.trim_end()));
    }

    fn rows(&mut self) -> (Vec<Row>, Place) {
        self.view.rows(&self.cells, &page(self.size.width()), self.size.rows.into(), self.work)
    }

    /// The rows of a frame without the status, those at the end that are empty left out.
    fn text(&mut self) -> Vec<String> {
        let mut rows = texts(&self.rows().0);
        rows.pop();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    fn status(&mut self) -> String {
        self.rows().0.last().unwrap().text()
    }

    /// The text of the row with the cursor, from the cursor on.
    fn at_cursor(&mut self) -> String {
        let (rows, place) = self.rows();
        rows[place.row].text().chars().skip(place.column).collect()
    }

    fn press(&mut self, key: Key) -> FullAction {
        // A program draws a frame before it reads a key.
        self.rows();
        self.view.apply(&Input::Key(key), &self.cells)
    }

    fn types(&mut self, keys: &str) {
        for c in keys.chars() {
            let key = if c == '\n' { Key::plain(KeyCode::Enter) } else { Key::char(c) };
            assert_eq!(self.press(key), FullAction::Redraw, "{c:?}");
        }
    }

    fn copies(&mut self) -> String {
        match self.press(Key::char('y')) {
            FullAction::Copy(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

/// A conversation with a command of many lines.
fn log_with_output(output: &str) -> Log {
    let mut log = Log::new("run_1");
    log.message("Run it.");
    log.model_call_started(0, 0);
    log.answered(0, "I **run** it.", &[ToolCall::new("c", "bash", json!({ "command": "sh test.sh" }))]);
    log.call_started(call_id(0, 0));
    log.call_finished(call_id(0, 0), ToolResult::success(output));
    log
}

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn rows_are_those_of_the_paper_with_each_output_whole() {
    let log = log_with_output(&lines(12));
    let mut reader = Reader::new(&log);
    reader.size.rows = 30;
    let mut expected =
        ["› Run it.", "", "I run it.", "", "✓ bash sh test.sh   10 ms"].map(str::to_owned).to_vec();
    expected.extend((0..12).map(|n| format!("  line {n}")));
    assert_eq!(reader.text(), expected);
    let printed = texts(&Printed::default().take(&reader.cells, &page(60)));
    assert_eq!(printed.last().unwrap(), "  … 7 more lines", "the scrollback stays folded: {printed:?}");
}

#[test]
fn rows_break_what_is_wider_than_the_window() {
    let (line, command) = ("x".repeat(500), format!("echo {}", "c".repeat(80)));
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    let code = format!("```\n{}\n```", "y".repeat(90));
    log.answered(0, &code, &[ToolCall::new("c", "bash", json!({ "command": command }))]);
    log.call_started(call_id(0, 0));
    log.call_finished(call_id(0, 0), ToolResult::success(line));
    let mut reader = Reader::new(&log);
    reader.size.rows = 40;
    let text = reader.text();
    assert!(text.iter().all(|row| row.chars().count() <= 60), "{text:?}");
    for (letter, count) in [('x', 500), ('c', 80), ('y', 90)] {
        let rows = text.iter().map(|row| row.chars().filter(|c| *c == letter).count()).filter(|n| *n > 9);
        assert_eq!(rows.sum::<usize>(), count, "{letter}: {text:?}");
    }
    // A line of code is copied as one.
    reader.types("/yyyy\nnvj");
    assert_eq!(reader.copies(), "y".repeat(90));
}

#[test]
fn keys_scroll_by_rows_and_pages_and_to_both_ends() {
    let mut reader = Reader::of_rows(100);
    let plain = Key::plain;
    for (key, first, cursor) in [
        (plain(KeyCode::Other), 92, 99),
        (plain(KeyCode::Up), 91, 98),
        (Key::char('k'), 90, 97),
        (plain(KeyCode::PageUp), 83, 90),
        (Key::char('b'), 76, 83),
        (plain(KeyCode::Down), 77, 84),
        (Key::char('j'), 78, 85),
        (plain(KeyCode::PageDown), 85, 92),
        (Key::char(' '), 92, 99),
        (plain(KeyCode::Down), 92, 99),
        (plain(KeyCode::Home), 0, 0),
        (plain(KeyCode::Up), 0, 0),
        (plain(KeyCode::End), 92, 99),
        (Key::char('g'), 0, 0),
        (Key::char('G'), 92, 99),
    ] {
        assert_eq!(reader.press(key), FullAction::Redraw);
        let shown = (reader.text()[0].clone(), reader.at_cursor());
        assert_eq!(shown, (format!("row {first}"), format!("row {cursor}")), "{key}");
    }
    assert!(reader.status().starts_with("row 100 of 100 · q goes back"), "{}", reader.status());
    for key in [Key::char('q'), plain(KeyCode::Escape), Key::ctrl('c')] {
        assert_eq!(reader.press(key), FullAction::Leave, "{key}");
    }
    assert_eq!(reader.press(Key::ctrl('z')), FullAction::Suspend);
    assert_eq!(reader.press(Key::ctrl('l')), FullAction::Repaint);
}

#[test]
fn search_goes_from_hit_to_hit_and_counts_them() {
    let mut reader = Reader::of_rows(100);
    reader.types("/Row 5");
    assert!(
        reader.status() == "/Row 5" && reader.rows().1 == Place { row: 8, column: 6 },
        "{}",
        reader.status()
    );
    reader.types("\n");
    assert!(reader.status().starts_with("\"Row 5\" is not found"), "a capital counts: {}", reader.status());
    // From the end, the nearest hit is above.
    reader.types("/row 5\n");
    assert!(reader.status().starts_with("\"row 5\" 11 of 11"), "{}", reader.status());
    assert_eq!(reader.at_cursor(), "row 59");
    for (key, row, label) in
        [('n', 5, "1 of 11"), ('n', 50, "2 of 11"), ('N', 5, "1 of 11"), ('N', 59, "11 of 11")]
    {
        reader.types(&key.to_string());
        assert_eq!(reader.at_cursor(), format!("row {row}"));
        assert!(reader.status().contains(label), "{label}: {}", reader.status());
    }
    let (rows, _) = reader.rows();
    let is_hit = |row: &Row| row.spans.iter().any(|span| span.style().is_reversed && span.text() == "row 5");
    assert!(rows[..8].iter().filter(|row| is_hit(row)).count() >= 4, "{rows:?}");
    // An empty search ends it.
    reader.types("/\n");
    assert!(reader.status().starts_with("row 60 of 100 · q"), "{}", reader.status());
}

#[test]
fn search_finds_each_hit_in_a_row_and_small_letters_find_capitals() {
    let mut reader = Reader::of_rows(3);
    reader.note("日本 Éclair, éclair and ÉCLAIR");
    reader.types("/é");
    reader.press(Key::plain(KeyCode::Backspace));
    assert_eq!(
        reader.view.apply(&Input::Paste("éclair\nand more".into()), &reader.cells),
        FullAction::Redraw
    );
    reader.types("\n");
    for column in [5, 13, 24, 5] {
        assert_eq!(reader.rows().1.column, column, "{}", reader.status());
        reader.types("n");
    }
}

#[test]
fn search_with_escape_or_without_text_keeps_the_one_before() {
    let mut reader = Reader::of_rows(9);
    reader.types("/row 3\n/other");
    reader.press(Key::plain(KeyCode::Escape));
    assert!(reader.status().starts_with("\"row 3\" 1 of 1"), "{}", reader.status());
    reader.types("/");
    reader.press(Key::plain(KeyCode::Backspace));
    assert!(reader.status().starts_with("\"row 3\" 1 of 1"), "{}", reader.status());
}

#[test]
fn copy_has_the_cell_at_the_cursor_as_it_was_written() {
    let mut reader = Reader::new(&log_with_output(&lines(40)));
    assert_eq!(reader.copies(), lines(40).trim_end());
    assert!(reader.status().starts_with("copied 40 lines"), "{}", reader.status());
    reader.types("/I run it\n");
    assert_eq!(reader.copies(), "I **run** it.");
    reader.types("g");
    assert_eq!(reader.copies(), "Run it.");
    assert!(reader.status().starts_with("copied 1 line · "), "{}", reader.status());
}

#[test]
fn copy_of_marked_rows_has_their_text_and_ends_the_mark() {
    let mut reader = Reader::of_rows(20);
    // With a mark the cursor moves, and not the window.
    reader.types("gjjvjj");
    assert!(reader.status().starts_with("3 rows are marked"), "{}", reader.status());
    let (rows, _) = reader.rows();
    let marked: Vec<String> = rows
        .iter()
        .filter(|row| row.spans.iter().all(|span| span.style().is_reversed) && !row.spans.is_empty())
        .map(Row::text)
        .collect();
    assert_eq!(marked, ["row 2", "row 3", "row 4"]);
    assert_eq!(reader.copies(), "row 2\nrow 3\nrow 4");
    assert!(reader.status().starts_with("copied 3 lines · row 5 of 20"), "{}", reader.status());
    // Escape ends a mark before it leaves the view.
    reader.types("v");
    assert_eq!(reader.press(Key::plain(KeyCode::Escape)), FullAction::Redraw);
    assert_eq!(reader.press(Key::plain(KeyCode::Escape)), FullAction::Leave);
}

#[test]
fn copy_is_bounded_and_says_so() {
    let mut reader = Reader::new(&log_with_output(&"日本\n".repeat(20_000)));
    let text = reader.copies();
    assert!((65_530..=65_536).contains(&text.len()), "{}", text.len());
    assert!(reader.status().starts_with("copied the first 64 KiB"), "{}", reader.status());
    let mut empty = Reader::new(&Log::new("run_1"));
    assert_eq!(empty.press(Key::char('y')), FullAction::Redraw);
    assert!(empty.status().starts_with("there is nothing to copy · row 0 of 0"), "{}", empty.status());
}

#[test]
fn rows_that_come_are_followed_only_at_the_end() {
    let mut reader = Reader::of_rows(20);
    assert_eq!(reader.at_cursor(), "row 19");
    reader.note("more");
    assert_eq!(reader.at_cursor(), "more");
    reader.types("k");
    let before = reader.text();
    reader.note("still more");
    assert_eq!((reader.text(), reader.at_cursor().as_str()), (before, "row 19"));

    // An answer that streams is there, too.
    let mut log = log_with_output("done");
    log.model_call_started(1, 0);
    log.text(1, 0, 0, "It ran, and th");
    reader.take(&log);
    reader.types("G");
    assert_eq!(reader.at_cursor(), "It ran, and th");
}

#[test]
fn rows_of_another_width_keep_the_cursor_at_its_cell() {
    let mut reader = Reader::of_rows(30);
    reader.note(&"word ".repeat(60));
    reader.note("the place");
    reader.note(&"word ".repeat(600));
    reader.types("/the place\n");
    for (columns, rows) in [(30, 9), (120, 40), (20, 6), (3, 2), (61, 9)] {
        reader.size = Size::new(columns, rows);
        let (_, place) = reader.rows();
        assert!(place.row < usize::from(rows), "{columns}: {place:?}");
        assert_eq!(
            reader.view.apply(&Input::Key(Key::char('y')), &reader.cells),
            FullAction::Copy("the place".into())
        );
    }
}

#[test]
fn rows_of_a_tiny_window_are_as_many_as_it_has() {
    for seed in first_seed()..first_seed() + cases(20, 500) {
        let mut chance = Chance(seed);
        let mut reader = Reader::new(&Log::new("run_1"));
        any_conversation(&mut chance).iter().for_each(|event| apply(&mut reader.cells, event));
        for (columns, rows) in [(1, 1), (2, 1), (1, 2), (2, 3), (5, 4), (1, 9)] {
            reader.size = Size::new(columns, rows);
            for key in ["j", "k", "g", " ", "v", "G", "b", "n", "/o\n", "N"] {
                reader.types(key);
                let (shown, place) = reader.rows();
                assert_eq!(shown.len(), usize::from(rows), "seed {seed}, {columns}×{rows}, {key:?}");
                assert!(place.row < usize::from(rows), "seed {seed}, {columns}×{rows}, {key:?}: {place:?}");
            }
        }
    }
}

#[test]
fn status_says_that_a_question_waits() {
    let mut reader = Reader::of_rows(3);
    assert!(!reader.status().contains("question"), "{}", reader.status());
    reader.work = Work::Asking;
    assert!(
        reader.status().starts_with("a question waits, q goes to it · row 3 of 3"),
        "{}",
        reader.status()
    );
    assert!(matches!(reader.press(Key::char('y')), FullAction::Copy(_)), "no key answers");
}

/// A terminal that two screens write to.
#[derive(Clone)]
struct Shared(Rc<RefCell<Emulator>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn committed(number: usize) -> Row {
    Row::new(format!("#{number}"), Style::PLAIN)
}

/// Writes a frame of the inline screen with this row committed.
fn commit(screen: &mut Inline<Shared>, terminal: &Shared, rows: &[Row]) {
    let live = ["~tail", "~draft", "~status"].map(|text| Row::new(text, Style::PLAIN));
    let size = terminal.0.borrow().size;
    screen.frame(&Frame { committed: rows, live: &live, caret: None, caret_is_real: false, size }).unwrap();
}

#[test]
fn alternate_screen_leaves_the_inline_screen_as_it_was() {
    let terminal = Shared(Rc::new(RefCell::new(Emulator::new(Size::new(40, 12)))));
    let mut inline = Inline::new(terminal.clone(), Support::default());
    commit(&mut inline, &terminal, &[0, 1, 2].map(committed));
    let before = terminal.0.borrow().screen();
    inline.leave().unwrap();
    let mut full = Alternate::new(terminal.clone(), Support::default());
    let rows: Vec<Row> = (0..12).map(|n| Row::new(format!("full {n}"), Style::PLAIN)).collect();
    full.frame(&rows, Place { row: 3, column: 2 }, Size::new(40, 12)).unwrap();
    {
        let terminal = terminal.0.borrow();
        assert!(terminal.is_alternate() && terminal.marks_pastes() && !terminal.is_cursor_hidden());
        assert_eq!((terminal.screen()[11].as_str(), terminal.cursor()), ("full 11", (3, 2)));
    }
    let written = terminal.0.borrow().bytes.len();
    full.frame(&rows, Place { row: 3, column: 2 }, Size::new(40, 12)).unwrap();
    assert_eq!(terminal.0.borrow().bytes.len(), written, "without a change nothing is written");
    full.copy("hello").unwrap();
    assert!(terminal.0.borrow().bytes.ends_with(b"\x1b]52;c;aGVsbG8=\x07"));
    full.leave().unwrap();
    assert!(!terminal.0.borrow().is_alternate() && !terminal.0.borrow().marks_pastes());
    commit(&mut inline, &terminal, &[]);
    assert_eq!(terminal.0.borrow().screen(), before);
}

#[test]
fn drop_of_an_alternate_screen_that_nobody_left_goes_back() {
    let mut written = Vec::new();
    {
        let mut full = Alternate::new(&mut written, Support::default());
        full.frame(&[Row::new("full", Style::PLAIN)], Place::default(), Size::new(40, 1)).unwrap();
    }
    let written = String::from_utf8(written).unwrap();
    let end = format!("\x1b[0m\x1b[?7h\x1b[?25h{}\x1b[?1049l", archon_terminal::END_PASTE);
    assert!(written.ends_with(&end), "{written:?}");
}

#[test]
fn random_visits_to_the_alternate_screen_lose_and_repeat_no_row() {
    for seed in first_seed()..first_seed() + cases(100, 2_000) {
        let mut chance = Chance(seed);
        let terminal = Shared(Rc::new(RefCell::new(Emulator::new(any_size(&mut chance)))));
        let mut inline = Inline::new(terminal.clone(), Support::default());
        let (mut number, mut waiting) = (0, Vec::new());
        for _ in 0..20 {
            let count = usize::try_from(chance.below(9)).unwrap();
            waiting.extend((number..number + count).map(committed));
            number += count;
            commit(&mut inline, &terminal, &std::mem::take(&mut waiting));
            if chance.percent(40) {
                continue;
            }
            inline.leave().unwrap();
            let mut full = Alternate::new(terminal.clone(), Support::default());
            for _ in 0..=chance.below(3) {
                let size = terminal.0.borrow().size;
                let rows = vec![Row::new("~full", Style::PLAIN); size.rows.into()];
                full.frame(&rows, Place::default(), size).unwrap();
                if chance.percent(50) {
                    let size = any_size(&mut chance);
                    terminal.0.borrow_mut().resize(size);
                    let rows = vec![Row::new("~full", Style::PLAIN); size.rows.into()];
                    full.frame(&rows, Place::default(), size).unwrap();
                }
            }
            // A run goes on meanwhile.
            waiting.push(committed(number));
            number += 1;
            full.leave().unwrap();
        }
        commit(&mut inline, &terminal, &std::mem::take(&mut waiting));
        inline.leave().unwrap();
        let paper = terminal.0.borrow_mut().paper();
        let expected: Vec<String> = (0..number).map(|n| committed(n).text()).collect();
        assert_eq!(paper, expected, "seed {seed}");
    }
}
