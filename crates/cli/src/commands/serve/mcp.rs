//! Serves MCP clients at `/mcp`.

use archon::{
    mcp_serve::{self, HttpServerOptions},
    server::{
        Server,
        axum::{Router, extract::Request, response::IntoResponse},
    },
    types::CancellationToken,
};

use super::{by_token, tokens::Access};
use crate::commands::mcp::offer::Offer;

/// A service with the sessions of one token.
type Service = mcp_serve::HttpService<mcp_serve::ToolServer>;

/// Returns the router for MCP clients. Each call of a client is a run.
pub(super) fn router(offer: &Offer, server: &Server, tokens: &[Access]) -> Router {
    let options = HttpServerOptions::default();
    // It is never cancelled: a call that the end of the server cuts off is a run that the next start goes on with.
    let service = |runs| -> Service { offer.server(runs).http_service(&options, CancellationToken::new()) };
    by_token::router(server, tokens, ["/mcp"], service, |service: Service, request: Request| async move {
        service.answer(request).await.into_response()
    })
}
