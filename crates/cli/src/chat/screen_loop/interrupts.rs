//! Interrupts and signals: they stop the run, or end the conversation.

use archon::{SystemClock, types::Clock};
use archon_terminal::InterruptAction;

use super::{Stop, Talk};
use crate::{
    chat::{ending::Ending, sources::Signal, surroundings},
    exit::Exit,
    output,
};

impl Talk {
    pub(super) fn interrupt(&mut self, meaning: InterruptAction) {
        match meaning {
            InterruptAction::CancelRun => self.cancel(),
            InterruptAction::ClearDraft => self.stay(),
            InterruptAction::Leave => self.leave(Exit::Finished),
            InterruptAction::LeaveAtOnce => self.leave_at_once(),
        }
    }

    /// Stops the run. A question that is open is refused, so that the model knows why it was stopped.
    pub(super) fn cancel(&mut self) {
        let request = self.questions.refuse();
        self.outbox.request(request);
    }

    /// Ends the conversation, as soon as a run that works here has stopped.
    pub(super) fn leave(&mut self, exit: Exit) {
        let is_at_work = self.is_at_work();
        if is_at_work {
            self.cancel();
        }
        self.ending = Some(Ending::new(exit, is_at_work));
    }

    /// Ends the conversation because the terminal is lost, as soon as a run that works here has stopped.
    pub(super) fn lose(&mut self) {
        if !std::mem::replace(&mut self.is_lost, true) {
            self.leave(Exit::HungUp);
        }
    }

    pub(super) fn is_at_work(&self) -> bool {
        self.outbox.is_at_work(self.questions.current().is_some())
    }

    fn leave_at_once(&mut self) {
        self.close(false);
        self.app.output.release();
        self.app.output.note(output::Look::Plain, "Force exiting due to rapid interrupts!");
        if let Some(session) = &self.session {
            self.app.note(format!(
                "the conversation is kept: {}",
                surroundings::continue_line(&self.app, session)
            ));
        }
        std::process::exit(Exit::Failed as i32);
    }

    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Stop> {
        match signal {
            Signal::Interrupt => {
                let meaning = self.composer.interrupt(SystemClock.now(), self.work());
                self.interrupt(meaning);
            }
            Signal::Terminate => self.leave(Exit::Interrupted),
            Signal::HangUp => self.leave(Exit::HungUp),
            Signal::Continue => self.display.take_again().map_err(|_| Stop::Lost)?,
        }
        Ok(())
    }
}
