//! The choices of a planning agent.

use archon_types::{AgentId, ExecutionLimits, FallbackModel, Json, PlanSettings, SubTask, ToolMode};

use crate::{Briefing, PlanSize};

/// What a [`PlanningAgent`](crate::PlanningAgent) works with; everything has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningAgentOptions {
    /// For people and for delegation.
    pub name: String,
    /// Stable for the agent's whole life.
    pub agent_id: AgentId,
    /// The id of the provider that is asked for plans and for subtasks, and the model, for whoever takes the run
    /// up in another process; empty where several are asked, or none.
    pub provider: String,
    /// See [`provider`](Self::provider).
    pub model: String,
    /// Models that subtasks ask when their own cannot answer, for whoever takes the run up in another process.
    pub fallbacks: Vec<FallbackModel>,
    /// The folder that the tools work in; see [`RunConfig::workspace`](archon_types::RunConfig::workspace).
    pub workspace: Option<String>,
    /// How tools are spoken about in subtasks, likewise.
    pub tool_mode: ToolMode,
    /// How plans are followed.
    pub settings: PlanSettings,
    /// How much the agents are told that do subtasks.
    pub briefing: Briefing,
    /// How far a run may go, its subtasks included.
    pub limits: ExecutionLimits,
    /// How many subtasks a plan may have.
    pub size: PlanSize,
    /// What is known at the start of every run.
    pub values: serde_json::Map<String, Json>,
    /// A plan that is followed as it stands, whoever takes the run up: no planner is asked for it, nor for another one
    /// when a subtask fails. Default none.
    pub plan: Option<Vec<SubTask>>,
}

impl Default for PlanningAgentOptions {
    fn default() -> Self {
        Self {
            name: "planner".to_owned(),
            agent_id: AgentId::new("planner"),
            provider: String::new(),
            model: String::new(),
            fallbacks: Vec::new(),
            workspace: None,
            tool_mode: ToolMode::default(),
            settings: PlanSettings::default(),
            briefing: Briefing::default(),
            limits: ExecutionLimits::default(),
            size: PlanSize::default(),
            values: serde_json::Map::new(),
            plan: None,
        }
    }
}
