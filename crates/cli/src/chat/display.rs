//! The terminal as a conversation draws on it: the modes, the screen, and the time of the next frame.

use std::{
    io::{self, Write},
    time::Duration,
};

use archon_terminal::{
    Alternate, BELL, Frame, Inline, Page, Place, Row, Screen, Size, Support, ThemeName, desktop_notice,
};
use tokio::time::Instant;

use super::tty::{self, Tty};
use crate::config::{ChatSettings, Notify};

/// The least time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(33);
/// The time after a key in which the terminal's cursor stands at the draft's caret.
const TYPING: Duration = Duration::from_millis(1_500);

/// The terminal of a conversation.
pub(crate) struct Display {
    tty: Tty,
    screen: Inline<Box<dyn Write>>,
    /// The alternate screen while a full view is on it.
    full: Option<Alternate<Box<dyn Write>>>,
    support: Support,
    theme: ThemeName,
    notify: Notify,
    drawn_at: Instant,
    typed_at: Option<Instant>,
    is_dirty: bool,
}

impl Display {
    /// Creates a display that draws nothing before the first [`draw`](Self::draw).
    ///
    /// # Errors
    /// Standard output is closed.
    pub(crate) fn new(tty: Tty, support: Support, settings: ChatSettings) -> io::Result<Self> {
        Ok(Self {
            tty,
            screen: Inline::new(tty::output()?, support),
            full: None,
            support,
            theme: settings.theme.unwrap_or_default().into(),
            notify: settings.notify.unwrap_or_default(),
            drawn_at: Instant::now(),
            typed_at: None,
            is_dirty: false,
        })
    }

    /// Returns the page for a terminal of this size.
    pub(crate) fn page(&self, size: Size) -> Page {
        Page::new(size.width(), self.support.theme_named(self.theme))
    }

    /// Returns the name of the theme.
    pub(crate) fn theme(&self) -> ThemeName {
        self.theme
    }

    /// Uses another theme from the next frame on. Committed rows stay as they are.
    pub(crate) fn set_theme(&mut self, theme: ThemeName) {
        self.theme = theme;
    }

    /// Gives the person a notice as the setting `chat.notify` says: rings the bell, shows `text` on the desktop, or
    /// does nothing.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn notify(&mut self, text: &str) -> io::Result<()> {
        let bytes = match self.notify {
            Notify::Bell => BELL.to_owned(),
            Notify::Osc9 => desktop_notice(text),
            Notify::Off => return Ok(()),
        };
        let out = self.screen.out_mut();
        out.write_all(bytes.as_bytes())?;
        out.flush()
    }

    /// Notes that the person pressed a key.
    pub(crate) fn note_key(&mut self) {
        self.typed_at = Some(Instant::now());
    }

    /// Lets the next frame draw the caret, and keep the terminal's cursor at the beginning of the live area, if no key was
    /// pressed for [`TYPING`].
    pub(crate) fn rest_cursor(&mut self) {
        self.typed_at.take_if(|typed| typed.elapsed() >= TYPING);
    }

    /// Returns true if a frame may be drawn now. Otherwise notes that a frame is due later.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_time = self.drawn_at.elapsed() >= FRAME;
        self.is_dirty |= !is_time;
        is_time
    }

    /// Returns the time of the next frame; `None` if nothing changes by itself.
    pub(crate) fn due(&self) -> Option<Instant> {
        let frame = self.is_dirty.then(|| self.drawn_at + FRAME);
        let cursor = self.typed_at.map(|typed| typed + TYPING);
        frame.into_iter().chain(cursor).min()
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn draw(
        &mut self,
        committed: &[Row],
        live: &[Row],
        caret: Place,
        size: Size,
    ) -> io::Result<()> {
        let caret_is_real = self.typed_at.is_some_and(|typed| typed.elapsed() < TYPING);
        self.screen.frame(&Frame { committed, live, caret: Some(caret), caret_is_real, size })?;
        (self.drawn_at, self.is_dirty) = (Instant::now(), false);
        Ok(())
    }

    /// Draws a frame of a full view, with a row for each row of the terminal. The first one goes to the alternate screen.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn draw_full(&mut self, rows: &[Row], cursor: Place, size: Size) -> io::Result<()> {
        let full = match &mut self.full {
            Some(full) => full,
            None => {
                // What is committed ends at the cursor then, and nothing is below.
                self.screen.leave()?;
                self.tty.note_alternate_screen(true);
                self.full.insert(Alternate::new(tty::output()?, self.support))
            }
        };
        full.frame(rows, cursor, size)?;
        (self.drawn_at, self.is_dirty) = (Instant::now(), false);
        Ok(())
    }

    /// Puts a text into the clipboard, while a full view is on the screen.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        self.full.as_mut().map_or(Ok(()), |full| full.copy(text))
    }

    /// Goes back from the alternate screen, if a full view is on it.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn leave_full(&mut self) -> io::Result<()> {
        let Some(mut full) = self.full.take() else { return Ok(()) };
        full.leave()?;
        self.tty.note_alternate_screen(false);
        Ok(())
    }

    /// Makes the next frame draw the whole live area or the whole full view, not only the changes.
    pub(crate) fn redraw(&mut self) {
        self.screen.redraw();
        if let Some(full) = &mut self.full {
            full.redraw();
        }
    }

    /// Gives the terminal to another program until [`take_again`](Self::take_again).
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        self.leave_full()?;
        self.screen.leave()?;
        self.tty.give_back();
        Ok(())
    }

    /// Gives the terminal back to the shell until the shell continues this process.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        {
            self.give_back()?;
            tty::suspend();
            self.tty.take()?;
        }
        Ok(())
    }

    /// Takes the terminal again, after the process was continued or another program had the terminal, because the shell
    /// or that program may have set other modes.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(crate) fn take_again(&mut self) -> io::Result<()> {
        self.tty.take_again()?;
        self.redraw();
        Ok(())
    }

    /// Erases the live area, and gives the terminal back.
    pub(crate) fn close(&mut self) {
        // A terminal that is lost shows nothing.
        let _ = self.leave_full();
        let _ = self.screen.leave();
        self.tty.give_back();
    }
}
