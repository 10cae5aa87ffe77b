//! Changing lines at the bottom of a terminal: the current work, its time, and finished work.

use std::{collections::HashMap, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The key of the line; a line with the same key keeps its position and its time.
    pub(crate) key: String,
    pub(crate) text: String,
    /// True if the line shows a spinner and the elapsed time.
    pub(crate) moves: bool,
}

/// Lines on a terminal; dropping the board removes them.
pub(crate) struct Board {
    screen: MultiProgress,
    /// The lines by their keys; the flag is true for a line with a spinner and a time.
    bars: HashMap<String, (ProgressBar, bool)>,
}

impl Board {
    pub(crate) fn new(target: ProgressDrawTarget) -> Self {
        Self { screen: MultiProgress::with_draw_target(target), bars: HashMap::new() }
    }

    /// Returns a handle to the terminal, for writing above the lines.
    pub(crate) fn screen(&self) -> MultiProgress {
        self.screen.clone()
    }

    /// Shows exactly these lines, in this order.
    pub(crate) fn show(&mut self, rows: Vec<Row>) {
        let is_wanted = |key: &String| rows.iter().any(|row| row.key == *key);
        let gone: Vec<String> = self.bars.keys().filter(|key| !is_wanted(key)).cloned().collect();
        for key in gone {
            if let Some((bar, _)) = self.bars.remove(&key) {
                bar.finish_and_clear();
                self.screen.remove(&bar);
            }
        }
        for (place, row) in rows.into_iter().enumerate() {
            let (bar, moves) = self.bars.entry(row.key).or_insert_with(|| {
                (self.screen.insert(place, ProgressBar::new_spinner().with_style(row_style(false))), false)
            });
            if *moves != row.moves {
                *moves = row.moves;
                bar.set_style(row_style(row.moves));
                bar.reset_elapsed();
                match row.moves {
                    true => bar.enable_steady_tick(Duration::from_millis(100)),
                    false => bar.disable_steady_tick(),
                }
            }
            bar.set_message(row.text);
            bar.tick();
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.bars.values().for_each(|(bar, _)| bar.finish_and_clear());
        let _ = self.screen.clear();
    }
}

fn row_style(moves: bool) -> ProgressStyle {
    style(if moves { "{spinner} {msg} {elapsed}" } else { "  {msg}" })
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    fn row(key: &str, text: &str, moves: bool) -> Row {
        Row { key: key.to_owned(), text: text.to_owned(), moves }
    }

    #[test]
    fn board_lines_keep_their_places_and_only_running_ones_count_time() {
        let term = InMemoryTerm::new(10, 40);
        let mut board = Board::new(ProgressDrawTarget::term_like(Box::new(term.clone())));
        board.show(vec![row("a", "a: First", true), row("b", "b: Second", false)]);
        let shown = term.contents();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].contains("a: First 0s") && !lines[0].starts_with(' '), "{shown}");
        assert_eq!(lines[1], "  b: Second", "{shown}");
        board.show(vec![row("a", "a: First, 7 tokens", false), row("b", "b: Second", true)]);
        let shown = term.contents();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0] == "  a: First, 7 tokens" && lines[1].contains("b: Second 0s"), "{shown}");
        board.screen().suspend(|| assert_eq!(term.contents(), "", "there is room for other text"));
        board.show(vec![row("b", "b: Second", false)]);
        assert_eq!(term.contents().trim_end(), "  b: Second");
        drop(board);
        assert_eq!(term.contents(), "");
    }
}
