//! News of the conversation: its history, its session, the records of its runs, and what failed.

use archon::types::Event;
use archon_terminal::{Draft, Look};

use super::{Stop, Talk};
use crate::{
    chat::{
        events::Update,
        history_of_session::{History, message_of_person},
        question_queue::QuestionQueue,
        surroundings,
        transcript::Transcript,
    },
    failure::Failure,
    text::one_line,
    toolset,
};

/// The maximum number of shown characters of a text that was not sent.
const SHOWN: usize = 100;

impl Talk {
    pub(super) fn update(&mut self, update: Update) -> Result<(), Stop> {
        match update {
            Update::History(history) => self.add_history(*history),
            Update::Ready { model } => {
                self.transcript.row(surroundings::title(&self.app, &model));
                (self.model, self.is_model_new) = (model, true);
            }
            Update::Anew => self.begin_anew(),
            Update::Earlier(message) => self.take_earlier(message),
            Update::Session(session) => self.session = Some(session),
            Update::Mode(mode) => self.mode = mode,
            Update::Working { run, is_elsewhere } => {
                self.questions.go_on();
                self.is_model_new = false;
                self.outbox.begin(run, is_elsewhere);
                if self.ending.is_some() && !is_elsewhere {
                    // A message that waited has begun this run after the person left.
                    self.cancel();
                }
            }
            Update::Event(event) => self.event(&event),
            Update::Rest(failure) => self.rest(failure),
            Update::NotSent(text, earlier, failure) => {
                self.outbox.forget(&text);
                self.transcript.note_failure(&failure);
                if self.composer.is_empty() {
                    self.earlier = earlier;
                    self.composer.replace(Draft::message(text));
                } else {
                    self.note_unsent(&text);
                }
            }
            Update::NotRun(line, failure) => {
                self.outbox.forget(&line);
                self.transcript.note_failure(&failure);
                if self.composer.is_empty() {
                    self.composer.replace(Draft::typed(format!("!{line}")));
                } else {
                    self.note_unsent(&line);
                }
            }
            Update::Failed(failure) => {
                self.questions.ask_again();
                self.transcript.note_failure(&failure);
            }
            Update::Over(failure) => return Err(Stop::Failed(failure)),
        }
        Ok(())
    }

    /// Forgets the conversation, for another one. What is printed stays.
    fn begin_anew(&mut self) {
        // What is not printed yet would be lost.
        let _ = self.leave_full();
        let _ = self.draw();
        self.transcript = Transcript::default();
        self.questions = QuestionQueue::default();
        self.outbox.clear();
        (self.session, self.earlier) = (None, None);
    }

    fn add_history(&mut self, history: History) {
        history.drafts().into_iter().for_each(|draft| self.composer.remember(draft));
        self.transcript.add_history(&history, self.session.as_ref());
        if let Some(newest) = history.newest {
            self.outbox.set_run(newest.run_id);
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::Record { run, record } = event
            && Some(run) == self.outbox.run()
            && let Some(text) = message_of_person(record)
        {
            self.outbox.forget(&text);
        }
        self.transcript.apply(event);
    }

    /// Names a text that was not sent, and is not in the draft either, because the person has begun another one.
    fn note_unsent(&mut self, text: &str) {
        let text = one_line(text, SHOWN);
        self.transcript.note(Look::Warning, &format!("this was not sent; Ctrl+R finds it: {text}"));
    }

    fn rest(&mut self, failure: Option<Failure>) {
        self.outbox.rest();
        // The run may have checked out another one.
        self.branch = toolset::folder(&self.app).and_then(|folder| surroundings::branch(&folder));
        let Some(failure) = failure else { return };
        if let Some(run) = self.outbox.run() {
            self.transcript.stop(run);
        }
        self.transcript.note_failure(&failure);
    }
}
