//! A server that another router with the same paths chooses.

use archon::{
    openai_serve::{
        ModelServer, ModelServerOptions,
        axum::{Router, extract::Request, routing::any},
    },
    types::{CancellationToken, Json},
};
use serde_json::json;

use crate::{
    desk::Desk,
    site::{RESPONSES, Site},
};

#[tokio::test]
async fn answer_behind_a_router_with_the_same_paths_is_that_of_the_router() {
    let desk = Desk::new();
    let server = desk.server(ModelServerOptions::default());
    let router = ModelServer::PATHS.into_iter().fold(Router::new(), |router, path| {
        let server = server.clone();
        router.route(path, any(move |request: Request| async move { server.answer(request).await }))
    });
    let site = Site { desk, router, end: CancellationToken::new() };
    assert_eq!(site.get("/v1/models/desk").await.body["id"], json!("desk"));
    let created = site.ask(RESPONSES, &json!({ "model": "desk", "input": "hello" })).await.body;
    let path = format!("{RESPONSES}/{}", created["id"].as_str().unwrap());
    assert_eq!(site.get(&path).await.body, created);
    assert_eq!(site.post(&format!("{path}/cancel"), &Json::Null).await.body, created);
}
