//! Forgetting, merging, moving.

use std::{sync::Arc, time::Duration};

use archon_memory::{Fact, HashEmbedder, Limits};
use archon_testkit::all_entries;
use archon_types::{
    BoxFuture, Clock, Embedder, Episodic, LongTerm, MemoryEntry, MemoryError, MemoryFilter, MemoryQuery,
    Timestamp, Trust,
};
use serde_json::{Map, json};

use crate::support::{contents, memory, said};

const DAY: Duration = Duration::from_secs(24 * 3600);

// spec: M-19
#[tokio::test]
async fn what_was_of_use_longest_ago_goes_first() {
    let (memory, clock) = memory("user:x");
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(memory.long_term().store(&format!("note number {n}"), Map::new()).await.unwrap());
        clock.advance(DAY);
    }
    memory.knowledge().learn([Fact::new("a", "b", "c")]).await.unwrap();
    let mut weighty = MemoryEntry::new("weighty", "important and old", Timestamp::from_millis(0));
    weighty.importance = Some(1.0);
    weighty.timestamp = clock.now();
    memory.keep(vec![weighty]).await.unwrap();
    memory.used([ids[0].as_str()]).await.unwrap();
    let kept = memory.evict(&Limits::entries(3)).await.unwrap();
    assert_eq!((kept.evicted, kept.aged), (4, 0));
    let left = all_entries(&**memory.store(), MemoryFilter::all()).await;
    assert_eq!(contents(&left), ["note number 0", "note number 5", "a b c", "important and old"]);
    clock.advance(DAY * 40);
    memory.used(["weighty"]).await.unwrap();
    let kept = memory.evict(&Limits::default().no_older_than(DAY * 30)).await.unwrap();
    assert_eq!((kept.evicted, kept.aged), (0, 2));
    assert_eq!(memory.evict(&Limits::default()).await.unwrap().aged, 0);
}

// spec: M-21
#[tokio::test]
async fn what_is_older_than_a_limit_is_purged() {
    let (memory, clock) = memory("user:x");
    for n in 0..4 {
        memory.conversation("s").append(said("user", &format!("day {n}"))).await.unwrap();
        clock.advance(DAY);
    }
    let limit = Timestamp::from_millis(clock.now().as_millis() - 2 * 24 * 3_600_000);
    assert_eq!(memory.purge(limit).await.unwrap(), 2);
    assert_eq!(contents(&memory.conversation("s").get_messages(None, 0).await.unwrap()), ["day 2", "day 3"]);
}

// spec: M-11, M-19
#[tokio::test]
async fn what_says_the_same_is_merged_and_the_trusted_stays() {
    let (memory, _) = memory("user:x");
    let note = |id: &str, text: &str, trust, importance| {
        let mut entry = MemoryEntry::new(id, text, Timestamp::from_millis(5));
        (entry.trust, entry.importance) = (trust, importance);
        entry
    };
    memory
        .keep(vec![
            note("page", "The server is in rack 7!", Trust::Untrusted, Some(0.9)),
            note("anna", "the server is in rack 7", Trust::Trusted, None),
            note("other", "The printer is in room 2", Trust::Untrusted, None),
        ])
        .await
        .unwrap();
    assert_eq!(memory.merge_similar().await.unwrap(), 1);
    let left = all_entries(&**memory.store(), MemoryFilter::all()).await;
    assert_eq!(
        left.iter().map(|e| (e.id.as_str(), e.importance)).collect::<Vec<_>>(),
        [("anna", Some(0.9)), ("other", None)]
    );
}

/// Another model: other vectors of another length.
struct Other;

impl Embedder for Other {
    fn id(&self) -> &str {
        "other:2"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move { Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect()) })
    }
}

// spec: M-05, M-18
#[tokio::test]
async fn a_changed_embedder_gets_its_own_vectors() {
    let (memory, _) = memory("user:x");
    for n in 0..150 {
        memory.long_term().store(&format!("note {n}"), Map::new()).await.unwrap();
    }
    let changed = memory.with_embedder(Arc::new(Other));
    let query = MemoryQuery::new("note 7");
    assert!(changed.long_term().query(&query).await.unwrap().iter().all(|hit| hit.vector.is_none()));
    let mut steps = Vec::new();
    assert_eq!(changed.embed_missing(|done| steps.push(done)).await.unwrap(), 150);
    assert_eq!(steps, [64, 128, 150]);
    assert!(changed.long_term().query(&query).await.unwrap().iter().any(|hit| hit.vector.is_some()));
    assert!(memory.long_term().query(&query).await.unwrap().iter().all(|hit| hit.vector.is_none()));
}

// spec: M-26, M-27
#[tokio::test]
async fn memories_move_and_bad_lines_stay_behind() {
    let (from, _) = memory("user:a");
    from.conversation("s").append(said("user", "Zürich, naïve, 🏔")).await.unwrap();
    from.knowledge().learn([Fact::new("a", "b", "c").trusted(Trust::Trusted)]).await.unwrap();
    let mut lines = from.export().await.unwrap().join("\n").into_bytes();
    let (same, _) = memory("user:a");
    let imported = same.import(&lines, Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!((imported.kept, imported.refused.len()), (2, 0));
    assert_eq!(same.export().await.unwrap(), from.export().await.unwrap());
    // Nobody's word: what it says of its own trust does not count.
    let (doubting, _) = memory("user:a");
    doubting.import(&lines, Trust::Untrusted, |_| {}).await.unwrap();
    assert_eq!(doubting.knowledge().current("a", "b").await.unwrap()[0].trust, Trust::Untrusted);
    lines.extend(b"\n\xff\xfe not text\n{\"content\": \"\"}\n{\"content\": 7}\nno json\n\n");
    lines.extend(json!({"content": "x".repeat(2 << 20)}).to_string().bytes());
    lines.extend(b"\n{\"content\": \"plain\"}\n");
    let (mixed, _) = memory("user:a");
    let imported = mixed.import(&lines, Trust::Trusted, |_| {}).await.unwrap();
    let refused: Vec<usize> = imported.refused.iter().map(|(line, _)| *line).collect();
    assert_eq!((imported.kept, refused), (3, vec![3, 4, 5, 6, 8]));
    assert_eq!(imported.refused[0].1, "it is no UTF-8 from byte 0 on");
    // Into another's collection nothing is imported.
    let (other, _) = memory("user:b");
    let error = other.import(&lines, Trust::Trusted, |_| {}).await.unwrap_err();
    assert!(matches!(error, MemoryError::OutOfScope { .. }), "{error}");
    let _ = HashEmbedder::DIMENSIONS;
}
