//! Tasks, teams, and the records of their execution.
//!
//! Imports only `config` and the folders below it.

mod plan_record;
mod task;
mod team;
mod team_record;

pub use plan_record::{Citation, Confirm, OnCritical, PlanDiff, PlanRecord, PlanSettings, ReplanPolicy};
pub use task::{ForEach, IllegalTransition, OnFailure, SubTask, SubTaskRules, SubTaskStatus, Task};
pub use team::{
    ConflictPolicy, ConflictStrategy, Heartbeat, Member, SharedItem, TeamPattern, TeamRole, TeamSettings,
};
pub use team_record::{Claim, TeamRecord};
