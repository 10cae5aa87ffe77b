//! The driver of a team's run: carries out the commands of the machine, and appends each result to
//! the log before it acts on it.

mod seats;
mod waiting;

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, task::Poll, time::Duration};

use archon_run::{Heard, Mailbox, Report, Reports};
use archon_types::{
    Answer, ApprovalRequest, BoxFuture, BusMessage, CallId, CancellationToken, CommandId, Context, Effect,
    FailureKind, Heartbeat, InboxEntry, InboxRequest, JournalError, Json, LogAppender, MessageType, Outcome,
    OutcomeStatus, PlanError, Planner, PlanningContext, RecordBody, SharedItem, Spending, Task, TeamRecord,
    Timestamp, is_lost, questions_below,
};
use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use seats::Ask;

use crate::{
    TeamCommand, TeamMachine,
    check::check_plan,
    desk::{Said, Seat},
    outbox::Outbox,
    team::Parts,
    vital::{Attended, Vital, VitalSink},
};

/// Grace period of members at work after a cancel; a run that has not ended by then is dropped.
const GRACE: Duration = Duration::from_millis(200);

/// The longest time to wait for the bus to take the queued messages when a run has ended.
const LAST_WORDS: Duration = Duration::from_millis(40);

/// The same when a run is suspended.
const LAST_WORDS_IN_PEACE: Duration = Duration::from_secs(2);

/// One run of a team while this process drives it.
pub(crate) struct Driver<'a> {
    pub(crate) parts: &'a Arc<Parts>,
    pub(crate) machine: TeamMachine,
    pub(crate) log: LogAppender,
    pub(crate) context: Context,
    in_flight: FuturesUnordered<BoxFuture<'static, Happened>>,
    /// Cancels everything under way; a child of the run's own token.
    stop: CancellationToken,
    is_planning: bool,
    hands: HashMap<CallId, AtWork>,
    team: mpsc::Sender<Said>,
    said: mpsc::Receiver<Said>,
    /// Given to members' runs, so that they can report that their log exists.
    reports: Reports,
    asks: Vec<Ask>,
    waits: Vec<(CallId, String, u64, oneshot::Sender<SharedItem>)>,
    /// The messages for the run.
    mailbox: Option<Arc<Mailbox>>,
    /// Calls whose question a person answered since the last wait.
    answered: Vec<CallId>,
    outbox: Outbox,
}

struct AtWork {
    vital: Vital,
    stop: CancellationToken,
    /// Drops the run; its log stays as it is.
    let_go: AbortHandle,
    /// The requests that it waits for once it was dropped for waiting; empty if it waits for a
    /// shared entry.
    waits_for: Vec<CommandId>,
}

/// The result of something that was under way.
enum Happened {
    Ended(CallId, Box<Outcome>),
    /// The run was dropped while it waited for other members.
    LetGo(CallId),
    /// The planner's answer, and what its own model calls used.
    Planned(Result<Task, PlanError>, Spending),
}

/// The machine's next command, owned, so that the machine is not borrowed.
enum Step {
    Append(Box<RecordBody>),
    MakePlan,
    Start(CallId),
    CheckForm(String),
    Wait(Option<Timestamp>),
    Suspend,
    Done(Box<Outcome>),
}

enum Woken {
    By(Happened),
    Said(Said),
    Reported(Report),
    Spoken,
    Time,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        parts: &'a Arc<Parts>,
        machine: TeamMachine,
        log: LogAppender,
        context: &Context,
    ) -> Self {
        let (team, said) = mpsc::channel(64);
        Self {
            parts,
            machine,
            log,
            stop: context.cancel.child_token(),
            context: context.clone(),
            in_flight: FuturesUnordered::new(),
            is_planning: false,
            hands: HashMap::new(),
            team,
            said,
            reports: Reports::default(),
            asks: Vec::new(),
            waits: Vec::new(),
            mailbox: None,
            answered: Vec::new(),
            outbox: Outbox::new(parts.bus.clone()),
        }
    }

    /// The same driver, which hears what comes there.
    pub(crate) fn with_mailbox(mut self, mailbox: Option<Arc<Mailbox>>) -> Self {
        self.mailbox = mailbox;
        self
    }

    /// Drives the run to its outcome, or until it is suspended.
    pub(crate) async fn drive(self) -> Result<Outcome, JournalError> {
        // A span, so that every log line from here on names the run.
        let span = tracing::info_span!("run", run = %self.context.run, session = %self.context.session);
        self.work().instrument(span).await
    }

    async fn work(mut self) -> Result<Outcome, JournalError> {
        // Reads the inbox first: after a cancel or a no no member may begin to work.
        self.receive().await?;
        self.answered.clear();
        let under_way = if self.machine.is_stopping() { Vec::new() } else { self.machine.under_way() };
        let under_way = self.doubt_lost(under_way).await?;
        // Starts the members anew that were at work; one that waited for a person asks again if it
        // still has to.
        let started = under_way.iter().map(|call| self.started(*call)).collect::<Vec<_>>();
        if !started.is_empty() {
            self.record(started).await?;
        }
        for call in under_way {
            self.run_member(call);
        }
        loop {
            self.hear().await?;
            self.go_on().await?;
            if self.machine.is_stopping() && !self.in_flight.is_empty() {
                self.drain().await?;
            }
            match self.step() {
                Step::Done(outcome) => {
                    self.said_all().await;
                    return Ok(*outcome);
                }
                Step::Suspend => {
                    self.said_all().await;
                    return Ok(Outcome::new(self.context.run.clone(), OutcomeStatus::Suspended));
                }
                Step::Append(body) if self.is_heard_after_all(&body) => self.note_beats(Vec::new()).await?,
                // Lets members whose work was taken back end first, so that what they used is in the log.
                Step::Append(body)
                    if matches!(*body, RecordBody::RunFinished(_)) && !self.in_flight.is_empty() =>
                {
                    self.drain().await?;
                }
                Step::Append(body) => self.append(*body).await?,
                Step::MakePlan if self.is_planning => self.wait(None).await?,
                Step::MakePlan => self.make_plan(),
                Step::Start(call) => self.start(call).await?,
                Step::CheckForm(answer) => self.check_form(&answer).await?,
                Step::Wait(until) => self.wait(until).await?,
            }
        }
    }

    fn step(&self) -> Step {
        match self.machine.next() {
            TeamCommand::Done(outcome) => Step::Done(Box::new(outcome.clone())),
            TeamCommand::Append(body) => Step::Append(Box::new(body)),
            TeamCommand::MakePlan => Step::MakePlan,
            TeamCommand::Start { call } => Step::Start(call),
            TeamCommand::CheckForm { answer } => Step::CheckForm(answer),
            TeamCommand::Wait { until } => Step::Wait(until),
            TeamCommand::Suspend => Step::Suspend,
            // Cannot happen: a team starts every run with a goal.
            TeamCommand::WaitForGoal => Step::Done(Box::new(Outcome::failed(
                self.context.run.clone(),
                FailureKind::Refused,
                "nothing was asked",
            ))),
        }
    }

    async fn record(&mut self, bodies: Vec<RecordBody>) -> Result<(), JournalError> {
        self.log.step(bodies, |record| self.machine.apply(record)).await
    }

    async fn team_record(&mut self, record: TeamRecord) -> Result<(), JournalError> {
        self.record(vec![RecordBody::Team(Box::new(record))]).await
    }

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
    async fn append(&mut self, mut body: RecordBody) -> Result<(), JournalError> {
        if let RecordBody::ToolAsked { request, .. } = &mut body {
            self.complete(request);
        }
        if let RecordBody::Team(record) = &body {
            self.tell(record);
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
        self.record(bodies).await?;
        if let Some(call) = taken {
            self.stop_taken(call);
        }
        Ok(())
    }

    /// Returns whether the machine would take work back for silence although a sign of life came
    /// that is not in the log yet.
    fn is_heard_after_all(&self, body: &RecordBody) -> bool {
        let RecordBody::Team(record) = body else { return false };
        let TeamRecord::TakenBack { call, .. } = **record else { return false };
        let heard = self.hands.get(&call).map(|hand| hand.vital.heard());
        self.machine.is_silent(call) && heard.is_some_and(|heard| !self.machine.is_silent_since(call, heard))
    }

    fn tell(&self, record: &TeamRecord) {
        let run = &self.context.run;
        match record {
            TeamRecord::Delegated { call, member, chain, task } if self.parts.bus.is_some() => {
                let content = self.machine.request(*call, chain, task, self.context.clock.now());
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
    fn tell_status(&self, call: CallId, status: &str) {
        let Some(hand) = self.machine.hand(call).filter(|_| self.parts.bus.is_some()) else { return };
        let task_id = self.context.run.of_call(call);
        let content =
            serde_json::json!({ "task_id": task_id, "status": status, "heard": hand.heard.to_string() });
        self.publish(hand.member.as_str(), self.name(), MessageType::StatusUpdate, content);
    }

    /// Sends a message on the bus, if the team has one.
    fn publish(&self, from: &str, to: &str, message_type: MessageType, content: Json) {
        let content = content.as_object().cloned().unwrap_or_default();
        let message = BusMessage::new(from, to, message_type, content, self.context.clock.now());
        self.outbox.send(message.of_run(self.context.run.clone()));
    }

    /// Waits until the bus took all queued messages, for a short time at most.
    async fn said_all(&mut self) {
        let clock = &self.context.clock;
        let most = if self.machine.is_stopping() { LAST_WORDS } else { LAST_WORDS_IN_PEACE };
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

    /// Records a cancel of the caller.
    async fn hear(&mut self) -> Result<(), JournalError> {
        if self.machine.ended().is_none() && self.context.cancel.is_cancelled() && !self.machine.is_stopping()
        {
            let reason = "cancelled by the caller".to_owned();
            self.record(vec![RecordBody::CancelRequested { reason }]).await?;
        }
        Ok(())
    }

    /// Moves messages from the inbox into the log: cancels and answers to the team's own questions.
    async fn receive(&mut self) -> Result<(), JournalError> {
        let Some(mailbox) = self.mailbox.clone() else { return Ok(()) };
        mailbox.look().await;
        while let Some(bodies) = mailbox.take(|entry| self.meaning(entry)) {
            self.answered.extend(bodies.iter().filter_map(|body| match body {
                RecordBody::ToolAnswered { call, .. } => Some(*call),
                _ => None,
            }));
            self.record(bodies).await?;
        }
        mailbox.clear().await;
        Ok(())
    }

    /// Returns the effect of a message on a team: it takes a cancel, and answers to its questions.
    fn meaning(&self, entry: InboxEntry) -> Heard {
        let follows = match entry.request {
            InboxRequest::Cancel { reason } => {
                (!self.machine.is_stopping()).then_some(RecordBody::CancelRequested { reason })
            }
            // An answer to a question that is not open any more is dropped.
            InboxRequest::Answer { request_id, answer, .. } => {
                self.machine.question_of(&request_id).map(|call| RecordBody::ToolAnswered { call, answer })
            }
            _ => return Heard::NotMeant,
        };
        follows.map_or(Heard::Nothing, Heard::Record)
    }

    async fn wait(&mut self, until: Option<Timestamp>) -> Result<(), JournalError> {
        self.answer_seats();
        self.receive().await?;
        if self.machine.is_stopping() {
            return Ok(());
        }
        if !self.answered.is_empty() {
            // The answer may allow work, so the machine looks before the driver waits.
            return self.run_answered().await;
        }
        self.stop_waiting();
        match self.woken(until).await {
            Woken::By(happened) => self.take(happened).await,
            Woken::Said(said) => self.heard(said).await,
            Woken::Reported(report) => self.note_begun(report).await,
            Woken::Spoken => Ok(()),
            Woken::Time => self.look().await,
        }
    }

    async fn woken(&mut self, until: Option<Timestamp>) -> Woken {
        let due = until.unwrap_or(self.machine.deadline()).min(self.machine.deadline());
        let mut timer = self.context.clock.sleep_until(due);
        let mut cancelled = Box::pin(self.context.cancel.cancelled());
        let mailbox = self.mailbox.clone();
        let mut posted = mailbox.as_ref().map(|mailbox| mailbox.changed());
        let (in_flight, said, outbox) = (&mut self.in_flight, &mut self.said, &self.outbox);
        let reports = &self.reports;
        std::future::poll_fn(|task| {
            let _ = outbox.poll(task);
            if !in_flight.is_empty()
                && let Poll::Ready(Some(happened)) = in_flight.poll_next_unpin(task)
            {
                return Poll::Ready(Woken::By(happened));
            }
            if let Poll::Ready(Some(said)) = said.poll_recv(task) {
                return Poll::Ready(Woken::Said(said));
            }
            if let Poll::Ready(report) = reports.poll(task) {
                return Poll::Ready(Woken::Reported(report));
            }
            let is_spoken_to = cancelled.as_mut().poll(task).is_ready()
                || posted.as_mut().is_some_and(|posted| posted.as_mut().poll(task).is_ready());
            if is_spoken_to {
                return Poll::Ready(Woken::Spoken);
            }
            timer.as_mut().poll(task).map(|()| Woken::Time)
        })
        .await
    }

    /// Records the time, after the signs of life that came before it. A member that waits for the
    /// team itself counts as alive.
    async fn look(&mut self) -> Result<(), JournalError> {
        let asking = self.asks.iter().map(|ask| &ask.by);
        for call in asking.chain(self.waits.iter().map(|(call, ..)| call)) {
            if let Some(hand) = self.hands.get(call) {
                hand.vital.beat();
            }
        }
        self.note_beats(vec![RecordBody::ClockRead]).await
    }

    /// Records the new signs of life, then `rest`.
    async fn note_beats(&mut self, rest: Vec<RecordBody>) -> Result<(), JournalError> {
        let heard = |(call, hand): (&CallId, &AtWork)| {
            let known = self.machine.hand(*call).filter(|hand| hand.is_open())?;
            let heard = hand.vital.heard();
            (heard > known.heard).then_some(TeamRecord::Beat { call: *call, heard })
        };
        let mut beats: Vec<TeamRecord> = self.hands.iter().filter_map(heard).collect();
        beats.sort_by_key(TeamRecord::beat_of);
        let heard: Vec<CallId> = beats.iter().filter_map(TeamRecord::beat_of).collect();
        let beats = beats.into_iter().map(|beat| RecordBody::Team(Box::new(beat)));
        self.record(beats.chain(rest).collect()).await?;
        for call in heard {
            self.tell_status(call, "executing");
        }
        Ok(())
    }

    /// Cancels everything under way, waits for the grace period, and drops what has not ended by
    /// then.
    async fn drain(&mut self) -> Result<(), JournalError> {
        self.stop.cancel();
        // Drops the replies, so that members who wait for the team get an error.
        self.asks.clear();
        self.waits.clear();
        self.said.close();
        let clock = self.context.clock.clone();
        let mut over = clock.sleep_until(clock.now() + GRACE);
        while !self.in_flight.is_empty() {
            let (in_flight, reports) = (&mut self.in_flight, &self.reports);
            let next = std::future::poll_fn(|task| {
                if let Poll::Ready(happened) = in_flight.poll_next_unpin(task) {
                    return Poll::Ready(happened.map(Woken::By));
                }
                match reports.poll(task) {
                    Poll::Ready(report) => Poll::Ready(Some(Woken::Reported(report))),
                    Poll::Pending => over.as_mut().poll(task).map(|()| None),
                }
            });
            match next.await {
                Some(Woken::By(happened @ Happened::Ended(..))) => self.take(happened).await?,
                Some(Woken::Reported(report)) => self.note_begun(report).await?,
                Some(_) => {}
                None => break,
            }
        }
        self.in_flight = FuturesUnordered::new();
        self.clear_desk();
        Ok(())
    }

    async fn take(&mut self, happened: Happened) -> Result<(), JournalError> {
        match happened {
            Happened::Planned(planned, spent) => {
                self.is_planning = false;
                self.team_record(self.planned(planned, spent)).await
            }
            Happened::Ended(call, outcome) => self.ended(call, *outcome).await,
            Happened::LetGo(call) => self.note_waiting(call).await,
        }
    }

    /// Makes the record of the planner's answer: a plan, another plan, or why there is none.
    fn planned(&self, planned: Result<Task, PlanError>, spent: Spending) -> TeamRecord {
        let (problem, failure) = match planned {
            Ok(task) if self.machine.has_lost() => {
                let diff = Box::new(self.machine.difference(&task));
                let changed = self.machine.changed(&diff);
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

    /// Records that a member's run ended. Its answer counts only if the delegation is still open.
    async fn ended(&mut self, call: CallId, outcome: Outcome) -> Result<(), JournalError> {
        self.forget(call);
        let Some(hand) = self.machine.hand(call) else { return Ok(()) };
        let (member, is_open) = (hand.member.clone(), hand.is_open());
        let spent = outcome.spending();
        let settled = RecordBody::Settled { call, child: outcome.run.clone(), spent };
        if !is_open {
            if outcome.status == OutcomeStatus::Cancelled {
                return self.record(vec![settled]).await;
            }
            tracing::warn!(run = %self.context.run, %member, %call, "a late answer was ignored");
            let answer = outcome.said().unwrap_or_default().chars().take(200).collect();
            let late = RecordBody::Team(Box::new(TeamRecord::Late { call, member, answer }));
            return self.record(vec![settled, late]).await;
        }
        match outcome.status {
            // The delegation stays open for a resume of the run; its spending is recorded.
            OutcomeStatus::Cancelled if self.stop.is_cancelled() => self.record(vec![settled]).await,
            OutcomeStatus::Suspended => {
                let journal = self.context.journal(&self.parts.journal).clone();
                let said = outcome.to_question(call, member.as_str());
                let asked = questions_below(Some(&*journal), &outcome.run, call, said).await;
                let asked =
                    asked.into_iter().map(|one| RecordBody::ToolAsked { call, request: Box::new(one) });
                self.record(asked.collect()).await?;
                self.tell_status(call, "waiting");
                Ok(())
            }
            _ => {
                let result = Box::new(outcome.to_result(member.as_str()));
                if self.parts.bus.is_some() {
                    let (message_type, content) = self.machine.response(call, &result);
                    self.publish(member.as_str(), self.name(), message_type, content);
                }
                self.record(vec![settled, RecordBody::ToolFinished { call, result: result.into() }]).await
            }
        }
    }

    /// Records that a member's run has a log; the run waits for this before it does anything.
    async fn note_begun(&mut self, report: Report) -> Result<(), JournalError> {
        let RecordBody::ChildBegun { call, .. } = report.record else { return Ok(()) };
        if !self.machine.hand(call).is_some_and(|hand| hand.is_begun) {
            self.record(vec![report.record.clone()]).await?;
        }
        report.logged();
        Ok(())
    }

    /// Returns the delegations that can go on. For those whose run had a log that is now missing it
    /// asks a person.
    async fn doubt_lost(&mut self, mut calls: Vec<CallId>) -> Result<Vec<CallId>, JournalError> {
        let journal = self.context.journal(&self.parts.journal).clone();
        let is_begun = |call: &CallId| self.machine.hand(*call).is_some_and(|hand| hand.is_begun);
        for call in calls.iter().copied().filter(is_begun).collect::<Vec<_>>() {
            if is_lost(&*journal, &self.context.run.of_call(call)).await? {
                calls.retain(|other| *other != call);
                self.doubt(call).await?;
            }
        }
        Ok(calls)
    }

    /// Asks a person about a delegation that is in doubt: its log is lost, so nobody knows what it
    /// did.
    async fn doubt(&mut self, call: CallId) -> Result<(), JournalError> {
        let child = self.context.run.of_call(call);
        let member = self.machine.hand(call).map(|hand| hand.member.to_string()).unwrap_or_default();
        let task = serde_json::json!({ "task": self.machine.brief(call) });
        let mut request =
            ApprovalRequest::in_doubt(self.machine.doubt_id(call), &member, &task).of_lost_run(&child);
        request.agent_name = member;
        self.append(RecordBody::ToolAsked { call, request: Box::new(request) }).await
    }

    fn make_plan(&mut self) {
        self.is_planning = true;
        if let Some(subtasks) = self.machine.fixed() {
            let task = self.machine.task().clone().with_subtasks(subtasks.to_vec());
            let planned = Happened::Planned(Ok(task), Spending::default());
            return self.in_flight.push(Box::pin(std::future::ready(planned)));
        }
        let mut planning = PlanningContext::new(self.context.clone());
        planning.run.cancel = self.stop.clone();
        planning.left = Some(self.machine.left());
        self.machine.background().clone_into(&mut planning.background);
        let (planner, task) = (self.parts.planner.clone(), self.machine.task_so_far());
        let (expenses, loss) = (planning.expenses.clone(), self.machine.loss());
        let planned = async move {
            let Some((reason, targets)) = loss else {
                return planner.create_plan(&task.goal, &planning).await;
            };
            planning.targets = targets;
            planner.replan(&task, &reason, &planning).await
        };
        let planned = AssertUnwindSafe(planned).catch_unwind().map(move |planned| {
            let panicked = |_| Err(PlanError::Unreadable { problem: "the planner panicked".to_owned() });
            Happened::Planned(planned.unwrap_or_else(panicked), expenses.total())
        });
        self.in_flight.push(Box::pin(planned));
    }

    async fn check_form(&mut self, answer: &str) -> Result<(), JournalError> {
        let problems = self.machine.form().map(|form| form.problems(answer)).unwrap_or_default();
        self.record(vec![RecordBody::FormChecked { problems }]).await
    }

    async fn start(&mut self, call: CallId) -> Result<(), JournalError> {
        let (lease, child) = (self.machine.lease(call), self.context.run.of_call(call));
        let started = self.started(call);
        self.record(vec![RecordBody::Granted { call, child, lease }, started]).await?;
        self.tell_status(call, "accepted");
        self.run_member(call);
        Ok(())
    }

    fn started(&self, call: CallId) -> RecordBody {
        let child_run = Some(self.context.run.of_call(call));
        RecordBody::ToolStarted { call, attempt: 0, effect: Effect::Idempotent, child_run }
    }

    /// Starts the run of a delegation's member, or resumes the run if it has a log.
    fn run_member(&mut self, call: CallId) {
        let Some(member) = self.machine.hand(call).map(|hand| hand.member.clone()) else { return };
        let vital = Vital::new(self.context.clock.clone());
        let stop = self.stop.child_token();
        let context = self.child_context(call, &vital, &stop);
        let mut brief = self.machine.brief(call);
        let role =
            self.machine.job(call.command).and_then(|job| self.machine.role(job.role.as_deref()?)).cloned();
        let seat = Seat { call, role, team: self.team.clone(), vital: vital.clone() };
        self.parts.desk.put(context.run.clone(), seat);
        let (let_go, is_let_go) = AbortHandle::new_pair();
        self.hands.insert(call, AtWork { vital: vital.clone(), stop, let_go, waits_for: Vec::new() });
        let child = context.run.clone();
        let Some(agent) = self.parts.agent(&member) else {
            let outcome =
                Outcome::failed(child, FailureKind::Refused, format!("{member} is not in the team any more"));
            return self
                .in_flight
                .push(Box::pin(std::future::ready(Happened::Ended(call, Box::new(outcome)))));
        };
        let form = self.machine.form().filter(|_| self.machine.is_synthesis(call));
        let agent = match form.map(|form| agent.in_form(form)) {
            Some(Some(agent)) => agent,
            _ => {
                brief.push_str(&self.machine.form_in_words(call).unwrap_or_default());
                agent
            }
        };
        let work = AssertUnwindSafe(async move { agent.run(&brief, &context).await }).catch_unwind();
        let settings = self.machine.settings();
        let has_timer = settings.heartbeat == Heartbeat::Timer && settings.beat_ms > 0;
        let mut work = Attended::new(Box::pin(work), vital);
        if has_timer {
            work = work.with_beats(Duration::from_millis(settings.beat_ms));
        }
        let work = Abortable::new(work, is_let_go).map(move |done| {
            let Ok(done) = done else { return Happened::LetGo(call) };
            let mut outcome =
                done.unwrap_or_else(|_| Outcome::failed(child.clone(), FailureKind::Panicked, "it panicked"));
            // A member cannot rename its run.
            outcome.run = child;
            Happened::Ended(call, Box::new(outcome))
        });
        self.in_flight.push(Box::pin(work));
    }

    fn child_context(&self, call: CallId, vital: &Vital, stop: &CancellationToken) -> Context {
        let parent = &self.context;
        let max_depth = parent.limits(self.parts.options.limits.clone()).max_depth;
        let journal = parent.journal(&self.parts.journal).clone();
        let child = parent.of_call(call, self.machine.lease(call), max_depth, journal, stop.clone());
        let mut child = child.with_caller_log(self.reports.reporter());
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

    fn clear_desk(&mut self) {
        for call in self.hands.keys() {
            self.parts.desk.clear(&self.context.run.of_call(*call));
        }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.stop.cancel();
        self.clear_desk();
    }
}
