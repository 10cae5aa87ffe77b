//! Updates the jobs after each record: opens jobs, evaluates their answers, combines the team's answer.

use archon_run::Machine as _;
use archon_types::{
    AgentId, CommandId, FailureKind, Json, OnFailure, SchemaProblem, SubTask, SubTaskId, TeamPattern,
};

use super::{AssignmentState, Job, JobState, Match, Phase, Purpose, TeamMachine};
use crate::response::{Response, text_of};

/// State of the subtasks on which another one depends.
enum Needs {
    There,
    Pending,
    Lost(SubTaskId),
}

impl TeamMachine {
    /// Updates the jobs after a record.
    pub(super) fn progress(&mut self) {
        if !matches!(self.phase, Phase::Working | Phase::Concluding) || self.is_stopping() {
            return;
        }
        loop {
            let before = (self.jobs.len(), self.is_settled_by_state());
            for place in 0..self.jobs.len() {
                self.progress_job(CommandId(place as u64 + 1));
            }
            self.find_conflicts();
            self.progress_conflicts();
            self.escalate();
            self.conclude();
            if before == (self.jobs.len(), self.is_settled_by_state()) || self.is_stopping() {
                return;
            }
        }
    }

    /// Returns a number that grows whenever the state of a job, a conflict or the answer changes, because
    /// states only move forward.
    fn is_settled_by_state(&self) -> u64 {
        let rank = |job: &Job| match job.state {
            JobState::Waiting => 0,
            JobState::Bidding => 1,
            JobState::Open => 2,
            JobState::Disputed => 3,
            JobState::Lost { .. } => 4,
            JobState::Done | JobState::Replaced | JobState::Failed { .. } => 5,
        };
        let jobs: u64 = self.jobs.iter().map(rank).sum();
        jobs + self.conflicts_rank()
            + u64::from(self.phase == Phase::Concluding)
            + u64::from(self.answer.is_some())
    }

    fn progress_job(&mut self, command: CommandId) {
        let Some(job) = self.job(command) else { return };
        match job.state {
            JobState::Waiting => match self.needs(job) {
                Needs::There => self.open(command),
                Needs::Pending => {}
                Needs::Lost(id) => self.fail_for_good(command, format!("it needs {id}, which failed")),
            },
            JobState::Bidding => self.choose_bid(command),
            JobState::Open if !job.is_question() => self.evaluate(command),
            _ => {}
        }
    }

    fn needs(&self, job: &Job) -> Needs {
        let Some(subtask) = job.subtask() else { return Needs::There };
        let mut needs = Needs::There;
        for id in subtask.dependencies() {
            let Some(other) = self.job_of(id) else { return Needs::Lost(id.clone()) };
            match &other.state {
                JobState::Failed { .. } if skips(other) => {}
                JobState::Failed { .. } => return Needs::Lost(id.clone()),
                JobState::Done if !self.is_disputed(other.command) => {}
                _ => needs = Needs::Pending,
            }
        }
        needs
    }

    /// Returns the job that does a subtask.
    pub(super) fn job_of(&self, id: &SubTaskId) -> Option<&Job> {
        let places = self.places.get_or_init(|| {
            let ids = self
                .jobs
                .iter()
                .filter(|job| job.state != JobState::Replaced)
                .filter_map(|job| Some((job.subtask()?.id.clone(), job.command)));
            // Of two jobs with the same id, the first one counts.
            ids.rev().collect()
        });
        self.job(*places.get(id)?)
    }

    fn open(&mut self, command: CommandId) {
        let Some(job) = self.job(command) else { return };
        let (mut bidders, wanted) = match self.settings.pattern {
            TeamPattern::Market => (self.able(job), self.settings.redundancy),
            TeamPattern::Committee { size } => (Vec::new(), size),
            _ => (Vec::new(), self.settings.redundancy),
        };
        // With one able member there is nothing to compare.
        if bidders.len() == 1 {
            bidders.clear();
        }
        let bid = |id| self.add_job(Purpose::Bid { job: command }, |job| job.to = Some(id));
        let bids: Vec<_> = bidders.into_iter().map(bid).collect();
        let Some(job) = self.job_mut(command) else { return };
        job.wanted = wanted.max(1);
        job.state = if bids.is_empty() { JobState::Open } else { JobState::Bidding };
        job.bids = bids;
    }

    /// Chooses the best offer once all offers are there. Score: quality from 0 to 1, minus half the cost
    /// and a quarter of the time, each relative to the highest one offered. An answer without any of
    /// these numbers is no offer; without offers the job is assigned as usual.
    fn choose_bid(&mut self, command: CommandId) {
        let Some(job) = self.job(command) else { return };
        let bids: Vec<&Job> = job.bids.iter().filter_map(|bid| self.job(*bid)).collect();
        if !bids.iter().all(|bid| bid.is_over()) {
            return;
        }
        let said = |bid: &Job, key: &str| {
            let number = bid.response.as_ref()?.result.get(key)?.as_f64()?;
            number.is_finite().then_some(number.max(0.0))
        };
        let most = |key: &str| bids.iter().filter_map(|bid| said(bid, key)).fold(0.0, f64::max);
        let (cost, time) = (most("cost"), most("time"));
        let part = |of: Option<f64>, most: f64| if most > 0.0 { of.unwrap_or(most) / most } else { 0.0 };
        let score = |bid: &Job| {
            said(bid, "quality").unwrap_or(0.5).min(1.0)
                - part(said(bid, "cost"), cost) / 2.0
                - part(said(bid, "time"), time) / 4.0
        };
        let is_offer = |bid: &Job| ["quality", "cost", "time"].iter().any(|key| said(bid, key).is_some());
        let offers = bids.iter().filter(|bid| is_offer(bid));
        // The first of equal offers wins; members are asked in the order of their ids.
        let best = offers.fold(None::<(&Job, f64)>, |best, bid| match best {
            Some((_, highest)) if score(bid) <= highest => best,
            _ => Some((bid, score(bid))),
        });
        let preferred = best.and_then(|(bid, _)| bid.to.clone());
        let Some(job) = self.job_mut(command) else { return };
        (job.preferred, job.state) = (preferred, JobState::Open);
    }

    fn evaluate(&mut self, command: CommandId) {
        let Some(job) = self.job(command) else { return };
        let answered = job.count(&[AssignmentState::Answered]);
        let under_way = job.under_way();
        let is_tried = job.failures() >= self.settings.max_attempts.max(1) as usize;
        if self.is_orphan(job) && under_way == 0 {
            return self.fail(command, "the member that asked for it does not need it any more".to_owned());
        }
        if answered == 0 {
            if under_way == 0 && is_tried {
                let problem = job.last_problem();
                self.fail(command, problem);
            }
            return;
        }
        let is_committee = matches!(
            (&job.purpose, self.settings.pattern),
            (Purpose::Subtask { .. }, TeamPattern::Committee { .. })
        );
        if is_committee {
            let is_complete = answered >= job.wanted as usize
                || is_tried
                || matches!(self.match_job(job), Match::Nobody { .. });
            if under_way > 0 || !is_complete || self.dispute(command) {
                return;
            }
        }
        let Some(job) = self.job(command) else { return };
        let first = job.hands.iter().find(|hand| hand.state == AssignmentState::Answered);
        if let Some((member, response)) =
            first.and_then(|hand| Some((hand.member.clone(), hand.response.clone()?)))
        {
            self.done(command, &member, response);
        }
    }

    /// Ends a job with its response, and shares the result with the team.
    pub(super) fn done(&mut self, command: CommandId, member: &AgentId, response: Response) {
        let Some(mut job) = self.job_mut(command) else { return };
        (job.state, job.response) = (JobState::Done, Some(response.clone()));
        // The member that was wrong has worked again: its new answer replaces its old one.
        if let Purpose::Recompute { job: of, .. } = job.purpose {
            let Some(other) = self.job_mut(of) else { return };
            other.response = Some(response.clone());
            job = other;
        }
        if let Some(key) = job.subtask().map(|subtask| board_key(subtask).to_owned()) {
            self.board.write(&key, response.result, member.clone(), self.now);
        }
    }

    fn escalate(&mut self) {
        let failures = self.failures;
        let is_asked = |job: &Job| matches!(job.purpose, Purpose::Escalate { .. }) && !job.is_over();
        let is_due = self.settings.error_budget.is_some_and(|most| failures >= most.max(1));
        if is_due && !self.jobs.iter().any(is_asked) {
            self.add_job(Purpose::Escalate { failures }, |_| {});
        }
    }

    /// Starts to combine the answer when all subtasks have ended and no conflict is open.
    fn conclude(&mut self) {
        let have_all_ended = self.jobs.iter().all(|job| job.is_over() && job.under_way() == 0);
        if !have_all_ended || self.answer.is_some() || self.has_open_conflict() {
            return;
        }
        if self.phase == Phase::Working {
            self.phase = Phase::Concluding;
            if self.contributors().next().is_none() {
                self.phase = Phase::Broken { kind: FailureKind::Subtasks, error: self.stuck() };
            } else if self.lead.is_some() {
                self.synthesize(0, None, Vec::new());
            } else if self.output.is_none() {
                self.review(0);
            }
            return;
        }
        // The reviewer sees only answers that fit the schema.
        if self.output.is_some() && !self.fits {
            return;
        }
        // Requests of members may come later in the list.
        let is_about_answer =
            |job: &&Job| matches!(job.purpose, Purpose::Synthesize { .. } | Purpose::Review { .. });
        match self.jobs.iter().rev().find(is_about_answer).cloned() {
            Some(Job { purpose: Purpose::Synthesize { round, .. }, .. }) if !self.review(round) => {
                self.answer = Some(self.draft());
            }
            Some(Job { purpose: Purpose::Review { round }, response, .. }) => {
                self.reviewed(round, response.as_ref());
            }
            None if self.output.is_some() => {
                self.review(0);
            }
            _ => {}
        }
    }

    pub(super) fn synthesize(&mut self, round: u32, notes: Option<String>, misfits: Vec<SchemaProblem>) {
        self.fits = false;
        self.add_job(Purpose::Synthesize { round, notes, misfits }, |job| job.by_lead = true);
    }

    /// Adds a review if a reviewer is available, and returns whether one is.
    fn review(&mut self, round: u32) -> bool {
        let Some(role) = self.settings.reviewer.clone() else { return false };
        let has_reviewer =
            self.members.values().any(|state| state.member.roles.contains(&role) && !state.silent);
        if has_reviewer {
            self.add_job(Purpose::Review { round }, |job| job.role = Some(role));
        }
        has_reviewer
    }

    fn reviewed(&mut self, round: u32, response: Option<&Response>) {
        let objection = response.and_then(|response| match &response.result {
            Json::Object(said) if said.get("approved") == Some(&Json::Bool(true)) => None,
            Json::Object(said) => Some(said.get("notes").map_or_else(|| response.text(), text_of)),
            text if text_of(text).trim().to_lowercase().starts_with("approve") => None,
            _ => Some(response.text()),
        });
        match objection {
            Some(notes) if self.lead.is_some() && round < self.settings.max_revisions => {
                self.synthesize(round + 1, Some(notes), Vec::new());
            }
            Some(notes) if self.output.is_none() => {
                self.answer = Some(format!("{}\n\n[The reviewer objects: {notes}]", self.draft()))
            }
            // A structured output cannot contain an objection, so the objection is in the log only.
            _ => self.answer = Some(self.draft()),
        }
    }
}

/// Returns the key under which the team shares the result of a step.
pub(super) fn board_key(subtask: &SubTask) -> &str {
    subtask.rules.save_as.as_deref().unwrap_or_else(|| subtask.id.as_str())
}

/// Returns true if the job is a step whose failure does not stop the other steps.
pub(super) fn skips(job: &Job) -> bool {
    job.subtask().is_some_and(|subtask| subtask.rules.on_failure == OnFailure::Skip)
}
