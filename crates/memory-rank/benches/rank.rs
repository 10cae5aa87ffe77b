//! `cargo bench -p archon-memory-rank`: what it costs to order the candidates of one question.
#![allow(clippy::print_stdout, reason = "a bench talks to its terminal")]

use std::{hint::black_box, time::Instant};

use archon_memory_rank::{Item, Ranker};

/// Words of a turn, on average, in conversations between people.
const WORDS: usize = 25;

fn main() {
    let ranker = Ranker::default();
    for count in [100, 200, 1000] {
        let texts: Vec<String> = (0..count).map(text).collect();
        let sessions: Vec<String> = (0..count / 20 + 1).map(|session| format!("session {session}")).collect();
        let items: Vec<Item<'_>> =
            texts.iter().enumerate().map(|(at, text)| item(at, text, &sessions)).collect();
        let mut times: Vec<_> = (0..200)
            .map(|seed| {
                let started = Instant::now();
                let question = ranker.question(&text(seed * 7919)).with_speakers(["Anna"]);
                black_box(ranker.rank(&question, &items));
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{count} candidates of {WORDS} words: median {:?}, 95 % {:?}", times[100], times[190]);
    }
}

fn item<'a>(at: usize, text: &'a str, sessions: &'a [String]) -> Item<'a> {
    let mut item = Item::default();
    (item.text, item.place, item.session) = (text, at as u64, Some(sessions[at / 20].as_str()));
    item.cosine = Some((at % 97) as f32 / 97.0);
    item
}

/// A text of words that are as frequent as words are: the n-th word n times as seldom as the first.
fn text(seed: usize) -> String {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 40) as f64 / f64::from(1 << 24);
        format!("word{}ing", 20_000f64.powf(unit) as u32)
    };
    (0..WORDS).map(|_| word()).collect::<Vec<_>>().join(" ")
}
