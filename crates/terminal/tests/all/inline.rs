//! Tests of the frames that are written into the scrollback.

use archon_terminal::{Cells, Frame, Inline, Look, Place, Printed, Row, Screen, Size, Style, Support, Theme};

use crate::{
    conversation::{Log, apply, page},
    emulator::{Emulator, check_sequences},
};

const SIZE: Size = Size::new(40, 12);

fn screen() -> Inline<Emulator> {
    let env = |name: &str| (name == "TERM").then(|| "xterm".to_owned());
    Inline::new(Emulator::new(SIZE), Support::of(&env, true))
}

fn rows(texts: &[&str]) -> Vec<Row> {
    texts.iter().map(|text| Row::new(*text, Style::PLAIN)).collect()
}

/// Writes a frame whose caret is behind the text of its last but one row.
fn show(screen: &mut Inline<Emulator>, committed: &[&str], live: &[&str], caret_is_real: bool) {
    let (committed, live) = (rows(committed), rows(live));
    let row = live.len().saturating_sub(2);
    let caret = live.get(row).map(|at| Place { row, column: at.width() });
    let size = screen.out().size;
    screen.frame(&Frame { committed: &committed, live: &live, caret, caret_is_real, size }).unwrap();
}

fn screen_rows(screen: &Inline<Emulator>) -> Vec<String> {
    screen.out().screen().into_iter().filter(|row| !row.is_empty()).collect()
}

#[test]
fn frame_appends_committed_rows_above_the_live_area() {
    let mut screen = screen();
    show(&mut screen, &[], &["> ", "status"], false);
    show(&mut screen, &["one", "two"], &["> draft", "status"], false);
    assert_eq!(screen_rows(&screen), ["one", "two", "> draft", "status"]);
    assert_eq!(screen.out().cursor(), (2, 0), "the cursor rests at the origin");
    show(&mut screen, &["three"], &["> draft", "status"], false);
    assert_eq!(screen_rows(&screen), ["one", "two", "three", "> draft", "status"]);
    check_sequences(&screen.out().bytes);
}

#[test]
fn frame_without_a_change_writes_nothing() {
    let mut screen = screen();
    show(&mut screen, &["one"], &["> ", "status"], false);
    let before = screen.out().bytes.len();
    show(&mut screen, &[], &["> ", "status"], false);
    assert_eq!(screen.out().bytes.len(), before);
    screen.redraw();
    show(&mut screen, &[], &["> ", "status"], false);
    assert!(screen.out().bytes.len() > before, "after `redraw` the live area is drawn");
}

#[test]
fn frame_with_one_changed_row_writes_only_its_end() {
    let mut screen = screen();
    let long = "a long row of the live area that stays";
    show(&mut screen, &[], &[long, "the tail of an answer", "> ", "status"], false);
    let before = screen.out().bytes.len();
    show(&mut screen, &[], &[long, "the tail of an answer grows", "> ", "status"], false);
    let written = String::from_utf8(screen.out().bytes[before..].to_vec()).unwrap();
    assert!(written.contains(" grows") && !written.contains("the tail"), "{written:?}");
    assert_eq!(screen_rows(&screen), [long, "the tail of an answer grows", ">", "status"]);
    show(&mut screen, &[], &[long, "short", "> x", "status"], false);
    assert_eq!(screen_rows(&screen), [long, "short", "> x", "status"]);
}

#[test]
fn frame_with_a_mark_over_an_unchanged_letter_draws_both() {
    let mut screen = screen();
    show(&mut screen, &[], &["ex", "> ", "status"], false);
    show(&mut screen, &[], &["e\u{301}x", "> ", "status"], false);
    assert_eq!(screen_rows(&screen), ["e\u{301}x", ">", "status"]);
    show(&mut screen, &[], &["ex", "> ", "status"], false);
    assert_eq!(screen_rows(&screen), ["ex", ">", "status"]);
}

#[test]
fn frame_with_a_real_caret_puts_the_cursor_there_and_finds_the_origin_again() {
    let mut screen = screen();
    show(&mut screen, &["one"], &["tail", "> ab", "status"], true);
    assert_eq!((screen.out().cursor(), screen.out().is_cursor_hidden()), ((2, 4), false));
    show(&mut screen, &[], &["tail", "> abc", "status"], true);
    assert_eq!(screen.out().cursor(), (2, 5));
    show(&mut screen, &["two"], &["> abc", "status"], false);
    assert_eq!(screen_rows(&screen), ["one", "two", "> abc", "status"]);
    assert!(screen.out().is_cursor_hidden());
}

#[test]
fn frame_with_a_live_area_that_is_too_high_keeps_the_rows_with_the_caret() {
    let mut screen = screen();
    show(&mut screen, &[], &["1", "2", "3", "4", "> x", "status"], false);
    assert_eq!(screen_rows(&screen), ["3", "4", "> x", "status"], "a third of 12 rows");
    let live = rows(&["> x", "1", "2", "3", "4", "5"]);
    let caret = Some(Place { row: 0, column: 3 });
    screen.frame(&Frame { committed: &[], live: &live, caret, caret_is_real: false, size: SIZE }).unwrap();
    assert_eq!(screen_rows(&screen), ["> x", "1", "2", "3"]);
}

#[test]
fn frame_draws_the_caret_over_the_character_at_its_place() {
    let mut screen = screen();
    let live = rows(&["日本x"]);
    let at = |column| Some(Place { row: 0, column });
    for (column, reversed) in [(0, "日"), (2, "本"), (4, "x"), (5, " ")] {
        let before = screen.out().bytes.len();
        let frame =
            Frame { committed: &[], live: &live, caret: at(column), caret_is_real: false, size: SIZE };
        screen.frame(&frame).unwrap();
        let written = String::from_utf8(screen.out().bytes[before..].to_vec()).unwrap();
        assert!(written.contains(&format!("\x1b[0;7m{reversed}\x1b[0m")), "{column}: {written:?}");
        assert_eq!(screen_rows(&screen), ["日本x"]);
    }
}

#[test]
fn frame_clips_rows_that_are_wider_than_the_terminal() {
    let mut screen = screen();
    show(&mut screen, &[], &[&"x".repeat(200), "> ", "status"], false);
    assert_eq!(screen_rows(&screen), [&"x".repeat(39), ">", "status"]);
}

#[test]
fn leave_erases_the_live_area_and_ends_every_mode_once() {
    let mut screen = screen();
    show(&mut screen, &["one"], &["tail", "> x", "status"], true);
    assert!(screen.out().marks_pastes());
    screen.leave().unwrap();
    assert_eq!((screen_rows(&screen), screen.out().cursor()), (vec!["one".to_owned()], (1, 0)));
    assert!(!screen.out().marks_pastes() && !screen.out().is_cursor_hidden());
    let before = screen.out().bytes.len();
    screen.leave().unwrap();
    assert_eq!(screen.out().bytes.len(), before, "the second time nothing is written");
    show(&mut screen, &["two"], &["> x", "status"], false);
    assert_eq!(screen_rows(&screen), ["one", "two", "> x", "status"]);
    assert!(screen.out().marks_pastes(), "the next frame begins the modes again");
}

#[test]
fn drop_of_a_screen_that_nobody_left_ends_every_mode() {
    let mut written = Vec::new();
    {
        let mut screen = Inline::new(&mut written, Support::default());
        let live = rows(&["> "]);
        let frame = Frame { committed: &[], live: &live, caret: None, caret_is_real: false, size: SIZE };
        screen.frame(&frame).unwrap();
    }
    let written = String::from_utf8(written).unwrap();
    assert!(
        written.ends_with(&format!("\x1b[0m\x1b[?7h\x1b[?25h{}", archon_terminal::END_PASTE)),
        "{written:?}"
    );
}

#[test]
fn leave_before_the_first_frame_writes_nothing() {
    let mut screen = screen();
    screen.leave().unwrap();
    assert!(screen.out().bytes.is_empty());
}

#[test]
fn frame_with_a_row_for_the_terminal_to_break_writes_one_line() {
    let mut screen = screen();
    let code = Row { wrap: archon_terminal::Wrap::Terminal, ..Row::new("c".repeat(60), Style::PLAIN) };
    let frame = Frame { committed: &[code], live: &[], caret: None, caret_is_real: false, size: SIZE };
    screen.frame(&frame).unwrap();
    assert_eq!(screen_rows(&screen), ["c".repeat(40), "c".repeat(20)]);
    let written = String::from_utf8(screen.out().bytes.clone()).unwrap();
    assert!(written.contains(&"c".repeat(60)), "copied as one line");
}

#[test]
fn frame_in_colors_ends_each_style_at_the_end_of_its_row() {
    let mut screen = screen();
    let theme = Theme::new(true);
    let live = [Row::new("bad", theme.style(Look::Error)), Row::new("plain", Style::PLAIN)];
    screen
        .frame(&Frame { committed: &[], live: &live, caret: None, caret_is_real: false, size: SIZE })
        .unwrap();
    let written = String::from_utf8(screen.out().bytes.clone()).unwrap();
    assert!(written.contains("\x1b[0;1;31mbad\x1b[0m\r\nplain"), "{written:?}");
}

/// 200 tokens of 4 bytes a second in 30 frames a second, as a chat draws them.
#[test]
fn frames_of_a_streaming_answer_write_at_most_12_bytes_per_byte() {
    let text = "The quick brown fox jumps over the lazy dog, and then it does so again. ".repeat(60);
    let mut log = Log::new("run_1");
    log.model_call_started(0, 0);
    for (at, piece) in (0..).step_by(27).zip(text.as_bytes().chunks(27)) {
        log.text(0, 0, at, std::str::from_utf8(piece).unwrap());
    }
    let (mut cells, mut printed) = (Cells::default(), Printed::default());
    let size = Size::new(80, 24);
    let page = page(size.width());
    let mut screen = Inline::new(Emulator::new(size), Support::default());
    for event in &log.events {
        apply(&mut cells, event);
        let committed = printed.take(&cells, &page);
        let mut live = printed.open(&cells, &page, 6);
        live.extend(rows(&["", "> a draft", "gpt-5-mini · 31 % · $0.12 · main · sandbox"]));
        screen
            .frame(&Frame { committed: &committed, live: &live, caret: None, caret_is_real: false, size })
            .unwrap();
    }
    let written = screen.out().bytes.len();
    assert!(written <= 12 * text.len(), "{written} bytes for {}", text.len());
}
