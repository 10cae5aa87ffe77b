//! Finished drafts: messages, commands, lines of the shell, and texts to remember.

use archon_terminal::{Draft, DraftKind, Look};

use super::Talk;
use crate::{
    chat::{
        commands::{self, Situation, Step},
        way_back::Earlier,
    },
    exit::Exit,
};

impl Talk {
    /// Sends a message, or does what the sign of the draft stands for.
    pub(super) fn send(&mut self, draft: Draft) {
        self.keep(&draft);
        let step = match draft.kind {
            DraftKind::Command => commands::run(draft.body(), &self.situation()),
            DraftKind::Memory => commands::remember(draft.body(), &self.situation()),
            DraftKind::Shell if draft.body().is_empty() => {
                Step::Refuse("the line to run is empty: write it behind the !".to_owned())
            }
            DraftKind::Shell => return self.outbox.line(draft.body().to_owned()),
            _ => return self.message(draft.text),
        };
        match step {
            // What is printed follows.
            Step::Done => self.transcript.note(Look::Dim, &draft.text),
            Step::Message(text) => self.message(text),
            Step::Leave => self.leave(Exit::Finished),
            Step::Refuse(why) => {
                self.transcript.note(Look::Warning, &why);
                self.composer.replace(draft);
            }
        }
    }

    fn message(&mut self, text: String) {
        if let Some(warning) = commands::warning(self.transcript.cells().meter()) {
            self.transcript.note(Look::Warning, &warning);
        }
        match self.point.take() {
            Some(point) => self.outbox.message_from(point, text),
            None => self.outbox.message(text),
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
            requests: self.outbox.requests(),
        }
    }

    /// Lets the next message continue the conversation where it ends.
    pub(super) fn stay(&mut self) {
        if self.point.take().is_some() {
            self.transcript.note(Look::Dim, "the next message continues the conversation where it ends");
        }
    }

    /// Takes an earlier message into the draft, to be sent from its point.
    pub(super) fn take_earlier(&mut self, Earlier { text, from, left }: Earlier) {
        let note = format!(
            "{left} messages and answers are left behind by what you send now, and stay in the logs; Ctrl+C keeps the \
             conversation as it is"
        );
        self.transcript.note(Look::Dim, &note);
        self.composer.replace(Draft::message(text));
        self.point = Some(from);
    }
}
