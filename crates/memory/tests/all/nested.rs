//! Collections within each other: whoever is bound to the outer one sees the inner ones, and neither changes them nor
//! takes them for its own.

use std::{sync::Arc, time::Duration};

use archon_memory::{Compressor, EvictionLimits, Fact, InMemoryStore, Learnt, Memory};
use archon_testkit::{FnProvider, SeededIds, VirtualClock, all_entries};
use archon_types::{
    Clock, Collection, Episodic, LongTerm, MemoryEntry, MemoryFilter, MemoryKind, MemoryQuery, Timestamp,
    TokenEstimate, Trust, Working,
};
use serde_json::{Map, json};

use crate::support::{contents, entry};

/// The memories of these collections in one store, with their clock.
fn memories<const N: usize>(of: [&str; N]) -> ([Memory; N], VirtualClock) {
    let (clock, store, ids) = (VirtualClock::new(), InMemoryStore::new(), Arc::new(SeededIds::new(5)));
    let memory = |name: &str| {
        let store = match name {
            "" => store.clone(),
            name => store.collection(Collection::new(name).unwrap()).unwrap(),
        };
        Memory::new(Arc::new(store), Arc::new(clock.clone()), ids.clone())
    };
    (of.map(memory), clock)
}

async fn everything(memory: &Memory) -> Vec<MemoryEntry> {
    all_entries(&**memory.store(), MemoryFilter::all()).await
}

fn lives(place: &str, since: u64) -> Fact {
    Fact::new("user", "lives in", place).since(Timestamp::from_millis(since)).trusted(Trust::Trusted)
}

fn objects(facts: &[Fact]) -> Vec<&str> {
    let mut objects: Vec<&str> = facts.iter().map(|fact| fact.object.as_str()).collect();
    objects.sort_unstable();
    objects
}

// spec: M-27, M-25
#[tokio::test]
async fn team_fact_does_not_end_a_members_fact() {
    let ([alice, bob, team], _) = memories(["team:eng:alice", "team:eng:bob", "team:eng"]);
    alice.knowledge().learn([lives("Bern", 100)]).await.unwrap();
    bob.knowledge().learn([lives("Chur", 200)]).await.unwrap();
    let before = (everything(&alice).await, everything(&bob).await);
    let learnt = team.knowledge().learn([lives("Paris", 300)]).await.unwrap();
    assert_eq!(learnt, [Learnt::New { ended: 0 }]);
    assert_eq!((everything(&alice).await, everything(&bob).await), before);
    // Nor is what a member knows known to the team.
    let learnt = team.knowledge().learn([lives("Bern", 400)]).await.unwrap();
    assert_eq!(learnt, [Learnt::New { ended: 1 }]);
    assert_eq!((everything(&alice).await, everything(&bob).await), before);
    // Each has an answer of its own, and none is another's.
    let knowledge = team.knowledge();
    let at = |ms| Timestamp::from_millis(ms);
    assert_eq!(
        objects(&knowledge.as_of("user", "lives in", at(350)).await.unwrap()),
        ["Bern", "Chur", "Paris"]
    );
    let ([alice, team], clock) = memories(["team:eng:alice", "team:eng"]);
    clock.advance(Duration::from_secs(1));
    let now = clock.now().as_millis();
    alice.knowledge().learn([lives("Bern", now - 20)]).await.unwrap();
    team.knowledge().learn([lives("Paris", now - 10)]).await.unwrap();
    assert_eq!(objects(&team.knowledge().about("user").await.unwrap()), ["Bern", "Paris"]);
    assert_eq!(objects(&team.knowledge().current("user", "lives in").await.unwrap()), ["Bern", "Paris"]);
    let entities = team.knowledge().entities().await.unwrap();
    let whose: Vec<_> = entities.iter().map(|e| (e.collection.as_str(), e.facets.len())).collect();
    assert_eq!(whose, [("team:eng", 1), ("team:eng:alice", 1)]);
    assert_eq!(objects(&alice.knowledge().current("user", "lives in").await.unwrap()), ["Bern"]);
    // One says that there is one of it, the other that there are many: each is told.
    let likes = |what: &str| Fact::new("user", "likes", what).trusted(Trust::Trusted);
    alice.knowledge().learn([likes("tea").one_of_many(), likes("jazz")]).await.unwrap();
    team.knowledge().learn([likes("chess")]).await.unwrap();
    assert_eq!(objects(&team.knowledge().current("user", "likes").await.unwrap()), ["chess", "jazz", "tea"]);
}

// spec: M-27
#[tokio::test]
async fn team_clear_keeps_the_members_sessions_and_tasks() {
    let ([alice, team], _) = memories(["team:eng:alice", "team:eng"]);
    for (memory, name) in [(&alice, "alice"), (&team, "team")] {
        memory.conversation("main").append(entry("user", &format!("I am of {name}."))).await.unwrap();
        memory.task("t").set("owner", json!(name)).await.unwrap();
    }
    // Neither takes the other's for its own.
    let turns = team.conversation("main").get_messages(None, 0).await.unwrap();
    assert_eq!(contents(&turns), ["I am of team."]);
    let turns = team.conversation("main").get_messages(Some(9), 0).await.unwrap();
    assert_eq!(contents(&turns), ["I am of team."]);
    assert_eq!(team.task("t").to_map().await.unwrap()["owner"], "team");
    let mut believed = Map::new();
    believed.insert("other".into(), json!("model"));
    alice.task("t").set("other", json!("alice")).await.unwrap();
    assert_eq!(team.task("t").update_with_trust(believed, Trust::Model).await.unwrap(), 1);
    let before = everything(&alice).await;
    assert_eq!(before.len(), 3);
    team.conversation("main").clear().await.unwrap();
    assert_eq!(everything(&alice).await, before);
    team.task("t").clear().await.unwrap();
    assert_eq!(everything(&alice).await, before);
    assert_eq!(everything(&team).await.len(), 3, "and its own are gone");
}

// spec: M-27, M-13
#[tokio::test]
async fn team_summary_covers_only_its_own_turns() {
    let ([alice, team], _) = memories(["team:eng:alice", "team:eng"]);
    for n in 0..4 {
        alice.conversation("main").append(entry("user", &format!("Alice says {n}."))).await.unwrap();
        team.conversation("main").append(entry("user", &format!("The team says {n}."))).await.unwrap();
    }
    let model = FnProvider::new(|_, request| {
        let asked = request.messages.iter().map(|message| message.text()).collect::<String>();
        assert!(!asked.contains("Alice"), "{asked}");
        FnProvider::text(r#"{"summary": "All was said.", "facts": {}}"#)
    });
    let compress =
        |memory: &Memory| Compressor::new(memory.clone(), Arc::new(model.clone()), "m").with_trigger(0.0, 9);
    let talk = team.conversation("main");
    assert_eq!(compress(&team).compress(&talk, 10, &TokenEstimate).await.unwrap(), 1);
    assert_eq!(compress(&team).history(&talk).await.unwrap().len(), 2);
    assert_eq!(compress(&alice).history(&alice.conversation("main")).await.unwrap().len(), 4);
}

// spec: M-27, M-19
#[tokio::test]
async fn root_eviction_keeps_the_tenants_entries() {
    let ([tenant, root], clock) = memories(["user:x", ""]);
    let note = |text: &str, at| MemoryEntry::new("same", text, Timestamp::from_millis(at));
    root.keep(vec![note("old", 1)]).await.unwrap();
    clock.advance(Duration::from_secs(60));
    tenant.keep(vec![note("new", clock.now().as_millis())]).await.unwrap();
    assert_eq!(root.evict(&EvictionLimits::entries(1)).await.unwrap().evicted, 1);
    assert_eq!(contents(&everything(&root).await), ["new"]);
    root.keep(vec![note("said twice", 1), MemoryEntry::new("again", "said twice", clock.now())])
        .await
        .unwrap();
    assert_eq!(root.merge_similar().await.unwrap(), 1);
    assert_eq!(contents(&everything(&tenant).await), ["new"]);
    assert_eq!(everything(&root).await.len(), 2);
}

// spec: M-27, M-25
#[tokio::test]
async fn member_facts_do_not_hide_each_other() {
    let ([alice, bob, team], clock) = memories(["team:eng:alice", "team:eng:bob", "team:eng"]);
    let fact = |place: &str, since, trust| lives(place, since).trusted(trust);
    alice.knowledge().learn([fact("Bern", 100, Trust::Untrusted)]).await.unwrap();
    bob.knowledge().learn([fact("Chur", 200, Trust::Trusted)]).await.unwrap();
    let recalled = async |question: &str| {
        let mut query = MemoryQuery::new(question);
        query.kinds = vec![MemoryKind::Fact];
        let hits = team.long_term().query(&query).await.unwrap();
        hits.into_iter().map(|hit| hit.entry.content).collect::<Vec<_>>()
    };
    // Of Chur there is no word in this question, and it takes nobody's place in the next.
    assert_eq!(recalled("Bern").await, ["user lives in Bern"]);
    assert_eq!(recalled("lives in Bern").await, ["user lives in Bern", "user lives in Chur"]);
    // What is doubtful is told with what contradicts it in its own collection, be it older than another's.
    alice.knowledge().learn([fact("Basel", 50, Trust::Trusted)]).await.unwrap();
    bob.knowledge().learn([fact("Bern too", 300, Trust::Untrusted)]).await.unwrap();
    // Answers are kept so long, whatever others write.
    clock.advance(Duration::from_secs(60));
    let mut all = recalled("Bern").await;
    assert!(all[..2].iter().all(|text| !text.contains("Bern")), "{all:?}");
    all.sort_unstable();
    let places = ["Basel", "Bern", "Bern too", "Chur"];
    assert_eq!(all, places.map(|place| format!("user lives in {place}")));
}
