//! Kills while memories are written, embedded again and tidied: what was said to be kept is there and whole, and of
//! what was on its way all or nothing.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use archon::{
    memory::HashEmbedder,
    types::{Listing, MemoryFilter, MemoryOrder, MemorySearch, MemoryStore},
};
use archon_testkit::{Chance, Trial, cases, first_seed, trial};

use crate::memory::{
    collections::of,
    places::{POSTGRES, Place},
};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(a_kill_leaves_no_half_entry_and_loses_none),
    trial!(a_kill_leaves_no_half_entry_and_loses_none_in_postgres).needs(&POSTGRES),
];

/// Runs the program, kills it after `lines` lines, and returns all that it said.
fn killed_after(place: &Place, mode: &str, round: u64, lines: usize) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_killable_memory"))
        .arg(place.argument())
        .args([mode, &round.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut done: Vec<String> = said.by_ref().take(lines).map(|line| line.expect("text")).collect();
    child.kill().expect("it can be killed, or has ended");
    // What it said before the signal came counts too.
    done.extend(said.map_while(Result::ok));
    let status = child.wait().expect("it ended");
    assert!(status.success() || status.signal().is_some(), "it failed by itself: {status}");
    done
}

// spec: M-18, M-20
async fn a_kill_leaves_no_half_entry_and_loses_none() {
    let dir = tempfile::tempdir().expect("a directory");
    kill_and_check(&Place::sqlite(dir.path()), &["ingest", "embed", "compact"]).await;
}

// spec: M-18, M-20
async fn a_kill_leaves_no_half_entry_and_loses_none_in_postgres() {
    let place = Place::postgres("archon_test_kill").await;
    // It tidies itself.
    kill_and_check(&place, &["ingest", "embed"]).await;
    place.drop().await;
}

async fn kill_and_check(place: &Place, modes: &[&str]) {
    let kills = usize::try_from(cases(9, 200)).expect("few");
    // Batches that were said to be kept.
    let mut promised: Vec<String> = Vec::new();
    let mut chance = Chance(first_seed());
    for round in 0..kills {
        let lines = usize::try_from(chance.below(12)).expect("few");
        let mode = modes[round % modes.len()];
        let done = killed_after(place, mode, round as u64, lines);
        if mode == "ingest" {
            promised.extend(done);
        }
        let store = place.open(&of("user:victim")).await;
        check(&*store, &promised, &format!("round {round}, {mode}, killed after {lines} lines")).await;
    }
    assert!(!promised.is_empty());
}

async fn check(store: &dyn MemoryStore, promised: &[String], when: &str) {
    let listing = Listing::new(MemoryFilter::all(), MemoryOrder::First, usize::MAX >> 1);
    let page = store.list(&listing).await.expect("the store can be read");
    assert_eq!(page.damaged, [], "{when}");
    let mut batches: BTreeMap<String, usize> = BTreeMap::new();
    for entry in &page.entries {
        assert_eq!(entry.content, format!("content of {} in full", entry.id.replace('-', "x")), "{when}");
        // A vector is of the text and of the embedder that is named with it; and there is always one.
        let embedder = entry.embedder.as_deref().expect("embedded");
        let expected = match embedder.strip_prefix("round:") {
            Some(round) => HashEmbedder::vector(&format!("{} round {round}", entry.content)),
            None => HashEmbedder::vector(&entry.content),
        };
        assert_eq!(entry.embedding.as_ref(), Some(&expected), "{when}: {} by {embedder}", entry.id);
        let (batch, _) = entry.id.rsplit_once("-p").expect("three parts");
        *batches.entry(batch.to_owned()).or_default() += 1;
    }
    assert!(batches.values().all(|parts| *parts == 3), "{when}: half a batch: {batches:?}");
    for batch in promised {
        assert!(batches.contains_key(batch), "{when}: {batch} is lost");
    }
    // The indexes agree with the entries: the last batch and one more, by their words and by their vectors.
    for entry in page.entries.iter().rev().step_by(37).take(4) {
        let embedder = entry.embedder.clone().expect("embedded");
        let word = entry.id.replace('-', "x");
        let search = MemorySearch::words(word, 3).near(embedder, entry.embedding.clone().expect("embedded"));
        let found = store.candidates(&search).await.expect("found").candidates;
        let hit = found.iter().find(|hit| hit.entry.id == entry.id);
        let hit = hit.unwrap_or_else(|| panic!("{when}: {} is not found", entry.id));
        assert!(hit.lexical.is_some() && hit.vector.is_some_and(|cosine| cosine > 0.999), "{when}: {hit:?}");
    }
}
