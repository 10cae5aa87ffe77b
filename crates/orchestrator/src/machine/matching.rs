//! Matches jobs to members: the able member with the best success rate and the lowest load.

use std::ops::Bound;

use archon_types::{AgentId, CommandId, TeamRecord};

use super::{
    AssignmentState, Job, JobState, MemberState, Purpose, TeamMachine,
    index::{Kind, Rank},
};

/// Result of the search for a member that does a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Match {
    /// This member can start the job now.
    Member(AgentId),
    /// An able member exists, but all able members are busy.
    Busy,
    /// No member can do the job.
    Nobody {
        /// Reason why no member can.
        reason: String,
    },
}

impl Job {
    /// Returns whether the lead may do the job if no member can.
    pub(super) fn may_go_to_lead(&self) -> bool {
        use Purpose::{Judge, Request, Subtask, Verify};
        matches!(self.purpose, Subtask { .. } | Request { .. } | Judge { .. } | Verify { .. })
    }
}

impl TeamMachine {
    /// Returns the record of the next delegation, or the record that a job cannot be delegated.
    pub(super) fn next_delegation(&self) -> Option<TeamRecord> {
        let mut after = CommandId(0);
        while let Some((job, kind)) = self.wanting(after) {
            after = job.command;
            if self.delegations >= self.settings.max_delegations {
                let reason = format!("the run has had its {} delegations", self.settings.max_delegations);
                return Some(TeamRecord::DelegationFailed { command: job.command, reason });
            }
            match kind.map_or_else(|| self.match_job(job), |kind| self.match_plain(kind, job)) {
                Match::Member(member) => {
                    let (call, chain) = (job.call(job.hands.len()), job.chain.clone());
                    return Some(TeamRecord::Delegated { call, member, chain, task: self.title(job) });
                }
                Match::Nobody { reason }
                    if job.under_way() + job.count(&[AssignmentState::Answered]) == 0 =>
                {
                    return Some(TeamRecord::DelegationFailed { command: job.command, reason });
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the next job after `after` that may be delegated, and its requirements if they alone decide
    /// which member gets the job. Of jobs with equal requirements only the first is tried.
    fn wanting(&self, after: CommandId) -> Option<(&Job, Option<&Kind>)> {
        let index = self.index();
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        // A request does not count against `max_concurrent`: the delegation that waits for its answer does.
        let extra = index.extra.range(behind).next().map(|command| (command, None));
        if index.under_way >= self.settings.max_concurrent.max(1) as usize {
            return self.job(*extra?.0).map(|job| (job, None));
        }
        // Skips the search while all members are busy.
        let is_hopeless = index.idle.is_empty() && index.running > 0;
        let may = |command: &&CommandId| !is_hopeless || self.job(**command).is_some_and(|job| job.by_lead);
        let single = index.single.range(behind).find(may).map(|command| (command, None));
        let firsts = index.plain.iter().filter_map(|(kind, jobs)| Some((jobs.first()?, Some(kind))));
        let plain = firsts.filter(|(first, _)| **first > after).min_by_key(|(first, _)| **first);
        let first = [extra, single, plain].into_iter().flatten().min_by_key(|(command, _)| **command)?;
        Some((self.job(*first.0)?, first.1))
    }

    /// Returns the match for a job that has no delegation yet and that any able member may take.
    fn match_plain(&self, kind: &Kind, job: &Job) -> Match {
        match self.index().best(kind) {
            (Some(best), _) => Match::Member(best.clone()),
            (None, true) => Match::Busy,
            // The full search gives the exact reason.
            (None, false) => self.match_job(job),
        }
    }

    /// Returns true if the job's requirements alone decide which member gets the job.
    pub(super) fn is_plain(&self, job: &Job) -> bool {
        let anybody = job.to.is_none() && job.preferred.is_none() && job.not.is_empty() && !job.by_lead;
        anybody && job.hands.is_empty() && job.chain.is_empty() && self.settings.max_delegation_depth > 0
    }

    /// Compares the fast match with the full one, and returns the difference if there is one. For tests.
    pub(super) fn matching_problem(&self) -> Option<String> {
        self.index().plain.iter().find_map(|(kind, jobs)| {
            let job = self.job(*jobs.first()?)?;
            let (short, long) = (self.match_plain(kind, job), self.match_job(job));
            (short != long).then(|| format!("{:?}: {short:?} is not {long:?}", job.command))
        })
    }

    pub(super) fn wants_hands(&self, job: &Job) -> bool {
        let has = job.under_way() + job.count(&[AssignmentState::Answered]);
        job.state == JobState::Open
            && !job.is_question()
            && !self.is_orphan(job)
            && has < job.wanted as usize
            && job.failures() < self.settings.max_attempts.max(1) as usize
    }

    /// Returns the member that would get this job now, or the reason why no member would.
    pub fn match_job(&self, job: &Job) -> Match {
        if job.by_lead {
            let nobody = || Match::Nobody { reason: "nobody leads the team".to_owned() };
            return self.lead.clone().map_or_else(nobody, Match::Member);
        }
        let able: Vec<&MemberState> =
            self.members.values().filter(|state| self.is_able(state, job)).collect();
        if able.is_empty() {
            return Match::Nobody { reason: no_one_for(job) };
        }
        if let Some(reason) = self.refused_chain(job, &able) {
            return Match::Nobody { reason };
        }
        let has_it = |id: &AgentId| job.hands.iter().any(|hand| hand.member == *id && !hand.has_failed());
        let is_free = |id: &AgentId| !job.chain.contains(id) && !has_it(id);
        let free: Vec<_> = able.into_iter().filter(|state| is_free(&state.member.id)).collect();
        if free.is_empty() {
            return Match::Nobody { reason: "everybody who could has it already".to_owned() };
        }
        let well: Vec<_> = free.into_iter().filter(|state| !state.silent).collect();
        if well.is_empty() {
            return Match::Nobody {
                reason: format!("{}: all members that could do it are silent", no_one_for(job)),
            };
        }
        let idle = well.into_iter().filter(|state| state.is_idle());
        let best = idle.min_by_key(|state| self.rank(state, job));
        best.map_or(Match::Busy, |state| Match::Member(state.member.id.clone()))
    }

    /// Returns the members that could do a job if they were not busy.
    pub(super) fn able(&self, job: &Job) -> Vec<AgentId> {
        let able = self.members.values().filter(|state| self.is_able(state, job) && !state.silent);
        able.map(|state| state.member.id.clone()).collect()
    }

    /// Returns the sort key of a member for a job, lower is better: the number of the member's attempts at the job so
    /// far, false for the member with the best offer and true for all others, and [`MemberState::rank`].
    fn rank(&self, state: &MemberState, job: &Job) -> (usize, bool, Rank) {
        let id = &state.member.id;
        let tried = job.hands.iter().filter(|hand| hand.member == *id).count();
        (tried, job.preferred.as_ref() != Some(id), state.rank(job.role.as_deref()))
    }

    fn is_able(&self, state: &MemberState, job: &Job) -> bool {
        let id = &state.member.id;
        job.to.as_ref().is_none_or(|to| to == id)
            && !job.not.contains(id)
            && self.can(state, job.role.as_deref(), job.tool.as_deref())
    }

    /// Returns whether a member has the role and the tools for a kind of work.
    pub(super) fn can(&self, state: &MemberState, role: Option<&str>, tool: Option<&str>) -> bool {
        let member = &state.member;
        let has = |tool: &str| member.tools.iter().any(|own| own == tool);
        let role_tools = role.and_then(|name| self.role(name)).map(|role| &role.tools);
        role.is_none_or(|role| member.roles.iter().any(|own| own == role))
            && tool.is_none_or(has)
            && role_tools.is_none_or(|tools| tools.iter().all(|tool| has(tool)))
    }

    /// Returns the reason why the job's chain of delegations allows no further delegation (a loop, or the
    /// maximum length); `None` if it allows one.
    fn refused_chain(&self, job: &Job, able: &[&MemberState]) -> Option<String> {
        let through = |last: &AgentId| {
            let names = job.chain.iter().chain(std::iter::once(last)).map(AgentId::as_str);
            names.collect::<Vec<_>>().join(" → ")
        };
        if let Some(again) = able.first().filter(|_| able.iter().all(|m| job.chain.contains(&m.member.id))) {
            return Some(format!("delegation loop refused: {}", through(&again.member.id)));
        }
        let max = self.settings.max_delegation_depth;
        let first = able.first().filter(|_| job.chain.len() >= max as usize)?;
        Some(format!("delegation refused, longer than {max}: {}", through(&first.member.id)))
    }
}

fn no_one_for(job: &Job) -> String {
    let named = job.to.as_ref().map(|id| format!("named {id}"));
    let role = job.role.as_ref().map(|role| format!("with the role {role}"));
    let tool = job.tool.as_ref().map(|tool| format!("with the tool {tool}"));
    let needs: Vec<_> = [named, role, tool].into_iter().flatten().collect();
    match needs.is_empty() {
        true => "there is no member".to_owned(),
        false => format!("there is no member {}", needs.join(" and ")),
    }
}
