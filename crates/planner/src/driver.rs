//! Drives a plan: executes what the machine asks for, and records what came of it before it acts on it.

use std::{panic::AssertUnwindSafe, task::Poll, time::Duration};

use archon_run::Report;
use archon_types::{
    CallId, CommandId, Decision, FailureKind, JournalError, Json, Outcome, OutcomeStatus, PlanDiff,
    PlanError, PlanRecord, Planner, QuestionKind, RecordBody, Spending, SubTask, Task, Timestamp, json_in,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tracing::Instrument as _;

use crate::{
    Conclusion, ConclusionQuestion, LastResults, PlanCommand, PlanNode, calls, check, check_diff, difference,
    following::{Deciding, Following, Happened},
    problem::with_remedy,
    references::describe,
    template::unfold,
};

/// Grace period of running work after a cancel. Work that does not end by then is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// The machine's next command as owned data, so that the machine is not borrowed meanwhile.
enum Step {
    Append(Box<RecordBody>),
    MakePlan(CommandId, u32, Option<String>),
    Start(CallId, Box<SubTask>, Option<String>),
    Unfold(CallId, Box<SubTask>),
    Conclude(CommandId),
    CheckForm(String),
    Wait(Option<Timestamp>),
    Suspend,
    Done(Box<Outcome>),
}

/// Drives the run until it ends or is suspended.
pub(crate) async fn drive(run: Following) -> Result<Outcome, JournalError> {
    // Log lines from here on carry the id of the run.
    let span = tracing::info_span!("run", run = %run.context.run, session = %run.context.session);
    run.drive().instrument(span).await
}

impl Following {
    async fn drive(mut self) -> Result<Outcome, JournalError> {
        self.attach().await?;
        // Messages that arrived while no process drove the run.
        self.receive().await?;
        loop {
            self.hear().await?;
            self.expire().await?;
            if self.machine.is_stopping() && !self.in_flight.is_empty() {
                self.drain().await?;
            }
            match self.step() {
                Step::Done(outcome) => return Ok(*outcome),
                Step::Suspend => return Ok(Outcome::new(self.context.run.clone(), OutcomeStatus::Suspended)),
                Step::Append(body) => match *body {
                    body @ RecordBody::Suspended { .. } => self.rest(body).await?,
                    RecordBody::ToolAsked { call, request } if request.kind == QuestionKind::InDoubt => {
                        calls::doubt(&mut self, call, request).await?;
                    }
                    RecordBody::ToolAsked { call, request } => self.ask(call, request).await?,
                    body => self.record(vec![body]).await?,
                },
                Step::MakePlan(command, attempt, reason) => self.make_plan(command, attempt, reason).await?,
                Step::Start(call, subtask, tool) => {
                    calls::start(&mut self, call, &subtask, tool.as_deref()).await?
                }
                Step::Unfold(call, subtask) => self.unfold(call, &subtask).await?,
                Step::Conclude(command) => self.conclude(command).await?,
                Step::CheckForm(answer) => self.check_form(&answer).await?,
                Step::Wait(until) => {
                    if let Some(happened) = self.wait(until).await? {
                        // The cancel is recorded first, so that a call which it stopped does not count as
                        // failed.
                        self.hear().await?;
                        match self.machine.is_stopping() {
                            true => self.take_last(happened).await?,
                            false => self.take(happened).await?,
                        }
                    }
                }
            }
        }
    }

    /// Handles a run that can only wait for people. An approver of this process may answer at once, and a
    /// child run may have its answer already; otherwise the run is suspended.
    async fn rest(&mut self, suspended: RecordBody) -> Result<(), JournalError> {
        self.deciding.retain(|deciding| self.machine.is_waiting_for(deciding.call));
        if !self.deciding.is_empty() {
            let expiry = self.next_expiry();
            if let Some(happened) = self.wait(expiry).await? {
                self.take(happened).await?;
            }
            return Ok(());
        }
        match self.answered_below().await? {
            answered if answered.is_empty() => self.record(vec![suspended]).await,
            answered => self.record(answered).await,
        }
    }

    fn step(&self) -> Step {
        match self.machine.next() {
            PlanCommand::Done(outcome) => Step::Done(Box::new(outcome.clone())),
            PlanCommand::Append(body) => Step::Append(Box::new(body)),
            PlanCommand::MakePlan { command, attempt, reason } => {
                Step::MakePlan(command, attempt, reason.map(str::to_owned))
            }
            PlanCommand::Start { call, subtask, tool } => {
                Step::Start(call, Box::new(subtask.clone()), tool.map(str::to_owned))
            }
            PlanCommand::Unfold { call, subtask } => Step::Unfold(call, Box::new(subtask.clone())),
            PlanCommand::Conclude { command } => Step::Conclude(command),
            PlanCommand::CheckForm { answer } => Step::CheckForm(answer.to_owned()),
            PlanCommand::Wait { until } => Step::Wait(until),
            PlanCommand::Suspend => Step::Suspend,
            // The agent never drives a run without a goal.
            PlanCommand::WaitForGoal => Step::Done(Box::new(Outcome::failed(
                self.context.run.clone(),
                FailureKind::Refused,
                "nothing was asked",
            ))),
        }
    }

    /// Attaches to the calls that were running when the log ended.
    async fn attach(&mut self) -> Result<(), JournalError> {
        for call in self.machine.under_way() {
            calls::attach(self, call).await?;
        }
        Ok(())
    }

    /// Records what the program asks of the run: changes through [`PlanControl`](crate::PlanControl), and a
    /// cancel.
    async fn hear(&mut self) -> Result<(), JournalError> {
        if self.machine.ended().is_some() {
            return Ok(());
        }
        for record in self.control.take() {
            self.plan_record(record).await?;
        }
        if self.context.cancel.is_cancelled() && !self.machine.is_stopping() {
            let reason = "cancelled by the caller".to_owned();
            self.record(vec![RecordBody::CancelRequested { reason }]).await?;
        }
        Ok(())
    }

    /// Moves messages from the inbox into the log: a cancel, and answers to the plan's own questions.
    pub(crate) async fn receive(&mut self) -> Result<(), JournalError> {
        let Some(mailbox) = self.mailbox.clone() else { return Ok(()) };
        mailbox.look().await;
        while let Some(bodies) = mailbox.take(|entry| self.meaning(entry)) {
            self.record(bodies).await?;
        }
        mailbox.clear().await;
        Ok(())
    }

    /// Waits until something happens, and returns it if it is the end of running work.
    async fn wait(&mut self, until: Option<Timestamp>) -> Result<Option<Happened>, JournalError> {
        self.receive().await?;
        if self.machine.is_stopping() {
            return Ok(None);
        }
        let due = until.unwrap_or(self.machine.deadline()).min(self.machine.deadline());
        let mut timer = self.context.clock.sleep_until(due);
        let mut cancelled = Box::pin(self.context.cancel.cancelled());
        let mailbox = self.mailbox.clone();
        let mut posted = mailbox.as_ref().map(|mailbox| mailbox.changed());
        let (in_flight, control, reports) = (&mut self.in_flight, &self.control, &self.reports);
        let deciding = &mut self.deciding;
        let woken = std::future::poll_fn(|task| {
            if !in_flight.is_empty()
                && let Poll::Ready(Some(happened)) = in_flight.poll_next_unpin(task)
            {
                return Poll::Ready(Woken::By(happened));
            }
            for place in 0..deciding.len() {
                if let Poll::Ready(decision) = deciding[place].work.poll_unpin(task) {
                    let Deciding { question, .. } = deciding.swap_remove(place);
                    return Poll::Ready(Woken::By(Happened::Decided(question, decision)));
                }
            }
            if let Poll::Ready(report) = reports.poll(task) {
                return Poll::Ready(Woken::Reported(report));
            }
            let is_spoken_to = cancelled.as_mut().poll(task).is_ready()
                || control.poll(task).is_ready()
                || posted.as_mut().is_some_and(|posted| posted.as_mut().poll(task).is_ready());
            if is_spoken_to {
                return Poll::Ready(Woken::Spoken);
            }
            timer.as_mut().poll(task).map(|()| Woken::Time)
        })
        .await;
        drop((cancelled, posted));
        match woken {
            Woken::By(happened) => Ok(Some(happened)),
            Woken::Reported(report) => self.write_down(report).await.map(|()| None),
            Woken::Spoken => Ok(None),
            Woken::Time => self.record(vec![RecordBody::ClockRead]).await.map(|()| None),
        }
    }

    /// Records a process or a child run that a call has started; it waits for that before it works.
    async fn write_down(&mut self, report: Report) -> Result<(), JournalError> {
        if !self.is_known(&report.record) {
            self.record(vec![report.record.clone()]).await?;
        }
        report.logged();
        Ok(())
    }

    /// Returns true if the log says already that a call's child run has begun.
    fn is_known(&self, record: &RecordBody) -> bool {
        let RecordBody::ChildBegun { call, .. } = record else { return false };
        self.machine.node(*call).is_some_and(PlanNode::is_begun)
    }

    /// Stops running work: gives it the grace period to end by itself, and then drops it.
    async fn drain(&mut self) -> Result<(), JournalError> {
        self.stop.cancel();
        self.deciding.clear();
        let clock = self.context.clock.clone();
        let mut over = clock.sleep_until(clock.now() + GRACE);
        while !self.in_flight.is_empty() {
            let (in_flight, reports) = (&mut self.in_flight, &self.reports);
            let next = std::future::poll_fn(|task| {
                if let Poll::Ready(happened) = in_flight.poll_next_unpin(task) {
                    return Poll::Ready(happened.map(Woken::By));
                }
                if let Poll::Ready(report) = reports.poll(task) {
                    return Poll::Ready(Some(Woken::Reported(report)));
                }
                over.as_mut().poll(task).map(|()| None)
            });
            match next.await {
                Some(Woken::By(happened)) => self.take_last(happened).await?,
                Some(Woken::Reported(report)) => self.write_down(report).await?,
                _ => break,
            }
        }
        self.in_flight = FuturesUnordered::new();
        Ok(())
    }

    async fn take(&mut self, happened: Happened) -> Result<(), JournalError> {
        match happened {
            Happened::Ended(bodies) => self.record(bodies).await,
            Happened::Asked(call, requests) => {
                for request in requests {
                    self.ask(call, Box::new(request)).await?;
                }
                Ok(())
            }
            Happened::Decided((id, binding), Decision::Now(answer)) => {
                match self.hear_answer((&id, &binding), answer, self.context.clock.now()) {
                    Some(follows) => self.record(vec![follows]).await,
                    None => Ok(()),
                }
            }
            Happened::Decided(..) => Ok(()),
            Happened::LeftOpen => Ok(()),
            Happened::Planned(command, planned, spent) => self.planned(command, planned, spent).await,
            Happened::Concluded(command, concluded) => self.concluded(command, concluded).await,
        }
    }

    /// Takes what ended while the run stops, like [`take`](Self::take). Finished work counts; work that was
    /// only stopped begins again when the run is resumed.
    async fn take_last(&mut self, happened: Happened) -> Result<(), JournalError> {
        match happened {
            Happened::Planned(command, Err(_), spent) => self.paid(command, spent).await,
            Happened::Concluded(_, Err(_))
            | Happened::Asked(..)
            | Happened::Decided(..)
            | Happened::LeftOpen => Ok(()),
            happened => self.take(happened).await,
        }
    }

    /// Records the spending of the planner's own model calls.
    async fn paid(&mut self, command: CommandId, spent: Spending) -> Result<(), JournalError> {
        match spent.is_zero() {
            true => Ok(()),
            false => self.plan_record(PlanRecord::Paid { command, spent }).await,
        }
    }

    async fn make_plan(
        &mut self,
        command: CommandId,
        attempt: u32,
        reason: Option<String>,
    ) -> Result<(), JournalError> {
        let mut planning = self.parts.planning(&self.context, &self.machine);
        planning.run.cancel = self.stop.clone();
        planning.left = Some(self.machine.left());
        planning.targets = self.machine.targets().to_vec();
        let expenses = planning.expenses.clone();
        let problems = self.machine.problems();
        planning.failure = (!problems.is_empty()).then(|| problems.join("\n"));
        let task = self.machine.task();
        self.plan_record(PlanRecord::Asked { command, attempt, reason: reason.clone() }).await?;
        let planner = self.parts.planner.clone();
        let fixed = self.machine.fixed().map(<[SubTask]>::to_vec);
        let planned = async move {
            match (reason, fixed) {
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
            }
        };
        let planned = AssertUnwindSafe(planned).catch_unwind().map(move |planned| {
            let panicked = |_| Err(PlanError::Unreadable { problem: "the planner panicked".to_owned() });
            Happened::Planned(command, planned.unwrap_or_else(panicked), expenses.total())
        });
        self.in_flight.push(Box::pin(planned));
        Ok(())
    }

    async fn planned(
        &mut self,
        command: CommandId,
        planned: Result<Task, PlanError>,
        spent: Spending,
    ) -> Result<(), JournalError> {
        self.paid(command, spent).await?;
        let attempt = self.attempt();
        let record = match planned {
            Err(error) => PlanRecord::Rejected {
                command,
                attempt,
                problems: vec![format!("{error} ({})", error.advice())],
                retryable: is_worth_another_try(&error),
                failure: Some(error.kind()),
            },
            Ok(task) => self.judged(command, attempt, task),
        };
        self.plan_record(record).await
    }

    /// Checks a plan that came back and returns its record: accepted, or rejected with all its problems.
    fn judged(&self, command: CommandId, attempt: u32, task: Task) -> PlanRecord {
        let options = self.parts.check_options(&self.context, &self.machine);
        let (record, found) = match self.machine.replans() {
            0 => {
                let mut task = task;
                for (key, value) in self.machine.task().context {
                    task.context.entry(key).or_insert(value);
                }
                let found = check(&task, &options);
                let warnings = found.iter().filter(|p| !p.is_error()).map(with_remedy).collect();
                (PlanRecord::Made { command, task: Box::new(task), warnings }, found)
            }
            _ => {
                let (diff, mut found) = difference(&self.machine, &task);
                found.extend(check_diff(&self.machine, &diff, &options));
                let warnings = found.iter().filter(|p| !p.is_error()).map(with_remedy).collect();
                (PlanRecord::Changed { command, diff: Box::new(diff), warnings }, found)
            }
        };
        let errors: Vec<String> = found.iter().filter(|p| p.is_error()).map(with_remedy).collect();
        match errors.is_empty() {
            true => record,
            // A fixed plan would be the same at another attempt.
            false => {
                let retryable = self.machine.fixed().is_none();
                PlanRecord::Rejected { command, attempt, problems: errors, retryable, failure: None }
            }
        }
    }

    /// Expands a loop whose list is known: adds its subtasks to the plan if they pass the checks; otherwise
    /// the loop fails.
    async fn unfold(&mut self, call: CallId, subtask: &SubTask) -> Result<(), JournalError> {
        let record = match self.unfolded(call, subtask) {
            Ok(unfolded) => RecordBody::Plan(Box::new(unfolded)),
            Err(why) => RecordBody::ToolRefused { call, result: calls::not_begun(why).into() },
        };
        self.record(vec![record]).await
    }

    fn unfolded(&self, call: CallId, subtask: &SubTask) -> Result<PlanRecord, String> {
        let Some(each) = &subtask.rules.each else { return Err("it is no loop".to_owned()) };
        let items = match self.machine.list_of(each).map_err(|why| why.to_string())? {
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
            let problems =
                check_diff(&self.machine, &diff, &self.parts.check_options(&self.context, &self.machine));
            let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(with_remedy).collect();
            if !errors.is_empty() {
                return Err(errors.join("; "));
            }
        }
        Ok(PlanRecord::Unfolded { call, subtasks, results })
    }

    /// Returns the number of the current attempt. Only one question to the planner is open at a time.
    fn attempt(&self) -> u32 {
        self.machine.attempt()
    }

    async fn conclude(&mut self, command: CommandId) -> Result<(), JournalError> {
        self.plan_record(PlanRecord::Concluding { command }).await?;
        let (parts, task) = (self.parts.clone(), self.machine.task());
        let background = self.machine.background().to_owned();
        let form = self.machine.form().cloned();
        let misfit = self.machine.misfit().map(|(answer, problems)| (answer.to_owned(), problems.to_vec()));
        let mut context = self.context.clone();
        context.cancel = self.stop.clone();
        let left = self.machine.left();
        let is_spent = left.tokens == 0 || left.cost == Some(0);
        let concluded = async move {
            if is_spent {
                // All subtasks are done, and their results can be the answer at no further cost.
                return Ok(LastResults::of(&task));
            }
            let mut question = ConclusionQuestion::new(&task, left);
            (question.background, question.form) = (&background, form.as_ref());
            if let Some((answer, problems)) = &misfit {
                question = question.after(answer, problems);
            }
            parts.conclude.conclude(question, &context).await
        };
        let concluded = AssertUnwindSafe(concluded).catch_unwind().map(move |concluded| {
            let panicked = |_| Err(PlanError::Unreadable { problem: "it panicked".to_owned() });
            Happened::Concluded(command, concluded.unwrap_or_else(panicked))
        });
        self.in_flight.push(Box::pin(concluded));
        Ok(())
    }

    async fn concluded(
        &mut self,
        command: CommandId,
        concluded: Result<Conclusion, PlanError>,
    ) -> Result<(), JournalError> {
        let task = self.machine.task();
        let conclusion = match concluded {
            Ok(conclusion) => conclusion,
            // Without a conclusion, the results of the last subtasks are the answer.
            Err(error) => {
                tracing::warn!(run = %self.context.run, %error, "no answer was put together");
                let results = LastResults::of(&task);
                let form = self.machine.form();
                if form.is_some_and(|form| !form.problems(&json_in(&results.answer)).is_empty()) {
                    let problem = match &error {
                        PlanError::Model(error) => error.to_string(),
                        error => format!("{error} ({})", error.advice()),
                    };
                    let failure = error.kind();
                    return self.plan_record(PlanRecord::NotConcluded { command, problem, failure }).await;
                }
                results
            }
        };
        let Conclusion { answer, citations, spent } = conclusion;
        let cite = |id| self.machine.nodes().find(|node| node.subtask.id == id).map(calls::citation);
        let citations = citations.into_iter().filter_map(cite).collect();
        if self.machine.form().is_none() {
            self.parts.remember(&task, &answer).await;
        }
        self.plan_record(PlanRecord::Concluded { command, answer, citations, spent }).await
    }

    async fn check_form(&mut self, answer: &str) -> Result<(), JournalError> {
        let problems = self.machine.form().map(|form| form.problems(answer)).unwrap_or_default();
        if problems.is_empty() {
            self.parts.remember(&self.machine.task(), answer).await;
        }
        self.record(vec![RecordBody::FormChecked { problems }]).await
    }
}

enum Woken {
    By(Happened),
    Reported(Report),
    Spoken,
    Time,
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
