//! Requests of a person about the session: its mode, and a compaction.

use archon_types::{
    AuxiliaryCall, CallId, Json, ModeSource, PLAN_TOOL, RecordBody, SessionMode, Speaker, ToolResult,
    metadata,
};

use super::{OutcomeStatus, Phase, ReactMachine, ReactTask, Step};

impl ReactMachine {
    /// Returns the mode of the session.
    pub fn mode(&self) -> SessionMode {
        self.mode
    }

    /// Applies the record of a request of a person.
    pub(super) fn apply_person_request(&mut self, request: &RecordBody) {
        match request {
            RecordBody::ModeChanged { mode, source } => self.change_mode(*mode, *source),
            RecordBody::CompactionRequested { instructions } => {
                self.request_compaction(instructions.as_deref())
            }
            _ => {}
        }
    }

    fn change_mode(&mut self, mode: SessionMode, source: ModeSource) {
        self.mode = mode;
        if source == ModeSource::AgreedPlan {
            // The result of the plan's call tells the model.
            self.has_plan_mode_hint = mode == SessionMode::Plan;
        }
        self.is_plan_agreed = false;
    }

    /// Notes that a person agreed to the plan of the model, if `result` is that of the call with the plan.
    pub(super) fn note_agreed_plan(&mut self, id: CallId, result: &ToolResult) {
        let is_agreed = result.metadata.get(metadata::APPROVED) == Some(&Json::Bool(true));
        if self.mode == SessionMode::Plan
            && is_agreed
            && self.call(id).is_some_and(|call| call.call.name == PLAN_TOOL)
        {
            self.is_plan_agreed = true;
        }
    }

    /// Returns the record that ends plan mode, after a person agreed to the plan.
    pub(super) fn end_of_plan_mode(&self) -> Option<Step> {
        if !self.is_plan_agreed || matches!(self.phase, Phase::Finishing(_) | Phase::Ended(_)) {
            return None;
        }
        let (mode, source) = (SessionMode::Ask, ModeSource::AgreedPlan);
        Some(Step::Append(RecordBody::ModeChanged { mode, source }))
    }

    /// Returns the text that tells the model that plan mode began or ended; `None` if the model knows already.
    pub(super) fn mode_hint(&self) -> Option<&'static str> {
        match (self.mode == SessionMode::Plan, self.has_plan_mode_hint) {
            (true, false) if self.can_finish_plan() => Some(PLAN_MODE),
            (true, false) => Some(PLAN_MODE_WITHOUT_TOOL),
            (false, true) => Some(NO_PLAN_MODE),
            _ => None,
        }
    }

    /// Returns true if the model may call the tool that ends plan mode. In a run that another run called, this tool
    /// is refused.
    fn can_finish_plan(&self) -> bool {
        self.prompted_by == Speaker::Person && self.config.tool(PLAN_TOOL).is_some()
    }

    /// Notes that the model has read the hint.
    pub(super) fn note_mode_hint(&mut self) {
        self.has_plan_mode_hint = self.mode == SessionMode::Plan;
    }

    /// Returns true if a compaction that a person requests now can happen in this run: another request to the model
    /// may follow. Otherwise the next run of the session compacts.
    pub(crate) fn can_compact(&self) -> bool {
        let is_answered =
            matches!(self.phase, Phase::Matching | Phase::Checking | Phase::Finishing(_) | Phase::Ended(_));
        !is_answered && !self.cancelled
    }

    fn request_compaction(&mut self, instructions: Option<&str>) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.compaction_request = Some(instructions.unwrap_or_default().to_owned());
            self.only_compacts |= matches!(self.phase, Phase::Fresh);
        }
    }

    /// Returns the summary or the compaction that a person requested; `None` if there is no such request, or the
    /// conversation cannot be made smaller.
    pub(super) fn compaction_step(&self) -> Option<Step> {
        let instructions = self.compaction_request.as_deref()?;
        if let Some(due) = self.window.summary_on_request(instructions) {
            return Some(self.auxiliary_command(AuxiliaryCall::Summary, Step::Do(ReactTask::Summarize(due))));
        }
        self.window.compaction_on_request().map(|compaction| Step::Append(RecordBody::Compacted(compaction)))
    }

    /// Returns the next step of a run without a prompt: it compacts the conversation and ends, or it waits for
    /// a prompt.
    pub(super) fn step_without_prompt(&self) -> Step {
        if !self.only_compacts {
            return Step::AwaitPrompt;
        }
        match self.compaction_step() {
            Some(step) => self.cost_due().unwrap_or(step),
            None => self.finish(self.outcome(OutcomeStatus::Finished)),
        }
    }
}

const PLAN_MODE: &str = "[The session is in plan mode now: nothing is changed, and only tools that read run. Find out \
                         what you need, then call finish_plan with the whole plan. A person decides about it; do \
                         not begin the work before.]";
const PLAN_MODE_WITHOUT_TOOL: &str = "[The session is in plan mode now: nothing is changed, and only tools that read run. \
                                      Find out what you need, then write the whole plan as your answer.]";
const NO_PLAN_MODE: &str = "[The session has left plan mode: tools that change something run again, as far as people \
                            and rules allow it.]";
