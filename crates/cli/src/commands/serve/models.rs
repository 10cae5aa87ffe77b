//! Offers the agents to OpenAI clients as models, below `/v1/` of the server.

use std::sync::Arc;

use archon::{
    SystemClock,
    openai_serve::{self, AgentModel, ModelServerOptions},
    server::{
        Server,
        axum::{Router, extract::Request},
    },
};

use super::{by_token, tokens::Access};

/// Returns the router for OpenAI clients. Each token starts and reads only the runs that it reaches.
pub(super) fn router<'a>(
    agents: impl Iterator<Item = &'a str> + Clone,
    server: &Server,
    tokens: &[Access],
) -> Router {
    let options = ModelServerOptions::default().with_end(server.end().clone());
    let models = |runs| {
        let agents = agents.clone().map(AgentModel::new);
        openai_serve::ModelServer::new(runs, agents, Arc::new(SystemClock), options.clone())
    };
    let answer =
        |models: openai_serve::ModelServer, request: Request| async move { models.answer(request).await };
    by_token::router(server, tokens, openai_serve::ModelServer::PATHS, models, answer)
}
