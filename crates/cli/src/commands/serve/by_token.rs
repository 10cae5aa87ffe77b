//! Routers whose service sees only the runs that the token of a request reaches.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
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
    types::RunService,
};

use super::tokens::Access;

/// Returns a router for these paths, behind the checks of the server. Each token has a service of its own, and the runs
/// that the service starts count for the limit of the token. A token needs the right to operate, because requests start
/// runs.
pub(super) fn router<S, F>(
    server: &Server,
    tokens: &[Access],
    paths: impl IntoIterator<Item = &'static str>,
    service: impl Fn(Arc<dyn RunService>) -> S,
    answer: impl Fn(S, Request) -> F + Clone + Send + Sync + 'static,
) -> Router
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let of_token = |token: &Access| {
        let scope = server.scope(&token.name)?;
        Some((token.name.clone(), service(scope.runs().clone())))
    };
    let services: Arc<BTreeMap<String, S>> = Arc::new(tokens.iter().filter_map(of_token).collect());
    let handler = move |request: Request| {
        let caller = request.extensions().get::<Caller>();
        let service = caller.and_then(|caller| services.get(caller.name()).cloned());
        let answered = service.map(|service| answer(service, request));
        async move {
            match answered {
                Some(answered) => answered.await,
                None => StatusCode::UNAUTHORIZED.into_response(),
            }
        }
    };
    let add = |router: Router, path| router.route(path, any(handler.clone()));
    server.guarded(paths.into_iter().fold(Router::new(), add), Right::Operate)
}
