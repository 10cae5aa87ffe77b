//! Asks the planner of a team for a plan, and checks the plan.

use archon_types::{PlanError, Planner, PlanningContext, Spending, Task, TeamRecord};

use super::{Happened, Run, Working};
use crate::{TeamMachine, check::check_plan};

impl Working<'_> {
    pub(super) fn make_plan(&mut self, run: &mut Run) {
        self.is_planning = true;
        let panicked = || PlanError::Unreadable { problem: "the planner panicked".to_owned() };
        if let Some(subtasks) = run.machine.fixed() {
            let task = run.machine.task().clone().with_subtasks(subtasks.to_vec());
            let planned = std::future::ready(Happened::Planned(Ok(task), Spending::default()));
            return run.spawn(planned, move || Happened::Planned(Err(panicked()), Spending::default()));
        }
        let mut planning = PlanningContext::new(self.context.clone());
        planning.run.cancel = run.stop().clone();
        planning.budget = Some(run.machine.remaining_budget());
        run.machine.background().clone_into(&mut planning.background);
        let (planner, task) = (self.parts.planner.clone(), run.machine.task_so_far());
        let (expenses, loss) = (planning.expenses.clone(), run.machine.loss());
        let spent = expenses.clone();
        let planned = async move {
            let planned = match loss {
                None => planner.create_plan(&task.goal, &planning).await,
                Some((reason, targets)) => {
                    planning.targets = targets;
                    planner.replan(&task, &reason, &planning).await
                }
            };
            Happened::Planned(planned, spent.total())
        };
        run.spawn(planned, move || Happened::Planned(Err(panicked()), expenses.total()));
    }
}

/// Returns the record of the planner's answer: a plan, a replan, or the reason why there is no plan.
pub(super) fn planned_record(
    machine: &TeamMachine,
    planned: Result<Task, PlanError>,
    spent: Spending,
) -> TeamRecord {
    let (problem, failure) = match planned {
        Ok(task) if machine.has_lost() => {
            let diff = Box::new(machine.difference(&task));
            let changed = machine.changed(&diff);
            match check_plan(&changed) {
                Ok(()) if !changed.subtasks.is_empty() => return TeamRecord::Replanned { diff, spent },
                Ok(()) => ("the plan has no subtasks".to_owned(), None),
                Err(problem) => (problem, None),
            }
        }
        Ok(task) => match check_plan(&task) {
            Ok(()) => return TeamRecord::Planned { task: Box::new(task), spent },
            Err(problem) => (problem, None),
        },
        Err(error) => (format!("{error} ({})", error.advice()), Some(error.kind())),
    };
    TeamRecord::PlanningFailed { problem, failure, spent }
}
