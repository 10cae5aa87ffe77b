//! Tests the effect of each part of the formula, and properties of every ranking.

use archon_memory_rank::{Analyzer, Item, RankQuestion, Ranker};
use archon_types::Timestamp;
use proptest::prelude::*;

const DAY: u64 = 86_400_000;

fn turn<'a>(place: u64, speaker: &'a str, text: &'a str) -> Item<'a> {
    let mut item = Item::default();
    (item.text, item.speaker, item.session, item.place) = (text, Some(speaker), Some("s1"), place);
    item
}

fn order(question: &RankQuestion, items: &[Item<'_>]) -> Vec<usize> {
    Ranker::default().rank(question, items).iter().map(|hit| hit.item).collect()
}

fn ask(text: &str) -> RankQuestion {
    Ranker::default().question(text)
}

/// Returns items with positions far apart, so that no item is another's neighbour.
fn apart<'a>(texts: &[&'a str]) -> Vec<Item<'a>> {
    texts.iter().zip(0..).map(|(text, at)| turn(at * 10, "", text)).collect()
}

// spec: M-16
#[test]
fn rank_finds_an_answer_by_the_question_before_it() {
    let mut items = [
        turn(9, "Mel", "We had soup."),
        turn(2, "Mel", "Which instrument did you pick up?"),
        turn(3, "Caro", "The violin, since March."),
    ];
    assert_eq!(order(&ask("Which instrument does she play?"), &items), [1, 2, 0]);
    // In another session it is no neighbour.
    items[2].session = Some("s2");
    assert_eq!(order(&ask("Which instrument does she play?"), &items), [1, 0, 2]);
}

// spec: M-16
#[test]
fn rank_combines_vector_and_word_matches() {
    // Equals keep their order, so the one that only its meaning finds is last.
    let mut items = apart(&["We had soup", "The port is 8443", "Nice day", "I adore felines"]);
    for (item, cosine) in items.iter_mut().zip([0.1, 0.2, 0.15, 0.6]) {
        item.cosine = Some(cosine);
    }
    assert_eq!(order(&ask("does he like cats?"), &items)[0], 3);
    assert_eq!(order(&ask("which port?"), &items)[0], 1);
}

// spec: M-18
#[test]
fn rank_of_an_item_without_a_vector_uses_its_words() {
    let mut items = apart(&["The port is 8443", "We had soup", "Nice day"]);
    (items[1].cosine, items[2].cosine) = (Some(0.2), Some(f32::NAN));
    assert_eq!(order(&ask("which port?"), &items)[0], 0);
}

#[test]
fn a_named_time_and_a_named_speaker_decide_between_equals() {
    let mut items = apart(&["We went camping", "We went camping"]);
    items[1].at = Timestamp::from_millis(20_000 * DAY);
    assert_eq!(order(&ask("Who went camping in 2024?"), &items), [1, 0]);
    let mut items = apart(&["I went camping", "I went camping"]);
    (items[0].speaker, items[1].speaker) = (Some("Jon"), Some("Gina"));
    assert_eq!(order(&ask("When did Gina camp?"), &items), [1, 0]);
}

// spec: M-12, M-16, M-21
#[test]
fn the_younger_of_equals_comes_first() {
    let mut items = apart(&["The port is 8443", "The port is 8080"]);
    (items[0].at, items[1].at) = (Timestamp::from_millis(DAY), Timestamp::from_millis(90 * DAY));
    let asked = ask("which port?");
    assert_eq!(order(&asked, &items), [0, 1]);
    assert_eq!(order(&asked.with_now(Timestamp::from_millis(100 * DAY)), &items), [1, 0]);
}

#[test]
fn rank_for_the_first_or_the_latest_follows_time() {
    let mut items =
        apart(&["I tried the Thai place", "I tried the Greek place", "I tried the Turkish place"]);
    for (item, day) in items.iter_mut().zip([20, 10, 30]) {
        item.at = Timestamp::from_millis(day * DAY);
    }
    assert_eq!(order(&ask("What was the first place I tried?"), &items), [1, 0, 2]);
    assert_eq!(order(&ask("What is the latest place I tried?"), &items), [2, 0, 1]);
}

#[test]
fn rank_prefers_a_person_to_an_assistant() {
    let mut items = apart(&["The venue costs 900 dollars", "The venue costs 900 dollars"]);
    (items[0].speaker, items[1].speaker) = (Some("assistant"), Some("user"));
    assert_eq!(order(&ask("What does the venue cost?"), &items), [1, 0]);
    // An answer gains nothing from the turn before it.
    let mut items = [turn(1, "user", "Which venue?"), turn(2, "assistant", "Nice"), turn(9, "user", "Nice")];
    assert_eq!(order(&ask("which venue?"), &items), [0, 2, 1]);
    items[1].speaker = Some("user");
    assert_eq!(order(&ask("which venue?"), &items), [0, 1, 2]);
}

// spec: M-12
#[test]
fn rank_context_breaks_ties() {
    let items = apart(&["The tests of shipping run nightly", "The tests of billing run hourly"]);
    let asked = ask("when do the tests run?");
    assert_eq!(order(&asked, &items), [0, 1]);
    assert_eq!(order(&asked.with_context(&Analyzer::default(), ["billing"]), &items), [1, 0]);
}

// spec: M-15
#[test]
fn relevance_is_low_where_words_are_absent_and_vectors_far() {
    let relevance = |question: &str, cosine: Option<f32>| {
        let mut items = apart(&["The port is 8443", "We had soup"]);
        items[0].cosine = cosine;
        let ranking = Ranker::default().rank(&ask(question), &items);
        ranking.iter().find(|hit| hit.item == 0).unwrap().relevance
    };
    assert!(relevance("which port?", None) > 0.6);
    assert!(relevance("which port has the ferry to Iona at noon on Sunday?", None) < 0.36);
    assert_eq!(relevance("who?", Some(0.5)), 0.5);
    assert_eq!(relevance("who?", Some(1.5)), 1.0);
    assert_eq!(relevance("who?", Some(f32::NAN)), 0.0);
}

#[test]
fn rank_of_no_items_or_an_empty_question() {
    assert_eq!(order(&ask("anything?"), &[]), [0; 0]);
    assert_eq!(order(&ask(""), &apart(&["a fox", "an owl"])), [0, 1]);
}

proptest! {
    #[test]
    fn rank_of_any_input_has_each_item_once_with_finite_scores(
        raw in prop::collection::vec((".{0,40}", 0u64..12, 0u8..4, prop::option::of(any::<f32>()), any::<u64>()), 0..30),
        question in ".{0,60}",
        now in any::<u64>(),
    ) {
        let names = ["a", "b", "c"];
        let items: Vec<Item<'_>> = raw.iter().map(|(text, place, session, cosine, at)| {
            let mut item = turn(*place, "", text);
            item.session = names.get(usize::from(*session)).copied();
            (item.cosine, item.at) = (*cosine, Timestamp::from_millis(*at));
            item
        }).collect();
        let asked = ask(&question).with_now(Timestamp::from_millis(now));
        let ranking = Ranker::default().rank(&asked, &items);
        let mut seen: Vec<usize> = ranking.iter().map(|hit| hit.item).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..items.len()).collect::<Vec<_>>());
        for hit in &ranking {
            prop_assert!(hit.score.is_finite() && (0.0..=1.0).contains(&hit.relevance), "{hit:?}");
        }
        prop_assert!(ranking.is_sorted_by(|a, b| a.score >= b.score));
    }

    /// A store returns its candidates in any order.
    #[test]
    fn the_order_in_which_candidates_come_does_not_matter(turn_of in Just((0..8u64).collect::<Vec<_>>()).prop_shuffle()) {
        let texts = ["I paint", "What do you paint?", "A lake at sunrise", "Nice", "We had soup and tea", "The dog", "Lake trip", "Sunrise!"];
        let items: Vec<Item<'_>> = turn_of.iter().map(|place| turn(*place, "A", texts[*place as usize])).collect();
        let ranking = Ranker::default().rank(&ask("Who painted the lake at sunrise?"), &items);
        let places: Vec<u64> = ranking.iter().map(|hit| items[hit.item].place).collect();
        let straight: Vec<Item<'_>> = (0..8).map(|place| turn(place, "A", texts[place as usize])).collect();
        let expected: Vec<u64> = order(&ask("Who painted the lake at sunrise?"), &straight).iter().map(|item| *item as u64).collect();
        prop_assert_eq!(places, expected);
    }
}
