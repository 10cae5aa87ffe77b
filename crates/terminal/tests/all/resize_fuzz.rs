//! Random conversations with random resizes: each row is in the scrollback once, in order.

use std::io::Write;

use archon_terminal::{Frame, Inline, Place, Row, Screen, Style, Support, Wrap};
use archon_testkit::{Chance, cases, first_seed};

use crate::emulator::{Emulator, any_size, check_sequences};

/// A person at a terminal that changes its size, while rows are committed.
struct Session {
    chance: Chance,
    screen: Inline<Emulator>,
    committed: usize,
    foreign: usize,
    live: Vec<Row>,
    caret_is_real: bool,
}

impl Session {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let size = any_size(&mut chance);
        let screen = Inline::new(Emulator::new(size), Support::default());
        let live = vec![Row::new("~status", Style::PLAIN)];
        Self { chance, screen, committed: 0, foreign: 0, live, caret_is_real: false }
    }

    fn below(&mut self, n: u64) -> usize {
        usize::try_from(self.chance.below(n)).unwrap()
    }

    /// Changes something, as an answer, a question, a key, a resize or a suspended program do.
    fn step(&mut self, may_be_real: bool) {
        let mut committed = Vec::new();
        match self.below(8) {
            0..3 => committed = self.commit(),
            3 => self.change_live(),
            4 => {
                let size = any_size(&mut self.chance);
                self.screen.out_mut().resize(size);
            }
            5 => self.caret_is_real = may_be_real && !self.caret_is_real,
            6 => self.suspend(),
            _ => self.screen.redraw(),
        }
        self.frame(&committed);
    }

    fn commit(&mut self) -> Vec<Row> {
        let count = [1, 1, 1, 2, 5, 30][self.below(6)];
        (0..count)
            .map(|_| {
                self.committed += 1;
                let long = [0, 5, 20, 60, 150][self.below(5)];
                let text = format!("#{:05} {}", self.committed - 1, "c".repeat(long));
                let row = Row::new(text, Style::PLAIN);
                let width = self.screen.out().size.width();
                match self.chance.percent(50) {
                    true => row.cut(width),
                    false => Row { wrap: Wrap::Terminal, ..row },
                }
            })
            .collect()
    }

    fn change_live(&mut self) {
        let rows = 1 + self.below(12);
        self.live = (0..rows)
            .map(|_| {
                let long = self.below(160);
                Row::new(format!("~{}", "x".repeat(long)), Style::PLAIN)
            })
            .collect();
    }

    /// As Ctrl+Z: the shell writes a line of its own before the program comes back.
    fn suspend(&mut self) {
        self.screen.leave().unwrap();
        writeln!(self.screen.out_mut(), "%{:03}\r", self.foreign).unwrap();
        self.foreign += 1;
    }

    fn frame(&mut self, committed: &[Row]) {
        let size = self.screen.out().size;
        let row = self.live.len() - 1 - self.live.len() / 3;
        let column = self.below(u64::try_from(self.live[row].width().min(size.width())).unwrap() + 1);
        let frame = Frame {
            committed,
            live: &self.live,
            caret: Some(Place { row, column }),
            caret_is_real: self.caret_is_real,
            size,
        };
        self.screen.frame(&frame).unwrap();
    }

    /// Checks that each committed row is printed once and in order, and returns the number of rows of earlier
    /// live areas that were left behind.
    fn check(mut self, seed: u64) -> usize {
        self.screen.leave().unwrap();
        let paper = self.screen.out_mut().paper();
        let numbers = |sign: char| -> Vec<usize> {
            let all = paper.iter().filter_map(|row| row.strip_prefix(sign)?.split(' ').next()?.parse().ok());
            all.collect()
        };
        assert_eq!(numbers('#'), (0..self.committed).collect::<Vec<_>>(), "seed {seed}: {paper:#?}");
        assert_eq!(numbers('%'), (0..self.foreign).collect::<Vec<_>>(), "seed {seed}: {paper:#?}");
        let own = String::from_utf8(self.screen.out().bytes.clone()).unwrap();
        let own: String = own.split_inclusive('\n').filter(|line| !line.starts_with('%')).collect();
        check_sequences(own.as_bytes());
        paper.iter().filter(|row| row.starts_with('~')).count()
    }
}

#[test]
fn resizes_lose_and_repeat_no_row_and_leave_none_of_the_live_area() {
    for seed in first_seed()..first_seed() + cases(100, 2_000) {
        let mut session = Session::new(seed);
        (0..40).for_each(|_| session.step(false));
        assert_eq!(session.check(seed), 0, "seed {seed}: a row of an earlier live area stands");
    }
}

/// While the cursor stands at the caret, a resize may leave rows of the live area behind, but loses nothing.
#[test]
fn resizes_with_a_real_caret_lose_and_repeat_no_row() {
    for seed in first_seed()..first_seed() + cases(100, 2_000) {
        let mut session = Session::new(seed);
        (0..40).for_each(|_| session.step(true));
        session.check(seed);
    }
}
