//! The state that all requests share.

use std::sync::Arc;

use archon_types::{AgentId, Clock, RunService, Timestamp};
use axum::http::StatusCode;

use crate::{error::ApiError, model::AgentModel, options::ModelServerOptions};

pub(crate) struct Shared {
    pub(crate) runs: Arc<dyn RunService>,
    pub(crate) models: Vec<AgentModel>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: ModelServerOptions,
    /// The time at which the server was created.
    pub(crate) created: Timestamp,
}

impl Shared {
    /// Returns the model of this name.
    pub(crate) fn model(&self, name: &str) -> Result<&AgentModel, ApiError> {
        self.models.iter().find(|model| model.agent.as_str() == name).ok_or_else(|| {
            let message = format!("The model '{name}' does not exist; GET /v1/models lists all models.");
            let error = ApiError::field("model_not_found", "model", message);
            ApiError { status: StatusCode::NOT_FOUND, ..error }
        })
    }

    /// Returns the model of an agent; `None` if the agent is not offered.
    pub(crate) fn model_of(&self, agent: &AgentId) -> Option<&AgentModel> {
        self.models.iter().find(|model| model.agent == *agent)
    }
}
