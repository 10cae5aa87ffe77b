//! An agent of the program as a model, and the routes that list models.

use archon_types::{AgentId, Json, RunKind};
use serde_json::json;

/// An agent that clients use as a model. The name of the model is the id of the agent.
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
    /// The kind of the agent's runs. Default [`RunKind::Loop`].
    pub kind: RunKind,
    /// True to send only the final answer, at the end, without the texts that the agent writes before and between its
    /// tool calls. Default false.
    pub final_answer_only: bool,
}

impl AgentModel {
    /// Creates a model for an agent whose runs are loops.
    pub fn new(agent: impl Into<AgentId>) -> Self {
        Self { agent: agent.into(), kind: RunKind::Loop, final_answer_only: false }
    }

    /// Makes the server send only the final answer, for clients that cannot use other texts. Default: it sends all
    /// texts.
    ///
    /// ```
    /// let writer = archon_openai_serve::AgentModel::new("writer").with_final_answer_only();
    /// ```
    pub fn with_final_answer_only(mut self) -> Self {
        self.final_answer_only = true;
        self
    }

    /// Returns the model as the list of models contains it. `created` is in Unix seconds.
    pub(crate) fn json(&self, created: u64) -> Json {
        json!({ "id": self.agent, "object": "model", "created": created, "owned_by": "archon" })
    }
}

archon_types::setters! {
impl AgentModel {
    /// Sets the kind of the agent's runs. Default [`RunKind::Loop`].
    pub fn with_kind(self, kind: RunKind) -> Self { self.kind = kind }
}
}
