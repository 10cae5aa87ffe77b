//! Forgetting, merging, moving.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon_memory::{EvictionLimits, Fact, HashEmbedder, Imported, InMemoryStore, Memory, MemoryOptions};
use archon_testkit::{SeededIds, all_entries};
use archon_types::{
    BoxFuture, Clock, Collection, Embedder, Episodic, Listing, LongTerm, MemoryCandidates, MemoryChange,
    MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryPage, MemoryQuery, MemorySearch, MemoryStore,
    Timestamp, Trust, Working,
};
use futures_util::FutureExt as _;
use serde_json::{Map, json};
use tokio::sync::Semaphore;

use crate::support::{contents, entry, memory};

const DAY: Duration = Duration::from_secs(24 * 3600);

// spec: M-19
#[tokio::test]
async fn evict_removes_the_least_recently_used_first() {
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
    memory.mark_used([ids[0].as_str()]).await.unwrap();
    let counts = memory.evict(&EvictionLimits::entries(3)).await.unwrap();
    assert_eq!((counts.evicted, counts.aged), (4, 0));
    let entries = all_entries(&**memory.store(), MemoryFilter::all()).await;
    assert_eq!(contents(&entries), ["note number 0", "note number 5", "a b c", "important and old"]);
    clock.advance(DAY * 40);
    memory.mark_used(["weighty"]).await.unwrap();
    let counts = memory.evict(&EvictionLimits::default().no_older_than(DAY * 30)).await.unwrap();
    assert_eq!((counts.evicted, counts.aged), (0, 2));
    assert_eq!(memory.evict(&EvictionLimits::default()).await.unwrap().aged, 0);
}

// spec: M-19
#[tokio::test]
async fn keep_within_applies_its_limits_every_period() {
    let (memory, clock) = memory("user:x");
    let mut tidying = Box::pin(async {
        memory.keep_within(&EvictionLimits::entries(2), DAY).await;
    });
    let texts = async || {
        let entries = all_entries(&**memory.store(), MemoryFilter::all()).await;
        entries.into_iter().map(|entry| entry.content).collect::<Vec<_>>()
    };
    let store = async |text: &str| {
        memory.long_term().store(text, Map::new()).await.unwrap();
        clock.advance(Duration::from_secs(1));
    };
    for text in ["one", "two", "three"] {
        store(text).await;
    }
    assert!((&mut tidying).now_or_never().is_none(), "it goes on");
    assert_eq!(texts().await, ["two", "three"]);
    store("three").await;
    assert!((&mut tidying).now_or_never().is_none());
    assert_eq!(texts().await, ["two", "three", "three"], "the period is not over");
    clock.advance(DAY);
    assert!((&mut tidying).now_or_never().is_none());
    assert_eq!(texts().await, ["three"], "the oldest went, and what is said twice");
}

// spec: M-26
#[tokio::test]
async fn sessions_stand_beside_each_other_and_old_ones_go() {
    let (memory, clock) = memory("user:x");
    let sessions = ["january", "february", "march"];
    let turns = async |session: &str, last| {
        let turns = memory.conversation(session).get_messages(last, 0).await.unwrap();
        turns.into_iter().map(|turn| turn.content).collect::<Vec<_>>()
    };
    // Each goes on beside the next.
    for (n, session) in sessions.iter().enumerate() {
        for session in &sessions[n.saturating_sub(1)..=n] {
            memory
                .conversation(*session)
                .append(entry("user", &format!("{session} on day {n}")))
                .await
                .unwrap();
        }
        memory.conversation(*session).append(entry("assistant", "Noted.")).await.unwrap();
        clock.advance(DAY);
    }
    assert_eq!(turns("january", None).await, ["january on day 0", "Noted.", "january on day 1"]);
    assert_eq!(turns("february", Some(2)).await, ["Noted.", "february on day 2"]);
    assert_eq!(turns("april", None).await, [""; 0]);
    let counts = memory.evict(&EvictionLimits::default().no_older_than(DAY + DAY / 2)).await.unwrap();
    assert_eq!((counts.aged, counts.evicted), (5, 0));
    assert_eq!(turns("january", None).await, [""; 0]);
    assert_eq!(turns("february", None).await, ["february on day 2"]);
    assert_eq!(turns("march", None).await, ["march on day 2", "Noted."]);
}

// spec: M-21
#[tokio::test]
async fn purge_removes_entries_older_than_the_limit() {
    let (memory, clock) = memory("user:x");
    for n in 0..4 {
        memory.conversation("s").append(entry("user", &format!("day {n}"))).await.unwrap();
        clock.advance(DAY);
    }
    let limit = Timestamp::from_millis(clock.now().as_millis() - 2 * 24 * 3_600_000);
    assert_eq!(memory.purge(limit).await.unwrap(), 2);
    assert_eq!(contents(&memory.conversation("s").get_messages(None, 0).await.unwrap()), ["day 2", "day 3"]);
}

// spec: M-21, M-25
#[tokio::test]
async fn purge_of_a_fact_restores_the_one_that_it_ended() {
    let (memory, clock) = memory("user:x");
    let since = Timestamp::from_millis;
    let fact =
        |place: &str, at| Fact::new("Alice", "lives in", place).since(since(at)).trusted(Trust::Trusted);
    let knowledge = memory.knowledge();
    memory.conversation("s").append(entry("user", "Long ago.")).await.unwrap();
    knowledge.learn([fact("Basel", 200), fact("Chur", 250)]).await.unwrap();
    clock.advance(DAY);
    knowledge.learn([fact("Bern", 100)]).await.unwrap();
    let at = async |time| {
        let facts = knowledge.as_of("Alice", "lives in", since(time)).await.unwrap();
        facts.into_iter().map(|fact| fact.object).collect::<Vec<_>>()
    };
    assert_eq!((at(150).await, at(300).await), (vec!["Bern".to_owned()], vec!["Chur".to_owned()]));
    assert_eq!(memory.purge(clock.now()).await.unwrap(), 3);
    assert_eq!((at(150).await, at(300).await), (vec!["Bern".to_owned()], vec!["Bern".to_owned()]));
}

// spec: M-11, M-19
#[tokio::test]
async fn merge_similar_keeps_the_trusted_copy() {
    let (memory, _) = memory("user:x");
    let note = |id: &str, text: &str, trust, importance| {
        let mut entry = MemoryEntry::new(id, text, Timestamp::from_millis(5));
        (entry.trust, entry.importance) = (trust, importance);
        entry
    };
    memory
        .keep(vec![
            note("anna", "the server is in rack 7", Trust::Trusted, None),
            note("page", "The server is in rack 7!", Trust::Untrusted, Some(0.9)),
            note("other", "The printer is in room 2", Trust::Untrusted, None),
        ])
        .await
        .unwrap();
    assert_eq!(memory.merge_similar().await.unwrap(), 1);
    let entries = all_entries(&**memory.store(), MemoryFilter::all()).await;
    assert_eq!(
        entries.iter().map(|e| (e.id.as_str(), e.importance)).collect::<Vec<_>>(),
        [("anna", Some(0.9)), ("other", None)]
    );
}

// spec: M-11, M-19
#[tokio::test]
async fn merge_similar_keeps_texts_with_different_meaning() {
    let (memory, _) = memory("user:x");
    let texts = [
        "Anna pays Bob",
        "Bob pays Anna",
        "The payment door of the office is locked on all days of the week",
        "The payment door of the office is not locked on all days of the week",
        "The payment server of the office listens on port 8080 as of 2026-01-02",
        "The payment server of the office listens on port 8081 as of 2026-01-02",
    ];
    for text in texts {
        memory.long_term().store(text, Map::new()).await.unwrap();
    }
    // What another user said is another's, though the words are the same.
    for user in ["anna", "ben"] {
        let metadata = json!({"user": user}).as_object().unwrap().clone();
        memory.long_term().store("I pay for tea", metadata).await.unwrap();
    }
    // Each summary stands for turns of its own.
    for id in ["first", "second"] {
        let mut summary = MemoryEntry::new(id, "They talked about tea.", Timestamp::from_millis(5));
        summary.kind = MemoryKind::Summary;
        memory.keep(vec![summary]).await.unwrap();
    }
    assert_eq!(memory.merge_similar().await.unwrap(), 0);
    let mut query =
        MemoryQuery::new("Who pays Bob or Anna, and what of the payment server and door of the office?");
    query.limit = 20;
    let found = memory.long_term().query(&query).await.unwrap();
    let found = contents(found.iter().map(|hit| &hit.entry));
    assert!(texts.iter().all(|text| found.contains(text)), "{found:?}");
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
    let embedded = changed.embed_missing(|done| steps.push(done)).await.unwrap();
    assert_eq!((embedded.done, embedded.refused), (150, 0));
    assert_eq!(steps, [64, 128, 150]);
    assert!(changed.long_term().query(&query).await.unwrap().iter().any(|hit| hit.vector.is_some()));
    assert!(memory.long_term().query(&query).await.unwrap().iter().all(|hit| hit.vector.is_none()));
}

/// A service that refuses a batch with a text that is too long for it, and makes nothing at all while it is down.
#[derive(Default)]
struct Choosy {
    down: AtomicBool,
    calls: AtomicUsize,
}

impl Embedder for Choosy {
    fn id(&self) -> &str {
        "choosy:384"
    }

    fn dimensions(&self) -> usize {
        384
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if self.down.load(Ordering::SeqCst) || texts.iter().any(|text| text.starts_with("too long")) {
                return Err(MemoryError::Embedding { embedder: "choosy".into(), problem: "refused".into() });
            }
            HashEmbedder.embed(texts).await
        })
    }
}

// spec: M-18
#[tokio::test]
async fn embed_missing_continues_after_a_refused_text() {
    let (plain, _) = memory("user:x");
    let mut options = MemoryOptions::default();
    options.batch = 4;
    let service = Arc::new(Choosy::default());
    let memory = plain.with_options(options).with_embedder(service.clone());
    let notes = |texts: &[String]| {
        texts.iter().map(|text| MemoryEntry::new("", text.as_str(), Timestamp::from_millis(1))).collect()
    };
    // One in the first batch, all of the second, one in the third.
    let bad = [1, 4, 5, 6, 7, 9];
    let text = |n| if bad.contains(&n) { format!("too long {n}") } else { format!("note {n}") };
    let texts: Vec<String> = (0..11).map(text).collect();
    service.down.store(true, Ordering::SeqCst);
    memory.keep(notes(&texts)).await.unwrap();
    assert_eq!(
        service.calls.swap(0, Ordering::SeqCst),
        6,
        "a service that is down is asked for no more texts"
    );
    let error = memory.embed_missing(drop).await.unwrap_err();
    assert!(matches!(error, MemoryError::Embedding { .. }), "{error}");
    assert_eq!((memory.lacking_vectors().await.unwrap(), service.calls.load(Ordering::SeqCst)), (11, 2));
    service.down.store(false, Ordering::SeqCst);
    let mut steps = Vec::new();
    let embedded = memory.embed_missing(|done| steps.push(done)).await.unwrap();
    assert_eq!((embedded.done, embedded.refused), (5, bad.len()));
    assert_eq!(steps, [3, 3, 5]);
    assert_eq!(memory.lacking_vectors().await.unwrap(), bad.len());
    // An embedder that works and refuses all that is left is no failure.
    let embedded = memory.embed_missing(drop).await.unwrap();
    assert_eq!((embedded.done, embedded.refused), (0, bad.len()));
    // What is kept beside such a text has its vector from the start.
    memory.keep(notes(&["new".to_owned(), "too long too".to_owned()])).await.unwrap();
    assert_eq!(memory.lacking_vectors().await.unwrap(), bad.len() + 1);
}

// spec: M-26, M-27
#[tokio::test]
async fn memories_move_and_bad_lines_stay_behind() {
    let (from, _) = memory("user:a");
    from.conversation("s").append(entry("user", "Zürich, naïve, 🏔")).await.unwrap();
    from.knowledge().learn([Fact::new("a", "b", "c").trusted(Trust::Trusted)]).await.unwrap();
    let mut lines = from.export().await.unwrap().join("\n").into_bytes();
    let (same, _) = memory("user:a");
    let imported = same.import(&lines, Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, imported.refused.len()), (2, 0));
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
    assert_eq!((imported.stored, refused), (3, vec![3, 4, 5, 6, 8]));
    assert_eq!(imported.refused[0].1, "the line is not valid UTF-8 from byte 0 on");
    // Into another's collection nothing is imported.
    let (other, _) = memory("user:b");
    let error = other.import(&lines, Trust::Trusted, |_| {}).await.unwrap_err();
    assert!(matches!(error, MemoryError::OutOfScope { .. }), "{error}");
    let _ = HashEmbedder::DIMENSIONS;
}

// spec: M-26, M-27
#[tokio::test]
async fn import_does_not_replace_more_trusted_entries() {
    let (memory, _) = memory("user:a");
    let mut note = MemoryEntry::new("n", "The code is 7431", Timestamp::from_millis(1));
    note.trust = Trust::Trusted;
    memory.keep(vec![note]).await.unwrap();
    let lines = "{\"id\": \"n\", \"content\": \"The code is 0000\", \"trust\": \"trusted\"}\n\
                 {\"id\": \"m\", \"content\": \"Another\"}";
    let imported = memory.import(lines.as_bytes(), Trust::Untrusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, imported.refused[0].0, imported.refused.len()), (1, 1, 1));
    let entries = all_entries(&**memory.store(), MemoryFilter::all()).await;
    assert_eq!(contents(&entries), ["The code is 7431", "Another"]);
    // Who is believed as much may say otherwise.
    let imported = memory.import(lines.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!(imported.stored, 2);
}

// spec: M-26
#[tokio::test]
async fn import_adds_no_turns_to_a_more_trusted_session() {
    let (from, _) = memory("user:a");
    for (session, role) in [("mine", "user"), ("mine", "tool"), ("models", "assistant"), ("pages", "tool")] {
        from.conversation(session).append(entry(role, &format!("{role} in {session}"))).await.unwrap();
    }
    let own = from.export().await.unwrap().join("\n");
    let turn = |id: &str, kind: &str, session: &str| {
        json!({"id": id, "kind": kind, "content": "evil", "metadata": {"session": session, "role": "user"}})
            .to_string()
    };
    let lines = [
        turn("a", "turn", "mine"),
        turn("b", "turn", "models"),
        turn("c", "turn", "pages"),
        turn("d", "turn", "new"),
        turn("e", "note", "mine"),
    ];
    let table = [(Trust::Untrusted, vec![1, 2]), (Trust::Model, vec![1]), (Trust::Trusted, Vec::new())];
    for (trust, expected) in table {
        let (here, _) = memory("user:a");
        // A trusted import restores sessions, with the turns of tools among those of a person, and again.
        for _ in 0..2 {
            let restored = here.import(own.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
            assert_eq!((restored.stored, restored.refused.len()), (4, 0));
        }
        let imported = here.import(lines.join("\n").as_bytes(), trust, |_| {}).await.unwrap();
        let refused: Vec<usize> = imported.refused.iter().map(|(line, _)| *line).collect();
        assert_eq!((imported.stored, &refused), (5 - expected.len(), &expected), "{trust:?}");
        if let Some((_, problem)) = imported.refused.first() {
            assert_eq!(problem, "the store has turns of session mine with a higher trust level");
        }
        let turns = here.conversation("mine").get_messages(None, 0).await.unwrap();
        assert_eq!(turns.len(), 2 + usize::from(expected.is_empty()), "{trust:?}");
        // What an import began, another of its kind goes on with.
        let more = here.import(turn("f", "turn", "new").as_bytes(), trust, |_| {}).await.unwrap();
        assert_eq!(more.stored, 1);
    }
    // A session of the same name within this collection is another.
    let (here, _) = memory("user:a");
    here.import(own.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    let inner = json!({"id": "g", "kind": "turn", "content": "theirs", "collection": "user:a:guest",
        "metadata": {"session": "mine"}});
    let imported = here.import(inner.to_string().as_bytes(), Trust::Untrusted, |_| {}).await.unwrap();
    assert_eq!(imported.stored, 1);
}

// spec: M-03, M-26
#[tokio::test]
async fn untrusted_import_does_not_change_task_values() {
    let (memory, _) = memory("user:a");
    let task = memory.task("t");
    task.set("account", json!("CH93")).await.unwrap();
    let value = |id: &str, key: &str, content: &str| {
        json!({"id": id, "kind": "value", "key": key, "content": content, "trust": "trusted",
            "metadata": {"task": "t"}})
        .to_string()
    };
    let lines = [
        value("evil", "account", "\"XX00\""),
        value("value:1:t:account", "account", "\"XX00\""),
        value("value:1:t:new", "new", "\"XX00\""),
        value("broken", "account", "no JSON"),
    ];
    let lines = lines.join("\n");
    let imported = memory.import(lines.as_bytes(), Trust::Untrusted, |_| {}).await.unwrap();
    let refused: Vec<usize> = imported.refused.iter().map(|(line, _)| *line).collect();
    assert_eq!((imported.stored, refused), (0, vec![1, 2, 3, 4]));
    let at_hand = async || serde_json::Value::Object(task.to_map().await.unwrap());
    assert_eq!(at_hand().await, json!({"account": "CH93"}));
    // One that is trusted brings values, and of these only those that are.
    let imported = memory.import(lines.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    let refused: Vec<usize> = imported.refused.iter().map(|(line, _)| *line).collect();
    assert_eq!((imported.stored, refused), (2, vec![1, 4]));
    assert_eq!(at_hand().await, json!({"account": "XX00", "new": "XX00"}));
    // What came past all of this counts for nothing either, and keeps nothing from being read.
    let put = |id: &str, key: &str, content: &str, trust| {
        let mut entry = MemoryEntry::new(id, content, Timestamp::from_millis(1 << 42));
        (entry.kind, entry.trust, entry.key) = (MemoryKind::Value, trust, Some(key.into()));
        entry.metadata.insert("task".into(), json!("t"));
        entry
    };
    // Another of the same id, in a collection within this one: who is believed less does not count, however late.
    let mut within = put("value:1:t:new", "new", "\"XX22\"", Trust::Untrusted);
    within.collection = Collection::new("user:a:guest").unwrap();
    let stray = vec![
        put("other", "account", "\"XX11\"", Trust::Trusted),
        put("value:1:t:account", "account", "no JSON", Trust::Trusted),
        within,
    ];
    let stray = stray.into_iter().map(MemoryChange::put).collect();
    memory.store().apply(stray).await.unwrap();
    assert_eq!(at_hand().await, json!({"new": "XX00"}));
}

// spec: M-25, M-26
#[tokio::test]
async fn imported_fact_ends_the_earlier_one() {
    let fact = |place: &str, since: u64| {
        let since = Timestamp::from_millis(since);
        Fact::new("Alice", "lives in", place).since(since).trusted(Trust::Trusted)
    };
    let (from, _) = memory("user:a");
    from.knowledge().learn([fact("Basel", 200)]).await.unwrap();
    let line = from.export().await.unwrap().remove(0).replace("mem_", "other_");
    let (to, _) = memory("user:a");
    to.long_term().store("An id of its own", Map::new()).await.unwrap();
    to.knowledge().learn([fact("Bern", 100)]).await.unwrap();
    to.import(line.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    let facts = all_entries(&**to.store(), MemoryFilter::all().of(&[MemoryKind::Fact])).await;
    let ends: Vec<_> = facts.iter().map(|fact| (fact.content.as_str(), fact.valid_to)).collect();
    let at = Timestamp::from_millis;
    assert_eq!(ends, [("Alice lives in Bern", Some(at(200))), ("Alice lives in Basel", None)]);
}

// spec: M-25, M-27
#[tokio::test]
async fn import_of_a_forged_fact_key_replaces_no_other_fact() {
    let (from, _) = memory("user:a");
    from.knowledge().learn([Fact::new("Alice", "lives in", "Basel").trusted(Trust::Trusted)]).await.unwrap();
    let line = from.export().await.unwrap().remove(0);
    let forged = line.replace("alice\\u001flives in", "alice\\u001fworks for");
    assert_ne!(forged, line);
    let (to, _) = memory("user:a");
    let imported = to.import(forged.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!(imported.stored, 0);
    assert!(imported.refused[0].1.contains("the key of the fact does not match its content"), "{imported:?}");
    // Blank lines are no lines.
    assert_eq!(to.import(b"\n \n", Trust::Trusted, |_| {}).await.unwrap(), Imported::default());
    // An entry of the same id in a collection within, believed more, is another.
    let store = InMemoryStore::new();
    let within = store.collection(Collection::new("team:anna").unwrap()).unwrap();
    let of = |store: InMemoryStore| {
        Memory::new(
            Arc::new(store),
            Arc::new(archon_testkit::VirtualClock::new()),
            Arc::new(SeededIds::new(3)),
        )
    };
    let mut trusted = entry("user", "Anna's own");
    trusted.id = "same".into();
    of(within).keep(vec![trusted]).await.unwrap();
    let team = of(store.collection(Collection::new("team").unwrap()).unwrap());
    let line = r#"{"id":"same","content":"The team's","timestamp":"2026-01-01T00:00:00Z"}"#;
    let imported = team.import(line.as_bytes(), Trust::Untrusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, &imported.refused[..]), (1, &[][..]));
    assert_eq!(all_entries(&**team.store(), MemoryFilter::all()).await.len(), 2);
}

/// A store that refuses what has a zero character.
struct Picky(Arc<dyn MemoryStore>);

impl MemoryStore for Picky {
    fn scope(&self) -> &Collection {
        self.0.scope()
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        let refused = |change: &MemoryChange| matches!(change, MemoryChange::Put(entry) if entry.content.contains('\0'));
        if changes.iter().any(refused) {
            let source = "a zero character".into();
            return Box::pin(async {
                Err(MemoryError::Storage { action: "write to", place: "here".into(), source })
            });
        }
        self.0.apply(changes)
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        self.0.candidates(search)
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        self.0.list(listing)
    }
}

/// A store that keeps the next change waiting until it is let through.
struct Gate {
    inner: Arc<dyn MemoryStore>,
    shut: AtomicBool,
    open: Semaphore,
}

impl MemoryStore for Gate {
    fn scope(&self) -> &Collection {
        self.inner.scope()
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        Box::pin(async move {
            if self.shut.swap(false, Ordering::SeqCst) {
                self.open.acquire().await.unwrap().forget();
            }
            self.inner.apply(changes).await
        })
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        self.inner.candidates(search)
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        self.inner.list(listing)
    }
}

// spec: M-19, M-21, M-25, M-29
#[tokio::test]
async fn purge_and_merge_retry_after_a_concurrent_write() {
    let (inner, clock) = memory("user:a");
    let gate = Arc::new(Gate {
        inner: inner.store().clone(),
        shut: AtomicBool::new(false),
        open: Semaphore::new(0),
    });
    let memory = Memory::new(gate.clone(), Arc::new(clock.clone()), Arc::new(SeededIds::new(2)));
    let since = Timestamp::from_millis;
    let fact =
        |place: &str, at| Fact::new("Alice", "lives in", place).since(since(at)).trusted(Trust::Trusted);
    let knowledge = memory.knowledge();
    knowledge.learn([fact("Chur", 250)]).await.unwrap();
    clock.advance(DAY);
    let before = clock.now();
    // Bern was compared with Chur, and is not written yet, when Chur is to go.
    gate.shut.store(true, Ordering::SeqCst);
    let let_through = async || gate.open.add_permits(1);
    let (learnt, purged, ()) =
        tokio::join!(knowledge.learn([fact("Bern", 100)]), memory.purge(before), let_through());
    assert_eq!((learnt.unwrap().len(), purged.unwrap()), (1, 1));
    let held = knowledge.as_of("Alice", "lives in", since(300)).await.unwrap();
    assert_eq!(held.iter().map(|fact| fact.object.as_str()).collect::<Vec<_>>(), ["Bern"]);
    // Two notes were found to say the same, and one of them is to say something else.
    let note = |id: &str, trust, importance| {
        let mut entry = MemoryEntry::new(id, "The server is in rack 7", since(5));
        (entry.trust, entry.importance) = (trust, Some(importance));
        entry
    };
    memory.keep(vec![note("a", Trust::Trusted, 0.1), note("b", Trust::Model, 0.9)]).await.unwrap();
    gate.shut.store(true, Ordering::SeqCst);
    let line = br#"{"id": "a", "content": "It was sold", "trust": "trusted"}"#;
    let import = memory.import(line, Trust::Trusted, |_| {});
    let (merged, imported, ()) = tokio::join!(memory.merge_similar(), import, let_through());
    assert_eq!((merged.unwrap(), imported.unwrap().stored), (1, 1));
    let notes = all_entries(&**memory.store(), MemoryFilter::all().of(&[MemoryKind::Note])).await;
    assert_eq!(contents(&notes), ["It was sold"]);
}

// spec: M-26
#[tokio::test]
async fn import_continues_after_a_refused_line() {
    let (inner, clock) = memory("user:a");
    let store = Arc::new(Picky(inner.store().clone()));
    let memory = Memory::new(store, Arc::new(clock), Arc::new(SeededIds::new(2)));
    let lines = "{\"content\": \"one\"}\n{\"content\": \"two\\u0000\"}\n{\"content\": \"three\"}";
    let imported = memory.import(lines.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, imported.refused.len(), imported.refused[0].0), (2, 1, 2));
    assert_eq!(contents(&all_entries(&**memory.store(), MemoryFilter::all()).await), ["one", "three"]);
}

// spec: M-05, M-26
#[tokio::test]
async fn import_with_a_vector_of_another_length_does_not_break_search() {
    let (memory, _) = memory("user:a");
    let line = json!({"content": "short", "embedder": HashEmbedder.id(), "embedding": [1.0]}).to_string();
    memory.import(line.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    memory.long_term().store("long", Map::new()).await.unwrap();
    let entries = all_entries(&**memory.store(), MemoryFilter::all()).await;
    let lengths: Vec<_> = entries.iter().map(|entry| entry.embedding.as_ref().map(Vec::len)).collect();
    assert_eq!(lengths, [Some(HashEmbedder.dimensions()); 2]);
    // And where somebody was first, what is kept has no vector for now.
    let (late, _) = crate::support::memory("user:b");
    let first = MemoryEntry::new("first", "first", Timestamp::from_millis(1));
    let first = first.with_vector(HashEmbedder.id(), vec![1.0]);
    late.store().apply(vec![MemoryChange::put(first)]).await.unwrap();
    late.long_term().store("second", Map::new()).await.unwrap();
    let entries = all_entries(&**late.store(), MemoryFilter::all()).await;
    assert_eq!((contents(&entries), entries[1].embedding.clone()), (vec!["first", "second"], None));
}

// spec: M-04, M-26
#[tokio::test]
async fn import_refuses_a_10_mb_text_with_advice_and_stores_the_rest() {
    let (memory, _) = memory("user:a");
    let long = "long ".repeat(2 << 20);
    let error = memory.long_term().store(&long, Map::new()).await.unwrap_err();
    let problem = "its text has 10485760 bytes, at most 1048576 are kept; split it";
    assert!(error.to_string().ends_with(problem), "{error}");
    let line = |text: &str| json!({ "content": text }).to_string();
    let lines = [line("one"), line(&long), line("three")].join("\n");
    let imported = memory.import(lines.as_bytes(), Trust::Trusted, |_| {}).await.unwrap();
    assert_eq!((imported.stored, imported.refused[0].0), (2, 2));
    assert!(imported.refused[0].1.ends_with(problem), "{:?}", imported.refused);
    assert_eq!(contents(&all_entries(&**memory.store(), MemoryFilter::all()).await), ["one", "three"]);
}
