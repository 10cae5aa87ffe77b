//! Replanning: the lost steps, the changes that a new plan may make, and the effect of the planner's answer.
//!
//! A step is lost if all attempts at it failed. The planner is asked once no other step can continue. A step stays as
//! it is if it is not lost and does not depend on a lost step.

use std::collections::HashSet;

use archon_types::{
    CommandId, FailureKind, OnFailure, PlanDiff, SubTask, SubTaskId, SubTaskStatus, Task, ToolResult,
};

use super::{Job, JobState, Phase, TeamMachine};

impl TeamMachine {
    /// Returns the reasons for a replan, and the ids of the lost steps; `None` if no step is lost.
    pub fn loss(&self) -> Option<(String, Vec<SubTaskId>)> {
        let lost = self
            .steps()
            .filter_map(|(job, subtask)| Some((reason(job, subtask, lost_reason(job)?), subtask.id.clone())));
        let (reasons, targets): (Vec<String>, Vec<SubTaskId>) = lost.unzip();
        (!targets.is_empty()).then(|| (reasons.join("; "), targets))
    }

    /// Returns the goal with the current steps and their results, for the planner of a replan.
    pub fn task_so_far(&self) -> Task {
        let subtasks = self.steps().map(|(job, subtask)| as_far(job, subtask)).collect();
        self.task.clone().with_subtasks(subtasks)
    }

    /// Returns the changes that lead to the plan `wanted`: new steps, and replaced or removed steps among
    /// those that are lost or depend on a lost one.
    pub(crate) fn difference(&self, wanted: &Task) -> PlanDiff {
        let within = self.within();
        let mut diff = PlanDiff::default();
        for new in wanted.subtasks.iter().map(SubTask::as_planned) {
            match self.job_of(&new.id) {
                None => diff.add.push(new),
                Some(job) if within.contains(&new.id) => {
                    let is_same = job.subtask().is_some_and(|old| old.as_planned() == new);
                    if lost_reason(job).is_some() || !is_same {
                        diff.replace.push(new);
                    }
                }
                Some(_) => {}
            }
        }
        let is_gone = |id: &&SubTaskId| within.contains(id) && wanted.get_subtask(id).is_none();
        diff.remove = self.steps().map(|(_, subtask)| &subtask.id).filter(is_gone).cloned().collect();
        diff
    }

    /// Returns the goal with the steps of the plan after these changes.
    pub(crate) fn changed(&self, diff: &PlanDiff) -> Task {
        let is_old =
            |id: &SubTaskId| diff.remove.contains(id) || diff.replace.iter().any(|new| new.id == *id);
        let unchanged = self.steps().map(|(_, subtask)| subtask).filter(|subtask| !is_old(&subtask.id));
        let subtasks = unchanged.chain(&diff.replace).chain(&diff.add).map(SubTask::as_planned).collect();
        self.task.clone().with_subtasks(subtasks)
    }

    /// Returns the steps of the current plan.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Job, &SubTask)> {
        let live = self.jobs.iter().filter(|job| job.state != JobState::Replaced);
        live.filter_map(|job| Some((job, job.subtask()?)))
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.jobs.iter().any(|job| lost_reason(job).is_some())
    }

    /// Ends a job whose attempts all failed: as `Lost` if it is a step that may be replanned, else as failed.
    pub(super) fn fail(&mut self, command: CommandId, reason: String) {
        let settings = &self.settings;
        let may_replan = self.fixed.is_none()
            && self.replan_reasons.len() < settings.max_replans as usize
            && self.delegations < settings.max_delegations;
        let Some(job) = self.job_mut(command) else { return };
        let may_change = job.subtask().is_some_and(|subtask| subtask.rules.on_failure == OnFailure::Replan);
        job.state = match may_replan && may_change {
            true => JobState::Lost { reason },
            false => JobState::Failed { reason },
        };
    }

    /// Ends a job as failed, without a replan.
    pub(super) fn fail_for_good(&mut self, command: CommandId, reason: String) {
        if let Some(job) = self.job_mut(command) {
            job.state = JobState::Failed { reason };
        }
    }

    /// Applies the changes of a replan.
    pub(super) fn replanned(&mut self, diff: &PlanDiff) {
        let Some((reason, _)) = self.loss() else { return };
        self.replan_reasons.push(reason);
        self.task.subtasks = self.changed(diff).subtasks;
        for id in diff.remove.iter().chain(diff.replace.iter().map(|new| &new.id)) {
            let is_old = |job: &&Job| matches!(job.state, JobState::Lost { .. } | JobState::Waiting);
            let old = self.job_of(id).filter(is_old).map(|job| job.command);
            if let Some(job) = old.and_then(|command| self.job_mut(command)) {
                job.state = JobState::Replaced;
            }
        }
        self.places.take();
        let new = diff.replace.iter().chain(&diff.add).filter(|new| self.job_of(&new.id).is_none());
        for subtask in new.cloned().collect::<Vec<_>>() {
            self.add_step(subtask);
        }
        self.places.take();
        // Lost steps that the new plan does not change fail.
        self.fail_lost();
    }

    /// Applies a failure of the planner. The run fails if it has no plan yet, or if the reason is temporary,
    /// because a resume then asks the planner again. Otherwise the lost steps fail.
    pub(super) fn not_planned(&mut self, problem: &str, failure: Option<FailureKind>) {
        match (self.loss(), failure.filter(|kind| kind.may_pass())) {
            (None, _) => {
                let kind = failure.unwrap_or(FailureKind::Plan);
                self.phase = Phase::Broken { kind, error: format!("there is no plan: {problem}") };
            }
            (Some(_), Some(kind)) => {
                self.phase = Phase::Broken { kind, error: format!("there is no other plan: {problem}") };
            }
            (Some((reason, _)), None) => {
                self.replan_reasons.push(format!("{reason} No other plan was found: {problem}"));
                self.fail_lost();
            }
        }
    }

    fn fail_lost(&mut self) {
        let why = |job: &Job| Some((job.command, lost_reason(job)?.to_owned()));
        for (command, reason) in self.jobs.iter().filter_map(why).collect::<Vec<_>>() {
            self.fail_for_good(command, reason);
        }
    }

    /// Returns the lost steps and all steps that depend on them.
    fn within(&self) -> HashSet<&SubTaskId> {
        let mut within = HashSet::new();
        loop {
            let waits = |subtask: &SubTask| subtask.dependencies().iter().any(|id| within.contains(id));
            let steps = self.steps().filter(|(job, step)| lost_reason(job).is_some() || waits(step));
            let found: HashSet<_> = steps.map(|(_, step)| &step.id).chain(within.iter().copied()).collect();
            if found.len() == within.len() {
                return within;
            }
            within = found;
        }
    }
}

/// Returns the reason why a job is lost; `None` if the job is not lost.
fn lost_reason(job: &Job) -> Option<&str> {
    match &job.state {
        JobState::Lost { reason } => Some(reason),
        _ => None,
    }
}

fn reason(job: &Job, subtask: &SubTask, why: &str) -> String {
    let (times, hint) = match job.failures() {
        0 | 1 => ("failed".to_owned(), ""),
        n => (format!("failed {n} times"), " Break it down into smaller steps, or go another way."),
    };
    let why = why.trim().trim_end_matches('.');
    format!("subtask {} ({}) {times}: {why}.{hint}", subtask.id, subtask.description)
}

/// Returns a step with its status and its result so far.
fn as_far(job: &Job, subtask: &SubTask) -> SubTask {
    let result = match &job.state {
        JobState::Done => ToolResult::success(job.response_text()),
        JobState::Lost { reason } | JobState::Failed { reason } => ToolResult::error(reason.clone()),
        _ => return subtask.as_planned(),
    };
    let planned = subtask.as_planned();
    let pending = planned.with_status(SubTaskStatus::Pending).unwrap_or_else(|_| planned.clone());
    let ended = pending.with_status(SubTaskStatus::Executing).and_then(|begun| begun.with_result(result));
    ended.unwrap_or(planned)
}
