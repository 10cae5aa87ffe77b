//! Contradictions between answers: finds them, and settles them by the team's strategy.

use archon_types::{CallId, Claim, CommandId, ConflictStrategy, Json, TeamRecord, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Assignment, AssignmentState, Job, JobState, Purpose, TeamMachine};
use crate::{
    claims::{contradict, groups},
    response::{Response, text_of},
};

/// A contradiction and its stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Conflict {
    pub(super) key: String,
    pub(super) claims: Vec<Claim>,
    /// The job whose own answers contradict each other. `None` if claims of several jobs do.
    about: Option<CommandId>,
    stage: Stage,
    jobs: Vec<CommandId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum Stage {
    Found,
    Explaining,
    Deciding,
    Human,
    Decided { value: Json, how: String },
    Settled { value: Json, how: String },
}

impl TeamMachine {
    /// Opens a conflict if the answers to one job contradict each other. Returns false if they do not.
    pub(super) fn dispute(&mut self, command: CommandId) -> bool {
        let Some(job) = self.job(command) else { return false };
        let claims = claims_of(job);
        if groups(&claims, self.settings.conflicts.tolerance).len() < 2 {
            return false;
        }
        let key = self.title(job);
        if let Some(job) = self.job_mut(command) {
            job.state = JobState::Disputed;
        }
        self.conflicts.push(Conflict::new(key, claims, Some(command)));
        true
    }

    /// Finds contradictions between the claims, once no subtask is at work, so that all claims are known.
    pub(super) fn find_conflicts(&mut self) {
        let is_busy =
            |job: &Job| job.subtask().is_some() && matches!(job.state, JobState::Open | JobState::Bidding);
        if self.jobs.iter().any(is_busy) {
            return;
        }
        let tolerance = self.settings.conflicts.tolerance;
        let is_known = |key: &str| self.conflicts.iter().any(|c| c.about.is_none() && c.key == key);
        let found: Vec<Conflict> = self
            .claims
            .iter()
            .filter(|(key, claims)| !is_known(key) && groups(claims, tolerance).len() > 1)
            .map(|(key, claims)| Conflict::new(key.clone(), claims.clone(), None))
            .collect();
        self.conflicts.extend(found);
    }

    /// Returns true if a claim of this job is in an open conflict, or the job is being done again.
    pub(super) fn is_disputed(&self, command: CommandId) -> bool {
        let says = |claims: &[Claim]| claims.iter().any(|claim| claim.call.command == command);
        let tolerance = self.settings.conflicts.tolerance;
        let is_settled = |key: &str| self.conflicts.iter().any(|c| c.key == key && c.is_settled());
        let is_again = |job: &Job| {
            matches!(job.purpose, Purpose::Recompute { job: of, .. } if of == command) && !job.is_over()
        };
        let is_open = |(key, claims): (&String, &Vec<Claim>)| {
            says(claims) && !is_settled(key) && groups(claims, tolerance).len() > 1
        };
        self.jobs.iter().any(is_again) || self.claims.iter().any(is_open)
    }

    pub(super) fn has_open_conflict(&self) -> bool {
        self.conflicts.iter().any(|conflict| !conflict.is_settled())
    }

    pub(super) fn conflicts_rank(&self) -> u64 {
        let rank = |conflict: &Conflict| match conflict.stage {
            Stage::Found => 1,
            Stage::Explaining => 2,
            Stage::Deciding => 3,
            Stage::Human => 4,
            Stage::Decided { .. } => 5,
            Stage::Settled { .. } => 6,
        };
        self.conflicts.iter().map(rank).sum()
    }

    /// Returns the next record about a conflict.
    pub(super) fn next_about_conflicts(&self) -> Option<TeamRecord> {
        (0..).zip(&self.conflicts).find_map(|(number, conflict)| match &conflict.stage {
            Stage::Found => {
                let (key, claims) = (conflict.key.clone(), conflict.claims.clone());
                Some(TeamRecord::ConflictFound { number, key, claims })
            }
            Stage::Decided { value, how } => {
                let (value, resolution) = (value.clone(), how.clone());
                Some(TeamRecord::ConflictResolved { number, value, resolution })
            }
            _ => None,
        })
    }

    /// Continues a recorded conflict: settles it by the claims, or asks a member or a person.
    pub(super) fn open_conflict(&mut self, number: u64) {
        let is_found = |conflict: &&Conflict| conflict.stage == Stage::Found;
        let Some(conflict) = self.conflict(number).filter(is_found).cloned() else { return };
        let strategy = self.strategy(&conflict);
        if let Some((value, how)) = self.by_claims(&conflict, &strategy) {
            return self.set_stage(number, Vec::new(), Stage::Decided { value, how });
        }
        let authors: Vec<_> = conflict.claims.iter().map(|claim| claim.by.clone()).collect();
        let judge = Purpose::Judge { conflict: number };
        let (jobs, stage) = match strategy {
            ConflictStrategy::Expert { role } => {
                (vec![self.add_job(judge, |job| job.role = Some(role))], Stage::Deciding)
            }
            ConflictStrategy::Arbitration => {
                let explain = authors.into_iter().map(|author| {
                    self.add_job(Purpose::Explain { conflict: number }, |job| job.to = Some(author))
                });
                (explain.collect(), Stage::Explaining)
            }
            ConflictStrategy::Verification => {
                let role = self.claim_role(&conflict);
                let verify = Purpose::Verify { conflict: number };
                (vec![self.add_job(verify, |job| (job.role, job.not) = (role, authors))], Stage::Deciding)
            }
            _ => return self.ask_human(number),
        };
        self.set_stage(number, jobs, stage);
    }

    /// Returns the value that the strategy chooses from the claims alone, and the reason for the choice;
    /// `None` if the best values are equally good, or if the strategy asks a member or a person.
    fn by_claims(&self, conflict: &Conflict, strategy: &ConflictStrategy) -> Option<(Json, String)> {
        let claims = &conflict.claims;
        let groups = groups(claims, self.settings.conflicts.tolerance);
        let names = |group: &[&Claim]| group.iter().map(|c| c.by.as_str()).collect::<Vec<_>>().join(", ");
        let confidence = |claim: &&Claim| claim.confidence.unwrap_or(0.5);
        let authority =
            |claim: &&Claim| self.members.get(&claim.by).map_or(0.0, |state| state.member.authority.into());
        let (group, how) = match strategy {
            ConflictStrategy::Majority => {
                let most = only_highest(&groups, |group| group.len() as f64)?;
                (most, format!("{} of {} say so: {}", most.len(), claims.len(), names(most)))
            }
            ConflictStrategy::Confidence => {
                let most = only_highest(&groups, |group| group.iter().map(confidence).sum())?;
                (most, format!("the most sure are {}", names(most)))
            }
            ConflictStrategy::Authority => {
                let highest = |group: &Vec<_>| group.iter().map(authority).fold(f64::MIN, f64::max);
                let most = only_highest(&groups, highest)?;
                (most, format!("the most authority has one of {}", names(most)))
            }
            ConflictStrategy::First => {
                let first = claims.first()?;
                return Some((first.value.clone(), format!("{} said it first", first.by)));
            }
            ConflictStrategy::Simplest => {
                let simplest = claims.iter().min_by_key(|claim| text_of(&claim.value).len())?;
                return Some((simplest.value.clone(), format!("what {} says is the simplest", simplest.by)));
            }
            _ => return None,
        };
        Some((group[0].value.clone(), how))
    }

    /// Continues the conflicts for which all answers have come: explanations, a decision, or a person's answer.
    pub(super) fn progress_conflicts(&mut self) {
        for number in 0..self.conflicts.len() as u64 {
            let Some(conflict) = self.conflict(number).cloned() else { continue };
            let jobs: Vec<Job> = conflict.jobs.iter().filter_map(|job| self.job(*job)).cloned().collect();
            if jobs.is_empty() || !jobs.iter().all(Job::is_over) {
                continue;
            }
            let said = jobs.last().and_then(|job| job.response.clone());
            match conflict.stage {
                Stage::Explaining if self.lead.is_none() => self.ask_human(number),
                Stage::Explaining => {
                    let judge = self.add_job(Purpose::Judge { conflict: number }, |job| job.by_lead = true);
                    self.set_stage(number, vec![judge], Stage::Deciding);
                }
                Stage::Deciding => {
                    let who = jobs.last().and_then(|job| Some(job.hands.last()?.member.clone()));
                    match said.and_then(|response| self.verdict(&conflict, &response)) {
                        Some(value) => {
                            let how = who.map(|who| format!("{who} decided")).unwrap_or_default();
                            self.set_stage(number, conflict.jobs, Stage::Decided { value, how });
                        }
                        None => self.ask_human(number),
                    }
                }
                Stage::Human => {
                    let said = said.map(|response| response.result).unwrap_or_default();
                    let (value, how) = human(&conflict, &said);
                    self.set_stage(number, conflict.jobs, Stage::Decided { value, how });
                }
                _ => {}
            }
        }
    }

    /// Returns the value that a judge or a second opinion chose: one of the claims, or another value. `None` if the
    /// response names no value.
    fn verdict(&self, conflict: &Conflict, said: &Response) -> Option<Json> {
        let tolerance = self.settings.conflicts.tolerance;
        let own = said.claims.get(&conflict.key).or_else(|| said.result.get("value"));
        if let Some(own) = own {
            return Some(own.clone());
        }
        let text = text_of(said.result.get("winner").unwrap_or(&said.result));
        let named = conflict.claims.iter().find(|claim| claim.by.as_str() == text.trim());
        let agreed =
            || conflict.claims.iter().find(|claim| !contradict(&claim.value, &said.result, tolerance));
        named.or_else(agreed).map(|claim| claim.value.clone())
    }

    fn ask_human(&mut self, number: u64) {
        let question = self.add_job(Purpose::AskHuman { conflict: number }, |_| {});
        self.set_stage(number, vec![question], Stage::Human);
    }

    /// Applies the settlement of a conflict. If the answers to one job contradicted each other, the value becomes the
    /// result of that job. Otherwise the value is shared with the team; then, with the strategy `Arbitration`, the
    /// jobs that claimed another value are done again.
    pub(super) fn settled(&mut self, number: u64, value: &Json, how: &str, at: Timestamp) {
        let is_decided = |conflict: &&Conflict| matches!(conflict.stage, Stage::Decided { .. });
        let Some(conflict) = self.conflict(number).filter(is_decided).cloned() else { return };
        let stage = Stage::Settled { value: value.clone(), how: how.to_owned() };
        self.set_stage(number, conflict.jobs.clone(), stage);
        let tolerance = self.settings.conflicts.tolerance;
        let agrees = |claim: &&Claim| !contradict(&claim.value, value, tolerance);
        let winner = conflict.claims.iter().find(agrees).map(|claim| claim.by.clone());
        let by = winner.or_else(|| self.lead.clone()).unwrap_or_else(|| "team".into());
        match conflict.about {
            Some(command) => self.done(command, &by, Response::of(value.clone())),
            None => self.board.write(&conflict.key, value.clone(), by, at),
        }
        if conflict.about.is_some() || self.strategy(&conflict) != ConflictStrategy::Arbitration {
            return;
        }
        for claim in conflict.claims.iter().filter(|claim| !agrees(claim)) {
            let job = claim.call.command;
            let (role, to) = (self.job(job).and_then(|job| job.role.clone()), claim.by.clone());
            self.add_job(Purpose::Recompute { conflict: number, job }, |job| {
                (job.role, job.to) = (role, Some(to))
            });
        }
    }

    /// Returns the settled conflicts, each with its value and the reason for the value.
    pub(super) fn settlements(&self) -> impl Iterator<Item = (&Conflict, &Json, &str)> {
        self.conflicts.iter().filter_map(|conflict| match &conflict.stage {
            Stage::Settled { value, how } => Some((conflict, value, how.as_str())),
            _ => None,
        })
    }

    pub(super) fn conflict_question(&self, number: u64) -> (String, Json) {
        let Some(conflict) = self.conflict(number) else { return Default::default() };
        let claims = serde_json::to_value(&conflict.claims).unwrap_or_default();
        let details = serde_json::json!({ "key": conflict.key, "claims": claims });
        (format!("{}: who is right?", conflict.key), details)
    }

    fn strategy(&self, conflict: &Conflict) -> ConflictStrategy {
        let policy = &self.settings.conflicts;
        let role = self.claim_role(conflict);
        role.and_then(|role| policy.by_role.get(&role)).unwrap_or(&policy.strategy).clone()
    }

    fn claim_role(&self, conflict: &Conflict) -> Option<String> {
        self.job(conflict.claims.first()?.call.command)?.role.clone()
    }

    pub(super) fn conflict(&self, number: u64) -> Option<&Conflict> {
        self.conflicts.get(usize::try_from(number).ok()?)
    }

    /// Moves a conflict to a stage; `jobs` are those whose answers end the stage.
    fn set_stage(&mut self, number: u64, jobs: Vec<CommandId>, stage: Stage) {
        let place = usize::try_from(number).ok();
        if let Some(conflict) = place.and_then(|place| self.conflicts.get_mut(place)) {
            (conflict.jobs, conflict.stage) = (jobs, stage);
        }
    }
}

impl Conflict {
    fn new(key: String, claims: Vec<Claim>, about: Option<CommandId>) -> Self {
        Self { key, claims, about, stage: Stage::Found, jobs: Vec::new() }
    }

    fn is_settled(&self) -> bool {
        matches!(self.stage, Stage::Settled { .. })
    }
}

/// Returns the answers to a job as claims, in the order in which they came.
fn claims_of(job: &Job) -> Vec<Claim> {
    let mut answered: Vec<_> =
        job.calls().filter(|(_, hand)| hand.state == AssignmentState::Answered).collect();
    answered.sort_by_key(|(_, hand)| hand.place);
    let claim = |(call, hand): (CallId, &Assignment)| {
        let response = hand.response.as_ref()?;
        let claim = Claim::new(hand.member.clone(), call, response.result.clone());
        Some(claim.with_confidence(response.confidence))
    };
    answered.into_iter().filter_map(claim).collect()
}

/// Returns the item with the highest score; `None` if several items have it.
fn only_highest<T>(all: &[T], score: impl Fn(&T) -> f64) -> Option<&T> {
    let highest = all.iter().map(&score).fold(f64::MIN, f64::max);
    let mut best = all.iter().filter(|one| score(one) >= highest - 1e-9);
    best.next().filter(|_| best.next().is_none())
}

/// Returns the value that a person's answer chooses, and the reason. A plain yes or no chooses the first
/// claim.
fn human(conflict: &Conflict, said: &Json) -> (Json, String) {
    let first = conflict.claims.first().map(|claim| claim.value.clone()).unwrap_or_default();
    match said {
        Json::Bool(true) => (first, "a person agreed with the first".to_owned()),
        Json::Bool(false) => (first, "no person decided, so the first answer counts".to_owned()),
        said => (said.get("value").unwrap_or(said).clone(), "a person decided".to_owned()),
    }
}
