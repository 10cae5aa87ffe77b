//! A window for tests: a program in a pseudo terminal of its own, and an emulator that has its screen.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZeroU16,
    os::fd::OwnedFd,
    process::ExitStatus,
    time::{Duration, Instant},
};

use archon_testkit::Gate;
use rustix::{
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcgetwinsize, tcsetwinsize},
};
use tokio::{
    process::{Child, Command},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

use super::tmux::Pane;
use crate::setup::Place;

/// The time after which a test fails that waits for something on the screen. Only a test that fails takes so long, and
/// other work may have the machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time that a question is on the screen before a test answers it. The program takes no key in the first 400 ms,
/// and does not know exactly when its frame was read.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval in which a test looks at what is not written to the screen, such as the terminal's modes.
const LOOK: Duration = Duration::from_millis(20);
/// The number of rows that the emulator keeps above the screen.
const KEPT: usize = 10_000;

pub(crate) struct Window {
    keyboard: File,
    child: Child,
    /// Held open, so that the screen does not end before the program has begun.
    end: Option<OwnedFd>,
    output: UnboundedReceiver<Vec<u8>>,
    emulator: vt100::Parser,
    /// All bytes that were written to the terminal.
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes that the emulator has.
    drawn: usize,
    /// The pane of tmux that the window shows. The texts and the terminal of the program are those of the pane.
    pub(super) pane: Option<Pane>,
}

fn whole(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).expect("a size")
}

fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Window {
    /// Opens a window of 80 columns and 24 rows with this command line of `archon`.
    pub(crate) fn open(place: &Place, line: &str) -> Self {
        Self::sized(place, line, 80, 24)
    }

    /// Opens a window with a conversation, and waits until its agent is built.
    pub(crate) async fn ready(place: &Place, line: &str) -> Self {
        let mut window = Self::open(place, line);
        window.shows("· mock ·").await;
        window
    }

    pub(crate) fn sized(place: &Place, line: &str, columns: u16, rows: u16) -> Self {
        Self::with(place, line, columns, rows, &[])
    }

    /// Opens a window with further variables of the environment.
    pub(crate) fn with(
        place: &Place,
        line: &str,
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        let archon = place.command(line, &[]);
        let archon = archon.as_std();
        let words = std::iter::once(archon.get_program()).chain(archon.get_args());
        Self::run(place, words.map(ToOwned::to_owned), columns, rows, variables)
    }

    /// Opens a window with a shell. The rest of `shell` are its arguments; behind them stands a command line of
    /// `archon`, so that `"$0" "$@"` in a script runs it.
    pub(crate) fn shell(place: &Place, shell: &[&str], line: &str) -> Self {
        let archon = place.command(line, &[]);
        let archon = archon.as_std();
        let words =
            shell.iter().map(std::ffi::OsStr::new).chain([archon.get_program()]).chain(archon.get_args());
        Self::run(place, words.map(ToOwned::to_owned), 80, 24, &[])
    }

    /// Opens a window with any program.
    pub(crate) fn program(place: &Place, words: &[&str]) -> Self {
        Self::run(place, words.iter().map(std::ffi::OsString::from), 80, 24, &[])
    }

    fn run(
        place: &Place,
        words: impl Iterator<Item = std::ffi::OsString>,
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        // Tests beside this one start programs, which must not hold the terminal open.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it can be used");
        tcsetwinsize(&ours, winsize(columns, rows)).expect("it has a size");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = || open(&name, flags, Mode::empty()).expect("its other end");
        // The program that `setsid` becomes has the terminal to itself, so that its keys and sizes come as signals.
        let mut command = Command::new("setsid");
        command.env_clear();
        let template = place.command("chat", &[]);
        for (name, value) in template.as_std().get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.arg("--ctty").args(words).current_dir(place.dir.path()).kill_on_drop(true);
        command.env("TERM", "xterm-256color");
        command.envs(variables.iter().copied());
        command.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let end = theirs();
        let child = command.spawn().expect("it starts");
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().expect("it is read, too");
        let (sender, output) = unbounded_channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the last program has closed it.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let emulator = vt100::Parser::new(whole(rows), whole(columns), KEPT);
        Self { keyboard, child, end: Some(end), output, emulator, bytes: Vec::new(), drawn: 0, pane: None }
    }

    /// Presses keys, as the bytes that a terminal sends for them.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it is heard");
    }

    /// Types a message and sends it, once the program reads keys.
    pub(crate) async fn says(&mut self, text: &str) {
        self.until("the draft", |window| window.screen().contains('›')).await;
        self.types(&format!("{text}\r"));
    }

    pub(crate) fn pastes(&mut self, text: &str) {
        self.types(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Waits until this is on the screen or above it.
    pub(crate) async fn shows(&mut self, text: &str) {
        self.until(text, |window| window.all().contains(text)).await;
    }

    /// Waits until this is not on the screen.
    pub(crate) async fn hides(&mut self, text: &str) {
        self.until(text, |window| !window.screen().contains(text)).await;
    }

    /// Waits until an answer is on the screen and its run has ended.
    pub(crate) async fn answers(&mut self, text: &str) {
        self.shows(text).await;
        self.hides("Esc stops").await;
    }

    /// Waits until something holds, also if nothing is written meanwhile. `what` is for the message of a test that waits
    /// in vain.
    pub(crate) async fn until(&mut self, what: &str, holds: impl Fn(&mut Self) -> bool) {
        let since = Instant::now();
        while !holds(self) {
            match timeout(LOOK, self.output.recv()).await {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => panic!("the program went away before {what:?}:\n{}", self.all()),
                Err(_) if since.elapsed() < PATIENCE => {}
                Err(_) => panic!("waited in vain for {what:?}:\n{}", self.all()),
            }
        }
    }

    /// Waits as long as a question must be on the screen before a key answers it.
    pub(crate) async fn pauses(&self) {
        tokio::time::sleep(PAUSE).await;
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let rest = &self.bytes[self.drawn..];
        // The emulator can lose what stands behind a character that it gets in two parts.
        let whole = match std::str::from_utf8(rest) {
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        self.emulator.process(&rest[..whole]);
        self.drawn += whole;
    }

    /// The screen as it is now, row by row.
    pub(crate) fn screen(&self) -> String {
        if let Some(pane) = &self.pane {
            return pane.screen();
        }
        let screen = self.emulator.screen();
        let (_, columns) = screen.size();
        let rows: Vec<String> = screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
    }

    /// Everything that can be read in the window: what was scrolled away, and the screen.
    pub(crate) fn all(&mut self) -> String {
        if let Some(pane) = &self.pane {
            return pane.all();
        }
        let (_, columns) = self.emulator.screen().size();
        let above = self.emulator.screen().scrollback_len();
        let mut rows = Vec::new();
        for offset in (1..=above).rev() {
            self.emulator.screen_mut().set_scrollback(offset);
            let row = self.emulator.screen().rows(0, columns.get()).next().unwrap_or_default();
            rows.push(row.trim_end().to_owned());
        }
        self.emulator.screen_mut().set_scrollback(0);
        rows.push(self.screen());
        rows.join("\n")
    }

    /// Checks that each of these texts is exactly once in the window.
    pub(crate) fn has_once(&mut self, texts: &[&str]) {
        let all = self.all();
        for text in texts {
            assert_eq!(all.matches(text).count(), 1, "{text}: {all}");
        }
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        tcsetwinsize(&self.keyboard, winsize(columns, rows)).expect("it has a size");
        self.emulator.set_size(whole(rows), whole(columns));
    }

    /// True if the program's terminal has this size: in tmux, some time after the window.
    pub(crate) fn has_size(&self, columns: u16, rows: u16) -> bool {
        let size = match &self.pane {
            Some(pane) => pane.terminal().and_then(|terminal| tcgetwinsize(&terminal).ok()),
            None => tcgetwinsize(&self.keyboard).ok(),
        };
        size.is_some_and(|size| (size.ws_col, size.ws_row) == (columns, rows))
    }

    /// The modes of the program's terminal; `None` before tmux has one.
    fn modes(&self) -> Option<LocalModes> {
        let attributes = match &self.pane {
            Some(pane) => tcgetattr(pane.terminal()?),
            None => tcgetattr(&self.keyboard),
        };
        Some(attributes.ok()?.local_modes)
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(id.expect("it runs"), signal).expect("it gets the signal");
    }

    /// True if the terminal reads lines and echoes them, as a shell needs it.
    pub(crate) fn is_for_lines(&self) -> bool {
        let modes = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        self.modes().is_some_and(|now| now.contains(modes))
    }

    /// True if a key is only a key, as a conversation needs it. Shells leave Ctrl+C to the terminal.
    pub(crate) fn is_raw(&self) -> bool {
        self.modes().is_some_and(|now| !now.contains(LocalModes::ISIG))
    }

    /// True if the terminal shows its alternate screen, where the scrollback cannot be read.
    pub(crate) fn is_alternate(&self) -> bool {
        self.emulator.screen().alternate_screen()
    }

    pub(crate) fn has_visible_cursor(&self) -> bool {
        !self.emulator.screen().hide_cursor()
    }

    pub(crate) fn marks_pastes(&self) -> bool {
        self.emulator.screen().bracketed_paste()
    }

    /// Takes the terminal away, as a connection does that breaks, and waits until the program has ended. `gate` lets the
    /// program write once more: then the reader lets go of the terminal, too.
    pub(crate) async fn ends_without_terminal(self, gate: &Gate) -> ExitStatus {
        let Self { keyboard, mut child, end, output, .. } = self;
        drop((keyboard, end, output));
        gate.open();
        timeout(PATIENCE, child.wait()).await.expect("it ends").expect("it has a status")
    }

    /// Waits until the program has ended, and reads the rest of what it shows.
    pub(crate) async fn ends(&mut self) -> ExitStatus {
        self.end = None;
        let status = timeout(PATIENCE, self.child.wait()).await;
        let status = match status {
            Ok(status) => status.expect("it ends"),
            Err(_) => {
                while let Ok(bytes) = self.output.try_recv() {
                    self.take(&bytes);
                }
                panic!("it does not end:\n{}", self.all());
            }
        };
        while let Ok(Some(bytes)) = timeout(PATIENCE, self.output.recv()).await {
            self.take(&bytes);
        }
        status
    }
}
