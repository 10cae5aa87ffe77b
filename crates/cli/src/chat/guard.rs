//! The guard: a second process that restores the terminal if the conversation is killed, since a killed process
//! restores nothing.
//!
//! The guard reads a pipe whose other end only the conversation has. The last byte before the end of the pipe tells
//! the part of the terminal that the conversation had when it died.

use std::{
    io::{self, Read, Write},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
};

use archon_terminal::{END_PASTE, Support};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcsetattr,
};

/// The first argument of a guard. People never type it.
const ARGUMENT: &str = "__terminal-guard";

/// The part of the terminal that the conversation has. The guard is told a byte for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Held {
    /// None: the conversation has ended, or is suspended, and the terminal belongs to others.
    Nothing = b'-',
    /// The terminal's own screen.
    Screen = b'+',
    /// The alternate screen.
    AlternateScreen = b'*',
}

/// Returns true if this process was started as a guard.
pub(crate) fn is_guard() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Waits until the conversation ends, and restores the terminal if it was killed.
pub(crate) fn run() -> ExitCode {
    // In a session of its own, the guard gets no signals from the terminal, and the terminal takes new modes from it
    // although a shell may be in the foreground.
    let _ = rustix::process::setsid();
    let mut told = Vec::new();
    let _ = io::stdin().read_to_end(&mut told);
    let saved = std::env::args().nth(2).and_then(|text| Modes::parse(&text));
    let held =
        [Held::Screen, Held::AlternateScreen].into_iter().find(|held| told.last() == Some(&(*held as u8)));
    if let (Some(held), Some(saved)) = (held, saved) {
        restore(held, saved);
    }
    ExitCode::SUCCESS
}

/// Resets the screen of the terminal, and its modes unless a shell has taken over the terminal and set its own modes.
fn restore(held: Held, saved: Modes) {
    let mut terminal = io::stdout();
    let now = tcgetattr(&terminal).ok();
    let is_ours = now.as_ref().is_some_and(|now| Modes::of(now) == saved.raw(now));
    let support = Support::of(&|name| std::env::var(name).ok(), true);
    let sequence = match held {
        Held::AlternateScreen => support.restore_sequence_of_alternate(),
        _ => support.restore_sequence(),
    };
    let _ = terminal.write_all(sequence.as_bytes());
    if let Some(now) = now.filter(|_| is_ours) {
        let _ = terminal.write_all(END_PASTE.as_bytes());
        let _ = tcsetattr(&terminal, OptionalActions::Now, &saved.over(now));
    }
    let _ = terminal.flush();
}

/// The conversation's side of a guard.
pub(crate) struct Guard {
    child: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts a guard that restores these modes. The terminal is the standard output of this process.
    ///
    /// # Errors
    /// This program cannot be started once more.
    pub(crate) fn start(saved: &Termios) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg(ARGUMENT).arg(Modes::of(saved).to_string()).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let pipe = child.stdin.take().ok_or_else(|| io::Error::other("the guard has no pipe"))?;
        Ok(Self { child, pipe })
    }

    /// Tells the guard the part of the terminal that the conversation has now.
    pub(crate) fn tell(&mut self, held: Held) {
        // A guard that was killed leaves the conversation as it is.
        let _ = self.pipe.write_all(&[held as u8]);
    }

    /// Ends the guard without effect.
    pub(crate) fn end(mut self) {
        self.tell(Held::Nothing);
        let Self { mut child, pipe } = self;
        drop(pipe);
        let _ = child.wait();
    }
}

/// The modes of a terminal that a conversation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modes {
    input: InputModes,
    output: OutputModes,
    control: ControlModes,
    local: LocalModes,
    least: u8,
    time: u8,
}

/// The control modes that are modes of the line. The other bits have the speed of the line, which some libraries write
/// in another form than they read it.
const LINE_MODES: ControlModes = ControlModes::CSIZE
    .union(ControlModes::CSTOPB)
    .union(ControlModes::CREAD)
    .union(ControlModes::PARENB)
    .union(ControlModes::PARODD)
    .union(ControlModes::HUPCL)
    .union(ControlModes::CLOCAL);

impl Modes {
    fn of(termios: &Termios) -> Self {
        Self {
            input: termios.input_modes,
            output: termios.output_modes,
            control: termios.control_modes & LINE_MODES,
            local: termios.local_modes,
            least: termios.special_codes[SpecialCodeIndex::VMIN],
            time: termios.special_codes[SpecialCodeIndex::VTIME],
        }
    }

    /// Returns `termios` with these modes.
    fn over(self, mut termios: Termios) -> Termios {
        (termios.input_modes, termios.output_modes) = (self.input, self.output);
        termios.control_modes = (termios.control_modes - LINE_MODES) | self.control;
        termios.local_modes = self.local;
        termios.special_codes[SpecialCodeIndex::VMIN] = self.least;
        termios.special_codes[SpecialCodeIndex::VTIME] = self.time;
        termios
    }

    /// Returns the modes that a conversation sets in a terminal that had these modes.
    fn raw(self, termios: &Termios) -> Self {
        let mut termios = self.over(termios.clone());
        termios.make_raw();
        Self::of(&termios)
    }

    /// Parses the text that `to_string` returns.
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let [input, output, control, local, least, time] = parts.as_slice() else { return None };
        Some(Self {
            input: InputModes::from_bits_retain(input.parse().ok()?),
            output: OutputModes::from_bits_retain(output.parse().ok()?),
            control: ControlModes::from_bits_retain(control.parse().ok()?),
            local: LocalModes::from_bits_retain(local.parse().ok()?),
            least: least.parse().ok()?,
            time: time.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (input, output) = (self.input.bits(), self.output.bits());
        let (control, local) = (self.control.bits(), self.local.bits());
        write!(f, "{input}:{output}:{control}:{local}:{}:{}", self.least, self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_parse_reads_what_display_wrote_and_nothing_else() {
        let modes = Modes {
            input: InputModes::ICRNL | InputModes::IXON,
            output: OutputModes::OPOST,
            control: ControlModes::CS8,
            local: LocalModes::ECHO | LocalModes::ICANON,
            least: 1,
            time: 0,
        };
        assert_eq!(Modes::parse(&modes.to_string()), Some(modes));
        for text in ["", "1:2:3:4:5", "1:2:3:4:5:x", "1:2:3:4:5:6:7"] {
            assert_eq!(Modes::parse(text), None, "{text}");
        }
    }
}
