//! MCP clients at `/mcp` of the server.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    mcp_serve::{self, HttpServerOptions},
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
    types::CancellationToken,
};

use super::tokens::Access;
use crate::commands::mcp::offer::Offer;

type Services = BTreeMap<String, mcp_serve::HttpService<mcp_serve::Server>>;

/// Returns the router behind the checks of the server. Each token has sessions of its own, over the runs that it
/// reaches. The calls of clients are runs, so the token needs the right to operate.
pub(super) fn router(offer: &Offer, server: &Server, tokens: &[Access]) -> Router {
    let options = HttpServerOptions::default();
    let service = |token: &Access| {
        let served = offer.server(token.scope.runs().clone());
        // It is never cancelled: a call that the end of the server cuts off is a run that the next start goes on with.
        (token.name.clone(), served.http_service(&options, CancellationToken::new()))
    };
    let services: Arc<Services> = Arc::new(tokens.iter().map(service).collect());
    let handler = move |request: Request| answer(services.clone(), request);
    server.guarded(Router::new().route("/mcp", any(handler)), Right::Operate)
}

async fn answer(services: Arc<Services>, request: Request) -> Response {
    let caller = request.extensions().get::<Caller>();
    let service = caller.and_then(|caller| services.get(caller.name()).cloned());
    match service {
        Some(service) => service.answer(request).await.into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}
