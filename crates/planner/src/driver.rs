//! The executor of [`PlanMachine`]: runs the tasks of a plan, and records their results.

mod answer;
mod plans;
mod questions;

use std::{
    task::{Context as Waking, Poll},
    time::Duration,
};

use archon_run::{Executor, InboxEffect, Machine, Next, Recorded};
use archon_types::{Answer, Decision, QuestionKind, Record, RecordBody, RunKind, Timestamp};
use futures_util::FutureExt;

use plans::paid;

use crate::{
    PlanMachine, PlanNode, PlanTask, calls,
    following::{Deciding, Following, Happened, Run, plan},
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
        let RecordBody::ChildRunCreated { call, .. } = report else { return false };
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

    /// Restarts the calls that were running when the log ended, then reads the inbox.
    async fn attach(&mut self, run: &mut Run) -> Recorded {
        for call in run.machine.under_way() {
            calls::attach(self, run, call).await?;
        }
        run.receive(self).await
    }

    /// Records the requests of the program's [`PlanControl`](crate::PlanControl), and the expiry of
    /// questions.
    async fn before_step(&mut self, run: &mut Run) -> Recorded {
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
            RecordBody::ApprovalRequested { call, request } if request.kind == QuestionKind::InDoubt => {
                calls::doubt(self, run, call, request).await
            }
            RecordBody::ApprovalRequested { call, request } => self.ask(run, call, request).await,
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
            PlanTask::CheckOutput { answer } => self.check_output(run, &answer).await,
        }
    }

    /// Handles the result of a [`PlanTask`] or of an approver. While the run is being stopped, only results
    /// and spending are recorded: failed or interrupted work is done again when the run is resumed.
    async fn done(&mut self, happened: Happened, run: &mut Run) -> Recorded {
        let is_stopping = run.machine.is_stopping();
        match happened {
            Happened::Ended(bodies) => run.record(bodies).await,
            Happened::Planned(command, Err(_), spent) if is_stopping => paid(run, command, spent).await,
            Happened::Planned(command, planned, spent) => self.take_plan(run, command, planned, spent).await,
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
                let follows = self.record_of_answer(&run.machine, (&id, &binding), answer, now);
                match follows {
                    Some(follows) => run.record(vec![follows]).await,
                    None => Ok(()),
                }
            }
            Happened::Decided(..) | Happened::Interrupted => Ok(()),
        }
    }

    /// Returns the effect of an answer to one of the plan's own questions. Any other answer is dropped.
    fn meaning_of_answer(
        &mut self,
        question: (&str, &str),
        answer: Answer,
        at: Timestamp,
        machine: &PlanMachine,
    ) -> InboxEffect {
        let follows = self.record_of_answer(machine, question, answer, at);
        follows.map_or(InboxEffect::Nothing, InboxEffect::Record)
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
}
