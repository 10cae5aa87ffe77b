//! Lookup tables of the machine: jobs that can start, deadlines, idle members.
//!
//! The tables follow from the state and are not serialized. A record updates only the entries that it
//! changes, so the cost of a delegation hardly grows with the number of members.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use archon_types::{AgentId, CallId, CommandId, Member, Timestamp};

use super::{AssignmentState, Job, MemberState, Purpose, TeamMachine};

/// Requirements of a job: a role and a tool, each optional.
pub(super) type Kind = (Option<String>, Option<String>);

/// Sort key of an idle member for a job that any able member may take; the lowest key gets the job.
pub(super) type Rank = (Option<usize>, Reverse<u64>, u32, AgentId);

/// The jobs and members that a record changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    pub(super) jobs: Vec<CommandId>,
    pub(super) members: Vec<AgentId>,
    /// True if everything changed, so that the tables are made again.
    pub(super) all: bool,
}

/// The lookup tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// Delegations that were chosen and have not started.
    pub(super) chosen: BTreeSet<CallId>,
    /// For each job with running delegations, the earliest time at which one of them becomes silent (too
    /// many heartbeats missed) or late (the task timeout has passed).
    pub(super) looks: BTreeSet<(Timestamp, CommandId)>,
    /// Jobs with open delegations that are no longer needed.
    pub(super) unneeded: BTreeSet<CommandId>,
    /// Jobs that are unanswered questions to people.
    pub(super) questions: BTreeSet<CommandId>,
    /// Delegations that were dropped while they wait for other members, who wait for a person.
    pub(super) waiting: BTreeSet<CallId>,
    /// Number of delegations and team questions that wait for a person.
    pub(super) asked: usize,
    /// Number of delegations at work.
    pub(super) running: usize,
    /// Number of open delegations that count against `max_concurrent`.
    pub(super) under_way: usize,
    /// Number of jobs that have not ended.
    pub(super) open: usize,
    /// Jobs that have no delegation yet and that any able member may take, by their requirements.
    pub(super) plain: BTreeMap<Kind, BTreeSet<CommandId>>,
    /// Jobs that may be delegated now, but are in neither `plain` nor `extra`.
    pub(super) single: BTreeSet<CommandId>,
    /// Jobs that may be delegated even if `max_concurrent` is reached.
    pub(super) extra: BTreeSet<CommandId>,
    /// Members that are not silent and can take another task.
    pub(super) idle: BTreeSet<AgentId>,
    pools: BTreeMap<Kind, Pool>,
    /// The requests that the delegations of each job made.
    requests: BTreeMap<CommandId, BTreeSet<CommandId>>,
}

/// Members that can do jobs with certain requirements.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pool {
    /// Members of the pool that are not silent.
    well: BTreeSet<AgentId>,
    /// Members of the pool that are not silent and can take another task.
    idle: BTreeSet<Rank>,
    ranks: BTreeMap<AgentId, Rank>,
}

/// The entries of the tables that come from one job.
#[derive(Clone, Debug, Default, PartialEq)]
struct Entry {
    chosen: Vec<CallId>,
    look: Option<Timestamp>,
    is_unneeded: bool,
    is_question: bool,
    is_open: bool,
    waiting: Vec<CallId>,
    asked: usize,
    running: usize,
    under_way: usize,
    wants: Wants,
    asked_by: Option<CommandId>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Wants {
    #[default]
    Nothing,
    Any(Kind),
    Some,
    Extra,
}

impl Index {
    pub(super) fn of(machine: &TeamMachine) -> Self {
        let mut index = Self::default();
        let touched = Touched {
            jobs: machine.jobs.iter().map(|job| job.command).collect(),
            members: machine.members.keys().cloned().collect(),
            all: false,
        };
        index.update(machine, touched);
        index
    }

    /// Updates the tables for the jobs and members that a record changed.
    pub(super) fn update(&mut self, machine: &TeamMachine, touched: Touched) {
        for id in &touched.members {
            self.member(machine, id);
        }
        for command in touched.jobs {
            self.job(machine, command);
            // A request may no longer be needed once the asking delegation has ended.
            for request in self.requests.get(&command).cloned().unwrap_or_default() {
                self.job(machine, request);
            }
        }
    }

    /// Compares two indexes. An empty entry is equal to a missing one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let trim = |index: &Self| {
            let mut index = index.clone();
            index.plain.retain(|_, jobs| !jobs.is_empty());
            index.requests.retain(|_, requests| !requests.is_empty());
            index.pools.retain(|kind, _| index.plain.contains_key(kind));
            index
        };
        trim(self) == trim(other)
    }

    /// Returns the best idle member for these requirements, and true if at least one able member is not silent.
    pub(super) fn best(&self, kind: &Kind) -> (Option<&AgentId>, bool) {
        let pool = self.pools.get(kind);
        let best = pool.and_then(|pool| pool.idle.first()).map(|(.., id)| id);
        (best, pool.is_some_and(|pool| !pool.well.is_empty()))
    }

    fn member(&mut self, machine: &TeamMachine, id: &AgentId) {
        let Some(state) = machine.members.get(id) else { return };
        set_member(&mut self.idle, id.clone(), state.is_idle());
        for (kind, pool) in &mut self.pools {
            pool.put(machine, state, kind);
        }
    }

    fn job(&mut self, machine: &TeamMachine, command: CommandId) {
        let Some((job, place)) = machine.job(command).zip(place(command)) else { return };
        if self.entries.len() <= place {
            self.entries.resize(place + 1, Entry::default());
        }
        let before = std::mem::take(&mut self.entries[place]);
        self.update_tables(command, &before, false);
        let entry = Entry::of(machine, job);
        if let Wants::Any(kind) = &entry.wants {
            self.pools.entry(kind.clone()).or_insert_with(|| Pool::of(machine, kind));
        }
        self.update_tables(command, &entry, true);
        self.entries[place] = entry;
    }

    /// Adds the entries of a job to the tables if `is_in` is true; otherwise removes them.
    fn update_tables(&mut self, command: CommandId, entry: &Entry, is_in: bool) {
        entry.chosen.iter().for_each(|call| set_member(&mut self.chosen, *call, is_in));
        entry.waiting.iter().for_each(|call| set_member(&mut self.waiting, *call, is_in));
        if let Some(at) = entry.look {
            set_member(&mut self.looks, (at, command), is_in);
        }
        set_member(&mut self.unneeded, command, is_in && entry.is_unneeded);
        set_member(&mut self.questions, command, is_in && entry.is_question);
        for (sum, part) in [
            (&mut self.asked, entry.asked),
            (&mut self.running, entry.running),
            (&mut self.under_way, entry.under_way),
            (&mut self.open, usize::from(entry.is_open)),
        ] {
            *sum = if is_in { *sum + part } else { *sum - part };
        }
        match &entry.wants {
            Wants::Nothing => {}
            Wants::Any(kind) => set_member(self.plain.entry(kind.clone()).or_default(), command, is_in),
            Wants::Some => set_member(&mut self.single, command, is_in),
            Wants::Extra => set_member(&mut self.extra, command, is_in),
        }
        if let Some(asker) = entry.asked_by {
            set_member(self.requests.entry(asker).or_default(), command, is_in);
        }
    }
}

/// Adds an item to a set if `is_in` is true; otherwise removes it.
fn set_member<T: Ord>(items: &mut BTreeSet<T>, item: T, is_in: bool) {
    if is_in {
        items.insert(item);
    } else {
        items.remove(&item);
    }
}

impl Entry {
    fn of(machine: &TeamMachine, job: &Job) -> Self {
        let in_state = |state| job.calls().filter(move |(_, hand)| hand.state == state);
        let is_extra = matches!(job.purpose, Purpose::Request { .. });
        let is_question = job.is_question() && !job.is_over();
        let is_needed = !job.is_over() && !machine.is_orphan(job);
        Self {
            chosen: in_state(AssignmentState::Chosen).map(|(call, _)| call).collect(),
            look: in_state(AssignmentState::Running).map(|(_, hand)| machine.look_at(hand)).min(),
            is_unneeded: !is_needed && job.under_way() > 0,
            is_question,
            is_open: !job.is_over(),
            waiting: in_state(AssignmentState::Waiting).map(|(call, _)| call).collect(),
            asked: job.count(&[AssignmentState::Asked]) + usize::from(is_question && job.asked),
            running: job.count(&[AssignmentState::Running]),
            under_way: if is_extra { 0 } else { job.under_way() },
            wants: match machine.wants_hands(job) {
                false => Wants::Nothing,
                true if is_extra => Wants::Extra,
                true if machine.is_plain(job) => Wants::Any((job.role.clone(), job.tool.clone())),
                true => Wants::Some,
            },
            asked_by: match job.purpose {
                Purpose::Request { by, .. } if !job.is_over() => Some(by.command),
                _ => None,
            },
        }
    }
}

impl Pool {
    fn of(machine: &TeamMachine, kind: &Kind) -> Self {
        let mut pool = Self::default();
        for state in machine.members.values() {
            pool.put(machine, state, kind);
        }
        pool
    }

    fn put(&mut self, machine: &TeamMachine, state: &MemberState, kind: &Kind) {
        let id = &state.member.id;
        if let Some(before) = self.ranks.remove(id) {
            self.idle.remove(&before);
        }
        self.well.remove(id);
        let (role, tool) = kind;
        if state.silent || !machine.can(state, role.as_deref(), tool.as_deref()) {
            return;
        }
        self.well.insert(id.clone());
        if state.is_idle() {
            let rank = state.rank(role.as_deref());
            self.idle.insert(rank.clone());
            self.ranks.insert(id.clone(), rank);
        }
    }
}

impl MemberState {
    /// Creates the state of a member without work.
    pub(super) fn new(member: Member) -> Self {
        Self { member, silent: false, load: 0, done: 0, failed: 0 }
    }

    /// Returns true if the member is not silent and can take another task.
    pub(super) fn is_idle(&self) -> bool {
        !self.silent && self.load < self.member.max_tasks.max(1)
    }

    /// Returns the sort key of a member, lower is better: place of the role in the member's list, highest
    /// success rate, lowest load, lowest id.
    pub(super) fn rank(&self, role: Option<&str>) -> Rank {
        let own = role.and_then(|role| self.member.roles.iter().position(|own| own == role));
        // One success and one failure are added, so that a member without work does not have the best rate.
        let rate = u64::from(self.done + 1) * 1_000_000 / u64::from(self.done + self.failed + 2);
        (own, Reverse(rate), self.load, self.member.id.clone())
    }
}

fn place(command: CommandId) -> Option<usize> {
    usize::try_from(command.0).ok()?.checked_sub(1)
}
