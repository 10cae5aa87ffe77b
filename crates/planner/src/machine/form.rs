//! The form of a plan's answer: what is put together is held against it, and put together anew if it does not fit.

use archon_types::{
    CommandId, FailureKind, FormProblem, FormVerdict, Outcome, OutcomeStatus, ResponseFormat, json_in,
};

use super::{Asked, Phase, PlanMachine};

impl PlanMachine {
    /// The form that the answer must have, if it must have one.
    pub fn form(&self) -> Option<&ResponseFormat> {
        self.form.as_ref().map(|form| &form.format)
    }

    /// The last answer and what was wrong with it, while it is put together anew.
    pub fn misfit(&self) -> Option<(&str, &[FormProblem])> {
        match &self.phase {
            Phase::Concluding { last, .. } => Some((last.as_deref()?, self.form.as_ref()?.problems())),
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

    /// The answer is there. It stands unless it must have a form; then what stands around the JSON is left out.
    pub(super) fn concluded(&mut self, answer: &str) {
        self.phase = match self.form {
            None => Phase::Concluded { answer: answer.to_owned() },
            Some(_) => Phase::Matching { answer: json_in(answer).into_owned() },
        };
    }

    /// No answer was put together. The last one, which did not fit, is kept for another try.
    pub(super) fn not_concluded(&mut self, problem: &str, kind: FailureKind) {
        if let Phase::Concluding { last, .. } = &mut self.phase {
            self.said = last.take();
        }
        self.phase = Phase::Broken { kind, error: format!("the answer was not put together: {problem}") };
    }

    pub(super) fn form_checked(&mut self, problems: &[FormProblem]) {
        let (Phase::Matching { answer }, Some(form)) = (&self.phase, &mut self.form) else { return };
        let answer = answer.clone();
        match form.checked(problems) {
            FormVerdict::Fits => self.phase = Phase::Concluded { answer },
            FormVerdict::Again => self.put_together(Some(answer)),
            FormVerdict::Failed(error) => {
                self.phase = Phase::Broken { kind: FailureKind::Form, error };
                self.said = Some(answer);
            }
        }
    }

    /// What is said of a run in which there is no answer of the form that it must have.
    pub(super) fn note_form(&self, outcome: &mut Outcome) {
        let is_left = matches!(outcome.status, OutcomeStatus::Limit(_)) && self.form.is_some();
        outcome.error = is_left.then(|| "there is no answer yet in the form that it must have".to_owned());
        if let Some(said) = &self.said {
            outcome.set_answer(said.as_str());
        }
    }
}
