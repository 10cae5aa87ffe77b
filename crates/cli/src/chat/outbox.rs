//! The sending side of a conversation: requests, the messages that no run has read yet, and the run at work.

use archon::types::{RunId, WhenBusy};
use archon_terminal::{Cells, Work};
use tokio::sync::mpsc::UnboundedSender;

use super::{attachments::PersonMessage, events::Request, way_back::Earlier};

/// A message that no run has read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) text: String,
    /// The description of the time at which a run reads the message; empty for a message that is on its way.
    pub(crate) when: &'static str,
}

/// The place where a run of the conversation works now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtWork {
    /// No run.
    Nobody,
    /// A run of this process.
    Here,
    /// A run of another process.
    Elsewhere,
}

/// Sends the requests of the screen to the conversation, and knows the messages that no run has read yet.
pub(crate) struct Outbox {
    requests: UnboundedSender<Request>,
    unread: Vec<Unread>,
    at_work: AtWork,
    run: Option<RunId>,
}

impl Outbox {
    pub(crate) fn new(requests: UnboundedSender<Request>) -> Self {
        Self { requests, unread: Vec::new(), at_work: AtWork::Nobody, run: None }
    }

    /// Sends a request. A conversation that has ended takes none.
    pub(crate) fn request(&self, request: Request) {
        let _ = self.requests.send(request);
    }

    /// Sends a message, which is unread until a run reads it. `when_busy` and `work`, the present work of the
    /// conversation, decide when that happens.
    pub(crate) fn message(&mut self, message: PersonMessage, when_busy: WhenBusy, work: Work) {
        let when = match when_busy {
            _ if !work.is_busy() && work != Work::Elsewhere => "",
            WhenBusy::Steer => "with the next request",
            _ => "after this run",
        };
        self.unread.push(Unread { text: message.text.clone(), when });
        self.request(Request::Send(message, when_busy));
    }

    /// Sends a message in place of an earlier one.
    pub(crate) fn message_from(&mut self, earlier: Earlier, message: PersonMessage) {
        self.unread.push(Unread { text: message.text.clone(), when: "" });
        self.request(Request::SendFrom(earlier, message));
    }

    /// Runs a line of the shell. The line counts as unread until its run has it.
    pub(crate) fn line(&mut self, line: String) {
        self.unread.push(Unread { text: line.clone(), when: "" });
        self.request(Request::Line(line));
    }

    /// Returns the sender for requests of commands.
    pub(crate) fn requests(&self) -> &UnboundedSender<Request> {
        &self.requests
    }

    /// Forgets the unread messages and the run, because another conversation begins.
    pub(crate) fn clear(&mut self) {
        self.unread.clear();
        (self.at_work, self.run) = (AtWork::Nobody, None);
    }

    /// Returns the messages that no run has read yet.
    pub(crate) fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Removes the first message with this text from the unread messages.
    pub(crate) fn forget(&mut self, text: &str) {
        if let Some(index) = self.unread.iter().position(|unread| unread.text.trim() == text.trim()) {
            self.unread.remove(index);
        }
    }

    /// Returns the newest run of the conversation.
    pub(crate) fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// Sets the newest run of the conversation, as it was read from the session.
    pub(crate) fn set_run(&mut self, run: RunId) {
        self.run = Some(run);
    }

    /// Notes that a run works.
    pub(crate) fn begin(&mut self, run: RunId, is_elsewhere: bool) {
        self.run = Some(run);
        self.at_work = if is_elsewhere { AtWork::Elsewhere } else { AtWork::Here };
    }

    /// Notes that no run works any more.
    pub(crate) fn rest(&mut self) {
        self.at_work = AtWork::Nobody;
    }

    /// Returns the place where a run works now.
    pub(crate) fn at_work(&self) -> AtWork {
        self.at_work
    }

    /// Returns true if a run works here, or begins to work. A run with an open question rests, and its messages wait in
    /// the journal.
    pub(crate) fn is_at_work(&self, has_question: bool) -> bool {
        let is_on_its_way = !self.unread.is_empty() && !has_question;
        self.at_work == AtWork::Here || self.at_work == AtWork::Nobody && is_on_its_way
    }

    /// Returns what the conversation does now, apart from questions and the draft.
    pub(crate) fn work(&self, cells: &Cells) -> Work {
        match self.at_work {
            AtWork::Elsewhere => Work::Elsewhere,
            AtWork::Here => match cells.work() {
                Work::Idle => Work::Model,
                work => work,
            },
            // A message is on its way.
            AtWork::Nobody if !self.unread.is_empty() => Work::Model,
            AtWork::Nobody => Work::Idle,
        }
    }
}
