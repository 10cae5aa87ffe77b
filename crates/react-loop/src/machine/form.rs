//! Whether an answer has the form that it must have: it stands, is sent back, or the run fails.

use archon_types::{
    FailureKind, FormCheck, FormProblem, Message, RecordBody, ResponseFormat, ToolMode, json_in,
    misfit_failure, misfit_line, misfit_note,
};

use super::{Phase, ReactMachine};

impl ReactMachine {
    /// The form that answers are held against, if they are.
    pub(crate) fn form(&self) -> Option<&ResponseFormat> {
        self.config.form()
    }

    /// The record of what does not fit in the answer.
    pub(crate) fn form_record(&self) -> RecordBody {
        let problems = self.form().map(|form| form.problems(self.answer()));
        RecordBody::FormChecked { problems: problems.unwrap_or_default() }
    }

    /// The latest answer. If it must have a form, what was written around the JSON is left out.
    pub fn answer(&self) -> &str {
        &self.last_answer
    }

    /// The answer is there. It stands if it has the form that it must have.
    pub(super) fn check_form(&mut self) {
        self.misfits.clear();
        match self.form() {
            None => self.form_fits(),
            Some(_) => {
                self.last_answer = json_in(&self.last_answer).into_owned();
                self.phase = Phase::Matching;
            }
        }
    }

    /// The answer was cut off, so it has no form.
    pub(super) fn form_lost(&mut self) {
        let cut_off = self.form().map(|_| FormProblem::new("", "it was cut off"));
        self.misfits = cut_off.into_iter().collect();
    }

    pub(super) fn form_checked(&mut self, problems: &[FormProblem]) {
        if !matches!(self.phase, Phase::Matching) {
            return;
        }
        self.misfits = problems.to_vec();
        let retries = self.config.form_check.unwrap_or_else(|| FormCheck::new(0)).retries;
        if self.misfits.is_empty() {
            self.form_misses = 0;
            self.form_fits();
        } else if self.limit.is_some() {
            self.phase = Phase::Finishing(Box::new(self.outcome_at_limit()));
        } else if self.form_misses >= retries {
            let tries = self.form_misses.saturating_add(1);
            let error = misfit_failure(&self.misfits, tries);
            let then = Phase::Finishing(Box::new(self.failure(FailureKind::Form, error)));
            self.phase = Phase::Noting { text: self.correction(), then: Box::new(then) };
        } else {
            self.form_misses += 1;
            self.note(self.correction());
        }
    }

    /// Somebody takes the run up, and it is the model's turn: it reads what was wrong with its answer, if it did not.
    pub(super) fn ready_again(&mut self) {
        self.form_misses = 0;
        let last = self.window.messages().iter().last();
        let is_unread = last.is_some_and(|last| matches!(**last, Message::Assistant(_)));
        match is_unread && !self.misfits.is_empty() {
            true => self.note(self.correction()),
            false => self.ready(),
        }
    }

    /// What is wrong with the last answer, in a line; nothing if it has no such fault.
    pub(super) fn misfit(&self) -> String {
        misfit_line(&self.misfits)
    }

    fn form_fits(&mut self) {
        match self.limit {
            None => self.check_goal(),
            Some(_) => self.phase = Phase::Finishing(Box::new(self.outcome_at_limit())),
        }
    }

    fn correction(&self) -> String {
        let how = match self.config.tool_mode {
            ToolMode::Text => "write `Final Answer:`, then the whole JSON and nothing else",
            _ => "the whole JSON, and nothing else",
        };
        misfit_note(&self.misfits, how)
    }
}
