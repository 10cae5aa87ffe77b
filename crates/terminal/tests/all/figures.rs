//! Figures of a conversation that streams, by counts and not by the clock: bytes for the terminal, and rows drawn.

use archon_terminal::{Cells, Frame, Inline, Page, Place, Printed, Row, Screen, Size, Style, Support, Theme};

use crate::conversation::{Log, apply};

/// The number of tokens that a model sends between two frames, at 200 tokens and 30 frames a second.
const TOKENS_IN_A_FRAME: usize = 7;
/// The most bytes that are written for each streamed byte.
const MOST_BYTES: f64 = 12.0;

/// A long answer in pieces of the size of tokens.
fn tokens() -> Vec<String> {
    let paragraph = "The order is **lost** when the disk is full: `write` returns an error, and nobody looks at it. \
                     So the caller goes on, and the next request finds no file.\n\n";
    let code = "```rust\nlet written = file.write_all(&bytes)?;\nassert_eq!(written, bytes.len());\n```\n\n";
    let text = format!("{paragraph}{paragraph}- one item\n- another item\n\n{code}").repeat(20);
    text.as_bytes().chunks(4).map(|token| String::from_utf8(token.to_vec()).unwrap()).collect()
}

/// Streams the answer to a terminal of this size, and returns the numbers of streamed bytes, written bytes, rows of the
/// answer, and rows drawn.
fn stream(size: Size) -> (usize, usize, usize, usize) {
    let page = Page::new(size.width(), Theme::new(true));
    let (mut log, mut cells, mut printed) = (Log::new("run_1"), Cells::default(), Printed::default());
    log.message("What went wrong?");
    log.model_call_started(0, 0);
    log.events.drain(..).for_each(|event| apply(&mut cells, &event));
    let mut screen = Inline::new(Vec::new(), Support::default());
    let (mut streamed, mut rows, mut drawn) = (0, 0, 0);
    for tokens in tokens().chunks(TOKENS_IN_A_FRAME) {
        for token in tokens {
            log.text(0, 0, streamed, token);
            streamed += token.len();
        }
        log.events.drain(..).for_each(|event| apply(&mut cells, &event));
        let committed = printed.take(&cells, &page);
        let mut live = printed.open(&cells, &page, size.live_rows().saturating_sub(3));
        live.push(Row::default());
        let caret = Some(Place { row: live.len(), column: 2 });
        live.push(Row::new("› ", Style::PLAIN));
        live.push(Row::new("gpt-5-mini · 12 % · sandbox · the model works, Esc stops it", Style::PLAIN));
        rows += committed.len();
        drawn += committed.len() + live.len();
        screen
            .frame(&Frame { committed: &committed, live: &live, caret, caret_is_real: false, size })
            .unwrap();
    }
    (streamed, screen.out().len(), rows, drawn)
}

#[test]
fn streamed_answer_costs_few_bytes_on_the_terminal() {
    for size in [Size::new(80, 24), Size::new(60, 24), Size::new(200, 60)] {
        let (streamed, written, rows, drawn) = stream(size);
        let ratio = written as f64 / streamed as f64;
        eprintln!(
            "{} columns: {written} bytes are written for {streamed} that stream, {ratio:.1} each; {drawn} rows are drawn \
             for {rows}",
            size.columns
        );
        assert!(
            ratio <= MOST_BYTES,
            "{ratio:.1} bytes for each streamed byte, of {MOST_BYTES} that are allowed"
        );
    }
}

/// Records are never drawn again: a frame late in a conversation costs as much as an early one.
#[test]
fn frame_beside_ten_thousand_cells_draws_as_much_as_beside_ten() {
    let cost = |cells_before: u64| {
        let size = Size::new(80, 24);
        let page = Page::new(size.width(), Theme::new(true));
        let (mut log, mut cells, mut printed) = (Log::new("run_1"), Cells::default(), Printed::default());
        for command in 0..cells_before {
            log.answer(command, "An answer with a few words in it.");
            log.events.drain(..).for_each(|event| apply(&mut cells, &event));
        }
        let before = printed.take(&cells, &page).len();
        log.model_call_started(cells_before, 0);
        log.text(cells_before, 0, 0, "One more line.\n\nAnd");
        log.events.drain(..).for_each(|event| apply(&mut cells, &event));
        let committed = printed.take(&cells, &page).len();
        (before, committed + printed.open(&cells, &page, 8).len())
    };
    let ((few, early), (many, late)) = (cost(10), cost(10_000));
    assert!(many > 100 * few, "{few} rows before, and {many}");
    assert_eq!(early, late);
}
