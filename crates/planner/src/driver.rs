//! The executor of [`PlanMachine`]: does the tasks of a plan, and records their results.

use std::{
    task::{Context as Waking, Poll},
    time::Duration,
};

use archon_run::{Executor, Heard, Machine, Next, Recorded};
use archon_types::{
    CallId, CommandId, Decision, InboxEntry, InboxRequest, Json, PlanDiff, PlanError, PlanRecord, Planner,
    QuestionKind, Record, RecordBody, RunKind, Spending, SubTask, Task, Timestamp, json_in,
};
use futures_util::FutureExt;

use crate::{
    Conclusion, ConclusionQuestion, LastResults, PlanMachine, PlanNode, PlanTask, calls, check, check_diff,
    difference,
    following::{Deciding, Following, Happened, Run, plan},
    problem::with_remedy,
    references::describe,
    template::unfold,
};

impl Machine for PlanMachine {
    const KIND: RunKind = RunKind::Plan;
    type Task = PlanTask;

    fn apply(&mut self, record: &Record) {
        self.apply(record);
    }

    fn next(&self) -> Next<PlanTask> {
        match self.next() {
            Next::Wait(until) => Next::Wait(Some(self.no_later(until))),
            next => next,
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn knows(&self, report: &RecordBody) -> bool {
        let RecordBody::ChildBegun { call, .. } = report else { return false };
        self.node(*call).is_some_and(PlanNode::is_begun)
    }
}

impl PlanMachine {
    /// Returns the earlier of `until` and the run's deadline.
    fn no_later(&self, until: Option<Timestamp>) -> Timestamp {
        until.unwrap_or(self.deadline()).min(self.deadline())
    }
}

impl Executor<PlanMachine> for Following {
    type Done = Happened;

    const GRACE: Option<Duration> = Some(Duration::from_secs(5));

    /// Restarts the calls that were in flight when the log ended, then reads the inbox.
    async fn attach(&mut self, run: &mut Run) -> Recorded {
        for call in run.machine.under_way() {
            calls::attach(self, run, call).await?;
        }
        run.receive(self).await
    }

    /// Records the commands of the program, and the questions that have expired.
    async fn look(&mut self, run: &mut Run) -> Recorded {
        if run.machine.ended().is_none() {
            for record in self.control.take() {
                run.record(plan(record)).await?;
            }
        }
        self.expire(run).await
    }

    async fn append(&mut self, body: RecordBody, run: &mut Run) -> Recorded {
        match body {
            RecordBody::Suspended { .. } => self.rest(body, run).await,
            RecordBody::ToolAsked { call, request } if request.kind == QuestionKind::InDoubt => {
                calls::doubt(self, run, call, request).await
            }
            RecordBody::ToolAsked { call, request } => self.ask(run, call, request).await,
            body => run.record(vec![body]).await,
        }
    }

    async fn start(&mut self, task: PlanTask, run: &mut Run) -> Recorded {
        match task {
            PlanTask::MakePlan { command, attempt, reason } => {
                self.make_plan(run, command, attempt, reason).await
            }
            PlanTask::Start { call } => calls::start(self, run, call).await,
            PlanTask::Unfold { call } => self.unfold(run, call).await,
            PlanTask::Conclude { command } => self.conclude(run, command).await,
            PlanTask::CheckForm { answer } => self.check_form(run, &answer).await,
        }
    }

    /// Handles the result of a task. While the run stops, results count; interrupted tasks start again when
    /// the run is resumed.
    async fn done(&mut self, happened: Happened, run: &mut Run) -> Recorded {
        let is_stopping = run.machine.is_stopping();
        match happened {
            Happened::Ended(bodies) => run.record(bodies).await,
            Happened::Planned(command, Err(_), spent) if is_stopping => paid(run, command, spent).await,
            Happened::Planned(command, planned, spent) => self.planned(run, command, planned, spent).await,
            Happened::Concluded(_, Err(_)) if is_stopping => Ok(()),
            Happened::Concluded(command, concluded) => self.concluded(run, command, concluded).await,
            Happened::Asked(..) | Happened::Decided(..) if is_stopping => Ok(()),
            Happened::Asked(call, requests) => {
                for request in requests {
                    self.ask(run, call, Box::new(request)).await?;
                }
                Ok(())
            }
            Happened::Decided((id, binding), Decision::Now(answer)) => {
                let now = run.context().clock.now();
                let follows = self.hear_answer(&run.machine, (&id, &binding), answer, now);
                match follows {
                    Some(follows) => run.record(vec![follows]).await,
                    None => Ok(()),
                }
            }
            Happened::Decided(..) | Happened::LeftOpen => Ok(()),
        }
    }

    /// Takes a cancel, and answers to the plan's own questions.
    fn meaning(&mut self, entry: InboxEntry, machine: &PlanMachine) -> Heard {
        let follows = match entry.request {
            InboxRequest::Cancel { reason } => {
                (!machine.is_stopping()).then_some(RecordBody::CancelRequested { reason })
            }
            InboxRequest::Answer { request_id, binding, answer } => {
                self.hear_answer(machine, (&request_id, &binding), answer, entry.at)
            }
            _ => return Heard::NotMeant,
        };
        follows.map_or(Heard::Nothing, Heard::Record)
    }

    fn poll(&mut self, task: &mut Waking<'_>) -> Poll<Option<Happened>> {
        for place in 0..self.deciding.len() {
            if let Poll::Ready(decision) = self.deciding[place].work.poll_unpin(task) {
                let Deciding { question, .. } = self.deciding.swap_remove(place);
                return Poll::Ready(Some(Happened::Decided(question, decision)));
            }
        }
        self.control.poll(task).map(|()| None)
    }

    fn polled(&self) -> usize {
        self.deciding.len()
    }

    fn stopped(&mut self) {
        self.deciding.clear();
    }
}

impl Following {
    /// Handles a run that can only wait for people. An approver of this process may answer at once, and a
    /// child run may have its answer already; otherwise the run is suspended.
    async fn rest(&mut self, suspended: RecordBody, run: &mut Run) -> Recorded {
        self.deciding.retain(|deciding| run.machine.is_waiting_for(deciding.call));
        if !self.deciding.is_empty() {
            let expiry = run.machine.no_later(self.next_expiry(&run.machine));
            return run.wait(Some(expiry), self).await;
        }
        match self.answered_below(run).await? {
            answered if answered.is_empty() => run.record(vec![suspended]).await,
            answered => run.record(answered).await,
        }
    }

    async fn make_plan(
        &mut self,
        run: &mut Run,
        command: CommandId,
        attempt: u32,
        reason: Option<String>,
    ) -> Recorded {
        let mut planning = self.parts.planning(run.context(), &run.machine);
        planning.run.cancel = run.stop().clone();
        planning.left = Some(run.machine.left());
        planning.targets = run.machine.targets().to_vec();
        let expenses = planning.expenses.clone();
        let problems = run.machine.problems();
        planning.failure = (!problems.is_empty()).then(|| problems.join("\n"));
        let task = run.machine.task();
        run.record(plan(PlanRecord::Asked { command, attempt, reason: reason.clone() })).await?;
        let planner = self.parts.planner.clone();
        let fixed = run.machine.fixed().map(<[SubTask]>::to_vec);
        let spent = expenses.clone();
        let planned = async move {
            let planned = match (reason, fixed) {
                (None, Some(subtasks)) => Ok(task.with_subtasks(subtasks)),
                (Some(_), Some(_)) => Err(PlanError::Fixed),
                (None, None) => planner.create_plan(&task.goal, &planning).await,
                (Some(reason), None) => {
                    let wrong = planning
                        .failure
                        .take()
                        .map(|wrong| format!("\nThe last answer was refused: {wrong}"));
                    let reason = format!("{reason}{}", wrong.unwrap_or_default());
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

    async fn planned(
        &mut self,
        run: &mut Run,
        command: CommandId,
        planned: Result<Task, PlanError>,
        spent: Spending,
    ) -> Recorded {
        paid(run, command, spent).await?;
        // The machine knows which attempt is under way, as only one question is open.
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

    /// Checks a plan that came back and returns its record: accepted, or rejected with all its problems.
    fn judged(&self, run: &Run, command: CommandId, attempt: u32, task: Task) -> PlanRecord {
        let (machine, options) = (&run.machine, self.parts.check_options(run.context(), &run.machine));
        let (record, found) = match machine.replans() {
            0 => {
                let mut task = task;
                for (key, value) in machine.task().context {
                    task.context.entry(key).or_insert(value);
                }
                let found = check(&task, &options);
                let warnings = found.iter().filter(|p| !p.is_error()).map(with_remedy).collect();
                (PlanRecord::Made { command, task: Box::new(task), warnings }, found)
            }
            _ => {
                let (diff, mut found) = difference(machine, &task);
                found.extend(check_diff(machine, &diff, &options));
                let warnings = found.iter().filter(|p| !p.is_error()).map(with_remedy).collect();
                (PlanRecord::Changed { command, diff: Box::new(diff), warnings }, found)
            }
        };
        let errors: Vec<String> = found.iter().filter(|p| p.is_error()).map(with_remedy).collect();
        match errors.is_empty() {
            true => record,
            // A fixed plan would be the same at another attempt.
            false => {
                let retryable = machine.fixed().is_none();
                PlanRecord::Rejected { command, attempt, problems: errors, retryable, failure: None }
            }
        }
    }

    /// Expands a loop whose list is known: adds its subtasks to the plan if they pass the checks; otherwise
    /// the loop fails.
    async fn unfold(&mut self, run: &mut Run, call: CallId) -> Recorded {
        let record = match self.unfolded(run, call) {
            Ok(unfolded) => RecordBody::Plan(Box::new(unfolded)),
            Err(why) => RecordBody::ToolRefused { call, result: calls::not_begun(why).into() },
        };
        run.record(vec![record]).await
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
            let problems = check_diff(&run.machine, &diff, &options);
            let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(with_remedy).collect();
            if !errors.is_empty() {
                return Err(errors.join("; "));
            }
        }
        Ok(PlanRecord::Unfolded { call, subtasks, results })
    }

    async fn conclude(&mut self, run: &mut Run, command: CommandId) -> Recorded {
        run.record(plan(PlanRecord::Concluding { command })).await?;
        let (parts, task) = (self.parts.clone(), run.machine.task());
        let background = run.machine.background().to_owned();
        let form = run.machine.form().cloned();
        let misfit = run.machine.misfit().map(|(answer, problems)| (answer.to_owned(), problems.to_vec()));
        let mut context = run.context().clone();
        context.cancel = run.stop().clone();
        let left = run.machine.left();
        let is_spent = left.tokens == 0 || left.cost == Some(0);
        let concluded = async move {
            if is_spent {
                // All subtasks are done, and their results can be the answer at no further cost.
                return Happened::Concluded(command, Ok(LastResults::of(&task)));
            }
            let mut question = ConclusionQuestion::new(&task, left);
            (question.background, question.form) = (&background, form.as_ref());
            if let Some((answer, problems)) = &misfit {
                question = question.after(answer, problems);
            }
            Happened::Concluded(command, parts.conclude.conclude(question, &context).await)
        };
        run.spawn(concluded, move || {
            let panicked = PlanError::Unreadable { problem: "it panicked".to_owned() };
            Happened::Concluded(command, Err(panicked))
        });
        Ok(())
    }

    async fn concluded(
        &mut self,
        run: &mut Run,
        command: CommandId,
        concluded: Result<Conclusion, PlanError>,
    ) -> Recorded {
        let task = run.machine.task();
        let conclusion = match concluded {
            Ok(conclusion) => conclusion,
            // Without a conclusion, the results of the last subtasks are the answer.
            Err(error) => {
                tracing::warn!(run = %run.context().run, %error, "no answer was put together");
                let results = LastResults::of(&task);
                let form = run.machine.form();
                if form.is_some_and(|form| !form.problems(&json_in(&results.answer)).is_empty()) {
                    let problem = match &error {
                        PlanError::Model(error) => error.to_string(),
                        error => format!("{error} ({})", error.advice()),
                    };
                    let failure = error.kind();
                    return run.record(plan(PlanRecord::NotConcluded { command, problem, failure })).await;
                }
                results
            }
        };
        let Conclusion { answer, citations, spent } = conclusion;
        let cite = |id| run.machine.nodes().find(|node| node.subtask.id == id).map(calls::citation);
        let citations = citations.into_iter().filter_map(cite).collect();
        if run.machine.form().is_none() {
            self.parts.remember(&task, &answer).await;
        }
        run.record(plan(PlanRecord::Concluded { command, answer, citations, spent })).await
    }

    async fn check_form(&mut self, run: &mut Run, answer: &str) -> Recorded {
        let problems = run.machine.form().map(|form| form.problems(answer)).unwrap_or_default();
        if problems.is_empty() {
            self.parts.remember(&run.machine.task(), answer).await;
        }
        run.record(vec![RecordBody::FormChecked { problems }]).await
    }
}

/// Records the spending of the planner's own model calls.
async fn paid(run: &mut Run, command: CommandId, spent: Spending) -> Recorded {
    match spent.is_zero() {
        true => Ok(()),
        false => run.record(plan(PlanRecord::Paid { command, spent })).await,
    }
}

fn is_worth_another_try(error: &PlanError) -> bool {
    match error {
        PlanError::Model(error) => error.is_retryable(),
        // The planner has tried other ways itself.
        PlanError::Cycle { .. }
        | PlanError::Fixed
        | PlanError::Cancelled
        | PlanError::UnknownPrice { .. }
        | PlanError::OverBudget { .. } => false,
        _ => true,
    }
}
