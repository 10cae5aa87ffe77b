//! The executor of [`TeamMachine`]: runs the tasks of a team, and records their results.

mod announce;
mod members;
mod planning;
mod seats;
mod waiting;

use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context as Waking, Poll},
    time::Duration,
};

use archon_run::{Executor, InboxEffect, Machine as _, Recorded, RunDriver, RunLog};
use archon_types::{
    Answer, ApprovalRequest, CallId, CancellationToken, CommandId, Context, JournalError, Outcome,
    OutcomeStatus, PlanError, RecordBody, SharedItem, Spending, Task, TeamRecord, Timestamp,
};
use futures_util::future::AbortHandle;
use tokio::sync::{mpsc, oneshot};

use planning::planned_record;
use seats::Ask;

use crate::{
    AssignmentState, TeamMachine, TeamTask, desk::DeskRequest, heartbeat::HeartbeatState, outbox::Outbox,
    parts::Parts,
};

/// Maximum time to wait until the bus has taken the queued messages of a run.
const BUS_WAIT: Duration = Duration::from_secs(2);

/// Replaces [`BUS_WAIT`] for a run that was cancelled or reached a limit.
const BUS_WAIT_STOPPED: Duration = Duration::from_millis(40);

/// The state of the executor of a team.
pub(crate) struct Working<'a> {
    parts: &'a Arc<Parts>,
    context: Context,
    is_planning: bool,
    hands: HashMap<CallId, AtWork>,
    team: mpsc::Sender<DeskRequest>,
    requests: mpsc::Receiver<DeskRequest>,
    asks: Vec<Ask>,
    waits: Vec<(CallId, String, u64, oneshot::Sender<SharedItem>)>,
    /// The calls whose questions people have answered since the driver last waited.
    answered: Vec<CallId>,
    outbox: Outbox,
}

type Run = RunDriver<TeamMachine, Happened>;

struct AtWork {
    heartbeat: HeartbeatState,
    stop: CancellationToken,
    /// Aborts the member's run; the log of the run stays as it is.
    abort: AbortHandle,
    /// The requests for which the dropped run waits; empty if it waits for a shared entry.
    waits_for: Vec<CommandId>,
}

/// An event that the driver waits for: the end of a member's run, the planner's answer, or a member's request.
pub(crate) enum Happened {
    Ended(CallId, Box<Outcome>),
    /// The member's run was dropped while it waited for other members.
    Dropped(CallId),
    /// The planner's answer, and the spending of the planner's own model calls.
    Planned(Result<Task, PlanError>, Spending),
    /// A member sent a request to the team.
    Requested(DeskRequest),
}

/// Drives the run of a team until it ends or is suspended.
pub(crate) async fn drive(
    parts: &Arc<Parts>,
    machine: TeamMachine,
    log: RunLog,
) -> Result<Outcome, JournalError> {
    let (team, requests) = mpsc::channel(64);
    let mut working = Working {
        parts,
        context: log.context().clone(),
        is_planning: false,
        hands: HashMap::new(),
        team,
        requests,
        asks: Vec::new(),
        waits: Vec::new(),
        answered: Vec::new(),
        outbox: Outbox::new(parts.bus.clone()),
    };
    RunDriver::new(machine, log).drive(&mut working).await
}

impl Executor<TeamMachine> for Working<'_> {
    type Done = Happened;

    const GRACE: Option<Duration> = Some(Duration::from_millis(200));

    /// Restarts the members that were at work. Reads the inbox first, because a cancel or an answer may end a
    /// delegation, and then its member is not restarted. A member that still waits for a person is restarted too, and
    /// asks the person again.
    async fn attach(&mut self, run: &mut Run) -> Recorded {
        run.receive(self).await?;
        self.answered.clear();
        let under_way = if run.machine.is_stopping() { Vec::new() } else { run.machine.under_way() };
        let under_way = self.doubt_lost(run, under_way).await?;
        self.run_again(run, under_way).await
    }

    /// Restarts the dropped members that can continue, and answers the requests of members.
    async fn before_step(&mut self, run: &mut Run) -> Recorded {
        if !run.machine.is_stopping() {
            let calls = run.machine.can_go_on();
            for call in calls {
                self.run_again(run, vec![call]).await?;
            }
        }
        self.answer_seats(&run.machine);
        Ok(())
    }

    async fn start(&mut self, task: TeamTask, run: &mut Run) -> Recorded {
        match task {
            TeamTask::MakePlan if self.is_planning => run.wait(Some(run.machine.deadline()), self).await,
            TeamTask::MakePlan => {
                self.make_plan(run);
                Ok(())
            }
            TeamTask::Start(call) => {
                let (lease, child) = (run.machine.lease(call), self.context.run.of_call(call));
                run.record(vec![
                    RecordBody::LeaseGranted { call, child_run: child, lease },
                    self.started(call),
                ])
                .await?;
                self.announce_status(&run.machine, call, "accepted");
                self.run_member(run, call);
                Ok(())
            }
            TeamTask::CheckOutput(answer) => {
                let problems =
                    run.machine.output_format().map(|form| form.problems(&answer)).unwrap_or_default();
                run.record(vec![RecordBody::OutputChecked { problems }]).await
            }
        }
    }

    /// Handles the end of a member's run, the planner's answer or a member's request. While the team stops,
    /// only the ends of members' runs are recorded.
    async fn done(&mut self, happened: Happened, run: &mut Run) -> Recorded {
        let is_stopped = run.stop().is_cancelled();
        match happened {
            Happened::Ended(call, outcome) => self.ended(run, call, *outcome).await,
            _ if is_stopped => Ok(()),
            Happened::Planned(planned, spent) => {
                self.is_planning = false;
                let record = planned_record(&run.machine, planned, spent);
                run.record(vec![team(record)]).await
            }
            Happened::Dropped(call) => self.note_waiting(run, call).await,
            Happened::Requested(request) => self.on_request(run, request).await,
        }
    }

    async fn append(&mut self, body: RecordBody, run: &mut Run) -> Recorded {
        if self.is_heard_after_all(&run.machine, &body) {
            return self.note_beats(run, Vec::new()).await;
        }
        // Members whose work was revoked end first, so that their spending is in the log.
        if matches!(body, RecordBody::RunFinished(_)) && run.is_busy() {
            return run.drain(self).await;
        }
        self.derived(run, body).await
    }

    /// Records the time, after the new heartbeats. A member that waits for the team counts as alive.
    async fn tick(&mut self, run: &mut Run) -> Recorded {
        let asking = self.asks.iter().map(|ask| &ask.by);
        for call in asking.chain(self.waits.iter().map(|(call, ..)| call)) {
            if let Some(hand) = self.hands.get(call) {
                hand.heartbeat.beat();
            }
        }
        self.note_beats(run, vec![RecordBody::ClockRead]).await
    }

    /// Returns the effect of an answer. An answer to a question that is no longer open is dropped.
    fn meaning_of_answer(
        &mut self,
        (id, binding): (&str, &str),
        answer: Answer,
        _: Timestamp,
        machine: &TeamMachine,
    ) -> InboxEffect {
        let Some(call) = machine.question_of(id, binding) else { return InboxEffect::Nothing };
        self.answered.push(call);
        InboxEffect::Record(RecordBody::ApprovalAnswered { call, answer })
    }

    /// Returns true if the driver may wait for the next event. False means that the driver asks the machine
    /// again first, because a person answered a question. If the person allowed the restart of a run in
    /// doubt, this restarts the run.
    async fn may_wait(&mut self, run: &mut Run) -> Result<bool, JournalError> {
        if self.answered.is_empty() {
            self.stop_waiting(&run.machine);
            return Ok(true);
        }
        for call in std::mem::take(&mut self.answered) {
            let is_running =
                run.machine.hand(call).is_some_and(|hand| hand.state == AssignmentState::Running);
            if is_running && !self.hands.contains_key(&call) {
                self.run_again(run, vec![call]).await?;
            }
        }
        Ok(false)
    }

    fn poll(&mut self, task: &mut Waking<'_>) -> Poll<Option<Happened>> {
        let _ = self.outbox.poll(task);
        match self.requests.poll_recv(task) {
            Poll::Ready(Some(request)) => Poll::Ready(Some(Happened::Requested(request))),
            // A waiting member may have no other call under way any more, so that its run can be dropped.
            _ if self.asks.iter().any(|ask| ask.under_way() < ask.seen) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }

    /// Drops the open requests of members, because no member gets an answer once the team stops.
    fn stopped(&mut self) {
        self.asks.clear();
        self.waits.clear();
        self.requests.close();
    }

    /// Waits until the bus has taken all queued messages, up to a maximum time.
    async fn rested(&mut self, run: &mut Run) {
        let clock = &self.context.clock;
        let status = run.machine.ended().map(|outcome| &outcome.status);
        let is_stopped = matches!(status, Some(OutcomeStatus::Cancelled | OutcomeStatus::Limit(_)));
        let most = if is_stopped { BUS_WAIT_STOPPED } else { BUS_WAIT };
        let mut over = clock.sleep_until(clock.now() + most);
        std::future::poll_fn(|task| match self.outbox.poll(task) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => over.as_mut().poll(task),
        })
        .await;
        let unsent = self.outbox.len();
        if unsent > 0 {
            tracing::warn!(run = %self.context.run, unsent, "the bus did not take all messages of the team");
        }
    }
}

impl Working<'_> {
    /// Sets the fields of a question that the machine cannot know: the team's name, and the time of the
    /// expiry.
    fn complete(&self, request: &mut ApprovalRequest) {
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&self.parts.options.name);
        }
        if let Some(wait) = request.timeout_ms {
            let end = self.context.clock.now_for_others() + Duration::from_millis(wait);
            request.expires_at = request.expires_at.max(Some(end));
        }
    }

    /// Appends a record that the machine derived, and publishes the bus messages of the record.
    async fn derived(&mut self, run: &mut Run, mut body: RecordBody) -> Recorded {
        if let RecordBody::ApprovalRequested { request, .. } = &mut body {
            self.complete(request);
        }
        if let RecordBody::Team(record) = &body {
            self.announce(&run.machine, record);
        }
        let revoked = revoked_call(&body);
        let unanswered = match &body {
            RecordBody::ApprovalRequested { call, .. } if !self.context.can_ask => Some(*call),
            _ => None,
        };
        let withdrawn = unanswered.map(|call| {
            let answer = Answer::Withdrawn { reason: "nobody can be asked here".to_owned() };
            RecordBody::ApprovalAnswered { call, answer }
        });
        run.record([body].into_iter().chain(withdrawn).collect()).await?;
        if let Some(call) = revoked {
            self.stop_revoked(call);
        }
        Ok(())
    }

    /// Returns true if the record revokes the work of a silent member, but a heartbeat that is not in the log
    /// yet shows that the member is not silent.
    fn is_heard_after_all(&self, machine: &TeamMachine, body: &RecordBody) -> bool {
        let Some(call) = revoked_call(body) else { return false };
        let heard = self.hands.get(&call).map(|hand| hand.heartbeat.last_seen());
        machine.is_silent(call) && heard.is_some_and(|heard| !machine.is_silent_since(heard))
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        for call in self.hands.keys() {
            self.parts.desk.clear(&self.context.run.of_call(*call));
        }
    }
}

/// Returns the call of the delegation that this record revokes.
fn revoked_call(body: &RecordBody) -> Option<CallId> {
    let RecordBody::Team(record) = body else { return None };
    match **record {
        TeamRecord::DelegationRevoked { call, .. } => Some(call),
        _ => None,
    }
}

/// Wraps a team record as a record body.
fn team(record: TeamRecord) -> RecordBody {
    RecordBody::Team(Box::new(record))
}
