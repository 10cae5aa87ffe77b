//! The check of structured output: sends back answers that do not fit the schema, and finally ends the run.

use archon_types::{
    FailureKind, Message, OutputCheck, RecordBody, ResponseFormat, SchemaProblem, ToolMode, json_in,
    problems_note, schema_failure,
};

use super::{Phase, ReactMachine};

impl ReactMachine {
    /// Returns the schema that answers are checked against; `None` if answers are not checked.
    pub(crate) fn output_format(&self) -> Option<&ResponseFormat> {
        self.config.output_format()
    }

    /// Returns the record of the answer's problems with its schema.
    pub(crate) fn output_record(&self) -> RecordBody {
        let problems = self.output_format().map(|form| form.problems(self.answer()));
        RecordBody::OutputChecked { problems: problems.unwrap_or_default() }
    }

    /// Returns the latest answer. If the answer must fit a schema, text around the JSON is left out.
    pub fn answer(&self) -> &str {
        &self.last_answer
    }

    /// Starts the check of the answer, or accepts the answer if there is no schema.
    pub(super) fn check_output(&mut self) {
        self.misfits.clear();
        match self.output_format() {
            None => self.output_fits(),
            Some(_) => {
                self.last_answer = json_in(&self.last_answer).into_owned();
                self.phase = Phase::Matching;
            }
        }
    }

    /// Records that the answer was cut off and so cannot fit its schema.
    pub(super) fn output_truncated(&mut self) {
        let cut_off = self.output_format().map(|_| SchemaProblem::new("", "it was cut off"));
        self.misfits = cut_off.into_iter().collect();
    }

    pub(super) fn output_checked(&mut self, problems: &[SchemaProblem]) {
        if !matches!(self.phase, Phase::Matching) {
            return;
        }
        self.misfits = problems.to_vec();
        let retries = self.config.output_check.unwrap_or_else(|| OutputCheck::new(0)).retries;
        if self.misfits.is_empty() {
            self.schema_misses = 0;
            self.output_fits();
        } else if self.limit.is_some() {
            self.phase = Phase::Finishing(Box::new(self.outcome_at_limit()));
        } else if self.schema_misses >= retries {
            let tries = self.schema_misses.saturating_add(1);
            let error = schema_failure(&self.misfits, tries);
            let then = Phase::Finishing(Box::new(self.failure(FailureKind::StructuredOutput, error)));
            self.phase = Phase::Noting { text: self.correction(), then: Box::new(then) };
        } else {
            self.schema_misses += 1;
            self.note(self.correction());
        }
    }

    /// Starts the model's turn after a resume. If the model has not yet read the problems of its answer,
    /// the problems are added.
    pub(super) fn ready_again(&mut self) {
        self.schema_misses = 0;
        let last = self.window.messages().iter().last();
        let is_unread = last.is_some_and(|last| matches!(**last, Message::Assistant(_)));
        match is_unread && !self.misfits.is_empty() {
            true => self.note(self.correction()),
            false => self.ready(),
        }
    }

    fn output_fits(&mut self) {
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
        problems_note(&self.misfits, how)
    }
}
