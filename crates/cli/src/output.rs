//! The one way to the terminal: answers on stdout, all else on stderr, a spinner in between.
//!
//! Whoever writes need not know where a text comes from: here everything becomes text that no terminal obeys. Pipes get
//! the same, because what is behind them may be a terminal again.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    board::{Board, Row},
    failure::Failure,
    text::{escaped, printable},
};

/// Where text goes, and how it may look there.
pub(crate) struct Output {
    streams: Mutex<Streams>,
    /// The warnings that stood on stderr already.
    said: Mutex<BTreeSet<String>>,
    /// Whether stdout is a terminal.
    pub(crate) live: bool,
    /// Whether stderr is a terminal.
    pub(crate) spins: bool,
    /// Whether somebody can be asked: stdin and stderr are terminals.
    pub(crate) asks: bool,
    colour: bool,
}

struct Streams {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    spinner: Option<ProgressBar>,
    board: Option<Board>,
    /// Where spinners are drawn.
    target: fn() -> ProgressDrawTarget,
}

/// How a piece of text on stderr looks where colours are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// As it is.
    Plain,
    /// Behind the rest: thoughts, footers.
    Dim,
    /// To be noticed.
    Warning,
}

impl Output {
    /// The process's own streams. Colours are off without a terminal, with `NO_COLOR`, and where the
    /// terminal is dumb.
    pub(crate) fn system() -> Self {
        let spins = io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self {
            streams: Mutex::new(Streams {
                out: Box::new(io::stdout()),
                err: Box::new(io::stderr()),
                spinner: None,
                board: None,
                target: ProgressDrawTarget::stderr,
            }),
            said: Mutex::default(),
            asks: spins && io::stdin().is_terminal(),
            live: io::stdout().is_terminal(),
            spins: spins && !dumb,
            colour: spins && !dumb && !no_color,
        }
    }

    /// Streams that a test reads.
    #[cfg(test)]
    pub(crate) fn to(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self {
            streams: Mutex::new(Streams {
                out,
                err,
                spinner: None,
                board: None,
                target: ProgressDrawTarget::hidden,
            }),
            said: Mutex::default(),
            asks: false,
            live: false,
            spins: false,
            colour: false,
        }
    }

    /// Writes JSON to stdout.
    pub(crate) fn json(&self, json: &str) {
        self.line(escaped(json));
    }

    /// Writes a line to stdout.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        self.piece(&format!("{}\n", text.as_ref()));
    }

    /// Writes to stdout what is not a whole line yet.
    ///
    /// A reader that went away is no reason to stop: the run goes on and is in its log.
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

    /// Writes a warning to stderr, once, however many parts of the program say it.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        if self.is_new(text.as_ref()) {
            self.note(Look::Warning, format!("warning: {}", text.as_ref()));
        }
    }

    /// Writes a line to stderr, once, however many parts of the program say it.
    pub(crate) fn note_once(&self, text: impl AsRef<str>) {
        if self.is_new(text.as_ref()) {
            self.note(Look::Plain, text);
        }
    }

    fn is_new(&self, text: &str) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    /// Writes to stderr what is not a whole line yet.
    pub(crate) fn note_piece(&self, look: Look, text: &str) {
        let text = self.styled(look, &printable(text));
        self.with(|s| {
            let _ = s.err.write_all(text.as_bytes()).and_then(|()| s.err.flush());
        });
    }

    /// Says why a command cannot go on.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.note(Look::Warning, format!("error: {}", failure.what()));
        for line in failure.advice() {
            self.note(Look::Plain, format!("  {line}"));
        }
    }

    /// Spins until the next output, where there is a terminal to spin on.
    pub(crate) fn wait(&self, doing: &str) {
        if !self.spins {
            return;
        }
        self.with(|s| {
            // Its lines say what is under way.
            if s.board.is_some() {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(printable(doing).into_owned());
            let bar = match ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            };
            bar.enable_steady_tick(Duration::from_millis(100));
            s.spinner = Some(bar);
        });
    }

    /// Shows these lines below all output, as they are now, where there is a terminal to show them on.
    pub(crate) fn board(&self, mut rows: Vec<Row>) {
        if !self.spins {
            return;
        }
        rows.iter_mut().for_each(|row| row.text = printable(&row.text).into_owned());
        self.locked(|s| s.board.get_or_insert_with(|| Board::new((s.target)())).show(rows));
    }

    /// Takes the lines away.
    pub(crate) fn close_board(&self) {
        self.locked(|s| s.board = None);
    }

    /// Shows how much of a download has come, where there is a terminal to show it on.
    #[cfg(feature = "local")]
    pub(crate) fn progress(&self, bytes: u64, of: u64) {
        if !self.spins {
            return;
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = streams.spinner.get_or_insert_with(|| {
            let bar = ProgressBar::new(of);
            match ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        bar.set_position(bytes);
    }

    /// Stops the spinner, if there is one.
    pub(crate) fn stop_waiting(&self) {
        self.with(|_| {});
    }

    /// Writes; what it writes stands above the lines that stay.
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
        // Reset before the newline, so that a terminal does not fill the next line with the style.
        match text.strip_suffix('\n') {
            Some(line) => format!("\x1b[{code}m{line}\x1b[0m\n"),
            None => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
