//! Finished drafts: messages, commands, lines of the shell, and texts to remember.

use archon::types::{Timestamp, WhenBusy};
use archon_terminal::{Draft, DraftKind, Look, Work};

use super::Talk;
use crate::{
    chat::{
        attachments::{PersonMessage, own_words},
        commands::{self, Situation, Step},
        events::Request,
        way_back::Earlier,
    },
    exit::Exit,
};

/// Two presses of Esc in less than this time, in milliseconds, go back to an earlier message.
const TWICE_MS: u64 = 1_000;

impl Talk {
    /// Sends a message, to a run at work in this way, or does what the sign of the draft stands for.
    pub(super) fn send(&mut self, draft: Draft, when_busy: WhenBusy) {
        self.keep(&draft);
        let step = match draft.kind {
            DraftKind::Command => commands::run(draft.body(), &self.situation()),
            DraftKind::Memory => commands::remember(draft.body(), &self.situation()),
            DraftKind::Shell if draft.body().is_empty() => {
                Step::Refuse("the line to run is empty: write it behind the !".to_owned())
            }
            DraftKind::Shell => return self.outbox.line(draft.body().to_owned()),
            _ => {
                let own_words = own_words(&draft);
                return self.message(PersonMessage { text: draft.text, own_words }, when_busy);
            }
        };
        match step {
            // What is printed follows.
            Step::Done => self.transcript.note(Look::Dim, &draft.text),
            // The text of a command's file names no files, and its arguments do.
            Step::Message(text) => {
                self.message(PersonMessage { text, own_words: own_words(&draft) }, when_busy)
            }
            Step::Full => self.open_full(),
            Step::Leave => self.leave(Exit::Finished),
            Step::Refuse(why) => {
                self.transcript.note(Look::Warning, &why);
                self.composer.replace(draft);
            }
        }
    }

    fn message(&mut self, message: PersonMessage, when_busy: WhenBusy) {
        if let Some(warning) = commands::warning(self.transcript.cells().meter()) {
            self.transcript.note(Look::Warning, &warning);
        }
        let work = self.work();
        match self.earlier.take() {
            Some(earlier) => self.outbox.message_from(earlier, message),
            None => self.outbox.message(message, when_busy, work),
        }
    }

    /// Returns what a command can see.
    fn situation(&self) -> Situation<'_> {
        Situation {
            app: &self.app,
            meter: self.transcript.cells().meter(),
            model: &self.model,
            session: self.session.as_ref(),
            memory: self.memory.as_ref(),
            is_sandboxed: self.is_sandboxed,
            #[cfg(all(unix, feature = "undo"))]
            is_at_rest: matches!(self.work(), Work::Idle | Work::Composing),
            requests: self.outbox.requests(),
        }
    }

    /// Lets the next message continue the conversation where it ends.
    pub(super) fn stay(&mut self) {
        if self.earlier.take().is_some() {
            self.transcript.note(Look::Dim, "the next message continues the conversation where it ends");
        }
    }

    /// Takes an earlier message into the draft, to be changed and sent in its place.
    pub(super) fn take_earlier(&mut self, earlier: Earlier) {
        let note = format!(
            "{} messages, answers and results are left behind by what you send now, and stay in the logs; Ctrl+C keeps \
             the conversation as it is",
            earlier.left
        );
        self.transcript.note(Look::Dim, &note);
        self.composer.replace(Draft::message(earlier.text.clone()));
        self.earlier = Some(earlier);
    }

    /// Goes back by a message if Esc was pressed twice without a draft, and further while the draft is the message.
    pub(super) fn escape(&mut self, at: Timestamp) {
        let is_idle = self.work() == Work::Idle;
        let number = match &self.earlier {
            Some(earlier) if self.composer.draft().text == earlier.text => earlier.number + 1,
            _ if !is_idle => return self.escaped_at = None,
            _ => match self.escaped_at.take().filter(|last| at.millis_since(*last) < TWICE_MS) {
                Some(_) => 1,
                None => return self.escaped_at = Some(at),
            },
        };
        self.outbox.request(Request::Back(number));
    }
}
