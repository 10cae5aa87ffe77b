//! Texts that are too long for one entry: nothing that leaves the window is lost for it.

use std::sync::Arc;

use archon::{
    Archon, SystemClock, Tool,
    memory::{HashEmbedder, InMemoryStore, Memory},
    tools::FnTool,
    types::{
        LongTerm as _, MemoryFilter, MemoryKind, MemoryQuery, MemoryStore, ToolCall, ToolContext, ToolResult,
        ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, Trial, all_entries, cases, trial};
use serde_json::{Value, json};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(large_text_is_stored_in_parts_that_are_found),
    trial!(large_text_is_stored_in_parts_that_are_found_in_sqlite),
    trial!(large_text_is_stored_in_parts_that_are_found_in_postgres).needs(&POSTGRES),
];

/// Megabytes of words, ten in an acceptance run, with three that occur once: at the beginning, amidst and at the end.
fn long_text() -> String {
    let line = "the quick brown fox jumps over the lazy dog again and again\n";
    let half = line.repeat(usize::try_from(cases(600 << 10, 5 << 20)).unwrap() / line.len());
    format!("zebrafish\n{half}\nokapi lives here\n{half}\nwombat")
}

async fn check(store: Arc<dyn MemoryStore>) {
    let memory = Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(8)))
        .with_embedder(Arc::new(HashEmbedder));
    let spec = ToolSpec::new("page", "Reads a page.", json!({"type": "object"}));
    let page = |_: Value, _: ToolContext| async { Ok(ToolResult::success(long_text())) };
    let model = FnProvider::new(|n, _| match n % 2 {
        0 => FnProvider::calls(vec![ToolCall::new("c", "page", json!({}))]),
        _ => FnProvider::text("It is about animals."),
    });
    let agent = Archon::builder()
        .provider(Arc::new(model), "m")
        .tools([Arc::new(FnTool::new(spec, page)) as Arc<dyn Tool>])
        .memory(memory.clone())
        .build()
        .unwrap();
    agent.run("Read the page.").await.ended();
    let turns = all_entries(&**memory.store(), MemoryFilter::all().of(&[MemoryKind::Turn])).await;
    let (parts, others): (Vec<_>, Vec<_>) =
        turns.into_iter().partition(|turn| turn.metadata.contains_key("part"));
    assert_eq!(
        others.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(),
        ["Read the page.", "It is about animals."]
    );
    let whole: String = parts.iter().map(|part| part.content.as_str()).collect();
    assert!(whole == long_text(), "{} parts have {} bytes", parts.len(), whole.len());
    let numbers: Vec<_> = parts.iter().map(|part| part.metadata["part"].clone()).collect();
    let expected: Vec<_> = (1..=parts.len()).map(|nth| json!([nth, parts.len()])).collect();
    assert_eq!(numbers, expected);
    for word in ["zebrafish", "okapi", "wombat"] {
        let found = memory.long_term().query(&MemoryQuery::new(word)).await.unwrap();
        assert!(found[0].entry.content.contains(word), "{word}");
    }
}

// spec: C-18, M-23
async fn large_text_is_stored_in_parts_that_are_found() {
    check(Arc::new(InMemoryStore::new().collection(of("user:anna")).unwrap())).await;
}

// spec: C-18, M-23
async fn large_text_is_stored_in_parts_that_are_found_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check(Place::sqlite(dir.path()).open(&of("user:anna")).await).await;
}

// spec: C-18, M-23
async fn large_text_is_stored_in_parts_that_are_found_in_postgres() {
    let place = Place::postgres("archon_test_parts").await;
    check(place.open(&of("user:anna")).await).await;
    place.drop().await;
}
