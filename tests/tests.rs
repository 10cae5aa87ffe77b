//! What Archon promises, tested across its crates. Each file is one promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod agent_tools;
mod approvals;
mod approvals_below;
mod approvals_kept;
mod auto_save;
mod call_order;
mod credentials;
mod failures;
mod fork;
mod goal_checks;
mod hooks;
mod interruptions;
mod kill;
mod kill_plan;
mod kill_race;
mod kill_sub_agents;
mod kill_torn;
mod live;
mod memory;
mod memory_facts;
mod memory_kill;
mod memory_limit;
mod memory_places;
mod memory_speakers;
mod parallel;
mod parallel_budget;
mod plan_resume;
mod plan_scenarios;
mod plan_world;
mod processes;
mod project_file;
mod replay;
mod scenarios;
mod scenarios_agents;
mod scenarios_results;
mod scenarios_tools;
mod scenarios_window;
mod side_questions;
mod stage;
mod steering;
mod storage_failures;
mod sub_agents;
mod tool_retries;
mod wire;
