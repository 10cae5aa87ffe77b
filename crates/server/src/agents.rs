//! The agents that a token can start.

use archon_types::AgentHead;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::{
    access::Token,
    reply::{Reply, json},
};

#[derive(Serialize)]
struct AgentBody<'a> {
    #[serde(flatten)]
    head: AgentHead,
    description: Option<&'a str>,
}

pub(crate) fn list(token: &Token) -> Reply {
    let scope = &token.scope;
    let body = |head: AgentHead| {
        let description = scope.descriptions.get(&head.id).map(String::as_str);
        AgentBody { head, description }
    };
    let agents: Vec<_> = scope.runs.agents().into_iter().map(body).collect();
    json(StatusCode::OK, &json!({ "agents": agents }))
}
