//! Frames, and notices to a person who looks elsewhere while the conversation needs somebody.

use std::io;

use archon::{SystemClock, types::Clock as _};
use archon_terminal::{Notice, Question};
use tokio::time::Instant;

use super::Talk;

impl Talk {
    /// Gives the notice that is due, and draws the frame that is due. On a lost terminal, it does nothing.
    pub(super) fn show(&mut self, is_urgent: bool) -> io::Result<()> {
        if self.is_lost {
            return Ok(());
        }
        self.give_notice();
        if is_urgent || self.display.is_due() { self.draw() } else { Ok(()) }
    }

    /// Gives the notice that is due now.
    fn give_notice(&mut self) {
        let question = self.questions.current().map(Question::request);
        let is_at_work = self.outbox.is_at_work(question.is_some());
        let text = match (self.notifier.observe(question, is_at_work, SystemClock.now()), question) {
            (None, _) => return,
            (Some(Notice::Question), Some(question)) => format!("archon asks: {}", question.action_summary),
            (Some(_), _) => "archon: the run has ended".to_owned(),
        };
        // The next frame notices that a terminal is lost.
        let _ = self.display.notify(&text);
    }

    /// Returns the time of the next notice; `None` if none is to come by itself.
    pub(super) fn notice_due(&self) -> Option<Instant> {
        let at = self.notifier.due()?;
        Some(Instant::now() + at.since(SystemClock.now()))
    }
}
