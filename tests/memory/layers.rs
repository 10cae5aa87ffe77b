//! The three memories of an owner in a database: what is written through one opening, another has.

use std::sync::Arc;

use archon::{
    SystemClock,
    memory::{HashEmbedder, Memory},
    types::{Episodic as _, LongTerm as _, MemoryEntry, MemoryQuery, Timestamp, Working as _},
};
use archon_testkit::{SeededIds, Trial, trial};
use serde_json::{Map, json};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(conversation_task_and_long_term_memories_survive_a_restart_in_sqlite),
    trial!(conversation_task_and_long_term_memories_survive_a_restart_in_postgres).needs(&POSTGRES),
];

async fn open(place: &Place, seed: u16) -> Memory {
    let store = place.open(&of("user:anna")).await;
    Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(seed)))
        .with_embedder(Arc::new(HashEmbedder))
}

async fn check(place: &Place) {
    let values = json!({"city": "Bern", "guests": [1, 2]});
    let memory = open(place, 1).await;
    for (role, text) in [("user", "A table in Bern."), ("assistant", "For how many?")] {
        let turn = MemoryEntry::of_message("", role, text, Timestamp::default());
        memory.conversation("s").append(turn).await.unwrap();
    }
    memory.task("t").update(values.as_object().unwrap().clone()).await.unwrap();
    let id = memory.long_term().store("Anna prefers tea.", Map::new()).await.unwrap();
    drop(memory);
    let memory = open(place, 2).await;
    let turns = memory.conversation("s").get_messages(None, 0).await.unwrap();
    let said: Vec<_> = turns.iter().map(|turn| (turn.role().unwrap(), turn.content.as_str())).collect();
    assert_eq!(said, [("user", "A table in Bern."), ("assistant", "For how many?")]);
    assert_eq!(json!(memory.task("t").to_map().await.unwrap()), values);
    let found = memory.long_term().query(&MemoryQuery::new("What does Anna prefer?")).await.unwrap();
    assert!(found[0].entry.id == id && found[0].vector.is_some(), "{found:?}");
    memory.conversation("s").clear().await.unwrap();
    memory.task("t").clear().await.unwrap();
    assert!(memory.long_term().delete(&id).await.unwrap());
    drop(memory);
    let memory = open(place, 3).await;
    assert_eq!(memory.conversation("s").get_messages(None, 0).await.unwrap(), []);
    assert_eq!(memory.task("t").to_map().await.unwrap(), Map::new());
    assert_eq!(memory.long_term().newest(9).await.unwrap(), []);
}

// spec: M-07
async fn conversation_task_and_long_term_memories_survive_a_restart_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check(&Place::sqlite(dir.path())).await;
}

// spec: M-07
async fn conversation_task_and_long_term_memories_survive_a_restart_in_postgres() {
    let place = Place::postgres("archon_test_layers").await;
    check(&place).await;
    place.drop().await;
}
