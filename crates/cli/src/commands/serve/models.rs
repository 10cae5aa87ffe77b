//! The agents as models of the OpenAI endpoints, below `/v1/` of the server.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    SystemClock,
    openai_serve::{self, AgentModel, ServerOptions},
    server::{
        Caller, Right, Server,
        axum::{
            Router,
            extract::Request,
            http::StatusCode,
            response::{IntoResponse, Response},
            routing::any,
        },
    },
};

use super::tokens::Access;

type Servers = BTreeMap<String, openai_serve::Server>;

/// Returns the router behind the checks of the server. Each token starts and reads the runs that it reaches.
pub(super) fn router<'a>(
    agents: impl Iterator<Item = &'a str> + Clone,
    server: &Server,
    tokens: &[Access],
) -> Router {
    let options = ServerOptions::default().with_end(server.end().clone());
    let models = |token: &Access| {
        let agents = agents.clone().map(AgentModel::new);
        let (runs, clock) = (token.scope.runs().clone(), Arc::new(SystemClock));
        (token.name.clone(), openai_serve::Server::new(runs, agents, clock, options.clone()))
    };
    let servers: Arc<Servers> = Arc::new(tokens.iter().map(models).collect());
    let router = openai_serve::Server::PATHS.into_iter().fold(Router::new(), |router, path| {
        let servers = servers.clone();
        router.route(path, any(move |request: Request| answer(servers.clone(), request)))
    });
    server.guarded(router, Right::Operate)
}

async fn answer(servers: Arc<Servers>, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>();
    let server = caller.and_then(|caller| servers.get(caller.name()).cloned());
    match server {
        Some(server) => server.answer(request).await,
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}
