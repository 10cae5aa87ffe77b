//! Tasks: their definition, as a person writes it, and their state, as a store keeps it.

use std::{collections::BTreeMap, time::Duration};

use archon_types::{
    AgentId, ExecutionLimits, Json, RunId, TaskId, TaskProblem, TaskStatus, TenantId, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{condition::TriggerCondition, event::EventFilter, occurrence::Occurrence, schedule::Schedule};

/// A task that starts runs by itself: when it starts one, which work it starts, and its limits.
///
/// ```
/// use archon_triggers::{Schedule, TriggerTask};
///
/// # fn main() -> Result<(), archon_triggers::ScheduleError> {
/// let mail = TriggerTask::new(
///     "morning-mail",
///     Schedule::cron("0 8 * * *", "Asia/Shanghai")?,
///     "Summarize unread emails",
/// )
/// .tenant("anna")
/// .notify("sms");
/// assert_eq!(mail.id.as_str(), "morning-mail");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TriggerTask {
    /// The id, unique among the tasks of all tenants.
    pub id: TaskId,
    /// The tenant on whose behalf the runs work; by default `local`.
    #[serde(default = "local")]
    pub tenant: TenantId,
    /// The trigger: the times, the events or the condition that start runs.
    pub trigger: Trigger,
    /// The work that each run does.
    pub action: TriggerAction,
    /// The names of the notification channels that get the results, failures and questions of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// The rule for times of a schedule that passed without a run. Default: [`MissedRuns::Once`].
    #[serde(default)]
    pub missed: MissedRuns,
    /// The limits.
    #[serde(default)]
    pub limits: TaskLimits,
    /// The time at which the task was created, which is part of the keys of its runs. The engine sets it.
    #[serde(default)]
    pub created_at: Timestamp,
    /// True if a person paused the task: no run starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The time at which a person last resumed the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
}

/// The trigger of a task's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// Each time of a schedule.
    Schedule(Schedule),
    /// Each event that passes the filter.
    Event(EventFilter),
    /// Each time that a condition becomes true.
    Condition(TriggerCondition),
}

/// The work of a task's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TriggerAction {
    /// An agent gets the instruction as its task.
    Agent {
        /// The id of the agent; `None` for the run service's own agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// The instruction.
        instruction: String,
    },
    /// Code of the program: one call of a tool. No model is called.
    Code {
        /// The name of the tool of the agent [`CODE_AGENT`](crate::CODE_AGENT).
        executor: String,
        /// The arguments.
        #[serde(default)]
        arguments: BTreeMap<String, Json>,
    },
}

/// The rule for occurrences of a schedule that passed without a run: the program was stopped, or the task's last run was
/// still working.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MissedRuns {
    /// They are left out. Only the last one still starts its run, if it is at most one minute late.
    Skip,
    /// One run starts for all of them together, with the time of the last one. This is the default.
    #[default]
    Once,
    /// Each gets its run, one after the other.
    All,
}

/// The limits of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskLimits {
    /// The number of runs after which the task is completed; `None` for no limit.
    pub runs: Option<u64>,
    /// The money of all runs together, in millionths of a currency unit. Once it is spent, the task is disabled and a
    /// person is notified. `None`, the default, for no limit. The last run may exceed it; the cost limit in `each_run`
    /// bounds by how much. The limit works only for models with a known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The time at which the task is completed; `None` for no limit. A run that works then goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The limits of each run; `None` for those of the agent.
    pub each_run: Option<ExecutionLimits>,
    /// The number of failed runs in a row after which the task is disabled and a person is notified; 0 for no limit.
    /// Default 5.
    pub failures: u32,
    /// The pause in seconds after the first failed run. It doubles with each further failure, up to one hour. Default
    /// 60.
    pub backoff: u64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { runs: None, cost_micros: None, until: None, each_run: None, failures: 5, backoff: 60 }
    }
}

/// The longest pause after a failed run.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

impl TaskLimits {
    /// Returns true if the runs have cost as much as they may.
    pub(crate) fn is_spent(&self, state: &TaskState) -> bool {
        self.cost_micros.is_some_and(|most| state.spent_micros >= most)
    }

    /// Returns the pause after this number of failed runs one after the other.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u64.checked_pow(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        match failures {
            0 => Duration::ZERO,
            _ => Duration::from_secs(self.backoff.saturating_mul(doubled)).min(LONGEST_PAUSE),
        }
    }
}

/// The state of a task as the engine stores it: counters, and facts that save a look into the journal. If a state is
/// lost, or older than the journal, no run starts twice, because the id of a run follows from the task and the
/// occurrence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskState {
    /// The status that the engine noted; [`ListedTask::status`](crate::ListedTask::status) also says whether a person paused
    /// the task.
    pub status: TaskStatus,
    /// The hash of the definition to which the status belongs. With another definition the task is active again.
    pub definition: String,
    /// The last problem, and what to do: the reason why the task is disabled, or why its last run, look or notification
    /// failed. `None` if there is none.
    pub problem: Option<String>,
    /// Each time of the schedule up to this one has its run, or was left out.
    pub handled: Timestamp,
    /// The number of runs that started.
    pub runs: u64,
    /// The money of the runs that ended, in millionths of a currency unit.
    pub spent_micros: u64,
    /// The number of runs that failed, or could not start, since the last run that succeeded. A cancelled run does
    /// not change it; a new definition of the task sets it to 0.
    pub failures: u32,
    /// No run starts before this time, because of failures.
    pub not_before: Timestamp,
    /// The last values of a condition.
    pub condition: ConditionState,
    /// The occurrence whose run starts, works or waits.
    pub current: Option<Occurrence>,
    /// The occurrences that wait for the end of the task's run: events, and starts by a person. The oldest is first.
    pub waiting: Vec<Occurrence>,
    /// The last runs, the newest last; at most [`MOST_LISTED`](Self::MOST_LISTED).
    pub last_runs: Vec<RunId>,
    /// The ids of the questions of the current run that expired, and of whose end people were notified.
    pub expired: Vec<String>,
    /// The last problems of sources of events and of channels, the newest last; at most
    /// [`MOST_PROBLEMS`](Self::MOST_PROBLEMS).
    pub problems: Vec<TaskProblem>,
}

impl TaskState {
    /// The most runs in the list of the last runs.
    pub const MOST_LISTED: usize = 50;

    /// The most problems in the list of problems.
    pub const MOST_PROBLEMS: usize = 20;
}

/// The state of a task with a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConditionState {
    /// The value at the last look.
    pub is_true: bool,
    /// The number of times that the condition became true.
    pub edges: u64,
}

impl TriggerTask {
    /// Creates a task of the tenant `local` whose runs give an instruction to the service's own agent.
    pub fn new(id: impl Into<TaskId>, trigger: impl Into<Trigger>, instruction: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            tenant: local(),
            trigger: trigger.into(),
            action: TriggerAction::Agent { agent: None, instruction: instruction.into() },
            notify: Vec::new(),
            missed: MissedRuns::default(),
            limits: TaskLimits::default(),
            created_at: Timestamp::default(),
            paused: false,
            resumed_at: None,
        }
    }

    /// Sets the tenant. Default: `local`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Sets the work that each run does, in place of the instruction.
    #[must_use]
    pub fn action(mut self, action: TriggerAction) -> Self {
        self.action = action;
        self
    }

    /// Adds the name of a notification channel that gets the results, failures and questions of the runs.
    #[must_use]
    pub fn notify(mut self, channel: impl Into<String>) -> Self {
        self.notify.push(channel.into());
        self
    }

    /// Sets the rule for times of a schedule that passed without a run. Default: [`MissedRuns::Once`].
    #[must_use]
    pub fn missed(mut self, rule: MissedRuns) -> Self {
        self.missed = rule;
        self
    }

    /// Returns true if events of this source may start runs of the task, if they are of the task's tenant.
    pub fn may_take_from(&self, source: &str) -> bool {
        match &self.trigger {
            Trigger::Event(filter) => filter.pattern.may_match_source(source),
            _ => false,
        }
    }

    /// Sets the limits. Default: at most 5 failed runs in a row, with pauses from 60 seconds on, and no other limit.
    #[must_use]
    pub fn limits(mut self, limits: TaskLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// The tenant of a program for one person: that of tasks, events and channels without another one.
pub(crate) const LOCAL: &str = "local";

fn local() -> TenantId {
    TenantId::new(LOCAL)
}

impl From<Schedule> for Trigger {
    fn from(schedule: Schedule) -> Self {
        Self::Schedule(schedule)
    }
}

impl From<EventFilter> for Trigger {
    fn from(filter: EventFilter) -> Self {
        Self::Event(filter)
    }
}

impl From<TriggerCondition> for Trigger {
    fn from(condition: TriggerCondition) -> Self {
        Self::Condition(condition)
    }
}
