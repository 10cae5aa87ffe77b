//! Applies records to the machine's state.

use archon_run::{GrantedLease, Ledger, Machine as _};
use archon_types::{
    AgentId, Answer, ApprovalRequest, CallId, Claim, CommandId, FailureKind, Json, Outcome, OutcomeStatus,
    QuestionKind, Record, RecordBody, SubTask, TeamRecord, Timestamp, ToolResult,
};

use super::{Assignment, AssignmentState, JobState, MemberState, Phase, Purpose, TeamMachine};
use crate::response::{Response, ResponseStatus, is_key};

impl TeamMachine {
    /// Applies one record. A record that fits no open call changes nothing.
    pub(super) fn take_in(&mut self, record: &Record) {
        // The time between the end of a log and its resume does not count against the time limit.
        let is_idle = self.suspended || self.ended.is_some() || record.body.is_resumption();
        self.budget.see(record.at, is_idle);
        self.now = self.now.max(record.at);
        let at = self.now;
        match &record.body {
            RecordBody::MessageAdded { message, .. } if self.phase == Phase::Fresh => {
                let goal = message.as_llm().map(archon_types::Message::text).unwrap_or_default();
                (self.task.original_query, self.task.goal) = (goal.clone(), goal);
                self.phase = Phase::Planning;
            }
            RecordBody::Team(team) => self.team_record(team, at),
            RecordBody::ToolCallStarted { call, child_run: Some(_), .. } => self.begun(*call, at),
            RecordBody::ChildRunCreated { call, .. } => {
                if let Some(hand) = self.hand_mut(*call) {
                    hand.is_begun = true;
                }
            }
            RecordBody::LimitsRaised(more) => {
                self.limit = self.ended_at(more);
                self.budget.raise(more);
            }
            RecordBody::LeaseGranted { call, lease, .. } => {
                self.on_lease(*call, |ledger, granted| ledger.grant(granted, *call, *lease));
            }
            RecordBody::LeaseSettled { call, spent, .. } => {
                self.on_lease(*call, |ledger, granted| ledger.settle(granted, *spent));
            }
            RecordBody::ToolCallFinished { call, result } => self.finished(*call, result),
            RecordBody::ApprovalRequested { call, request } => self.approval_requested(*call, request),
            RecordBody::ApprovalAnswered { call, answer } => self.answered(*call, answer),
            RecordBody::OutputChecked { problems } => self.output_checked(problems),
            RecordBody::CancelRequested { .. } => self.cancelled = true,
            RecordBody::LimitReached(limit) => self.limit = Some(*limit),
            RecordBody::Suspended { .. } => self.suspended = true,
            RecordBody::Resumed => self.resumed(at),
            RecordBody::RunFinished(outcome) => self.ended = Some(outcome.clone()),
            _ => {}
        }
        if !changes_no_job(&record.body) {
            self.progress();
        }
    }

    /// Changes the lease of a delegation together with the ledger of the run.
    fn on_lease(&mut self, call: CallId, change: impl FnOnce(&mut Ledger, &mut GrantedLease)) {
        let Some(hand) = self.hand_mut(call) else { return };
        let mut lease = std::mem::take(&mut hand.money);
        change(&mut self.budget.ledger, &mut lease);
        if let Some(hand) = self.hand_mut(call) {
            hand.money = lease;
        }
    }

    /// Releases the lease of a waiting run that will not be resumed.
    fn release_rest(&mut self, call: CallId) {
        if self.hand(call).is_some_and(Assignment::is_suspended) {
            self.on_lease(call, Ledger::release_rest);
        }
    }

    fn team_record(&mut self, record: &TeamRecord, at: Timestamp) {
        match record {
            TeamRecord::Formed { settings, roles, members, lead } if self.phase == Phase::Fresh => {
                (self.settings, self.roles, self.lead) = (settings.clone(), roles.clone(), lead.clone());
                for member in members {
                    self.members.entry(member.id.clone()).or_insert_with(|| MemberState::new(member.clone()));
                }
                self.touched.all = true;
            }
            TeamRecord::Inputs { plan, background, .. } if self.phase == Phase::Fresh => {
                self.fixed.clone_from(plan);
                self.background.clone_from(background);
            }
            TeamRecord::Planned { task, spent } if self.phase == Phase::Planning => {
                self.budget.ledger.spend(*spent);
                let query = std::mem::take(&mut self.task.original_query);
                self.task = task.as_ref().clone();
                self.task.original_query = query;
                self.begin_steps();
            }
            TeamRecord::Replanned { diff, spent } if self.has_lost() => {
                self.budget.ledger.spend(*spent);
                self.replanned(diff);
            }
            TeamRecord::PlanningFailed { problem, failure, spent }
                if self.phase == Phase::Planning || self.has_lost() =>
            {
                self.budget.ledger.spend(*spent);
                self.not_planned(problem, *failure);
            }
            TeamRecord::Delegated { call, member, .. } => self.delegated(*call, member, at),
            TeamRecord::DelegationFailed { command, reason } => self.undeliverable(*command, reason),
            TeamRecord::Heartbeat { call, last_seen } => {
                if let Some(hand) = self.hand_mut(*call) {
                    hand.heard = hand.heard.max(*last_seen).min(at);
                }
            }
            TeamRecord::DelegationRevoked { call, reason, .. } => self.take_from(*call, reason),
            TeamRecord::LateAnswer { member, .. } => {
                self.late += 1;
                // A member that answers is no longer silent.
                self.member_mut(member).into_iter().for_each(|state| state.silent = false);
            }
            TeamRecord::DelegationRequested { requester, task, assignee } => {
                self.requested(*requester, task, assignee)
            }
            TeamRecord::MemberWaiting { call, requests } => self.waits(*call, requests),
            TeamRecord::ValueShared { writer, key, value, expected_version } => {
                self.shared(*writer, key, value, *expected_version, at)
            }
            TeamRecord::ConflictFound { number, .. } => self.open_conflict(*number),
            TeamRecord::ConflictResolved { number, value, resolution } => {
                self.settled(*number, value, resolution, at)
            }
            TeamRecord::AnswerFinished { answer } if self.phase == Phase::Concluding => {
                self.answer = Some(answer.clone());
            }
            _ => {}
        }
    }

    fn begin_steps(&mut self) {
        self.phase = Phase::Working;
        self.places.take();
        self.task.subtasks.clone().into_iter().for_each(|subtask| self.add_step(subtask));
    }

    pub(super) fn add_step(&mut self, subtask: SubTask) {
        let (role, tool) = (subtask.rules.role.clone(), subtask.tool_name().map(str::to_owned));
        self.add_job(Purpose::Subtask { subtask: Box::new(subtask) }, |job| {
            (job.role, job.tool, job.state) = (role, tool, JobState::Waiting);
        });
    }

    fn delegated(&mut self, call: CallId, member: &AgentId, at: Timestamp) {
        let Some(job) = self.job_mut(call.command) else { return };
        if job.is_over() || job.hands.len() != usize::try_from(call.index).unwrap_or(usize::MAX) {
            return;
        }
        job.hands.push(Assignment::new(member.clone(), at));
        self.delegations += 1;
        if let Some(state) = self.member_mut(member) {
            state.load += 1;
        }
    }

    fn begun(&mut self, call: CallId, at: Timestamp) {
        if let Some(hand) = self.hand_mut(call)
            && matches!(hand.state, AssignmentState::Chosen | AssignmentState::Waiting)
        {
            (hand.state, hand.since, hand.heard) = (AssignmentState::Running, at, at);
            hand.waits_for.clear();
        }
    }

    fn finished(&mut self, call: CallId, result: &ToolResult) {
        let is_stopping = self.is_stopping();
        let response = self.read_response(call, result);
        let place = self.job(call.command).map(|job| job.count(&[AssignmentState::Answered]));
        let Some(hand) = self.hand_mut(call).filter(|hand| hand.is_open()) else { return };
        if is_stopping && result.status == archon_types::ToolResultStatus::Cancelled {
            // The delegation stays open for a resume of the run.
            return;
        }
        let response = response.filter(|response| response.status != ResponseStatus::Failed);
        let problem = || {
            let text = result.error_message.clone().unwrap_or_else(|| Response::read(&result.text()).text());
            text.chars().take(LONGEST).collect::<String>()
        };
        match &response {
            Some(_) => (hand.state, hand.place) = (AssignmentState::Answered, place),
            None => (hand.state, hand.problem) = (AssignmentState::Failed, Some(problem())),
        }
        hand.response.clone_from(&response);
        let member = hand.member.clone();
        self.close(call, &member, response.is_some());
        if let Some(response) = response {
            self.claimed(call, &member, &response);
        }
    }

    fn take_from(&mut self, call: CallId, reason: &str) {
        let is_silent = self.is_silent(call);
        let is_over = self.job(call.command).is_none_or(|job| job.is_over() || self.is_orphan(job));
        self.release_rest(call);
        let Some(hand) = self.hand_mut(call).filter(|hand| hand.is_open()) else { return };
        (hand.state, hand.problem) = (AssignmentState::Taken, Some(reason.to_owned()));
        let member = hand.member.clone();
        // Work that is no longer needed does not count as a failure.
        if !is_over {
            self.close(call, &member, false);
        }
        if let Some(state) = self.member_mut(&member) {
            match is_over {
                true => state.load = state.load.saturating_sub(1),
                false => state.silent |= is_silent,
            }
        }
    }

    /// Ends a delegation. The lease of a revoked delegation stays reserved until the spending of the member's
    /// run is known.
    fn close(&mut self, call: CallId, member: &AgentId, is_good: bool) {
        self.failures += u32::from(!is_good);
        if let Some(state) = self.member_mut(member) {
            state.load = state.load.saturating_sub(1);
            state.done += u32::from(is_good);
            state.failed += u32::from(!is_good);
        }
        if self.hand(call).is_some_and(|hand| hand.state != AssignmentState::Taken) {
            self.on_lease(call, Ledger::close);
        }
    }

    fn claimed(&mut self, call: CallId, member: &AgentId, response: &Response) {
        for (key, value) in response.claims.iter().filter(|(key, _)| is_key(key)) {
            let claim = Claim::new(member.clone(), call, value.clone()).with_confidence(response.confidence);
            let claims = self.claims.entry(key.clone()).or_default();
            // The new claim replaces an earlier one of the same member for the same job.
            claims.retain(|other| other.by != *member || other.call.command != call.command);
            claims.push(claim);
        }
    }

    fn approval_requested(&mut self, call: CallId, request: &ApprovalRequest) {
        if let Some(job) = self.job_mut(call.command)
            && job.is_question()
        {
            // A paused question does not expire.
            job.asked = true;
            job.expires = request.expires_at.filter(|_| request.paused_at.is_none());
        } else if let Some(hand) = self.hand_mut(call).filter(|hand| hand.state == AssignmentState::Running) {
            hand.state = AssignmentState::Asked;
            hand.is_doubted = request.kind == QuestionKind::InDoubt && request.call_path.is_empty();
            self.on_lease(call, Ledger::hold_rest);
        }
    }

    fn answered(&mut self, call: CallId, answer: &Answer) {
        self.suspended = false;
        let now = self.now;
        let Some(job) = self.job_mut(call.command).filter(|job| !job.is_over()) else { return };
        if !job.is_question() {
            return self.answered_member(call, answer);
        }
        let said = match answer {
            Answer::Approve => Json::Bool(true),
            Answer::Edit { arguments } => arguments.clone(),
            _ => Json::Bool(false),
        };
        let purpose = job.purpose.clone();
        (job.state, job.response) = (JobState::Done, Some(Response::of(said.clone())));
        match purpose {
            Purpose::Escalate { failures } if said == Json::Bool(false) => {
                let error = match answer {
                    Answer::Expired => {
                        format!("no person answered in time whether to go on after {failures} failures")
                    }
                    Answer::Withdrawn { reason } => format!("stopped after {failures} failures: {reason}"),
                    _ => format!("stopped by a person after {failures} failures"),
                };
                self.phase = Phase::Broken { kind: FailureKind::Subtasks, error };
            }
            Purpose::Escalate { .. } => self.failures = 0,
            _ => {}
        }
        self.restart_heartbeats(now);
    }

    /// Continues a member that waited for a person, or fails the delegation if the person cancelled.
    fn answered_member(&mut self, call: CallId, answer: &Answer) {
        let now = self.now;
        let asked = self.hand_mut(call).filter(|hand| hand.state == AssignmentState::Asked);
        let Some(hand) = asked else { return };
        if std::mem::take(&mut hand.is_doubted) {
            return self.answered_doubt(call, answer);
        }
        if let Answer::Cancel { reason } = answer {
            let result = ToolResult::error(format!("a person said no: {reason}"));
            self.release_rest(call);
            return self.finished(call, &result);
        }
        (hand.state, hand.since, hand.heard) = (AssignmentState::Running, now, now);
    }

    /// Applies a person's answer about a delegation in doubt. Without consent nobody does the work again.
    fn answered_doubt(&mut self, call: CallId, answer: &Answer) {
        match answer {
            Answer::Reply { text } => self.finished(call, &ToolResult::success(text.as_str())),
            answer if answer.is_consent() => {
                let now = self.now;
                let Some(hand) = self.hand_mut(call) else { return };
                (hand.state, hand.since, hand.heard, hand.is_begun) =
                    (AssignmentState::Running, now, now, false);
            }
            _ => {
                self.finished(call, &ToolResult::error(UNKNOWN));
                self.fail_for_good(call.command, UNKNOWN.to_owned());
            }
        }
    }

    fn requested(&mut self, by: CallId, task: &str, to: &str) {
        let Some((hand, job)) = self.open_hand(by).zip(self.job(by.command)) else { return };
        let mut chain = job.chain.clone();
        chain.push(hand.member.clone());
        let member = self.members.keys().find(|id| id.as_str() == to).cloned();
        self.add_job(Purpose::Request { by, task: task.to_owned() }, |job| {
            job.chain = chain;
            job.role = member.is_none().then(|| to.to_owned());
            job.to = member;
        });
    }

    fn waits(&mut self, call: CallId, requests: &[CommandId]) {
        if let Some(hand) = self.hand_mut(call).filter(|hand| hand.state == AssignmentState::Running) {
            (hand.state, hand.waits_for) = (AssignmentState::Waiting, requests.to_vec());
            self.on_lease(call, Ledger::hold_rest);
        }
    }

    fn shared(&mut self, by: CallId, key: &str, value: &Json, expected: Option<u64>, at: Timestamp) {
        let Some(member) = self.open_hand(by).map(|hand| hand.member.clone()) else { return };
        if self.board.check(key, expected).is_ok() {
            self.board.write(key, value.clone(), member, at);
        }
    }

    fn undeliverable(&mut self, command: CommandId, reason: &str) {
        let may_more = self.delegations < self.settings.max_delegations;
        let lead = self.lead.clone().filter(|_| may_more);
        let Some(job) = self.job_mut(command).filter(|job| !job.is_over()) else { return };
        // A chain of delegations may not come back to the lead.
        let is_free = lead.is_some_and(|lead| !job.chain.contains(&lead));
        match is_free && !job.by_lead && job.may_go_to_lead() {
            true => job.by_lead = true,
            false => self.fail(command, reason.to_owned()),
        }
    }

    fn resumed(&mut self, at: Timestamp) {
        self.suspended = false;
        let may_go_on = |outcome: &Outcome| match outcome.status {
            OutcomeStatus::Cancelled => true,
            OutcomeStatus::Limit(_) => self.limit.is_none(),
            OutcomeStatus::Failed => self.may_try_again(),
            _ => false,
        };
        if self.ended.as_deref().is_some_and(may_go_on) {
            self.ended = None;
            self.try_again();
        }
        self.cancelled = false;
        self.touched.all = true;
        for hand in self.jobs.iter_mut().flat_map(|job| &mut job.hands) {
            let is_asked = hand.state == AssignmentState::Asked && !hand.is_doubted;
            if is_asked || hand.state == AssignmentState::Waiting {
                hand.state = AssignmentState::Running;
                hand.waits_for.clear();
            }
        }
        self.restart_heartbeats(at);
    }

    /// Restarts the timeouts of all open delegations, because no work was done during the wait.
    fn restart_heartbeats(&mut self, at: Timestamp) {
        self.touched.all = true;
        for hand in self.jobs.iter_mut().flat_map(|job| &mut job.hands).filter(|hand| hand.is_open()) {
            (hand.since, hand.heard) = (at, at);
        }
    }
}

/// Returns true for a record that changes the state of no job, so that the jobs need no update after it: a delegation
/// or its start, a heartbeat, a lease that is granted or settled, a member that begins to wait.
fn changes_no_job(body: &RecordBody) -> bool {
    use RecordBody::{ChildRunCreated, LeaseGranted, LeaseSettled, ToolCallStarted};
    use TeamRecord::{Delegated, Heartbeat, MemberWaiting};
    match body {
        LeaseGranted { .. } | LeaseSettled { .. } | ToolCallStarted { .. } | ChildRunCreated { .. } => true,
        RecordBody::Team(team) => {
            matches!(**team, Delegated { .. } | Heartbeat { .. } | MemberWaiting { .. })
        }
        _ => false,
    }
}

/// Failure text of a delegation in doubt that is not started again.
const UNKNOWN: &str =
    "nobody knows whether it was done, and it is not to be done again: the log of its run is lost";

/// Maximum length of a stored failure text, in characters.
const LONGEST: usize = 500;
