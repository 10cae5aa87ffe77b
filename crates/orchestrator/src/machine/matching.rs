//! Who does what: the fitting member with the best record and the least to do, always the same one.

use std::cmp::Reverse;

use archon_types::{AgentId, TeamRecord};

use super::{HandState, Job, JobState, MemberState, Purpose, TeamMachine};

/// Who could do a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Match {
    /// This one, now.
    Member(AgentId),
    /// Somebody, later.
    Busy,
    /// Nobody.
    Nobody {
        /// Why.
        reason: String,
    },
}

impl Job {
    /// Whether the one who leads may do it where nobody else can.
    pub(super) fn may_go_to_lead(&self) -> bool {
        matches!(
            self.purpose,
            Purpose::Subtask { .. }
                | Purpose::Request { .. }
                | Purpose::Judge { .. }
                | Purpose::Verify { .. }
        )
    }
}

impl TeamMachine {
    /// The next delegation, or the next job that cannot be delegated.
    pub(super) fn next_delegation(&self) -> Option<TeamRecord> {
        let under_way = self.jobs.iter().filter(|job| !is_extra(job)).map(Job::under_way).sum::<usize>();
        let is_full = under_way >= self.settings.max_concurrent.max(1) as usize;
        for job in self.jobs.iter().filter(|job| self.wants_hands(job)) {
            // Who is asked for help holds nobody else up: who asked has a place already.
            if is_full && !is_extra(job) {
                continue;
            }
            if self.delegations >= self.settings.max_delegations {
                let reason = format!("the run has had its {} delegations", self.settings.max_delegations);
                return Some(TeamRecord::Undeliverable { command: job.command, reason });
            }
            match self.match_job(job) {
                Match::Member(member) => {
                    let (call, chain) = (job.call(job.hands.len()), job.chain.clone());
                    return Some(TeamRecord::Delegated { call, member, chain, task: self.title(job) });
                }
                Match::Nobody { reason } if job.under_way() + job.count(&[HandState::Answered]) == 0 => {
                    return Some(TeamRecord::Undeliverable { command: job.command, reason });
                }
                _ => {}
            }
        }
        None
    }

    fn wants_hands(&self, job: &Job) -> bool {
        let has = job.under_way() + job.count(&[HandState::Answered]);
        job.state == JobState::Open
            && !job.is_question()
            && !self.is_orphan(job)
            && has < job.wanted as usize
            && job.failures() < self.settings.max_tries.max(1) as usize
    }

    /// Who would get this job now.
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
        let free: Vec<_> = able
            .into_iter()
            .filter(|state| !job.chain.contains(&state.member.id))
            .filter(|state| {
                !job.hands.iter().any(|hand| has_it(hand.state) && hand.member == state.member.id)
            })
            .collect();
        if free.is_empty() {
            return Match::Nobody { reason: "everybody who could has it already".to_owned() };
        }
        let well: Vec<_> = free.into_iter().filter(|state| !state.silent).collect();
        if well.is_empty() {
            return Match::Nobody { reason: format!("{}: whoever could fell silent", no_one_for(job)) };
        }
        let idle = well.into_iter().filter(|state| state.load < state.member.max_tasks.max(1));
        let best = idle.min_by_key(|state| self.rank(state, job));
        best.map_or(Match::Busy, |state| Match::Member(state.member.id.clone()))
    }

    /// Those who could do a job, were they not busy.
    pub(super) fn able(&self, job: &Job) -> Vec<AgentId> {
        let able = self.members.values().filter(|state| self.is_able(state, job) && !state.silent);
        able.map(|state| state.member.id.clone()).collect()
    }

    /// Lower is better: tried least, its own role, the best record, the least to do, the first id.
    fn rank(&self, state: &MemberState, job: &Job) -> impl Ord + use<> {
        let id = &state.member.id;
        let tried = job.hands.iter().filter(|hand| hand.member == *id).count();
        let is_preferred = job.preferred.as_ref() == Some(id);
        let own = job.role.as_ref().and_then(|role| state.member.roles.iter().position(|own| own == role));
        // One success and one failure are assumed, so that nobody is perfect by not having worked.
        let rate = u64::from(state.done + 1) * 1_000_000 / u64::from(state.done + state.failed + 2);
        (tried, !is_preferred, own, Reverse(rate), state.load, id.clone())
    }

    fn is_able(&self, state: &MemberState, job: &Job) -> bool {
        let member = &state.member;
        let has = |tool: &String| member.tools.contains(tool);
        let role_tools = job.role.as_deref().and_then(|name| self.role(name)).map(|role| &role.tools);
        job.to.as_ref().is_none_or(|to| *to == member.id)
            && !job.not.contains(&member.id)
            && job.role.as_ref().is_none_or(|role| member.roles.contains(role))
            && job.tool.as_ref().is_none_or(has)
            && role_tools.is_none_or(|tools| tools.iter().all(has))
    }

    /// Why work that came through these hands may go no further.
    fn refused_chain(&self, job: &Job, able: &[&MemberState]) -> Option<String> {
        let through = |last: &AgentId| {
            let names = job.chain.iter().chain(std::iter::once(last)).map(AgentId::as_str);
            names.collect::<Vec<_>>().join(" → ")
        };
        if let Some(again) = able.first().filter(|_| able.iter().all(|m| job.chain.contains(&m.member.id))) {
            return Some(format!("delegation loop refused: {}", through(&again.member.id)));
        }
        let first = able.first().filter(|_| job.chain.len() >= self.settings.max_chain as usize)?;
        let max = self.settings.max_chain;
        Some(format!("delegation refused, longer than {max}: {}", through(&first.member.id)))
    }
}

/// Not bound to the cap of the whole team: somebody who has a place waits for it.
fn is_extra(job: &Job) -> bool {
    matches!(job.purpose, Purpose::Request { .. })
}

fn has_it(state: HandState) -> bool {
    matches!(state, HandState::Chosen | HandState::Running | HandState::Asked | HandState::Answered)
}

fn no_one_for(job: &Job) -> String {
    let mut needs = Vec::new();
    needs.extend(job.to.as_ref().map(|id| format!("named {id}")));
    needs.extend(job.role.as_ref().map(|role| format!("with the role {role}")));
    needs.extend(job.tool.as_ref().map(|tool| format!("with the tool {tool}")));
    match needs.is_empty() {
        true => "there is no member".to_owned(),
        false => format!("there is no member {}", needs.join(" and ")),
    }
}
