//! Shows the progress to a person: the current work, its share, the time that is left. On a terminal it is
//! one line that is kept up to date, elsewhere a new line every few seconds.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Interval of updates on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(500);

/// Interval of lines elsewhere: rare enough for a log, frequent enough to show that it works.
const ELSEWHERE: Duration = Duration::from_secs(9);

/// The line of progress.
pub(super) struct Progress {
    terminal: bool,
    columns: usize,
    last: Option<Instant>,
    /// The line is on the screen.
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        Self { terminal, columns: if terminal { columns() } else { 0 }, last: None, shown: false }
    }

    /// Shows the text of `line` if the interval has passed.
    pub(super) fn tick(&mut self, line: impl FnOnce() -> String) {
        let every = if self.terminal { ON_TERMINAL } else { ELSEWHERE };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        self.last = Some(Instant::now());
        let line = line();
        if self.terminal {
            // A longer line would wrap and could not be erased.
            let line: String = line.chars().take(self.columns.saturating_sub(1)).collect();
            print!("\r\x1b[2K{line}");
            self.shown = true;
        } else {
            println!("{line}");
        }
        let _ = io::stdout().flush();
    }

    /// Prints a text that stays, above the line.
    pub(super) fn say(&mut self, text: &str) {
        self.clear();
        println!("{text}");
        // Off a terminal the text counts as a line of progress; on a terminal the next line is due at once.
        self.last = if self.terminal { None } else { Some(Instant::now()) };
    }

    /// Erases the line, so that another program can write.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            print!("\r\x1b[2K");
            let _ = io::stdout().flush();
        }
    }
}

/// Returns the width of the terminal from `stty`; 80 if it is unknown.
fn columns() -> usize {
    let size = Command::new("stty").arg("size").stdin(Stdio::inherit()).stderr(Stdio::null()).output();
    let text = size.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|columns| columns.parse().ok()).filter(|n| *n >= 40).unwrap_or(80)
}

/// Formats a time as `2 min 51 s`, `41 s`.
pub(super) fn seconds(time: Duration) -> String {
    let all = (time.as_millis() + 500) / 1_000;
    match (all / 60, all % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Estimates the time that is left from the finished share and its time; `None` while that would be a guess.
pub(super) fn remaining(share: f64, elapsed: Duration) -> Option<Duration> {
    let sure = share > 0.05 && share < 1.0 && elapsed >= Duration::from_secs(3);
    sure.then(|| elapsed.mul_f64((1.0 - share) / share))
}

/// Formats `, about 50 s left`, rounded so that it does not look exact.
pub(super) fn remaining_text(left: Option<Duration>) -> String {
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
    fn remaining_time_is_shown_once_it_is_reliable() {
        let text = |share, elapsed| remaining_text(remaining(share, Duration::from_secs(elapsed)));
        assert_eq!(text(0.02, 60), "");
        assert_eq!(text(0.5, 2), "");
        assert_eq!(text(1.0, 60), "");
        assert_eq!(text(0.25, 60), ", about 3 min 0 s left");
        assert_eq!(text(0.9, 63), ", about 10 s left");
    }
}
