//! Structured output of plans: the answer is checked against its schema, and made again if it does not
//! fit.

use archon_types::{
    CommandId, FailureKind, Outcome, OutcomeStatus, OutputVerdict, ResponseFormat, SchemaProblem, json_in,
};

use super::{Asked, Phase, PlanMachine};

impl PlanMachine {
    /// Returns the schema that the answer must fit; `None` if no schema is required.
    pub fn output_format(&self) -> Option<&ResponseFormat> {
        self.output.as_ref().map(|checker| &checker.format)
    }

    /// Returns the last answer and its problems while the answer is made again.
    pub fn last_problems(&self) -> Option<(&str, &[SchemaProblem])> {
        match &self.phase {
            Phase::Concluding { last, .. } => Some((last.as_deref()?, self.output.as_ref()?.problems())),
            _ => None,
        }
    }

    pub(super) fn put_together(&mut self, last: Option<String>) {
        let command = self.take_command();
        self.phase = Phase::Concluding { command, asked: Asked::No, last };
    }

    pub(super) fn is_concluding(&self, command: CommandId) -> bool {
        matches!(&self.phase, Phase::Concluding { command: open, .. } if *open == command)
    }

    /// Stores the answer. If the answer must fit a schema, text around the JSON is removed, and the
    /// answer is checked.
    pub(super) fn concluded(&mut self, answer: &str) {
        self.phase = match self.output {
            None => Phase::Concluded { answer: answer.to_owned() },
            Some(_) => Phase::Matching { answer: json_in(answer).into_owned() },
        };
    }

    /// Fails the run because no answer could be made. An earlier answer that did not fit the schema is kept
    /// for the next attempt.
    pub(super) fn not_concluded(&mut self, problem: &str, kind: FailureKind) {
        if let Phase::Concluding { last, .. } = &mut self.phase {
            self.invalid_output = last.take();
        }
        self.phase =
            Phase::Broken { kind, error: format!("the final answer could not be composed: {problem}") };
    }

    pub(super) fn output_checked(&mut self, problems: &[SchemaProblem]) {
        let (Phase::Matching { answer }, Some(checker)) = (&self.phase, &mut self.output) else { return };
        let answer = answer.clone();
        match checker.checked(problems) {
            OutputVerdict::Fits => self.phase = Phase::Concluded { answer },
            OutputVerdict::Again => self.put_together(Some(answer)),
            OutputVerdict::Failed(error) => {
                self.phase = Phase::Broken { kind: FailureKind::StructuredOutput, error };
                self.invalid_output = Some(answer);
            }
        }
    }

    /// Completes an outcome: sets the last answer that did not fit the schema, if there is one, and sets an error if
    /// a limit ended the run before an answer fitted the schema.
    pub(super) fn note_output(&self, outcome: &mut Outcome) {
        let is_missing = matches!(outcome.status, OutcomeStatus::Limit(_)) && self.output.is_some();
        outcome.error = is_missing.then(|| "there is no answer yet that fits the schema".to_owned());
        if let Some(answer) = &self.invalid_output {
            outcome.set_answer(answer.as_str());
        }
    }
}
