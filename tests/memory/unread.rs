//! The next process extracts facts from a person's messages that a killed process had stored and not read.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::Arc,
};

use archon::{
    AgentMemory, Archon, SystemClock,
    memory::{Memory, RuleExtractor},
    types::{MemoryFilter, MemoryKind},
};
use archon_testkit::{Ended, FnProvider, SeededIds, Trial, all_entries, trial};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(unread_entries_of_a_killed_process_are_extracted_by_the_next),
    trial!(unread_entries_of_a_killed_process_are_extracted_by_the_next_in_postgres).needs(&POSTGRES),
];

async fn facts(memory: &Memory) -> Vec<String> {
    let facts = all_entries(&**memory.store(), MemoryFilter::all().of(&[MemoryKind::Fact])).await;
    facts.into_iter().map(|fact| fact.content).collect()
}

/// Runs the program until it reads its `stuck`th text, kills it there, and says what it was told.
fn killed_while_reading(place: &Place, stuck: usize) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_killable_memory"))
        .arg(place.argument())
        .args(["learn", &stuck.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let said = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let end = format!("reading {stuck}");
    let said: Vec<String> = said.take_while(|line| *line != end).collect();
    child.kill().expect("it waits to be killed");
    child.wait().expect("it ended");
    said
}

async fn learnt_after_a_kill(place: &Place) {
    for stuck in [0, 2] {
        let said = killed_while_reading(place, stuck);
        let done = said.iter().filter(|line| line.starts_with("learnt ")).count();
        assert_eq!(done, stuck, "{said:?}");
    }
    let store = place.open(&of("user:victim")).await;
    let memory = Memory::new(store, Arc::new(SystemClock), Arc::new(SeededIds::new(6)));
    let mut before = facts(&memory).await;
    before.sort();
    assert_eq!(before, ["user likes thing0 of round 2", "user likes thing1 of round 2"]);
    let parts = AgentMemory::new(memory.clone()).with_extractor(Arc::new(RuleExtractor));
    let model = FnProvider::new(|_, _| FnProvider::text("Noted."));
    let agent = Archon::builder().provider(Arc::new(model), "m").memory(parts).build().unwrap();
    agent.run("Hello.").await.ended();
    let mut after = facts(&memory).await;
    after.sort();
    let expected = ["thing0 of round 0", "thing0 of round 2", "thing1 of round 2", "thing2 of round 2"];
    assert_eq!(after, expected.map(|thing| format!("user likes {thing}")));
    assert!(memory.knowledge().unread(&RuleExtractor, None, 9).await.unwrap().entries.is_empty());
}

// spec: M-23, M-25
async fn unread_entries_of_a_killed_process_are_extracted_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    learnt_after_a_kill(&Place::sqlite(dir.path())).await;
}

// spec: M-23, M-25
async fn unread_entries_of_a_killed_process_are_extracted_by_the_next_in_postgres() {
    let place = Place::postgres("archon_test_lessons").await;
    learnt_after_a_kill(&place).await;
    place.drop().await;
}
