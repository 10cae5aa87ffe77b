//! The example of a service does what its guide shows.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/service.rs"]
mod service;

#[tokio::test]
async fn service_guide_matches_the_example() {
    let story = service::story().await.unwrap();
    let guide = include_str!("../../../docs/service.md");
    assert!(
        guide.contains(&format!("```text\n{story}```\n")),
        "docs/service.md does not show this:\n{story}"
    );
}
