//! Shared parts of the tests: a team with its own clock, journal and ids.

use std::{sync::Arc, time::Duration};

use archon_orchestrator::{Machine as _, Team, TeamMachine, TeamOptions, fold};
use archon_testkit::{MortalJournal, SeededIds, VirtualClock, drive};
use archon_types::{
    Context, Member, Outcome, PlanError, Planner, PlanningContext, RecordBody, RunId, SessionId, SubTask,
    SubTaskRules, Task, TeamRecord, TeamRole,
};

pub(crate) async fn pause(context: &Context, ms: u64) {
    context.clock.sleep_until(context.clock.now() + Duration::from_millis(ms)).await;
}

/// A planner with a fixed plan.
pub(crate) struct Fixed(pub Vec<SubTask>);

impl Planner for Fixed {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let task = Task::new("task_1", goal).with_subtasks(self.0.clone());
        Ok(task)
    }
}

pub(crate) fn step(id: &str, what: &str, role: &str, after: &[&str]) -> SubTask {
    let mut rules = SubTaskRules::default();
    rules.role = Some(role.to_owned());
    SubTask::new(id, what).after(after.iter().copied()).with_rules(rules)
}

/// The clock, the journal and the context of a team.
pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) journal: MortalJournal,
    pub(crate) context: Context,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::new();
        let mut context = Context::new(
            RunId::new("run_1"),
            SessionId::new("s"),
            Arc::new(clock.clone()),
            Arc::new(SeededIds::new(1)),
        );
        context.can_ask = true;
        Self { clock, journal: MortalJournal::default(), context }
    }

    pub(crate) fn team(
        &self,
        plan: Vec<SubTask>,
        roles: &[&str],
        change: impl FnOnce(&mut TeamOptions),
    ) -> Team {
        self.team_in(&self.journal, plan, roles, change)
    }

    /// Returns a team like [`team`](Self::team), with another journal.
    pub(crate) fn team_in(
        &self,
        journal: &(impl archon_types::Journal + Clone + 'static),
        plan: Vec<SubTask>,
        roles: &[&str],
        change: impl FnOnce(&mut TeamOptions),
    ) -> Team {
        let mut options = TeamOptions::default();
        options.settings.max_replans = 0;
        options.roles = roles.iter().map(|role| TeamRole::new(*role, "")).collect();
        change(&mut options);
        Team::new(Arc::new(Fixed(plan)), Arc::new(journal.clone()), options)
    }

    pub(crate) fn start(&self, team: &Team, goal: &str) -> Outcome {
        let outcome = drive(&self.clock, team.start(goal, &self.context)).unwrap();
        self.check_log();
        outcome
    }

    /// Checks that the log folds to the state of the machine.
    pub(crate) fn check_log(&self) -> TeamMachine {
        let log = self.journal.log("run_1");
        let machine = fold(&self.context.run, &log).unwrap();
        // The lookup tables stay right from record to record.
        let mut machine_so_far = fold(&self.context.run, &log[..1]).unwrap();
        for record in &log[1..] {
            machine_so_far.apply(record);
            machine_so_far.next();
            assert_eq!(machine_so_far.index_problem(), None, "after {record:?}");
        }
        let json = serde_json::to_string(&machine).unwrap();
        let again: TeamMachine = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), json);
        machine
    }

    pub(crate) fn team_records(&self) -> Vec<TeamRecord> {
        let log = self.journal.log("run_1");
        let team = |body: &RecordBody| match body {
            RecordBody::Team(record) => Some((**record).clone()),
            _ => None,
        };
        log.iter().filter_map(|record| team(&record.body)).collect()
    }

    /// Returns the delegations as `member: task`.
    pub(crate) fn delegations(&self) -> Vec<String> {
        let shown = |record| match record {
            TeamRecord::Delegated { member, task, .. } => Some(format!("{member}: {task}")),
            _ => None,
        };
        self.team_records().into_iter().filter_map(shown).collect()
    }
}

pub(crate) fn member(id: &str, role: &str) -> Member {
    Member::new(id, role)
}
