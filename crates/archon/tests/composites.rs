//! Tools made of tools, through the facade.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{
    Archon, OutcomeStatus,
    providers::{ScriptedProvider, Step},
    store::InMemoryJournal,
    tool,
    tools::{Composite, ToolEngine, ToolNode, ToolRegistry},
    types::{Answer, AskLater},
};
use archon_testkit::Ended;
use serde_json::json;

#[path = "../examples/research_and_summarize.rs"]
mod research_and_summarize;

/// Sends an email.
#[tool(requires_confirmation)]
async fn send_email(#[state] sent: &Arc<AtomicU64>, to: String) -> String {
    sent.fetch_add(1, Ordering::Relaxed);
    format!("sent to {to}")
}

// spec: EX-02
#[tokio::test]
async fn composite_with_a_careful_step_waits_for_consent_and_goes_on_in_another_process() {
    let (journal, sent) = (InMemoryJournal::new(), Arc::<AtomicU64>::default());
    let agent = |steps: Vec<Step>| {
        let registry = ToolRegistry::new();
        registry.register(send_email(sent.clone())).unwrap();
        let mut letter = Composite::new("write_letter", "Sends a letter.");
        letter.add_node(ToolNode::new("send", "send_email")).unwrap();
        Archon::builder()
            .provider(Arc::new(ScriptedProvider::new(steps)), "scripted")
            .journal(Arc::new(journal.clone()))
            .tool(letter.into_tool(ToolEngine::new(registry)).unwrap())
            .approver(Arc::new(AskLater))
            .build()
            .unwrap()
    };
    let asks = Step::call("a", "write_letter", json!({ "to": "ann@example.org" }));
    let outcome = agent(vec![asks]).run("Write to Ann").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    assert_eq!(sent.load(Ordering::Relaxed), 0);

    let other = agent(vec![Step::text("Done.")]);
    let question = other.approvals(None).await.unwrap().remove(0).request;
    let shown = r#"Run write_letter with {"to":"ann@example.org"}. Its steps: send_email"#;
    assert_eq!(question.action_summary, shown);
    assert!(other.answer(&question.request_id, Answer::Approve).await.unwrap());
    let text = other.resume(outcome.run.clone()).await.unwrap().text().await.unwrap();
    assert_eq!((text.as_str(), sent.load(Ordering::Relaxed)), ("Done.", 1));
}

// spec: EX-05
#[tokio::test]
async fn research_and_summarize_is_one_call_of_the_model_and_leaves_out_the_page_that_is_gone() {
    let story = research_and_summarize::story().await.unwrap();
    let guide = include_str!("../../../docs/tools.md");
    assert!(guide.contains(&format!("```text\n{story}```\n")), "docs/tools.md does not show this:\n{story}");
}
