//! Tests the effect of each part of the formula, and properties of every ranking.

use archon_types::Timestamp;
use proptest::prelude::*;

use super::*;

const DAY: u64 = 86_400_000;

fn turn<'a>(place: u64, speaker: &'a str, text: &'a str) -> Item<'a> {
    Item { text, speaker: Some(speaker), session: Some("s1"), place, ..Item::default() }
}

fn order(question: &RankQuestion, items: &[Item<'_>]) -> Vec<usize> {
    Ranker::default().rank(question, items).hits.iter().map(|hit| hit.item).collect()
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
    let items = [
        turn(1, "Mel", "The weather is fine today."),
        turn(2, "Mel", "Which instrument did you pick up?"),
        turn(3, "Caro", "The violin, since March."),
        turn(9, "Mel", "We had soup."),
    ];
    assert_eq!(order(&ask("Which instrument does she play?"), &items)[..2], [1, 2]);
    // In another session it is no neighbour.
    let mut items = items;
    items[2].session = Some("s2");
    assert_ne!(order(&ask("Which instrument does she play?"), &items)[1], 2);
}

// spec: M-16
#[test]
fn rank_combines_vector_and_word_matches() {
    // Equals keep their order, so the one that only its meaning finds is last.
    let mut items = apart(&["We had soup", "The port is 8443", "Nice day", "I adore felines"]);
    for (item, cosine) in items.iter_mut().zip([0.1, 0.2, 0.15, 0.7]) {
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
fn the_younger_and_the_more_important_of_equals_comes_first() {
    let mut items = apart(&["The port is 8443", "The port is 8080"]);
    (items[0].at, items[1].at) = (Timestamp::from_millis(DAY), Timestamp::from_millis(90 * DAY));
    let asked = ask("which port?");
    assert_eq!(order(&asked, &items), [0, 1]);
    assert_eq!(order(&asked.clone().with_now(Timestamp::from_millis(100 * DAY)), &items), [1, 0]);
    let mut items = apart(&["The port is 8443", "The port is 8080"]);
    items[1].importance = Some(0.9);
    assert_eq!(order(&asked, &items), [1, 0]);
}

// spec: M-12
#[test]
fn rank_context_breaks_ties() {
    let items = apart(&["The tests of shipping run nightly", "The tests of billing run hourly"]);
    let asked = ask("when do the tests run?");
    assert_eq!(order(&asked, &items), [0, 1]);
    assert_eq!(order(&asked.with_context(&Analyzer::default(), ["billing"]), &items), [1, 0]);
}

#[test]
fn rank_prefers_statements_to_questions() {
    let items = apart(&["Did you paint the sunrise?", "I did paint the sunrise"]);
    assert_eq!(order(&ask("Who painted the sunrise?"), &items), [1, 0]);
}

#[test]
fn rank_boosts_items_of_a_relevant_session() {
    let mut items = apart(&["cello", "cello", "concert with orchestra", "strings and bow"]);
    (items[0].session, items[1].session) = (Some("a"), Some("b"));
    (items[2].session, items[3].session) = (Some("b"), Some("b"));
    let asked = ask("cello concert orchestra strings bow");
    let ranking = Ranker::default().rank(&asked, &items);
    let score = |item| ranking.hits.iter().find(|hit| hit.item == item).unwrap().score;
    assert!(score(1) > score(0) + 0.01);
    assert_eq!(ranking.sessions(&items), ["b", "a"]);
}

// spec: M-11
#[test]
fn ranking_distinct_drops_repeated_texts() {
    let items = apart(&["The port is 8443", "the port is 8443!", "The port is not 8443", "The port is 8444"]);
    let ranking = Ranker::default().rank(&ask("which port?"), &items);
    let kept: Vec<_> = ranking.distinct(&items, 9).iter().map(|hit| hit.item).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept.contains(&2) && kept.contains(&3), "{kept:?}");
    assert_eq!(ranking.distinct(&items, 1).len(), 1);
}

// spec: M-15
#[test]
fn relevance_means_the_same_for_each_question() {
    let calibration = Calibration::of("all-minilm-l6-v2");
    assert_eq!(calibration.relevance(0.0, None), 0.0);
    assert!((calibration.relevance(0.0, Some(calibration.relevant)) - 0.7).abs() < 1e-6);
    assert_eq!(calibration.relevance(0.9, None), calibration.relevance(0.9, Some(-1.0)));
    assert_eq!(calibration.relevance(0.0, Some(1.0)), 1.0);
    assert_eq!(calibration.relevance(0.0, Some(f32::NAN)), 0.0);
}

/// An embedder whose vectors of unrelated texts are near to each other, as with some embedders of services.
struct Near;

impl archon_types::Embedder for Near {
    fn id(&self) -> &str {
        "near"
    }

    fn dimensions(&self) -> usize {
        11
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> archon_types::BoxFuture<'a, Result<Vec<Vec<f32>>, archon_types::MemoryError>> {
        // What all share, and a little of its own: a cosine of 4 / 5 between any two.
        let vector =
            |place: usize| (0..11).map(|n| f32::from(u8::from(n == place) + 2 * u8::from(n == 10))).collect();
        Box::pin(std::future::ready(Ok((0..texts.len()).map(vector).collect())))
    }
}

// spec: M-15
#[tokio::test]
async fn calibration_measured_maps_unrelated_similarity_to_zero() {
    let texts: Vec<String> = (0..10).map(|n| format!("text {n}")).collect();
    let calibration = Calibration::measured(&Near, &texts).await.unwrap();
    assert!((calibration.floor - 0.8).abs() < 1e-6, "{calibration:?}");
    assert!(calibration.relevance(0.0, Some(0.8)) < 0.01);
    assert!(
        Calibration::default().relevance(0.0, Some(0.8)) > 0.7,
        "taken for MiniLM, all would be relevant"
    );
    assert!(calibration.relevance(0.0, Some(0.9)) > 0.7);
    assert!(Calibration::measured(&Near, &texts[..1]).await.is_err());
    let same = vec!["the same".to_owned(); 2];
    let alike = Calibration::measured(&crate::HashEmbedder, &same).await.unwrap();
    assert!(alike.floor < alike.relevant && alike.relevant < 1.0, "{alike:?}");
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
        let items: Vec<Item<'_>> = raw.iter().map(|(text, place, session, cosine, at)| Item {
            text,
            place: *place,
            session: names.get(usize::from(*session)).copied(),
            cosine: *cosine,
            at: Timestamp::from_millis(*at),
            ..Item::default()
        }).collect();
        let asked = ask(&question).with_now(Timestamp::from_millis(now));
        let ranking = Ranker::default().rank(&asked, &items);
        let mut seen: Vec<usize> = ranking.hits.iter().map(|hit| hit.item).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..items.len()).collect::<Vec<_>>());
        for hit in &ranking.hits {
            prop_assert!(hit.score.is_finite() && (0.0..=1.0).contains(&hit.relevance), "{hit:?}");
        }
        prop_assert!(ranking.hits.is_sorted_by(|a, b| a.score >= b.score));
    }

    /// A store returns its candidates in any order.
    #[test]
    fn the_order_in_which_candidates_come_does_not_matter(turn_of in Just((0..8u64).collect::<Vec<_>>()).prop_shuffle()) {
        let texts = ["I paint", "What do you paint?", "A lake at sunrise", "Nice", "We had soup and tea", "The dog", "Lake trip", "Sunrise!"];
        let items: Vec<Item<'_>> = turn_of.iter().map(|place| turn(*place, "A", texts[*place as usize])).collect();
        let ranking = Ranker::default().rank(&ask("Who painted the lake at sunrise?"), &items);
        let places: Vec<u64> = ranking.hits.iter().map(|hit| items[hit.item].place).collect();
        let straight: Vec<Item<'_>> = (0..8).map(|place| turn(place, "A", texts[place as usize])).collect();
        let expected: Vec<u64> = order(&ask("Who painted the lake at sunrise?"), &straight).iter().map(|item| *item as u64).collect();
        prop_assert_eq!(places, expected);
    }
}
