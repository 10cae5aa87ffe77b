//! Tools made of tools, through the facade.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/research_and_summarize.rs"]
mod research_and_summarize;

// spec: EX-05
#[tokio::test]
async fn research_and_summarize_is_one_call_of_the_model_and_leaves_out_the_page_that_is_gone() {
    let story = research_and_summarize::story().await.unwrap();
    let guide = include_str!("../../../docs/tools.md");
    assert!(guide.contains(&format!("```text\n{story}```\n")), "docs/tools.md does not show this:\n{story}");
}
