//! The options of a planning agent.

use std::collections::BTreeMap;

use archon_types::{AgentId, ExecutionLimits, Json, PlanSettings, RunConfig, SubTask};

use crate::{Briefing, PlanSize};

/// Options of a [`PlanningAgent`](crate::PlanningAgent). Each has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningAgentOptions {
    /// Name of the agent, for people and for delegation. Default `planner`.
    pub name: String,
    /// Id of the agent. The logs of its runs contain this id, so it must never change. Default `planner`.
    pub agent_id: AgentId,
    /// Configuration of the agent that executes subtasks. The run records this configuration, so that a process that
    /// resumes the run can build the same agent. Its limits are replaced by `limits`, and its tools by those of the
    /// toolbox, if one is set.
    pub config: RunConfig,
    /// Settings with which plans are followed, such as the maximum number of concurrent subtasks and the rules of
    /// replans.
    pub settings: PlanSettings,
    /// The amount of context in the prompts of subtasks. Default [`Briefing::Full`].
    pub briefing: Briefing,
    /// Limits of a run, its subtasks included.
    pub limits: ExecutionLimits,
    /// Limits of the number of subtasks of a plan. Default: a warning above 20, an error above 200.
    pub size: PlanSize,
    /// Initial values of every run, by name. References such as `{name}` in a plan stand for these values. Default:
    /// none.
    pub values: serde_json::Map<String, Json>,
    /// A fixed plan. The run records the plan, asks no planner, and makes no replan when a subtask fails.
    /// Default: none.
    pub plan: Option<Vec<SubTask>>,
    /// Known tools that are not available. The key is the name; the value tells how to get the tool, and is the remedy
    /// of the problem if a plan names this tool. Planners do not see these tools. Default: none.
    pub missing_tools: BTreeMap<String, String>,
}

impl Default for PlanningAgentOptions {
    fn default() -> Self {
        Self {
            name: "planner".to_owned(),
            agent_id: AgentId::new("planner"),
            config: RunConfig::default(),
            settings: PlanSettings::default(),
            briefing: Briefing::default(),
            limits: ExecutionLimits::default(),
            size: PlanSize::default(),
            values: serde_json::Map::new(),
            plan: None,
            missing_tools: BTreeMap::new(),
        }
    }
}
