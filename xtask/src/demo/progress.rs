//! Tells a person what is under way, how far it is and what is left: one line that is kept up to date on a terminal,
//! and a line every few seconds where there is none.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often the line is renewed on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(500);

/// How often there is a line elsewhere: seldom enough to be read in a log, often enough to be believed.
const ELSEWHERE: Duration = Duration::from_secs(9);

/// The line that is kept up to date.
pub(super) struct Progress {
    terminal: bool,
    columns: usize,
    last: Option<Instant>,
    /// Whether the line stands on the screen.
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        Self { terminal, columns: if terminal { columns() } else { 0 }, last: None, shown: false }
    }

    /// Shows what `line` says if it is time to.
    pub(super) fn tick(&mut self, line: impl FnOnce() -> String) {
        let every = if self.terminal { ON_TERMINAL } else { ELSEWHERE };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        self.last = Some(Instant::now());
        let line = line();
        if self.terminal {
            // A longer line would wrap, and then nothing could take it back.
            let line: String = line.chars().take(self.columns.saturating_sub(1)).collect();
            print!("\r\x1b[2K{line}");
            self.shown = true;
        } else {
            println!("{line}");
        }
        let _ = io::stdout().flush();
    }

    /// Writes something that stays, above the line.
    pub(super) fn say(&mut self, text: &str) {
        self.clear();
        println!("{text}");
        // What was said is as good as a line of ours, but the next line on a terminal is due.
        self.last = if self.terminal { None } else { Some(Instant::now()) };
    }

    /// Takes the line away, for somebody else who writes.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            print!("\r\x1b[2K");
            let _ = io::stdout().flush();
        }
    }
}

/// The width of the terminal, as its own program tells it: 80 where nobody does.
fn columns() -> usize {
    let size = Command::new("stty").arg("size").stdin(Stdio::inherit()).stderr(Stdio::null()).output();
    let text = size.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|columns| columns.parse().ok()).filter(|n| *n >= 40).unwrap_or(80)
}

/// `2 min 51 s`, `41 s`.
pub(super) fn seconds(time: Duration) -> String {
    let all = (time.as_millis() + 500) / 1_000;
    match (all / 60, all % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// The time that is left, from the share that is done and the time it took; nothing while that would be a guess.
pub(super) fn left(share: f64, elapsed: Duration) -> Option<Duration> {
    let sure = share > 0.05 && share < 1.0 && elapsed >= Duration::from_secs(3);
    sure.then(|| elapsed.mul_f64((1.0 - share) / share))
}

/// `, about 50 s left`, in steps that do not pretend to be exact.
pub(super) fn left_text(left: Option<Duration>) -> String {
    let Some(left) = left else { return String::new() };
    let step = if left > Duration::from_secs(60) { 10 } else { 5 };
    let rounded = left.as_secs().div_ceil(step) * step;
    format!(", about {} left", seconds(Duration::from_secs(rounded.max(step))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_and_minutes_named() {
        for (millis, expected) in [(0, "0 s"), (1_499, "1 s"), (59_600, "1 min 0 s"), (171_000, "2 min 51 s")]
        {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn left_is_told_once_it_is_no_guess() {
        let text = |share, elapsed| left_text(left(share, Duration::from_secs(elapsed)));
        assert_eq!(text(0.02, 60), "");
        assert_eq!(text(0.5, 2), "");
        assert_eq!(text(1.0, 60), "");
        assert_eq!(text(0.25, 60), ", about 3 min 0 s left");
        assert_eq!(text(0.9, 63), ", about 10 s left");
    }
}
