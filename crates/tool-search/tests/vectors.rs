//! Tests of the search by meaning, with an embedder that knows two topics.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon_tool_search::{ToolIndex, ToolVectors};
use archon_types::{BoxFuture, Embedder, MemoryError, ToolSpec};
use serde_json::json;

/// Texts about weather have one vector, texts about letters another, all others a third.
#[derive(Default)]
struct Topics {
    embedded: AtomicUsize,
    fails: bool,
}

impl Embedder for Topics {
    fn id(&self) -> &str {
        "topics"
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
        let has = |text: &str, words: [&str; 3]| words.iter().any(|word| text.contains(word));
        let vector = |text: &String| match () {
            () if has(text, ["rain", "forecast", "weather"]) => vec![1.0, 0.0, 0.0],
            () if has(text, ["letter", "mail", "post"]) => vec![0.0, 1.0, 0.0],
            () => vec![0.0, 0.0, 1.0],
        };
        let failed = || MemoryError::Embedding { embedder: "topics".to_owned(), problem: "lost".to_owned() };
        let result = if self.fails { Err(failed()) } else { Ok(texts.iter().map(vector).collect()) };
        Box::pin(async { result })
    }
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, about: &str| ToolSpec::new(name, about, json!({ "type": "object" }));
    vec![
        tool("paint__wall", "Paints a wall in the colour that you want today."),
        tool("mail__send", "Sends a message."),
        tool("sky__forecast", "Conditions of the next days."),
    ]
}

async fn found(topics: Topics, query: &str) -> Result<Vec<String>, MemoryError> {
    let tools = tools();
    let vectors = ToolVectors::new(Arc::new(topics));
    let found = vectors.search(&ToolIndex::new(&tools), &tools, query, 5).await?;
    Ok(found.into_iter().map(|place| tools[place].name.clone()).collect())
}

#[tokio::test]
async fn search_with_an_embedder_finds_a_tool_without_a_common_word() {
    assert_eq!(found(Topics::default(), "will it rain?").await.unwrap(), ["sky__forecast"]);
}

#[tokio::test]
async fn search_with_an_embedder_keeps_tools_of_common_words_and_names_first() {
    let both = found(Topics::default(), "rain on the wall").await.unwrap();
    assert_eq!(both, ["paint__wall", "sky__forecast"]);
    let named = found(Topics::default(), "mail__send rain").await.unwrap();
    assert_eq!(named, ["mail__send", "sky__forecast"]);
}

#[tokio::test]
async fn search_with_an_embedder_without_a_query_finds_nothing() {
    assert!(found(Topics::default(), " ").await.unwrap().is_empty());
}

#[tokio::test]
async fn search_with_an_embedder_that_fails_returns_its_error() {
    let failed = found(Topics { fails: true, ..Topics::default() }, "rain").await.unwrap_err();
    assert_eq!(failed.to_string(), "embedding with topics failed: lost");
}

#[tokio::test]
async fn search_embeds_each_definition_once_and_at_most_fifty_per_query() {
    let names: Vec<String> = (0..80).map(|n| format!("tool_{n}")).collect();
    let tools: Vec<_> =
        names.iter().map(|name| ToolSpec::new(name, "Counts sheep.", json!({ "type": "object" }))).collect();
    let (index, topics) = (ToolIndex::new(&tools), Arc::new(Topics::default()));
    let vectors = ToolVectors::new(topics.clone());
    for expected in [51, 52] {
        vectors.search(&index, &tools, "count sheep", 5).await.unwrap();
        assert_eq!(topics.embedded.load(Ordering::Relaxed), expected);
    }
}
