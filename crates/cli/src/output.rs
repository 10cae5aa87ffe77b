//! The only output to the terminal: answers on stdout, everything else on stderr, with a spinner meanwhile.
//!
//! All text is made harmless for terminals here, so callers can print text of any origin. Pipes get the same
//! text, since a terminal may be behind them.

use std::{
    collections::BTreeSet,
    fs::File,
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
    capture: Option<Capture>,
}

/// A callback that gets a text and its look.
type Notes = Box<dyn Fn(Look, &str) + Send>;

/// The receiver of all output while another part of the program writes to the terminal.
#[cfg_attr(not(feature = "chat"), allow(dead_code, reason = "only a conversation captures the output"))]
pub(crate) struct Capture {
    /// Gets each text that would be printed, harmless for terminals.
    pub(crate) notes: Notes,
    /// The file for the lines of the log; without one they are dropped.
    pub(crate) log: Option<File>,
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
    /// The style of an added line of a difference.
    #[cfg_attr(not(feature = "chat"), allow(dead_code, reason = "only a conversation shows differences so"))]
    Added,
    /// The style of a removed line of a difference.
    #[cfg_attr(not(feature = "chat"), allow(dead_code, reason = "only a conversation shows differences so"))]
    Removed,
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
            streams: Mutex::new(Streams { out, err, spinner: None, board: None, target, capture: None }),
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
        self.with(|s| match &s.capture {
            Some(capture) => (capture.notes)(Look::Plain, &text),
            None => drop(s.out.write_all(text.as_bytes()).and_then(|()| s.out.flush())),
        });
    }

    /// Passes all output to `capture` from now on, so that nothing but its owner writes to the terminal.
    /// Spinners and boards are not shown meanwhile.
    #[cfg(feature = "chat")]
    pub(crate) fn capture(&self, capture: Capture) {
        self.locked(|s| s.capture = Some(capture));
    }

    /// Ends [`capture`](Self::capture): output goes to the streams again.
    #[cfg(feature = "chat")]
    pub(crate) fn release(&self) {
        self.locked(|s| s.capture = None);
    }

    /// Writes a line of the log: to stderr, or to the file of the [`Capture`].
    ///
    /// A stream or a file that cannot be written is ignored.
    pub(crate) fn log(&self, line: &str) {
        let line = printable(line);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let Streams { err, capture, .. } = &mut *streams;
        let _ = match capture {
            Some(Capture { log: Some(file), .. }) => file.write_all(line.as_bytes()),
            Some(_) => Ok(()),
            None => err.write_all(line.as_bytes()),
        };
    }

    /// Writes a line to stderr.
    pub(crate) fn note(&self, look: Look, text: impl AsRef<str>) {
        self.note_piece(look, &format!("{}\n", text.as_ref()));
    }

    /// Writes a warning to stderr, only once for the same text.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        if self.is_new(text.as_ref()) {
            self.warn_again(text);
        }
    }

    /// Writes a warning to stderr, also if the same text was written before. The text is not kept.
    pub(crate) fn warn_again(&self, text: impl AsRef<str>) {
        self.note(Look::Warning, format!("warning: {}", text.as_ref()));
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
        let text = printable(text);
        self.with(|s| match &s.capture {
            Some(capture) => (capture.notes)(look, &text),
            None => {
                let text = self.styled(look, &text);
                drop(s.err.write_all(text.as_bytes()).and_then(|()| s.err.flush()));
            }
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
            // The board, or the owner of the screen, already shows what is under way.
            if s.board.is_some() || s.capture.is_some() {
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
        self.locked(|s| {
            if s.capture.is_none() {
                s.board.get_or_insert_with(|| Board::new((s.target)())).show(rows);
            }
        });
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
        if streams.capture.is_some() {
            return;
        }
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
            Look::Added => "32",
            Look::Removed => "31",
        };
        // The reset comes before the newline; otherwise a terminal may fill the next line with the style.
        match text.strip_suffix('\n') {
            Some(line) => format!("\x1b[{code}m{line}\x1b[0m\n"),
            None => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A stream that a test reads.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn output(page: &Page) -> Output {
        Output::to(Box::new(page.clone()), Box::new(page.clone()))
    }

    #[test]
    fn log_line_with_control_characters_is_escaped() {
        let page = Page::default();
        output(&page).log("warn: \u{1b}]0;x\u{7}\u{9b}2J\u{202e}é\n");
        assert_eq!(page.text(), "warn: \\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}é\n");
    }

    #[cfg(feature = "chat")]
    #[test]
    fn output_while_it_is_captured_writes_nothing_to_the_streams() {
        use std::io::{Read as _, Seek as _};

        let page = Page::default();
        let output = output(&page);
        let (sender, notes) = std::sync::mpsc::channel();
        let mut log = tempfile::tempfile().unwrap();
        output.capture(Capture {
            notes: Box::new(move |look, text| drop(sender.send((look, text.to_owned())))),
            log: Some(log.try_clone().unwrap()),
        });
        output.warn("no key\u{1b}[2J");
        output.line("a line");
        output.log("debug: x\u{1b}c\n");
        output.release();
        output.log("after\n");
        let seen: Vec<_> = notes.try_iter().collect();
        let warning = (Look::Warning, "warning: no key\\u{1b}[2J\n".to_owned());
        assert_eq!(seen, [warning, (Look::Plain, "a line\n".to_owned())]);
        let mut text = String::new();
        log.rewind().unwrap();
        log.read_to_string(&mut text).unwrap();
        assert_eq!(text, "debug: x\\u{1b}c\n");
        assert_eq!(page.text(), "after\n");
    }
}
