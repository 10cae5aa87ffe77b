//! Makes plans and checks them: the first plan, replans, and the subtasks of loops.

use archon_run::Recorded;
use archon_types::{
    CallId, CommandId, Json, PlanDiff, PlanError, PlanRecord, Planner, Spending, SubTask, Task,
};

use crate::{
    PlanNode, PlanProblem, calls, check, check_diff, difference,
    following::{Following, Happened, Run, plan},
    problem::with_remedy,
    references::describe,
    template::unfold,
};

impl Following {
    pub(super) async fn make_plan(
        &mut self,
        run: &mut Run,
        command: CommandId,
        attempt: u32,
        reason: Option<String>,
    ) -> Recorded {
        let mut planning = self.parts.planning(run.context(), &run.machine);
        planning.run.cancel = run.stop().clone();
        planning.budget = Some(run.machine.remaining_budget());
        planning.targets = run.machine.targets().to_vec();
        let expenses = planning.expenses.clone();
        let problems = run.machine.problems();
        planning.failure = (!problems.is_empty()).then(|| problems.join("\n"));
        let task = run.machine.task();
        run.record(plan(PlanRecord::PlanningStarted { command, attempt, reason: reason.clone() })).await?;
        let planner = self.parts.planner.clone();
        let fixed = run.machine.fixed().map(<[SubTask]>::to_vec);
        let spent = expenses.clone();
        let planned = async move {
            let planned = match (reason, fixed) {
                (None, Some(subtasks)) => Ok(task.with_subtasks(subtasks)),
                (Some(_), Some(_)) => Err(PlanError::Fixed),
                (None, None) => planner.create_plan(&task.goal, &planning).await,
                (Some(mut reason), None) => {
                    if let Some(problems) = planning.failure.take() {
                        reason.push_str(&format!("\nThe last answer was refused: {problems}"));
                    }
                    planner.replan(&task, &reason, &planning).await
                }
            };
            Happened::Planned(command, planned, spent.total())
        };
        run.spawn(planned, move || {
            let panicked = PlanError::Unreadable { problem: "the planner panicked".to_owned() };
            Happened::Planned(command, Err(panicked), expenses.total())
        });
        Ok(())
    }

    pub(super) async fn take_plan(
        &mut self,
        run: &mut Run,
        command: CommandId,
        planned: Result<Task, PlanError>,
        spent: Spending,
    ) -> Recorded {
        paid(run, command, spent).await?;
        // The machine has the number of the attempt, because only one question to the planner is open.
        let attempt = run.machine.attempt();
        let record = match planned {
            Err(error) => PlanRecord::Rejected {
                command,
                attempt,
                problems: vec![format!("{error} ({})", error.advice())],
                retryable: is_worth_another_try(&error),
                failure: Some(error.kind()),
            },
            Ok(task) => self.judged(run, command, attempt, task),
        };
        run.record(plan(record)).await
    }

    /// Checks the planner's plan and returns its record: accepted, or rejected with all problems.
    fn judged(&self, run: &Run, command: CommandId, attempt: u32, task: Task) -> PlanRecord {
        let (machine, options) = (&run.machine, self.parts.check_options(run.context(), &run.machine));
        let (record, problems) = match machine.replans() {
            0 => {
                let mut task = task;
                for (key, value) in machine.task().context {
                    task.context.entry(key).or_insert(value);
                }
                let (errors, warnings) = errors_and_warnings(&check(&task, &options));
                (PlanRecord::Planned { command, task: Box::new(task), warnings }, errors)
            }
            _ => {
                let (diff, mut found) = difference(machine, &task);
                found.extend(check_diff(machine, &diff, &options));
                let (errors, warnings) = errors_and_warnings(&found);
                (PlanRecord::Replanned { command, diff: Box::new(diff), warnings }, errors)
            }
        };
        if problems.is_empty() {
            return record;
        }
        // A fixed plan would be the same at another attempt.
        let retryable = machine.fixed().is_none();
        PlanRecord::Rejected { command, attempt, problems, retryable, failure: None }
    }

    /// Expands a loop whose list is known: adds the loop's subtasks to the plan if they pass the checks;
    /// otherwise the loop fails.
    pub(super) async fn unfold(&mut self, run: &mut Run, call: CallId) -> Recorded {
        match self.unfolded(run, call) {
            Ok(unfolded) => run.record(plan(unfolded)).await,
            Err(why) => calls::refuse(run, call, why).await,
        }
    }

    fn unfolded(&self, run: &Run, call: CallId) -> Result<PlanRecord, String> {
        let Some(PlanNode { subtask, .. }) = run.machine.node(call) else {
            return Err("the plan does not have the subtask".to_owned());
        };
        let Some(each) = &subtask.rules.each else { return Err("the subtask is not a loop".to_owned()) };
        let items = match run.machine.list_of(each).map_err(|why| why.to_string())? {
            Json::Array(items) => items,
            other => return Err(format!("its list is {}, not a list", describe(&other))),
        };
        let (found, most) = (items.len(), each.max_items as usize);
        if found > most {
            return Err(format!("its list has {found} items; at most {most} are allowed"));
        }
        let (subtasks, results) = unfold(subtask, each, &items);
        if !subtasks.is_empty() {
            let mut diff = PlanDiff::default();
            diff.add.clone_from(&subtasks);
            let options = self.parts.check_options(run.context(), &run.machine);
            let (errors, _) = errors_and_warnings(&check_diff(&run.machine, &diff, &options));
            if !errors.is_empty() {
                return Err(errors.join("; "));
            }
        }
        Ok(PlanRecord::LoopExpanded { call, subtasks, results })
    }
}

/// Returns the errors and the warnings among problems, each with its remedy.
fn errors_and_warnings(problems: &[PlanProblem]) -> (Vec<String>, Vec<String>) {
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.iter().partition(|problem| problem.is_error());
    (errors.into_iter().map(with_remedy).collect(), warnings.into_iter().map(with_remedy).collect())
}

/// Records the spending of the planner's own model calls.
pub(super) async fn paid(run: &mut Run, command: CommandId, spent: Spending) -> Recorded {
    match spent.is_zero() {
        true => Ok(()),
        false => run.record(plan(PlanRecord::PlanningPaid { command, spent })).await,
    }
}

fn is_worth_another_try(error: &PlanError) -> bool {
    match error {
        PlanError::Model(error) => error.is_retryable(),
        // These failures do not pass with another attempt.
        PlanError::Cycle { .. }
        | PlanError::Fixed
        | PlanError::Cancelled
        | PlanError::UnknownPrice { .. }
        | PlanError::OverBudget { .. } => false,
        _ => true,
    }
}
