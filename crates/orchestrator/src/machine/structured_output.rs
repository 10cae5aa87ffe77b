//! Structured output of a team: if the answer does not fit the schema, the lead is asked again.

use archon_types::{CallId, FailureKind, OutputVerdict, ResponseFormat, SchemaProblem, schema_failure};

use super::{Job, JobState, Phase, Purpose, TeamMachine};

impl TeamMachine {
    /// Returns the schema that the answer must fit, if there is one.
    pub fn output_format(&self) -> Option<&ResponseFormat> {
        self.output.as_ref().map(|checker| &checker.format)
    }

    /// Returns true if a resume may help the failed run: the planner failed for a temporary reason, or the
    /// lead gave no answer that fits the schema.
    pub fn may_try_again(&self) -> bool {
        match &self.phase {
            Phase::Broken { kind: FailureKind::StructuredOutput, .. } => {
                self.output.is_some() && self.lead.is_some()
            }
            Phase::Broken { kind, .. } => kind.may_pass() && (self.jobs.is_empty() || self.has_lost()),
            _ => false,
        }
    }

    /// Returns the schema as text for the prompt, for an agent that cannot ask its model for structured output.
    /// `None` if the answer of this delegation need not fit a schema.
    pub fn schema_text(&self, call: CallId) -> Option<String> {
        let format = self.output_format().filter(|_| self.is_synthesis(call))?;
        Some(format!(
            "Answer with nothing but JSON that fits this JSON Schema of a {}:\n{}\n",
            format.name, format.schema
        ))
    }

    /// Returns whether a delegation combines the answer.
    pub fn is_synthesis(&self, call: CallId) -> bool {
        self.job(call.command).is_some_and(|job| matches!(job.purpose, Purpose::Synthesize { .. }))
    }

    /// Returns the answer that must be checked against the schema now.
    pub(super) fn output_due(&self) -> Option<String> {
        let is_open = self.output.is_some() && !self.fits && self.answer.is_none();
        if !is_open || self.phase != Phase::Concluding {
            return None;
        }
        let have_all_ended = self.jobs.iter().all(|job| job.is_over() && job.under_way() == 0);
        (have_all_ended && !self.has_open_conflict()).then(|| self.draft())
    }

    pub(super) fn output_checked(&mut self, problems: &[SchemaProblem]) {
        let Some(answer) = self.output_due() else { return };
        let Some(checker) = &mut self.output else { return };
        let verdict = checker.checked(problems);
        let lost = match self.last_synthesis().map(|job| &job.state) {
            Some(JobState::Failed { reason }) => Some(reason.clone()),
            _ => None,
        };
        match (verdict, lost) {
            (OutputVerdict::Fits, _) => self.fits = true,
            (_, Some(reason)) => {
                let error = format!("no answer that fits the schema was made: {reason}");
                self.broken(FailureKind::Subtasks, error, answer);
            }
            (OutputVerdict::Again, None) if self.lead.is_some() => self.synthesize_again(problems),
            (OutputVerdict::Again, None) => {
                let error = format!("{}; and the team has no lead", schema_failure(problems, 1));
                self.broken(FailureKind::StructuredOutput, error, answer);
            }
            (OutputVerdict::Failed(error), None) => self.broken(FailureKind::StructuredOutput, error, answer),
        }
    }

    /// Lets a failed run continue on a resume: the planner is asked again, or the lead may try again.
    pub(super) fn try_again(&mut self) {
        if !self.may_try_again() {
            return;
        }
        if self.jobs.is_empty() {
            self.phase = Phase::Planning;
        } else if self.has_lost() {
            self.phase = Phase::Working;
        } else if let Some(checker) = &mut self.output {
            checker.begin_again();
            let problems = checker.problems().to_vec();
            (self.phase, self.answer) = (Phase::Concluding, None);
            self.synthesize_again(&problems);
        }
    }

    fn synthesize_again(&mut self, problems: &[SchemaProblem]) {
        let (round, notes) = match self.last_synthesis().map(|job| &job.purpose) {
            Some(Purpose::Synthesize { round, notes, .. }) => (*round, notes.clone()),
            _ => (0, None),
        };
        self.synthesize(round, notes, problems.to_vec());
    }

    fn last_synthesis(&self) -> Option<&Job> {
        self.jobs.iter().rev().find(|job| matches!(job.purpose, Purpose::Synthesize { .. }))
    }

    fn broken(&mut self, kind: FailureKind, error: String, answer: String) {
        self.answer = Some(answer);
        self.phase = Phase::Broken { kind, error };
    }
}
