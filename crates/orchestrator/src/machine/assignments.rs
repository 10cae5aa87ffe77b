//! Delegations: deadlines, silence, questions, and the work to revoke.

use std::time::Duration;

use archon_types::{Answer, ApprovalRequest, CallId, CommandId, Json, RecordBody, TeamRecord, Timestamp};

use super::{Assignment, AssignmentState, Job, Purpose, TeamMachine};

impl TeamMachine {
    /// Returns the time at which a member with this last heartbeat becomes silent; `None` if heartbeats are
    /// off.
    fn silent_after(&self, heard: Timestamp) -> Option<Timestamp> {
        let missed = u64::from(self.settings.missed_heartbeats.max(1));
        let most = Duration::from_millis(self.settings.heartbeat_ms.saturating_mul(missed));
        (self.settings.heartbeat_ms > 0).then(|| heard + most)
    }

    fn due_at(&self, hand: &Assignment) -> Timestamp {
        hand.since + Duration::from_millis(self.settings.task_timeout_ms)
    }

    pub(crate) fn is_silent(&self, call: CallId) -> bool {
        self.hand(call).is_some_and(|hand| self.is_silent_since(hand.heard))
    }

    /// Returns whether a delegation is silent now, if its last heartbeat is at `heard`.
    pub(crate) fn is_silent_since(&self, heard: Timestamp) -> bool {
        self.silent_after(heard).is_some_and(|at| at <= self.now)
    }

    /// Returns the time at which a running delegation becomes silent (no heartbeats) or late (after its
    /// timeout).
    pub(super) fn look_at(&self, hand: &Assignment) -> Timestamp {
        let due = self.due_at(hand);
        self.silent_after(hand.heard).map_or(due, |at| at.min(due))
    }

    /// Returns the earliest time at which a running delegation becomes silent or late.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        self.index().looks.first().map(|(at, _)| *at)
    }

    /// Returns the next delegation to revoke: first work that is not needed, then silent or late work.
    pub(super) fn next_revocation(&self) -> Option<TeamRecord> {
        let index = self.index();
        let due = || index.looks.first().filter(|(at, _)| *at <= self.now).map(|(_, command)| command);
        let job = self.job(*index.unneeded.first().or_else(due)?)?;
        job.calls().find_map(|(call, hand)| {
            let reason = self.reason_to_revoke(job, hand)?;
            Some(TeamRecord::DelegationRevoked { call, member: hand.member.clone(), reason })
        })
    }

    fn reason_to_revoke(&self, job: &Job, hand: &Assignment) -> Option<String> {
        if hand.is_open() && job.is_over() {
            return Some("somebody else was first".to_owned());
        }
        if hand.is_open() && self.is_orphan(job) {
            return Some("the member that asked for it does not need it any more".to_owned());
        }
        if hand.state != AssignmentState::Running {
            return None;
        }
        let seconds = |since: Timestamp| self.now.since(since).as_secs_f64();
        if self.is_silent_since(hand.heard) {
            return Some(format!("silent for {} s", seconds(hand.heard)));
        }
        (self.due_at(hand) <= self.now).then(|| format!("not done after {} s", seconds(hand.since)))
    }

    /// Returns true if the job is a request of a delegation that is no longer open, so its answer is not
    /// needed.
    pub(super) fn is_orphan(&self, job: &Job) -> bool {
        match job.purpose {
            Purpose::Request { by, .. } => self.open_hand(by).is_none(),
            _ => false,
        }
    }

    /// Returns the calls that wait for a person: delegations, and questions of the team itself.
    pub(super) fn waiting(&self) -> Vec<CallId> {
        let members =
            self.hands().filter(|(_, hand)| hand.state == AssignmentState::Asked).map(|(call, _)| call);
        members.chain(self.questions().filter(|job| job.asked).map(|job| job.call(0))).collect()
    }

    /// Returns true if all open delegations of a job wait, and none can continue before a person answers.
    pub(crate) fn waits_for_person(&self, command: CommandId) -> bool {
        let Some(job) = self.job(command).filter(|job| !job.is_over()) else { return false };
        job.under_way() > 0 && job.count(&[AssignmentState::Chosen, AssignmentState::Running]) == 0
    }

    /// Returns true if only a person's answer lets work continue, given the number of blocked delegations.
    pub(crate) fn waits_for_people(&self, blocked: usize) -> bool {
        let index = self.index();
        let plans_anew = self.has_lost() && !self.is_escalated();
        index.asked > 0 && index.running == blocked && !plans_anew
    }

    /// Returns the dropped delegations that can continue: those whose requests are done, or all if no
    /// question is open.
    pub(crate) fn can_go_on(&self) -> Vec<CallId> {
        let index = self.index();
        let is_over = |command: &CommandId| self.job(*command).is_none_or(Job::is_over);
        let has_all = |hand: &Assignment| !hand.waits_for.is_empty() && hand.waits_for.iter().all(is_over);
        let may = |call: &&CallId| index.asked == 0 || self.hand(**call).is_some_and(has_all);
        index.waiting.iter().filter(may).copied().collect()
    }

    fn questions(&self) -> impl Iterator<Item = &Job> {
        self.index().questions.iter().filter_map(|command| self.job(*command))
    }

    /// Returns true while a person is asked whether the run continues after many failures.
    pub(super) fn is_escalated(&self) -> bool {
        self.questions().any(|job| matches!(job.purpose, Purpose::Escalate { .. }))
    }

    /// Returns the call of an open question that the team itself asked, not a member. The question is found by its id
    /// and its binding.
    pub(crate) fn question_of(&self, request_id: &str, binding: &str) -> Option<CallId> {
        // A team asks about no tool call, so its questions have no binding.
        if !binding.is_empty() {
            return None;
        }
        let mut asked = self.questions().filter(|job| job.asked).map(|job| job.call(0));
        let mut doubted = self.hands().filter(|(_, hand)| hand.is_doubted).map(|(call, _)| call);
        let asked = asked.find(|call| self.request_id(*call) == request_id);
        asked.or_else(|| doubted.find(|call| self.doubt_id(*call) == request_id))
    }

    /// Returns the id of the question about a delegation in doubt.
    pub(crate) fn doubt_id(&self, call: CallId) -> String {
        format!("{}.lost", self.request_id(call))
    }

    /// Returns whether a question of the team itself has expired at time `at`.
    pub(crate) fn is_expired(&self, call: CallId, at: Timestamp) -> bool {
        self.job(call.command).and_then(|job| job.expires).is_some_and(|end| end <= at)
    }

    /// Returns the time at which the next open question expires.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.questions().filter_map(|job| job.expires).min()
    }

    /// Returns the answer record of an expired question.
    pub(super) fn unanswered(&self) -> Option<RecordBody> {
        let call = self.questions().map(|job| job.call(0)).find(|call| self.is_expired(*call, self.now))?;
        Some(RecordBody::ApprovalAnswered { call, answer: Answer::Expired })
    }

    fn request_id(&self, call: CallId) -> String {
        format!("{}.{call}", self.run)
    }

    /// Returns the next question to ask a person.
    pub(super) fn next_question(&self) -> Option<RecordBody> {
        let job = self.questions().find(|job| !job.asked)?;
        let call = job.call(0);
        let (summary, details) = match &job.purpose {
            Purpose::Escalate { failures } => {
                (format!("{failures} delegations failed. Continue the run?"), Json::Null)
            }
            Purpose::AskHuman { conflict } => self.conflict_question(*conflict),
            _ => return None,
        };
        let mut request = ApprovalRequest::new(self.request_id(call), summary, details);
        request.timeout_ms = Some(self.settings.question_timeout_ms);
        request.expires_at = Some(self.now + Duration::from_millis(self.settings.question_timeout_ms));
        Some(RecordBody::ApprovalRequested { call, request: Box::new(request) })
    }
}
