//! Memory entries, and what the memory traits do by default.

use std::sync::Mutex;

use archon_types::{
    BoxFuture, Embedder, Episodic, Json, LongTerm, MemoryEntry, MemoryError, MemoryQuery, Recalled, Working,
};
use expect_test::expect;
use serde_json::{Map, json};

use crate::support::{Counted, at, object, ready, round_trip};

// spec: T-29, T-33
#[test]
fn memory_entries() {
    let mut entry = MemoryEntry::of_message("mem_1", "user", "hi", at(1_700_000_000_123));
    round_trip(
        &entry,
        &expect![[
            r#"{"id":"mem_1","content":"hi","timestamp":"2023-11-14T22:13:20.123Z","metadata":{"role":"user"}}"#
        ]],
    );
    entry.embedding = Some(vec![0.1, -0.25, 1e-7]);
    round_trip(
        &entry,
        &expect![[
            r#"{"id":"mem_1","content":"hi","timestamp":"2023-11-14T22:13:20.123Z","metadata":{"role":"user"},"embedding":[0.1,-0.25,1e-7]}"#
        ]],
    );
    assert_eq!(entry.role(), Some("user"));
    assert_eq!(MemoryEntry::new("mem_2", "fact", at(0)).role(), None);
    round_trip(
        &Recalled::new(MemoryEntry::new("mem_2", "fact", at(0)), 0.75),
        &expect![[
            r#"{"entry":{"id":"mem_2","content":"fact","timestamp":"1970-01-01T00:00:00.000Z","metadata":{}},"score":0.75}"#
        ]],
    );
}

// spec: T-29
#[test]
fn with_missing_filled_adds_missing_fields_and_keeps_the_others() {
    let read = |json: Json| serde_json::from_value::<MemoryEntry>(json).unwrap();
    let ids = Counted::default();
    let filled = read(json!({})).with_missing_filled(&ids, at(9));
    assert_eq!(filled, MemoryEntry::new("mem_1", "", at(9)));
    let whole =
        json!({"id": "m", "content": "c", "timestamp": "2023-11-14T22:13:20.123456", "embedding": null});
    let whole = read(whole).with_missing_filled(&ids, at(9));
    assert_eq!(whole, MemoryEntry::new("m", "c", at(1_700_000_000_123)));
}

#[derive(Default)]
struct Conversation(Mutex<Vec<MemoryEntry>>);

impl Episodic for Conversation {
    fn append(&self, entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>> {
        self.0.lock().unwrap().push(entry);
        Box::pin(async { Ok(()) })
    }

    fn get_messages(
        &self,
        limit: Option<usize>,
        since: usize,
    ) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
        let entries: Vec<_> = self.0.lock().unwrap().iter().skip(since).cloned().collect();
        let first = entries.len() - limit.unwrap_or(usize::MAX).min(entries.len());
        Box::pin(async move { Ok(entries[first..].to_vec()) })
    }

    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        self.0.lock().unwrap().clear();
        Box::pin(async { Ok(()) })
    }
}

// spec: M-02
#[test]
fn episodic_newest_within_a_budget_are_contiguous() {
    let conversation: &dyn Episodic = &Conversation::default();
    for text in ["1", "4444", "22", "333"] {
        ready(conversation.append(MemoryEntry::new("", text, at(0)))).unwrap();
    }
    let table: [(usize, &[&str]); 7] = [
        (0, &[]),
        (2, &[]),
        (3, &["333"]),
        (5, &["22", "333"]),
        // The long entry does not fit, so the short one before it is left out as well.
        (8, &["22", "333"]),
        (9, &["4444", "22", "333"]),
        (99, &["1", "4444", "22", "333"]),
    ];
    for (budget, expected) in table {
        let recent = ready(conversation.get_recent(budget, &str::len)).unwrap();
        assert_eq!(recent.iter().map(|e| e.content.as_str()).collect::<Vec<_>>(), expected, "{budget}");
    }
}

#[derive(Default)]
struct Values(Mutex<Map<String, Json>>);

impl Working for Values {
    fn update(&self, values: Map<String, Json>) -> BoxFuture<'_, Result<(), MemoryError>> {
        self.0.lock().unwrap().extend(values);
        Box::pin(async { Ok(()) })
    }

    fn to_map(&self) -> BoxFuture<'_, Result<Map<String, Json>, MemoryError>> {
        let copy = self.0.lock().unwrap().clone();
        Box::pin(async { Ok(copy) })
    }

    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        self.0.lock().unwrap().clear();
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn working_memory_gets_and_sets_single_values_by_default() {
    let values: &dyn Working = &Values::default();
    ready(values.update(object(json!({"a": 1, "b": 2})))).unwrap();
    ready(values.set("a", json!([3]))).unwrap();
    assert_eq!(ready(values.get("a")).unwrap(), Some(json!([3])));
    assert_eq!(ready(values.get("x")).unwrap(), None);
    assert_eq!(ready(values.to_map()).unwrap(), object(json!({"a": [3], "b": 2})));
    ready(values.clear()).unwrap();
    assert_eq!(ready(values.get("b")).unwrap(), None);
}

/// Remembers nothing.
struct Blank;

impl LongTerm for Blank {
    fn store<'a>(&'a self, _: &'a str, _: Map<String, Json>) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(async { Ok("mem_1".to_owned()) })
    }

    fn query<'a>(&'a self, _: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        Box::pin(async { Ok(vec![]) })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(false) })
    }
}

impl Embedder for Blank {
    fn id(&self) -> &str {
        "blank"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async { Ok(vec![vec![0.0; 2]; texts.len()]) })
    }
}

#[test]
fn long_term_newest_default_is_an_error_with_advice() {
    let store: &dyn LongTerm = &Blank;
    let error = ready(store.newest(3)).unwrap_err();
    assert_eq!(error.to_string(), "this memory does not support listing entries");
    assert_eq!(error.advice(), "use a store that supports it");
    assert_eq!((MemoryQuery::new("q").limit, MemoryQuery::new("q").threshold), (5, None));
    let embedder: &dyn Embedder = &Blank;
    assert_eq!(ready(embedder.embed(&["a".into(), "b".into()])).unwrap().len(), 2);
}
