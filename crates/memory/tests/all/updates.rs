//! Moves and ends of facts in natural sentences among other turns, and the prompts after them.

use std::{fmt::Write as _, time::Duration};

use archon_memory::{Knowledge, Memory, RuleExtractor};
use archon_testkit::VirtualClock;
use archon_types::{Clock as _, MemoryKind, TokenEstimate};

use crate::{
    moves::{HOME, HOME_QUESTION, QUESTIONS, RETRACTIONS, sentences_of, tells, tells_end_of_home},
    support::{entry, memory},
};

/// Stores a turn of the person a day later, and reads its facts, as an agent does.
async fn say(memory: &Memory, clock: &VirtualClock, text: &str) {
    clock.advance(Duration::from_secs(86_400));
    let mut turn = entry("user", text);
    (turn.kind, turn.timestamp, turn.id) = (MemoryKind::Turn, clock.now(), text.to_owned());
    let turn = Knowledge::mark_unread(turn, &RuleExtractor);
    memory.keep(vec![turn.clone()]).await.unwrap();
    memory.knowledge().read(&RuleExtractor, "user", &turn).await.unwrap();
}

async fn recalled_text(memory: &Memory, question: &str) -> String {
    memory.recall().context(question, 3_333, &TokenEstimate).await.long_term
}

// spec: M-25
#[tokio::test]
async fn recall_after_three_moves_in_natural_sentences_tells_the_newest_home() {
    let (mut newest, mut asked, mut missed) = (0, 0, String::new());
    for person in 0..20 {
        let (memory, clock) = memory(&format!("user:{person}"));
        let (said, homes) = sentences_of(person);
        for text in &said {
            say(&memory, &clock, text).await;
        }
        for question in QUESTIONS {
            let told = recalled_text(&memory, question).await;
            asked += 1;
            match tells(&told, &homes[2..]) {
                true => newest += 1,
                false => writeln!(missed, "{person}: {question} {homes:?} {}", told.len()).unwrap(),
            }
        }
    }
    assert!(newest * 10 >= asked * 7, "the newest is told for {newest} of {asked}:\n{missed}");
}

// spec: M-25
#[tokio::test]
async fn fact_retracted_in_any_of_seven_wordings_holds_no_longer() {
    for text in RETRACTIONS {
        let (memory, clock) = memory("user:anna");
        say(&memory, &clock, HOME).await;
        say(&memory, &clock, text).await;
        let homes = memory.knowledge().current("user", "lives in").await.unwrap();
        assert!(homes.iter().all(|home| home.object != "Bern"), "{text}: {homes:?}");
        let told = recalled_text(&memory, HOME_QUESTION).await;
        assert!(tells_end_of_home(&told), "{text}: {told}");
    }
}
