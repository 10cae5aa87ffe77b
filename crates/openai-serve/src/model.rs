//! An agent of the program as a model, and the routes that list models.

use archon_types::{AgentId, Json, RunKind};
use serde_json::json;

/// An agent that clients name as a model: the name of the model is the id of the agent.
///
/// ```
/// use archon_openai_serve::AgentModel;
/// use archon_types::RunKind;
///
/// let desk = AgentModel::new("desk");
/// let planner = AgentModel::new("trips").with_kind(RunKind::Plan);
/// assert_eq!((desk.kind, planner.kind), (RunKind::Loop, RunKind::Plan));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentModel {
    /// The id under which the agent is registered at the run service.
    pub agent: AgentId,
    /// The kind of its runs. Default [`RunKind::Loop`].
    pub kind: RunKind,
    /// True to send the final answer alone, once it is there, and not what the agent says before and between its calls.
    /// Default false.
    pub final_answer_only: bool,
}

impl AgentModel {
    /// Creates a model of an agent whose runs are loops.
    pub fn new(agent: impl Into<AgentId>) -> Self {
        Self { agent: agent.into(), kind: RunKind::Loop, final_answer_only: false }
    }

    /// Sends the final answer alone, for clients that read nothing else.
    ///
    /// ```
    /// let writer = archon_openai_serve::AgentModel::new("writer").with_final_answer_only();
    /// ```
    pub fn with_final_answer_only(mut self) -> Self {
        self.final_answer_only = true;
        self
    }

    /// Returns the model as clients list it; `created` is in Unix seconds.
    pub(crate) fn json(&self, created: u64) -> Json {
        json!({ "id": self.agent, "object": "model", "created": created, "owned_by": "archon" })
    }
}

archon_types::setters! {
impl AgentModel {
    /// Sets the kind of the runs.
    pub fn with_kind(self, kind: RunKind) -> Self { self.kind = kind }
}
}
