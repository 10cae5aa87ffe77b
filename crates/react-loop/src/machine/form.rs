//! The check of structured output: an answer that does not fit its schema is sent back, and in the end the
//! run fails.

use archon_types::{
    FailureKind, FormCheck, FormProblem, Message, RecordBody, ResponseFormat, ToolMode, json_in,
    misfit_failure, misfit_line, misfit_note,
};

use super::{Phase, ReactMachine};

impl ReactMachine {
    /// Returns the schema that answers are checked against, if they are checked.
    pub(crate) fn form(&self) -> Option<&ResponseFormat> {
        self.config.form()
    }

    /// Returns the record of the answer's problems with its schema.
    pub(crate) fn form_record(&self) -> RecordBody {
        let problems = self.form().map(|form| form.problems(self.answer()));
        RecordBody::FormChecked { problems: problems.unwrap_or_default() }
    }

    /// Returns the latest answer. If it must fit a schema, text around the JSON is left out.
    pub fn answer(&self) -> &str {
        &self.last_answer
    }

    /// Starts the check of the answer, or accepts it if there is no schema.
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

    /// Notes that the answer was cut off and so cannot fit its schema.
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

    /// Makes it the model's turn after a resume. If it has not yet read what was wrong with its answer, it
    /// does now.
    pub(super) fn ready_again(&mut self) {
        self.form_misses = 0;
        let last = self.window.messages().iter().last();
        let is_unread = last.is_some_and(|last| matches!(**last, Message::Assistant(_)));
        match is_unread && !self.misfits.is_empty() {
            true => self.note(self.correction()),
            false => self.ready(),
        }
    }

    /// Returns the problems of the last answer in one line; empty if there are none.
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
