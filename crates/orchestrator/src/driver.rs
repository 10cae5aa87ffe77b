//! The executor of [`TeamMachine`]: does the tasks of a team, and records their results.

mod seats;
mod waiting;

use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context as Waking, Poll},
    time::Duration,
};

use archon_run::{Executor, Heard, Machine, Next, Recorded, RunDriver, RunLog};
use archon_types::{
    Answer, ApprovalRequest, BusMessage, CallId, CancellationToken, CommandId, Context, Effect, FailureKind,
    Heartbeat, InboxEntry, InboxRequest, JournalError, Json, MessageType, Outcome, OutcomeStatus, PlanError,
    Planner, PlanningContext, Record, RecordBody, RunKind, SharedItem, Spending, Task, TeamRecord, is_lost,
    questions_below,
};
use futures_util::{
    FutureExt,
    future::{AbortHandle, Abortable},
};
use tokio::sync::{mpsc, oneshot};

use seats::Ask;

use crate::{
    HandState, TeamMachine, TeamTask,
    check::check_plan,
    desk::{DeskRequest, Seat},
    outbox::Outbox,
    team::Parts,
    vital::{Attended, Vital, VitalSink},
};

/// The longest time to wait for the bus to take the queued messages when a run was cancelled or is at a limit.
const LAST_WORDS: Duration = Duration::from_millis(40);

/// The same when a run has ended by itself or is suspended.
const LAST_WORDS_IN_PEACE: Duration = Duration::from_secs(2);

/// The state of the executor of a team.
pub(crate) struct Working<'a> {
    parts: &'a Arc<Parts>,
    context: Context,
    is_planning: bool,
    hands: HashMap<CallId, AtWork>,
    team: mpsc::Sender<DeskRequest>,
    said: mpsc::Receiver<DeskRequest>,
    asks: Vec<Ask>,
    waits: Vec<(CallId, String, u64, oneshot::Sender<SharedItem>)>,
    /// Calls whose question a person answered since the last wait.
    answered: Vec<CallId>,
    outbox: Outbox,
}

type Run = RunDriver<TeamMachine, Happened>;

struct AtWork {
    vital: Vital,
    stop: CancellationToken,
    /// Drops the run; its log stays as it is.
    let_go: AbortHandle,
    /// The requests that it waits for once it was dropped for waiting; empty if it waits for a
    /// shared entry.
    waits_for: Vec<CommandId>,
}

/// The result of a task in flight, or a request of a member.
pub(crate) enum Happened {
    Ended(CallId, Box<Outcome>),
    /// The run was dropped while it waited for other members.
    LetGo(CallId),
    /// The planner's answer, and what its own model calls used.
    Planned(Result<Task, PlanError>, Spending),
    /// A member sent a request to the team.
    Requested(DeskRequest),
}

impl Machine for TeamMachine {
    const KIND: RunKind = RunKind::Team;
    type Task = TeamTask;

    fn apply(&mut self, record: &Record) {
        self.apply(record);
    }

    fn next(&self) -> Next<TeamTask> {
        self.next()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn knows(&self, report: &RecordBody) -> bool {
        let RecordBody::ChildBegun { call, .. } = report else { return true };
        self.hand(*call).is_some_and(|hand| hand.is_begun)
    }
}

/// Drives the run of a team to its outcome, or until it is suspended.
pub(crate) async fn drive(
    parts: &Arc<Parts>,
    machine: TeamMachine,
    log: RunLog,
) -> Result<Outcome, JournalError> {
    let (team, said) = mpsc::channel(64);
    let mut working = Working {
        parts,
        context: log.context().clone(),
        is_planning: false,
        hands: HashMap::new(),
        team,
        said,
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

    /// Reads the inbox first, so that a member that was cancelled or answered does not start. A member that
    /// waited for a person asks again, if it still waits.
    async fn attach(&mut self, run: &mut Run) -> Recorded {
        run.receive(self).await?;
        self.answered.clear();
        let under_way = if run.machine.is_stopping() { Vec::new() } else { run.machine.under_way() };
        let under_way = self.doubt_lost(run, under_way).await?;
        self.run_again(run, under_way).await
    }

    /// Restarts members that have what they waited for, and answers requests of members.
    async fn look(&mut self, run: &mut Run) -> Recorded {
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
                run.record(vec![RecordBody::Granted { call, child, lease }, self.started(call)]).await?;
                self.tell_status(&run.machine, call, "accepted");
                self.run_member(run, call);
                Ok(())
            }
            TeamTask::CheckForm(answer) => {
                let problems = run.machine.form().map(|form| form.problems(&answer)).unwrap_or_default();
                run.record(vec![RecordBody::FormChecked { problems }]).await
            }
        }
    }

    /// Handles the result of a task. While the team stops, only outcomes of members count.
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
            Happened::LetGo(call) => self.note_waiting(run, call).await,
            Happened::Requested(said) => self.on_request(run, said).await,
        }
    }

    async fn append(&mut self, body: RecordBody, run: &mut Run) -> Recorded {
        if self.is_heard_after_all(&run.machine, &body) {
            return self.note_beats(run, Vec::new()).await;
        }
        // Lets members whose work was taken back end first, so that what they used is in the log.
        if matches!(body, RecordBody::RunFinished(_)) && run.is_busy() {
            return run.drain(self).await;
        }
        self.derived(run, body).await
    }

    /// Records the time, after the signs of life that came before it. A member that waits for the
    /// team itself counts as alive.
    async fn tick(&mut self, run: &mut Run) -> Recorded {
        let asking = self.asks.iter().map(|ask| &ask.by);
        for call in asking.chain(self.waits.iter().map(|(call, ..)| call)) {
            if let Some(hand) = self.hands.get(call) {
                hand.vital.beat();
            }
        }
        self.note_beats(run, vec![RecordBody::ClockRead]).await
    }

    /// Returns the use of an inbox message. A team uses cancels, and the answers to its open questions.
    fn meaning(&mut self, entry: InboxEntry, machine: &TeamMachine) -> Heard {
        match entry.request {
            InboxRequest::Cancel { .. } if machine.is_stopping() => Heard::Nothing,
            InboxRequest::Cancel { reason } => Heard::Record(RecordBody::CancelRequested { reason }),
            // An answer to a question that is not open any more is dropped.
            InboxRequest::Answer { request_id, answer, .. } => match machine.question_of(&request_id) {
                Some(call) => {
                    self.answered.push(call);
                    Heard::Record(RecordBody::ToolAnswered { call, answer })
                }
                None => Heard::Nothing,
            },
            _ => Heard::NotMeant,
        }
    }

    /// Returns true if the driver may wait for the next event. False means that the machine is asked again
    /// first: runs in doubt were restarted, which a person allowed to run again while others worked.
    async fn may_wait(&mut self, run: &mut Run) -> Result<bool, JournalError> {
        if self.answered.is_empty() {
            self.stop_waiting(&run.machine);
            return Ok(true);
        }
        for call in std::mem::take(&mut self.answered) {
            let is_running = run.machine.hand(call).is_some_and(|hand| hand.state == HandState::Running);
            if is_running && !self.hands.contains_key(&call) {
                self.run_again(run, vec![call]).await?;
            }
        }
        Ok(false)
    }

    fn poll(&mut self, task: &mut Waking<'_>) -> Poll<Option<Happened>> {
        let _ = self.outbox.poll(task);
        match self.said.poll_recv(task) {
            Poll::Ready(Some(said)) => Poll::Ready(Some(Happened::Requested(said))),
            // A waiting member may have nothing else under way any more, and can then be stopped.
            _ if self.asks.iter().any(|ask| ask.under_way() < ask.seen) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }

    /// Drops the requests of members.
    fn stopped(&mut self) {
        self.asks.clear();
        self.waits.clear();
        self.said.close();
    }

    /// Waits until the bus took all queued messages, for a short time at most.
    async fn rested(&mut self, run: &mut Run) {
        let clock = &self.context.clock;
        let status = run.machine.ended().map(|outcome| &outcome.status);
        let is_stopped = matches!(status, Some(OutcomeStatus::Cancelled | OutcomeStatus::Limit(_)));
        let most = if is_stopped { LAST_WORDS } else { LAST_WORDS_IN_PEACE };
        let mut over = clock.sleep_until(clock.now() + most);
        std::future::poll_fn(|task| match self.outbox.poll(task) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => over.as_mut().poll(task),
        })
        .await;
        let left = self.outbox.len();
        if left > 0 {
            tracing::warn!(run = %self.context.run, left, "the bus did not take what the team had to say");
        }
    }
}

impl Working<'_> {
    /// Fills in what the machine does not know: the team's name and the wall-clock time of expiry.
    fn complete(&self, request: &mut ApprovalRequest) {
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&self.parts.options.name);
        }
        if let Some(wait) = request.timeout_ms {
            // The machine's times are the clock's; people need the time of day.
            let end = self.context.clock.now_for_others() + Duration::from_millis(wait);
            request.expires_at = request.expires_at.max(Some(end));
        }
    }

    /// Appends a record that the machine derived, and sends the bus messages that belong to it.
    async fn derived(&mut self, run: &mut Run, mut body: RecordBody) -> Recorded {
        if let RecordBody::ToolAsked { request, .. } = &mut body {
            self.complete(request);
        }
        if let RecordBody::Team(record) = &body {
            self.tell(&run.machine, record);
        }
        let taken = match &body {
            RecordBody::Team(record) => match **record {
                TeamRecord::TakenBack { call, .. } => Some(call),
                _ => None,
            },
            _ => None,
        };
        let unanswered = match &body {
            RecordBody::ToolAsked { call, .. } if !self.context.can_ask => Some(*call),
            _ => None,
        };
        let mut bodies = vec![body];
        bodies.extend(unanswered.map(|call| {
            let answer = Answer::Withdrawn { reason: "nobody can be asked here".to_owned() };
            RecordBody::ToolAnswered { call, answer }
        }));
        run.record(bodies).await?;
        if let Some(call) = taken {
            self.stop_taken(call);
        }
        Ok(())
    }

    /// Returns whether the machine would take work back for silence although a sign of life came
    /// that is not in the log yet.
    fn is_heard_after_all(&self, machine: &TeamMachine, body: &RecordBody) -> bool {
        let RecordBody::Team(record) = body else { return false };
        let TeamRecord::TakenBack { call, .. } = **record else { return false };
        let heard = self.hands.get(&call).map(|hand| hand.vital.last_seen());
        machine.is_silent(call) && heard.is_some_and(|heard| !machine.is_silent_since(call, heard))
    }

    fn tell(&self, machine: &TeamMachine, record: &TeamRecord) {
        let run = &self.context.run;
        match record {
            TeamRecord::Delegated { call, member, chain, task } if self.parts.bus.is_some() => {
                let content = machine.request(*call, chain, task, self.context.clock.now());
                self.publish(self.name(), member.as_str(), MessageType::TaskRequest, content);
            }
            TeamRecord::Undeliverable { reason, .. } => {
                tracing::warn!(%run, reason, "work cannot be delegated")
            }
            TeamRecord::TakenBack { call, member, reason } => {
                tracing::warn!(%run, %member, reason, "work was taken back");
                let content = serde_json::json!({ "task_id": run.of_call(*call), "reason": reason });
                self.publish(self.name(), member.as_str(), MessageType::Notification, content);
            }
            TeamRecord::Conflict { key, .. } => tracing::warn!(%run, key, "answers contradict each other"),
            TeamRecord::Settled { how, .. } => tracing::info!(%run, how, "a contradiction was settled"),
            _ => {}
        }
    }

    fn name(&self) -> &str {
        self.parts.options.agent_id.as_str()
    }

    /// Publishes the status of a delegation in the name of its member.
    fn tell_status(&self, machine: &TeamMachine, call: CallId, status: &str) {
        let Some(hand) = machine.hand(call).filter(|_| self.parts.bus.is_some()) else { return };
        let task_id = self.context.run.of_call(call);
        let content =
            serde_json::json!({ "task_id": task_id, "status": status, "heard": hand.heard.to_string() });
        self.publish(hand.member.as_str(), self.name(), MessageType::StatusUpdate, content);
    }

    /// Sends a message on the bus, if the team has one.
    fn publish(&self, from: &str, to: &str, message_type: MessageType, content: Json) {
        let content = content.as_object().cloned().unwrap_or_default();
        // The answer to delegated work has the id of its request.
        let pairs =
            matches!(message_type, MessageType::TaskRequest | MessageType::TaskResponse | MessageType::Error);
        let task = content.get("task_id").filter(|_| pairs).and_then(Json::as_str).map(str::to_owned);
        let mut message = BusMessage::new(from, to, message_type, content, self.context.clock.now());
        message.correlation_id = task;
        self.outbox.send(message.of_run(self.context.run.clone()));
    }

    /// Records the new signs of life, then `rest`.
    async fn note_beats(&mut self, run: &mut Run, rest: Vec<RecordBody>) -> Recorded {
        let heard = |(call, hand): (&CallId, &AtWork)| {
            let known = run.machine.hand(*call).filter(|hand| hand.is_open())?;
            let heard = hand.vital.last_seen();
            (heard > known.heard).then_some(TeamRecord::Beat { call: *call, heard })
        };
        let mut beats: Vec<TeamRecord> = self.hands.iter().filter_map(heard).collect();
        beats.sort_by_key(TeamRecord::beat_of);
        let heard: Vec<CallId> = beats.iter().filter_map(TeamRecord::beat_of).collect();
        run.record(beats.into_iter().map(team).chain(rest).collect()).await?;
        for call in heard {
            self.tell_status(&run.machine, call, "executing");
        }
        Ok(())
    }

    /// Records that a member's run ended. Its answer counts only if the delegation is still open.
    async fn ended(&mut self, run: &mut Run, call: CallId, outcome: Outcome) -> Recorded {
        self.forget(call);
        let Some(hand) = run.machine.hand(call) else { return Ok(()) };
        let (member, is_open) = (hand.member.clone(), hand.is_open());
        let spent = outcome.spending();
        let settled = RecordBody::Settled { call, child: outcome.run.clone(), spent };
        if !is_open {
            if outcome.status == OutcomeStatus::Cancelled {
                return run.record(vec![settled]).await;
            }
            tracing::warn!(run = %self.context.run, %member, %call, "a late answer was ignored");
            let answer = outcome.last_text().unwrap_or_default().chars().take(200).collect();
            let late = team(TeamRecord::Late { call, member, answer });
            return run.record(vec![settled, late]).await;
        }
        match outcome.status {
            // The delegation stays open for a resume of the run; its spending is recorded.
            OutcomeStatus::Cancelled if run.stop().is_cancelled() => run.record(vec![settled]).await,
            OutcomeStatus::Suspended => {
                let journal = self.context.journal(&self.parts.journal).clone();
                let said = outcome.to_question(call, member.as_str());
                let asked = questions_below(Some(&*journal), &outcome.run, call, said).await;
                let asked =
                    asked.into_iter().map(|one| RecordBody::ToolAsked { call, request: Box::new(one) });
                let settled = self.settled_so_far(&run.machine, call).await;
                run.record(settled.into_iter().chain(asked).collect()).await?;
                self.tell_status(&run.machine, call, "waiting");
                Ok(())
            }
            _ => {
                let result = Box::new(outcome.to_result(member.as_str()));
                if self.parts.bus.is_some() {
                    let (message_type, content) = run.machine.response(call, &result);
                    self.publish(member.as_str(), self.name(), message_type, content);
                }
                run.record(vec![settled, RecordBody::ToolFinished { call, result: result.into() }]).await
            }
        }
    }

    /// Returns the delegations that can go on. For those whose run had a log that is now missing it
    /// asks a person.
    async fn doubt_lost(
        &mut self,
        run: &mut Run,
        mut calls: Vec<CallId>,
    ) -> Result<Vec<CallId>, JournalError> {
        let journal = self.context.journal(&self.parts.journal).clone();
        let is_begun = |call: &CallId| run.machine.hand(*call).is_some_and(|hand| hand.is_begun);
        for call in calls.iter().copied().filter(is_begun).collect::<Vec<_>>() {
            if is_lost(&*journal, &self.context.run.of_call(call)).await? {
                calls.retain(|other| *other != call);
                self.doubt(run, call).await?;
            }
        }
        Ok(calls)
    }

    /// Asks a person about a delegation that is in doubt: its log is lost, so nobody knows what it
    /// did.
    async fn doubt(&mut self, run: &mut Run, call: CallId) -> Recorded {
        let child = self.context.run.of_call(call);
        let member = run.machine.hand(call).map(|hand| hand.member.to_string()).unwrap_or_default();
        let task = serde_json::json!({ "task": run.machine.brief(call) });
        let mut request =
            ApprovalRequest::in_doubt(run.machine.doubt_id(call), &member, &task).of_lost_run(&child);
        request.agent_name = member;
        self.derived(run, RecordBody::ToolAsked { call, request: Box::new(request) }).await
    }

    fn make_plan(&mut self, run: &mut Run) {
        self.is_planning = true;
        let panicked = || PlanError::Unreadable { problem: "the planner panicked".to_owned() };
        if let Some(subtasks) = run.machine.fixed() {
            let task = run.machine.task().clone().with_subtasks(subtasks.to_vec());
            let planned = std::future::ready(Happened::Planned(Ok(task), Spending::default()));
            return run.spawn(planned, move || Happened::Planned(Err(panicked()), Spending::default()));
        }
        let mut planning = PlanningContext::new(self.context.clone());
        planning.run.cancel = run.stop().clone();
        planning.left = Some(run.machine.left());
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

    fn started(&self, call: CallId) -> RecordBody {
        let child_run = Some(self.context.run.of_call(call));
        RecordBody::ToolStarted { call, attempt: 0, effect: Effect::Idempotent, child_run }
    }

    /// Restarts the runs of these delegations.
    async fn run_again(&mut self, run: &mut Run, calls: Vec<CallId>) -> Recorded {
        if !calls.is_empty() {
            run.record(calls.iter().map(|call| self.started(*call)).collect()).await?;
        }
        for call in calls {
            self.run_member(run, call);
        }
        Ok(())
    }

    /// Starts the run of a delegation's member, or resumes the run if it has a log.
    fn run_member(&mut self, run: &mut Run, call: CallId) {
        let Some(member) = run.machine.hand(call).map(|hand| hand.member.clone()) else { return };
        let vital = Vital::new(self.context.clock.clone());
        let stop = run.stop().child_token();
        let context = self.child_context(run, call, &vital, &stop);
        let mut brief = run.machine.brief(call);
        let role =
            run.machine.job(call.command).and_then(|job| run.machine.role(job.role.as_deref()?)).cloned();
        let seat = Seat { call, role, team: self.team.clone(), vital: vital.clone() };
        self.parts.desk.put(context.run.clone(), seat);
        let (let_go, is_let_go) = AbortHandle::new_pair();
        self.hands.insert(call, AtWork { vital: vital.clone(), stop, let_go, waits_for: Vec::new() });
        let child = context.run.clone();
        let Some(agent) = self.parts.agent(&member) else {
            let outcome =
                Outcome::failed(child, FailureKind::Refused, format!("{member} is not in the team any more"));
            let gone = std::future::ready(Happened::Ended(call, Box::new(outcome)));
            return run.spawn(gone, move || Happened::LetGo(call));
        };
        let form = run.machine.form().filter(|_| run.machine.is_synthesis(call));
        let agent = match form.map(|form| agent.in_form(form)) {
            Some(Some(agent)) => agent,
            _ => {
                brief.push_str(&run.machine.form_in_words(call).unwrap_or_default());
                agent
            }
        };
        let settings = run.machine.settings();
        let has_timer = settings.heartbeat == Heartbeat::Timer && settings.beat_ms > 0;
        let work = Box::pin(async move { agent.run(&brief, &context).await });
        let mut work = Attended::new(work, vital);
        if has_timer {
            work = work.with_beats(Duration::from_millis(settings.beat_ms));
        }
        let failed = Outcome::failed(child.clone(), FailureKind::Panicked, "it panicked");
        let work = Abortable::new(work, is_let_go).map(move |done| {
            let Ok(mut outcome) = done else { return Happened::LetGo(call) };
            // A member cannot rename its run.
            outcome.run = child;
            Happened::Ended(call, Box::new(outcome))
        });
        run.spawn(work, move || Happened::Ended(call, Box::new(failed)));
    }

    fn child_context(&self, run: &Run, call: CallId, vital: &Vital, stop: &CancellationToken) -> Context {
        let parent = &self.context;
        let max_depth = parent.limits(self.parts.options.limits.clone()).max_depth;
        let journal = parent.journal(&self.parts.journal).clone();
        let child = parent.of_call(call, run.machine.lease(call), max_depth, journal, stop.clone());
        let mut child = child.with_caller_log(run.reporter());
        child.sink = Arc::new(VitalSink { vital: vital.clone(), inner: parent.sink.clone() });
        child
    }

    /// Cancels the run of a delegation that was taken back, and drops the requests that its member
    /// waits for.
    fn stop_taken(&mut self, call: CallId) {
        if let Some(hand) = self.hands.get(&call) {
            hand.stop.cancel();
        }
        self.asks.retain(|ask| ask.by != call);
        self.waits.retain(|(by, ..)| *by != call);
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        for call in self.hands.keys() {
            self.parts.desk.clear(&self.context.run.of_call(*call));
        }
    }
}

/// Makes the record of the planner's answer: a plan, another plan, or why there is none.
fn planned_record(machine: &TeamMachine, planned: Result<Task, PlanError>, spent: Spending) -> TeamRecord {
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
    TeamRecord::NotPlanned { problem, failure, spent }
}

/// Makes a record of kind `team`.
fn team(record: TeamRecord) -> RecordBody {
    RecordBody::Team(Box::new(record))
}
