//! Conversations that outgrow the window.

use std::sync::Arc;

use archon_memory::Compressor;
use archon_testkit::FnProvider;
use archon_types::{
    ApiErrorKind, Episodic, LongTerm, MemoryError, MemoryQuery, ProviderError, TokenCounter, TokenEstimate,
    Working,
};
use serde_json::json;

use crate::support::{contents, memory, said};

// spec: M-13, M-14, A-23
#[tokio::test]
async fn old_turns_become_a_summary_and_their_facts_stay() {
    let (memory, _) = memory("user:x");
    let talk = memory.conversation("s");
    talk.append(said("user", "What is the capital of France?")).await.unwrap();
    talk.append(said("assistant", "Paris.")).await.unwrap();
    for n in 0..28 {
        talk.append(said("user", &format!("Filler number {n} with enough words to take some room.")))
            .await
            .unwrap();
    }
    talk.append(said("user", "What is its population?")).await.unwrap();
    let answer = r#"{"summary": "The user asked for the capital of France, which is Paris.", "facts": {"capital of France": "Paris"}}"#;
    let provider = FnProvider::new(move |_, _| FnProvider::text(answer));
    let compressor = Compressor::new(memory.clone(), Arc::new(provider.clone()), "m");
    let window = 330;
    let made = compressor.compress(&talk, window, &TokenEstimate).await.unwrap();
    assert_eq!((made, provider.requests().len()), (2, 2));
    let asked = provider.requests()[0].messages.iter().next().unwrap().text();
    assert!(asked.contains("user: What is the capital of France?\nassistant: Paris."), "{asked}");
    assert_eq!(asked.lines().count(), 12, "ten turns: {asked}");
    let system = provider.requests()[0].system.as_ref().unwrap().to_string();
    for kept in ["name", "number", "date", "URL", "instruction of the user", "third person"] {
        assert!(system.contains(kept), "{kept}");
    }
    let history = compressor.history(&talk).await.unwrap();
    assert_eq!(
        history[0].content,
        "[Earlier conversation summarized: The user asked for the capital of France, which is Paris.]"
    );
    assert_eq!(history.last().unwrap().content, "What is its population?");
    let tokens: u64 = history.iter().map(|entry| TokenEstimate.count(&entry.content)).sum();
    assert!(tokens * 10 <= window * 7, "{tokens}");
    assert_eq!(memory.task("s").get("capital of France").await.unwrap(), Some(json!("Paris")));
    // Nothing was thrown away: the turns are there, and the summary is found.
    assert_eq!(talk.get_messages(None, 0).await.unwrap().len(), 31);
    let found = memory.long_term().query(&MemoryQuery::new("capital of France")).await.unwrap();
    assert!(
        contents(found.iter().map(|hit| &hit.entry)).iter().any(|text| text.ends_with("which is Paris."))
    );
    assert_eq!(compressor.compress(&talk, window, &TokenEstimate).await.unwrap(), 0);
}

// spec: M-13
#[tokio::test]
async fn a_service_that_refuses_the_format_is_asked_without() {
    let (memory, _) = memory("user:x");
    let talk = memory.conversation("s");
    for n in 0..3 {
        talk.append(said("user", &format!("A turn of some length, number {n}."))).await.unwrap();
    }
    let provider = FnProvider::new(|_, request| match &request.options.response_format {
        Some(_) => vec![Err(ProviderError::Api {
            status: 400,
            kind: ApiErrorKind::InvalidRequest,
            message: "Invalid schema for response_format".into(),
        })],
        None => FnProvider::text(r#"{"summary": "Turns.", "facts": {}}"#),
    });
    let compressor = Compressor::new(memory.clone(), Arc::new(provider.clone()), "m");
    assert_eq!(compressor.compress(&talk, 10, &TokenEstimate).await.unwrap(), 1);
    assert_eq!(provider.requests().len(), 2);
    // What has another reason is not asked for twice.
    let failing = FnProvider::new(|_, _| vec![Err(ProviderError::Auth("no".into()))]);
    let compressor = Compressor::new(memory, Arc::new(failing.clone()), "m");
    talk.append(said("user", "One more turn.")).await.unwrap();
    let error = compressor.compress(&talk, 0, &TokenEstimate).await.unwrap_err();
    assert!(matches!(error, MemoryError::Model { .. }) && failing.requests().len() == 1, "{error}");
}

// spec: M-13
#[tokio::test]
async fn a_summary_that_fails_changes_nothing() {
    let (memory, _) = memory("user:x");
    let talk = memory.conversation("s");
    for n in 0..12 {
        talk.append(said("user", &format!("A turn of some length, number {n}."))).await.unwrap();
    }
    let provider = FnProvider::new(|_, _| FnProvider::text("I will not."));
    let compressor = Compressor::new(memory.clone(), Arc::new(provider), "m");
    let error = compressor.compress(&talk, 10, &TokenEstimate).await.unwrap_err();
    assert!(matches!(error, MemoryError::Model { .. }), "{error}");
    assert_eq!(compressor.history(&talk).await.unwrap().len(), 12);
}
