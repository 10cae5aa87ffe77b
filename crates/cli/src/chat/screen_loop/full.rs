//! The full view of a conversation, which has the terminal until the person leaves it. Runs go on meanwhile; what they
//! print is printed afterwards.

use std::io;

use archon_terminal::{FullAction, FullView, Input};

use super::{Stop, Talk};
use crate::chat::tty;

impl Talk {
    /// Opens the full view with the next frame.
    pub(super) fn open_full(&mut self) {
        self.full = Some(FullView::default());
    }

    /// Applies an input to the full view; returns false if the full view is not open.
    pub(super) fn input_to_full(&mut self, input: &Input) -> Result<bool, Stop> {
        let Some(full) = &mut self.full else { return Ok(false) };
        let done = match full.apply(input, self.transcript.cells()) {
            FullAction::Copy(text) => self.display.copy(&text),
            FullAction::Suspend => self.display.suspend(),
            FullAction::Leave => self.leave_full(),
            FullAction::Repaint => {
                self.display.redraw();
                Ok(())
            }
            _ => Ok(()),
        };
        done.map(|()| true).map_err(|_| Stop::Lost)
    }

    /// Draws a frame of the full view; returns false if the full view is not open.
    pub(super) fn draw_full(&mut self) -> io::Result<bool> {
        let work = self.work();
        let Some(full) = &mut self.full else { return Ok(false) };
        let size = tty::size();
        let page = self.display.page(size);
        let (rows, cursor) = full.rows(self.transcript.cells(), &page, size.rows.into(), work);
        self.display.draw_full(&rows, cursor, size)?;
        Ok(true)
    }

    /// Goes back to the conversation, if the full view has the terminal. A question counts as not seen yet, so that no
    /// key that was meant for the full view answers it.
    pub(super) fn leave_full(&mut self) -> io::Result<()> {
        if self.full.take().is_some() {
            self.questions.mark_hidden();
        }
        self.display.leave_full()
    }
}
