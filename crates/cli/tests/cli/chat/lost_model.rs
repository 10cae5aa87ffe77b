//! A model that is gone: a server that refuses the connection, and a stream that breaks. The conversation goes on.

use archon_testkit::{Gate, MockResponse, MockServer};

use super::{basics::texts, window::Window};
use crate::setup::{Place, answer, text};

#[tokio::test]
async fn refused_connection_is_shown_and_the_conversation_goes_on_with_another_server() {
    let server = MockServer::start([answer("Better.")]).await;
    let place = Place::new();
    // Nothing listens at this port.
    let variables = [("ARCHON_BASE_URL", "http://127.0.0.1:9/v1"), ("ARCHON_MODEL", "mock")];
    let mut window = Window::with(&place, "chat", 80, 24, &variables);
    window.shows("· mock ·").await;
    window.says("hello").await;
    window.shows("the model call failed (attempt 1)").await;
    window.hides("Esc stops").await;
    assert!(!window.all().contains("(attempt 2"), "{}", window.all());
    window.says(&format!("/model openai-compatible@{}/v1:mock", server.url())).await;
    // The title of the conversation stands there once more.
    window.until("the other model", |window| window.all().matches("· mock ·").count() == 2).await;
    window.says("again").await;
    window.answers("Better.").await;
    assert_eq!(texts(&server, 0).pop().as_deref(), Some("again"));
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: CL-12
#[tokio::test]
async fn stream_that_breaks_is_repeated_once_and_its_text_stands_there_once() {
    let gate = Gate::new();
    let breaks = |words: &str| MockResponse::events([text(words)]).wait(&gate).close();
    let server = MockServer::start([
        breaks("Half an "),
        answer("Half an answer."),
        breaks("Not a "),
        breaks("Not a "),
        answer("Better."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("One?").await;
    window.shows("Half an").await;
    gate.open();
    window.answers("Half an answer.").await;
    window.has_once(&["Half an", "(attempt 1, its partial answer is void)"]);

    window.says("Two?").await;
    window.shows("Not a").await;
    gate.open();
    gate.open();
    window.shows("(attempt 2, its partial answer is void)").await;
    window.hides("Esc stops").await;
    assert!(window.all().matches("Not a").count() <= 1, "{}", window.all());

    window.says("Three?").await;
    window.answers("Better.").await;
    assert_eq!(server.requests().len(), 5);
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}
