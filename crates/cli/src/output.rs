//! The only output to the terminal: answers on stdout, everything else on stderr, with a spinner meanwhile.
//!
//! All text is made harmless for terminals here, so callers can print text of any origin. Pipes get the same
//! text, since a terminal may be behind them.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::{
    board::{Board, Row, style},
    failure::Failure,
    text::{escaped, printable},
};

pub(crate) struct Output {
    streams: Mutex<Streams>,
    /// The warnings and notes that are printed only once, and were printed before.
    noted: Mutex<BTreeSet<String>>,
    pub(crate) live: bool,
    pub(crate) spins: bool,
    /// True if a person can be asked: stdin and stderr are terminals.
    pub(crate) asks: bool,
    colour: bool,
}

struct Streams {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    spinner: Option<ProgressBar>,
    board: Option<Board>,
    /// The place where spinners are drawn.
    target: fn() -> ProgressDrawTarget,
}

/// The style of text on stderr, if colours are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The default style.
    Plain,
    /// The style of less important text: thoughts, footers.
    Dim,
    /// The style of important text.
    Warning,
}

impl Output {
    /// Creates the output to the streams of the process. Colours are off without a terminal, with
    /// `NO_COLOR`, and with a dumb terminal.
    pub(crate) fn system() -> Self {
        let spins = io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self {
            asks: spins && io::stdin().is_terminal(),
            live: io::stdout().is_terminal(),
            spins: spins && !dumb,
            colour: spins && !dumb && !no_color,
            ..Self::new(Box::new(io::stdout()), Box::new(io::stderr()), ProgressDrawTarget::stderr)
        }
    }

    /// Creates an output to streams that are no terminals.
    fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        target: fn() -> ProgressDrawTarget,
    ) -> Self {
        Self {
            streams: Mutex::new(Streams { out, err, spinner: None, board: None, target }),
            noted: Mutex::default(),
            asks: false,
            live: false,
            spins: false,
            colour: false,
        }
    }

    /// Creates an output to the streams of a test.
    #[cfg(test)]
    pub(crate) fn to(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self::new(out, err, ProgressDrawTarget::hidden)
    }

    pub(crate) fn json(&self, json: &str) {
        self.line(escaped(json));
    }

    pub(crate) fn line(&self, text: impl AsRef<str>) {
        self.piece(&format!("{}\n", text.as_ref()));
    }

    /// Writes a part of a line to stdout.
    ///
    /// A closed pipe is ignored: the run continues, and its log is complete.
    pub(crate) fn piece(&self, text: &str) {
        let text = printable(text);
        self.with(|s| {
            let _ = s.out.write_all(text.as_bytes()).and_then(|()| s.out.flush());
        });
    }

    /// Writes a line to stderr.
    pub(crate) fn note(&self, look: Look, text: impl AsRef<str>) {
        self.note_piece(look, &format!("{}\n", text.as_ref()));
    }

    /// Writes a warning to stderr, only once for the same text.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        if self.is_new(text.as_ref()) {
            self.note(Look::Warning, format!("warning: {}", text.as_ref()));
        }
    }

    /// Writes a line to stderr, only once for the same text.
    pub(crate) fn note_once(&self, text: impl AsRef<str>) {
        if self.is_new(text.as_ref()) {
            self.note(Look::Plain, text);
        }
    }

    fn is_new(&self, text: &str) -> bool {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    pub(crate) fn note_piece(&self, look: Look, text: &str) {
        let text = self.styled(look, &printable(text));
        self.with(|s| {
            let _ = s.err.write_all(text.as_bytes()).and_then(|()| s.err.flush());
        });
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        self.note(Look::Warning, format!("error: {}", failure.what()));
        for line in failure.advice() {
            self.note(Look::Plain, format!("  {line}"));
        }
    }

    /// Shows a spinner until the next output, if stderr is a terminal.
    pub(crate) fn wait(&self, doing: &str) {
        if !self.spins {
            return;
        }
        self.with(|s| {
            // The board already shows what is under way.
            if s.board.is_some() {
                return;
            }
            let bar = ProgressBar::new_spinner().with_style(style("{spinner} {msg} {elapsed}"));
            bar.set_message(printable(doing).into_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            s.spinner = Some(bar);
        });
    }

    /// Shows these lines below all output, if stderr is a terminal.
    pub(crate) fn board(&self, mut rows: Vec<Row>) {
        if !self.spins {
            return;
        }
        rows.iter_mut().for_each(|row| row.text = printable(&row.text).into_owned());
        self.locked(|s| s.board.get_or_insert_with(|| Board::new((s.target)())).show(rows));
    }

    pub(crate) fn close_board(&self) {
        self.locked(|s| s.board = None);
    }

    /// Shows the progress of a download, if stderr is a terminal.
    #[cfg(feature = "local")]
    pub(crate) fn progress(&self, bytes: u64, of: u64) {
        if !self.spins {
            return;
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = streams.spinner.get_or_insert_with(|| {
            let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            ProgressBar::new(of).with_style(style(template))
        });
        bar.set_position(bytes);
    }

    /// Removes the spinner, if there is one.
    pub(crate) fn stop_waiting(&self) {
        self.with(|_| {});
    }

    /// Removes the spinner, and runs `write`, whose output appears above the lines of the board.
    fn with<T>(&self, write: impl FnOnce(&mut Streams) -> T) -> T {
        self.locked(|streams| match streams.board.as_ref().map(Board::screen) {
            Some(screen) => screen.suspend(|| write(streams)),
            None => write(streams),
        })
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Streams) -> T) -> T {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spinner) = streams.spinner.take() {
            spinner.finish_and_clear();
        }
        work(&mut streams)
    }

    fn styled(&self, look: Look, text: &str) -> String {
        let code = match look {
            _ if !self.colour => return text.to_owned(),
            Look::Plain => return text.to_owned(),
            Look::Dim => "2",
            Look::Warning => "33",
        };
        // The reset comes before the newline; otherwise a terminal may fill the next line with the style.
        match text.strip_suffix('\n') {
            Some(line) => format!("\x1b[{code}m{line}\x1b[0m\n"),
            None => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
