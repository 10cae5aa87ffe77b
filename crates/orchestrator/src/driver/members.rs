//! Starts and restarts the runs of members, and records their outcomes.

use std::{sync::Arc, time::Duration};

use archon_run::Recorded;
use archon_types::{
    ApprovalRequest, CallId, CancellationToken, Context, Effect, FailureKind, Heartbeat, JournalError,
    Outcome, OutcomeStatus, RecordBody, TeamRecord, is_log_lost, questions_below,
};
use futures_util::{
    FutureExt,
    future::{AbortHandle, Abortable},
};

use super::{AtWork, Happened, Run, Working, team};
use crate::{
    desk::TeamHandle,
    heartbeat::{Attended, HeartbeatSink, HeartbeatState},
};

impl Working<'_> {
    /// Records the outcome of a member's run. The answer counts only if the delegation is still open.
    pub(super) async fn ended(&mut self, run: &mut Run, call: CallId, outcome: Outcome) -> Recorded {
        self.forget(call);
        let Some(hand) = run.machine.hand(call) else { return Ok(()) };
        let (member, is_open) = (hand.member.clone(), hand.is_open());
        let spent = outcome.spending();
        let settled = RecordBody::LeaseSettled { call, child_run: outcome.run.clone(), spent };
        if !is_open {
            if outcome.status == OutcomeStatus::Cancelled {
                return run.record(vec![settled]).await;
            }
            tracing::warn!(run = %self.context.run, %member, %call, "a late answer was ignored");
            let answer = outcome.last_text().unwrap_or_default().chars().take(200).collect();
            let late = team(TeamRecord::LateAnswer { call, member, answer });
            return run.record(vec![settled, late]).await;
        }
        match outcome.status {
            // The delegation stays open for a resume of the run; the spending is recorded now.
            OutcomeStatus::Cancelled if run.stop().is_cancelled() => run.record(vec![settled]).await,
            OutcomeStatus::Suspended => {
                let journal = self.context.journal(&self.parts.journal).clone();
                let said = outcome.to_question(call, member.as_str());
                let asked = questions_below(Some(&*journal), &outcome.run, call, said).await;
                let asked = asked.into_iter().map(Box::new);
                let asked = asked.map(|request| RecordBody::ApprovalRequested { call, request });
                let settled = self.settled_so_far(&run.machine, call).await;
                run.record(settled.into_iter().chain(asked).collect()).await?;
                self.announce_status(&run.machine, call, "waiting");
                Ok(())
            }
            _ => {
                let result = Box::new(outcome.to_result(member.as_str()));
                if self.parts.bus.is_some() {
                    let (message_type, content) = run.machine.response(call, &result);
                    self.publish(member.as_str(), self.name(), message_type, content);
                }
                run.record(vec![settled, RecordBody::ToolCallFinished { call, result: result.into() }]).await
            }
        }
    }

    /// Asks a person about each delegation whose run had a log that is now lost, and returns the others.
    pub(super) async fn doubt_lost(
        &mut self,
        run: &mut Run,
        mut calls: Vec<CallId>,
    ) -> Result<Vec<CallId>, JournalError> {
        let journal = self.context.journal(&self.parts.journal).clone();
        let is_begun = |call: &CallId| run.machine.hand(*call).is_some_and(|hand| hand.is_begun);
        for call in calls.iter().copied().filter(is_begun).collect::<Vec<_>>() {
            if is_log_lost(&*journal, &self.context.run.of_call(call)).await? {
                calls.retain(|other| *other != call);
                self.doubt(run, call).await?;
            }
        }
        Ok(calls)
    }

    /// Asks a person about a delegation whose effect is unknown, because the log of its run is lost.
    async fn doubt(&mut self, run: &mut Run, call: CallId) -> Recorded {
        let child = self.context.run.of_call(call);
        let member = run.machine.hand(call).map(|hand| hand.member.to_string()).unwrap_or_default();
        let task = serde_json::json!({ "task": run.machine.brief(call) });
        let mut request =
            ApprovalRequest::in_doubt(run.machine.doubt_id(call), &member, &task).of_lost_run(&child);
        request.agent_name = member;
        self.derived(run, RecordBody::ApprovalRequested { call, request: Box::new(request) }).await
    }

    pub(super) fn started(&self, call: CallId) -> RecordBody {
        let child_run = Some(self.context.run.of_call(call));
        RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::Idempotent, child_run }
    }

    /// Restarts the runs of these delegations.
    pub(super) async fn run_again(&mut self, run: &mut Run, calls: Vec<CallId>) -> Recorded {
        if !calls.is_empty() {
            run.record(calls.iter().map(|call| self.started(*call)).collect()).await?;
        }
        for call in calls {
            self.run_member(run, call);
        }
        Ok(())
    }

    /// Starts the run of a delegation, or resumes the run if it has a log.
    pub(super) fn run_member(&mut self, run: &mut Run, call: CallId) {
        let Some(member) = run.machine.hand(call).map(|hand| hand.member.clone()) else { return };
        let heartbeat = HeartbeatState::new(self.context.clock.clone());
        let stop = run.stop().child_token();
        let context = self.child_context(run, call, &heartbeat, &stop);
        let mut brief = run.machine.brief(call);
        let role =
            run.machine.job(call.command).and_then(|job| run.machine.role(job.role.as_deref()?)).cloned();
        let seat = TeamHandle { call, role, team: self.team.clone(), heartbeat: heartbeat.clone() };
        self.parts.desk.put(context.run.clone(), seat);
        let (abort, is_aborted) = AbortHandle::new_pair();
        self.hands.insert(call, AtWork { heartbeat: heartbeat.clone(), stop, abort, waits_for: Vec::new() });
        let child = context.run.clone();
        let Some(agent) = self.parts.agents.get(&member).cloned() else {
            let why = format!("{member} is not in the team any more");
            let outcome = Box::new(Outcome::failed(child, FailureKind::Refused, why));
            return run
                .spawn(std::future::ready(Happened::Ended(call, outcome)), move || Happened::Dropped(call));
        };
        let format = run.machine.output_format().filter(|_| run.machine.is_synthesis(call));
        let agent = format.and_then(|format| agent.with_output_format(format)).unwrap_or_else(|| {
            brief.push_str(&run.machine.schema_text(call).unwrap_or_default());
            agent
        });
        let settings = run.machine.settings();
        let has_timer = settings.heartbeat == Heartbeat::Timer && settings.heartbeat_ms > 0;
        let every = has_timer.then(|| Duration::from_millis(settings.heartbeat_ms));
        let work = Box::pin(async move { agent.run(&brief, &context).await });
        let work = Attended::new(work, heartbeat, every);
        let failed = Outcome::failed(child.clone(), FailureKind::Panicked, "it panicked");
        let work = Abortable::new(work, is_aborted).map(move |done| {
            let Ok(mut outcome) = done else { return Happened::Dropped(call) };
            // A member cannot change the id of its run.
            outcome.run = child;
            Happened::Ended(call, Box::new(outcome))
        });
        run.spawn(work, move || Happened::Ended(call, Box::new(failed)));
    }

    fn child_context(
        &self,
        run: &Run,
        call: CallId,
        heartbeat: &HeartbeatState,
        stop: &CancellationToken,
    ) -> Context {
        let parent = &self.context;
        let max_depth = parent.limits(self.parts.options.limits.clone()).max_depth;
        let journal = parent.journal(&self.parts.journal).clone();
        let child = parent.of_call(call, run.machine.lease(call), max_depth, journal, stop.clone());
        let mut child = child.with_caller_log(run.reporter());
        child.sink = Arc::new(HeartbeatSink { heartbeat: heartbeat.clone(), inner: parent.sink.clone() });
        child
    }

    /// Cancels the run of a revoked delegation, and drops the requests for which its member waits.
    pub(super) fn stop_revoked(&mut self, call: CallId) {
        if let Some(hand) = self.hands.get(&call) {
            hand.stop.cancel();
        }
        self.drop_requests(call);
    }
}
