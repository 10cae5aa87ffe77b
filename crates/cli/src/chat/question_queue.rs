//! The questions of a conversation: the one on the screen, those that wait behind it, and those that were answered.

use std::collections::{HashSet, VecDeque};

use archon::types::{Answer, ApprovalRequest, Decision, Timestamp};
use archon_terminal::{Cells, Input, Question, QuestionKey};
use tokio::sync::oneshot;

use super::{events::Request, questions::Waiting};

/// The question on the screen.
struct Current {
    question: Question,
    /// The tool that waits for the answer; `None` for a question in the log of a run.
    tool: Option<oneshot::Sender<Decision>>,
}

/// The questions of a conversation.
#[derive(Default)]
pub(crate) struct QuestionQueue {
    current: Option<Current>,
    /// The questions of tools that work.
    waiting: VecDeque<Waiting>,
    /// The ids of the logged questions that were answered here.
    answered: Vec<String>,
    /// The ids of the logged questions whose calls are printed. A question goes away and comes back while its run reads
    /// a message.
    printed: HashSet<String>,
    /// True from an answer until the run goes on. Until then its other questions are not shown, because it may ask
    /// them again.
    is_answering: bool,
}

impl QuestionQueue {
    /// Returns the question on the screen.
    pub(crate) fn current(&self) -> Option<&Question> {
        self.current.as_ref().map(|current| &current.question)
    }

    /// Adds the question of a tool that works.
    pub(crate) fn add(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// Applies an input to the question on the screen; returns `None` without one.
    pub(crate) fn apply(&mut self, input: &Input, at: Timestamp, has_draft: bool) -> Option<QuestionKey> {
        self.current.as_mut().map(|current| current.question.apply(input, at, has_draft))
    }

    /// Notes that a frame with the question on the screen was written at this time.
    pub(crate) fn mark_drawn(&mut self, at: Timestamp) {
        if let Some(current) = &mut self.current {
            current.question.mark_drawn(at);
        }
    }

    /// Takes note that the question is no longer on the screen, so that it is drawn again before a key answers it.
    pub(crate) fn mark_hidden(&mut self) {
        if let Some(current) = &mut self.current {
            current.question.mark_hidden();
        }
    }

    /// Answers the question on the screen. A tool gets its answer at once; for a question in a log, returns the request
    /// that answers the question.
    pub(crate) fn answer(&mut self, answer: Answer) -> Option<Request> {
        let Current { question, tool } = self.current.take()?;
        match tool {
            Some(tool) => {
                // A tool that has ended needs no answer.
                let _ = tool.send(Decision::Now(answer));
                None
            }
            None => Some(Request::Answer(self.note_answered(&question), answer)),
        }
    }

    /// Refuses the question on the screen, if there is one, so that the model knows why its run was stopped; returns
    /// the request that stops the run.
    pub(crate) fn refuse(&mut self) -> Request {
        match self.current.take() {
            Some(Current { question, tool: None }) => Request::Refuse(self.note_answered(&question)),
            Some(Current { tool: Some(tool), .. }) => {
                // A tool that has ended needs no answer.
                let _ = tool.send(Decision::Now(Answer::Cancel { reason: String::new() }));
                Request::Cancel
            }
            None => Request::Cancel,
        }
    }

    /// Refuses the question on the screen if a tool or a command waits for its answer. A question in a log stays.
    pub(crate) fn refuse_waiting(&mut self) {
        if self.current.as_ref().is_some_and(|current| current.tool.is_some()) {
            self.refuse();
        }
    }

    /// Notes that the run goes on after an answer.
    pub(crate) fn go_on(&mut self) {
        self.is_answering = false;
    }

    /// Lets all questions be asked again, because the answers had no effect.
    pub(crate) fn ask_again(&mut self) {
        self.answered.clear();
        self.printed.clear();
        self.is_answering = false;
    }

    /// Keeps the question on the screen while it is open, otherwise takes the next one. Returns the new question if its
    /// call must be printed; `None` in all other cases. Logged questions are asked only while no run works.
    pub(crate) fn choose(&mut self, cells: &Cells, is_at_rest: bool) -> Option<&ApprovalRequest> {
        let is_open = match &self.current {
            Some(Current { tool: Some(tool), .. }) => !tool.is_closed(),
            Some(Current { question, tool: None }) => {
                let id = &question.request().request_id;
                is_at_rest && cells.questions().any(|open| open.request_id == *id)
            }
            None => false,
        };
        if is_open {
            return None;
        }
        self.current = self.next(cells, is_at_rest);
        let Current { question, tool } = self.current.as_ref()?;
        let request = question.request();
        // A question of a tool comes only once.
        (tool.is_some() || self.printed.insert(request.request_id.clone())).then_some(request)
    }

    fn next(&mut self, cells: &Cells, is_at_rest: bool) -> Option<Current> {
        while let Some(Waiting { request, reply }) = self.waiting.pop_front() {
            if !reply.is_closed() {
                return Some(Current { question: Question::new(request), tool: Some(reply) });
            }
        }
        if self.is_answering || !is_at_rest {
            return None;
        }
        let open = cells.questions().find(|open| !self.answered.contains(&open.request_id))?;
        Some(Current { question: Question::new(open.clone()), tool: None })
    }

    /// Notes that a logged question was answered here, and returns its id.
    fn note_answered(&mut self, question: &Question) -> String {
        let id = question.request().request_id.clone();
        self.answered.push(id.clone());
        self.is_answering = true;
        id
    }
}
