//! Kill and resume: nothing is lost and no side effect happens twice.

pub(crate) mod kill;
pub(crate) mod kill_plan;
pub(crate) mod kill_race;
pub(crate) mod kill_sub_agents;
pub(crate) mod kill_torn;
pub(crate) mod kill_triggers;
pub(crate) mod lost_children;
pub(crate) mod plan_doubt;
pub(crate) mod plan_resume;
pub(crate) mod processes;
pub(crate) mod storage_failures;
