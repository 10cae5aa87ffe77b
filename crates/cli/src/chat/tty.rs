//! The terminal of this process: its size, its modes, and its guard.

use std::io::{self, Write};

use archon_terminal::Size;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
#[cfg(unix)]
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

#[cfg(unix)]
use super::guard::{Guard, Held};

/// The size that a terminal without a size is treated as.
const UNKNOWN: Size = Size::new(80, 24);

/// The terminal in raw mode: each key is read at once, and nothing is echoed. Dropping the value restores the modes.
pub(crate) struct Tty {
    is_raw: bool,
    early: u64,
    #[cfg(unix)]
    guard: Option<Guard>,
}

impl Tty {
    /// Begins raw mode, with a guard that ends it if this process is killed.
    ///
    /// # Errors
    /// Standard input is no terminal, or the terminal takes no escape sequences.
    pub(crate) fn open() -> io::Result<Self> {
        // This switches them on.
        #[cfg(windows)]
        if !crossterm::ansi_support::supports_ansi() {
            return Err(io::Error::other("the console takes no escape sequences"));
        }
        let mut tty = Self {
            is_raw: false,
            early: 0,
            // The guard has to know the modes from before.
            #[cfg(unix)]
            guard: tcgetattr(io::stdin()).ok().and_then(|saved| Guard::start(&saved).ok()),
        };
        tty.take()?;
        // Before raw mode, the terminal counts whole lines only.
        #[cfg(unix)]
        {
            tty.early = rustix::io::ioctl_fionread(io::stdin()).unwrap_or_default();
        }
        Ok(tty)
    }

    /// Returns the number of bytes that were typed before raw mode and are not read yet.
    pub(crate) fn early_bytes(&self) -> u64 {
        self.early
    }

    /// Begins raw mode.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(guard) = &mut self.guard {
            guard.tell(Held::Screen);
        }
        enable_raw_mode()?;
        self.is_raw = true;
        Ok(())
    }

    /// Sets raw mode again, because a shell may have ended it. The terminal is never in line mode in between: in line
    /// mode, it would handle keys such as Ctrl+U itself.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        if self.is_raw {
            let mut modes = tcgetattr(io::stdin())?;
            modes.make_raw();
            return Ok(tcsetattr(io::stdin(), OptionalActions::Now, &modes)?);
        }
        self.take()
    }

    /// Lets the guard know that the terminal shows its alternate screen, or its own one again.
    pub(crate) fn note_alternate_screen(&mut self, is_shown: bool) {
        #[cfg(unix)]
        if let Some(guard) = &mut self.guard {
            guard.tell(if is_shown { Held::AlternateScreen } else { Held::Screen });
        }
        #[cfg(not(unix))]
        let _ = is_shown;
    }

    /// Ends raw mode, so that other programs can use the terminal.
    pub(crate) fn give_back(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            // A terminal that is lost has no modes to restore.
            let _ = disable_raw_mode();
        }
        #[cfg(unix)]
        if let Some(guard) = &mut self.guard {
            guard.tell(Held::Nothing);
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
        #[cfg(unix)]
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
    }
}

/// Returns the size of the terminal.
pub(crate) fn size() -> Size {
    read_size().filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(UNKNOWN)
}

#[cfg(unix)]
fn read_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(Size::new(size.ws_col, size.ws_row))
}

#[cfg(not(unix))]
fn read_size() -> Option<Size> {
    crossterm::terminal::size().ok().map(|(columns, rows)| Size::new(columns, rows))
}

/// Returns the terminal for frames, without the buffer of standard output: the buffer writes line by line, but a frame
/// must be written in one piece.
///
/// # Errors
/// Standard output is closed.
#[cfg(unix)]
pub(crate) fn output() -> io::Result<Box<dyn Write>> {
    use std::os::fd::AsFd as _;
    let terminal = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Box::new(std::fs::File::from(terminal)))
}

/// Returns the terminal for frames.
#[cfg(not(unix))]
pub(crate) fn output() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(io::stdout()))
}

/// Suspends this process and those that the shell started with it, until the shell continues them.
#[cfg(unix)]
pub(crate) fn suspend() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}
