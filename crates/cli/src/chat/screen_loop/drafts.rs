//! Drafts: finished ones, which are messages, commands, lines of the shell or texts to remember; those that are kept
//! for later; and the one that is open in the person's editor.

use std::io;

use archon::types::{Timestamp, WhenBusy};
use archon_terminal::{Draft, DraftKind, Look, Work};

use super::Talk;
use crate::{
    chat::{
        attachments::{PersonMessage, own_words},
        commands::{self, Situation, Step},
        editor::Editing,
        events::Request,
        history_file::HistoryFile,
        outbox::AtWork,
        sources::Sources,
        way_back::{Earlier, STAYS},
    },
    exit::Exit,
    text::visible_path,
};

/// Two presses of Esc in less than this time, in milliseconds, go back to an earlier message.
const TWICE_MS: u64 = 1_000;

impl Talk {
    /// Sends the draft as a message, or executes it if it is a command, a shell line or a text to remember. `when_busy`
    /// tells when a run at work reads the message.
    pub(super) fn send(&mut self, draft: Draft, when_busy: WhenBusy) {
        self.keep(&draft);
        let step = commands::apply(&draft, &self.situation());
        match step {
            // What is printed follows.
            Step::Done => self.transcript.note(Look::Dim, &draft.text),
            Step::Theme(theme) => {
                self.display.set_theme(theme);
                self.transcript.note(Look::Dim, &draft.text);
            }
            // The text of a command's file names no files, and its arguments do.
            Step::Message(text) => {
                self.message(PersonMessage { text, own_words: own_words(&draft), skill: None }, when_busy)
            }
            Step::Skill(call) => {
                let (text, own_words) = (draft.text.clone(), own_words(&draft));
                self.message(PersonMessage { text, own_words, skill: Some(call) }, when_busy)
            }
            Step::Line(line) => {
                self.close_command_question();
                self.outbox.line(line);
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
        self.close_command_question();
        if let Some(warning) = commands::warning(self.transcript.cells().meter()) {
            self.transcript.note(Look::Warning, &warning);
        }
        let work = self.work();
        match self.earlier.take() {
            Some(earlier) => self.outbox.message_from(earlier, message),
            None => self.outbox.message(message, when_busy, work),
        }
    }

    /// Refuses the question of a command, such as `/undo`, because a run begins that may change the same files. While a
    /// run works here, the open question is one of the run's tools, and stays.
    fn close_command_question(&mut self) {
        if self.outbox.at_work() != AtWork::Here {
            self.questions.refuse_waiting();
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
            theme: self.display.theme(),
            #[cfg(all(unix, feature = "undo"))]
            is_at_rest: matches!(self.work(), Work::Idle | Work::Composing),
            requests: self.outbox.requests(),
        }
    }

    /// Makes the next message continue at the end of the conversation, instead of replacing an earlier message.
    pub(super) fn stay(&mut self) {
        if self.earlier.take().is_some() {
            self.transcript.note(Look::Dim, STAYS);
        }
    }

    /// Takes an earlier message into the draft, to be changed and sent in its place.
    pub(super) fn take_earlier(&mut self, earlier: Earlier) {
        self.transcript.note(Look::Dim, &earlier.note("Ctrl+C"));
        self.composer.replace(Draft::message(earlier.text.clone()));
        self.earlier = Some(earlier);
    }

    /// Goes back to the last message if Esc was pressed twice without a draft and without a run. While the draft is an
    /// unchanged earlier message, each Esc goes back by one more message.
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

    /// Reads the drafts of earlier conversations.
    pub(super) fn open_history(&mut self) {
        let (file, drafts) = HistoryFile::open(&self.app.data_dir);
        drafts.into_iter().for_each(|draft| self.composer.remember(draft));
        self.history = Some(file);
    }

    /// Keeps a draft for later conversations. If that fails, a person needs to know it once.
    fn keep(&mut self, draft: &Draft) {
        if let Some(Err(e)) = self.history.as_mut().map(|file| file.append(draft)) {
            self.history = None;
            let folder = visible_path(&self.app.data_dir);
            let note = format!(
                "this draft and those that follow are not kept for later: cannot write history.jsonl in {folder}: {e}. Make the folder writable."
            );
            self.transcript.note(Look::Warning, &note);
        }
    }

    /// Opens the draft in the person's editor, and waits until that has ended.
    ///
    /// # Errors
    /// The terminal is lost.
    pub(super) async fn edit_draft(&mut self, sources: &mut Sources) -> io::Result<()> {
        let before = self.composer.draft();
        self.display.give_back()?;
        let editing = async { Editing::open(&self.app, &before.text)?.text().await };
        let edited = sources.rest_until(editing).await;
        self.display.take_again()?;
        match edited {
            Ok(text) if text == before.text => {}
            // A pasted sign stays a part of a message.
            Ok(text)
                if before.kind == DraftKind::Message && text.chars().next() == before.text.chars().next() =>
            {
                let mut draft = Draft::message(text);
                if before.pasted.is_empty() {
                    draft.pasted.clear();
                }
                self.composer.replace(draft);
            }
            Ok(text) => self.composer.replace(Draft::typed(text)),
            Err(failure) => self.transcript.note_failure(&failure),
        }
        Ok(())
    }
}
