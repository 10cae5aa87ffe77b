//! A server of agents as models, and its router.

use std::sync::Arc;

use archon_types::{Clock, RunService};
use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::Response,
    routing::{get, post},
};
use serde_json::json;
use tower_service::Service as _;

use crate::{
    chat, error::ApiError, headers::json_response, model::AgentModel, options::ModelServerOptions,
    path_id::PathId, responses, shared::Shared,
};

/// Offers agents as models at the OpenAI endpoints. Cloning is cheap, and clones share all state.
///
/// The server checks no token, no host and no origin: mount its router behind checks. One server uses one run
/// service. If each customer has a run service, create one server for each customer.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_openai_serve::{AgentModel, ModelServer, ModelServerOptions};
/// use archon_types::{Clock, RunService};
///
/// fn models(runs: Arc<dyn RunService>, clock: Arc<dyn Clock>) -> ModelServer {
///     ModelServer::new(runs, [AgentModel::new("desk")], clock, ModelServerOptions::default())
/// }
/// ```
#[derive(Clone)]
pub struct ModelServer {
    shared: Arc<Shared>,
}

impl ModelServer {
    /// The paths of the router, for a program that routes these paths to [`answer`](Self::answer) of a server that it
    /// chooses for each request.
    pub const PATHS: [&'static str; 6] = [
        "/v1/models",
        "/v1/models/{id}",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses/{id}",
        "/v1/responses/{id}/cancel",
    ];

    /// Creates a server for these models. Requests can start runs of these agents only.
    pub fn new(
        runs: Arc<dyn RunService>,
        models: impl IntoIterator<Item = AgentModel>,
        clock: Arc<dyn Clock>,
        options: ModelServerOptions,
    ) -> Self {
        let (models, created) = (models.into_iter().collect(), clock.now());
        Self { shared: Arc::new(Shared { runs, models, clock, options, created }) }
    }

    /// Returns the router. It has no fallback, so you can merge it with other routers. All of its paths begin with
    /// `/v1/`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_openai_serve::{AgentModel, ModelServer, ModelServerOptions, axum::Router};
    /// use archon_types::{Clock, RunService};
    ///
    /// fn models(runs: Arc<dyn RunService>, clock: Arc<dyn Clock>) -> Router {
    ///     ModelServer::new(runs, [AgentModel::new("desk")], clock, ModelServerOptions::default()).router()
    /// }
    /// ```
    pub fn router(&self) -> Router {
        let [models, model, completions, responses, response, cancel] = Self::PATHS;
        Router::new()
            .route(models, get(list))
            .route(model, get(find))
            .route(completions, post(chat::create))
            .route(responses, post(responses::create))
            .route(response, get(responses::get))
            .route(cancel, post(responses::cancel))
            .method_not_allowed_fallback(refuse_method)
            .with_state(self.shared.clone())
    }

    /// Answers a request as [`router`](Self::router) does. Use it if different access tokens reach the runs of
    /// different customers: create a server for each customer, and choose the server by the token.
    pub async fn answer(&self, mut request: Request) -> Response {
        // The router of the program left its parameters of the path there, and this one would add its own to them.
        request.extensions_mut().clear();
        match self.router().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl std::fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelServer").field("models", &self.shared.models).finish_non_exhaustive()
    }
}

async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let created = shared.created.as_millis() / 1_000;
    let models: Vec<_> = shared.models.iter().map(|model| model.json(created)).collect();
    json_response(&json!({ "object": "list", "data": models }), None)
}

/// Refuses a method that a path does not have, such as the deletion of a response.
async fn refuse_method(method: Method) -> Response {
    let message =
        format!("{method} is not offered at this path; an agent's runs are deleted by its program.");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).into_response()
}

async fn find(State(shared): State<Arc<Shared>>, PathId(id): PathId) -> Response {
    match shared.model(&id) {
        Ok(model) => json_response(&model.json(shared.created.as_millis() / 1_000), None),
        Err(error) => ApiError::into_response(error),
    }
}
