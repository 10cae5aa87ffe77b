//! Deduplicates and orders hits by trust level: an untrusted hit never hides or outranks a trusted hit of
//! similar relevance.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use archon_types::{Candidate, Collection, MemoryEntry, Timestamp, Trust};

use crate::{fact::line_of, rank::Ranked, words::normalized_words};

/// The minimum share of the best hit's relevance with which a hit counts as similarly relevant.
const NEARLY: f32 = 0.9;

/// Selects the hits of the answer: each text once, at or above the threshold, at most `limit` hits.
pub(super) fn chosen(
    hits: &[Ranked],
    candidates: &[Candidate],
    threshold: Option<f32>,
    limit: usize,
) -> Vec<Ranked> {
    let mut hits = hits.to_vec();
    most_trusted_of_each_key(&mut hits, candidates);
    let mut hits = most_trusted_of_each_text(&hits, candidates);
    // A fact that replaced an equal text may now rank before the fact of its key that counts.
    most_trusted_of_each_key(&mut hits, candidates);
    hits.retain(|hit| threshold.is_none_or(|least| hit.relevance >= least));
    trusted_first(&mut hits, candidates);
    hits.truncate(limit);
    hits
}

/// Reorders the facts of each key and collection; other hits keep their positions. The fact that counts gets
/// the first position and the greatest relevance of its group, so that no fact is returned without the fact
/// that contradicts it.
fn most_trusted_of_each_key(hits: &mut [Ranked], candidates: &[Candidate]) {
    let mut places: BTreeMap<(Collection, String), Vec<usize>> = BTreeMap::new();
    for (place, hit) in hits.iter().enumerate() {
        if let Some(line) = line_of(&candidates[hit.item].entry) {
            places.entry(line).or_default().push(place);
        }
    }
    for places in places.values().filter(|places| places.len() > 1) {
        let mut items: Vec<usize> = places.iter().map(|place| hits[*place].item).collect();
        items.sort_by_key(|item| Reverse(belief(&candidates[*item].entry)));
        let mut relevances: Vec<f32> = places.iter().map(|place| hits[*place].relevance).collect();
        relevances.sort_by(|a, b| b.total_cmp(a));
        for ((place, item), relevance) in places.iter().zip(items).zip(relevances) {
            (hits[*place].item, hits[*place].relevance) = (item, relevance);
        }
    }
}

/// Returns a value by which facts of one timeline are compared: the fact with the greatest value counts.
pub(super) fn belief(entry: &MemoryEntry) -> (Trust, Option<Timestamp>, u64) {
    (entry.trust, entry.valid_from, entry.position)
}

/// Keeps one of the hits with the same text, at the position of the first: the hit with the highest trust
/// level. Otherwise a copy on a web page could hide the provenance of the text.
fn most_trusted_of_each_text(hits: &[Ranked], candidates: &[Candidate]) -> Vec<Ranked> {
    let entry = |hit: &Ranked| &candidates[hit.item].entry;
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut distinct: Vec<Ranked> = Vec::new();
    for hit in hits {
        let place = *places.entry(normalized_words(&entry(hit).content)).or_insert(distinct.len());
        let Some(first) = distinct.get_mut(place) else {
            distinct.push(*hit);
            continue;
        };
        first.relevance = first.relevance.max(hit.relevance);
        if entry(hit).trust > entry(first).trust {
            first.item = hit.item;
        }
    }
    distinct
}

/// Among the hits that are nearly as relevant as the best, moves the untrusted hits behind the others. Less
/// relevant hits keep their positions.
fn trusted_first(hits: &mut [Ranked], candidates: &[Candidate]) {
    let best = hits.iter().map(|hit| hit.relevance).fold(0.0, f32::max);
    let places: Vec<usize> =
        (0..hits.len()).filter(|place| hits[*place].relevance >= best * NEARLY).collect();
    let mut near: Vec<Ranked> = places.iter().map(|place| hits[*place]).collect();
    near.sort_by_key(|hit| candidates[hit.item].entry.trust == Trust::Untrusted);
    for (place, hit) in places.into_iter().zip(near) {
        hits[place] = hit;
    }
}

#[cfg(test)]
mod tests {
    use Trust::{Model, Trusted, Untrusted};
    use archon_types::MemoryKind;

    use super::*;

    /// Checks the choice among hits in the order of their scores, each with text, trust level and relevance.
    /// A text that begins with `key=` is a fact of that key.
    fn check(hits: &[(&str, Trust, f32)], threshold: Option<f32>, limit: usize, expected: &[(&str, Trust)]) {
        let candidate = |(text, trust, _): &(&str, Trust, f32)| {
            let mut entry = MemoryEntry::new("", *text, Timestamp::default());
            entry.trust = *trust;
            if let Some((key, text)) = text.split_once('=') {
                (entry.kind, entry.key) = (MemoryKind::Fact, Some(key.to_owned()));
                entry.content = text.to_owned();
            }
            Candidate::new(entry, None, None)
        };
        let candidates: Vec<Candidate> = hits.iter().map(candidate).collect();
        let ranked = |(item, (.., relevance)): (usize, &(&str, Trust, f32))| {
            #[allow(clippy::cast_precision_loss, reason = "a few")]
            let score = 1.0 - item as f32 / 100.0;
            Ranked { item, score, relevance: *relevance }
        };
        let ranked: Vec<Ranked> = hits.iter().enumerate().map(ranked).collect();
        let hits_chosen = chosen(&ranked, &candidates, threshold, limit);
        let entries = hits_chosen.iter().map(|hit| &candidates[hit.item].entry);
        let chosen: Vec<(&str, Trust)> = entries.map(|entry| (entry.content.as_str(), entry.trust)).collect();
        assert_eq!(chosen, expected, "{hits:?}");
    }

    // spec: M-25
    #[test]
    fn belief_orders_untrusted_hits_after_equally_relevant_trusted_ones() {
        let between = [("x", Trusted, 0.3), ("page", Untrusted, 1.0), ("note", Model, 0.9)];
        check(&between, None, 9, &[("x", Trusted), ("note", Model), ("page", Untrusted)]);
        let between = [("page", Untrusted, 1.0), ("x", Trusted, 0.3), ("note", Trusted, 1.0)];
        check(&between, None, 1, &[("note", Trusted)]);
        let clearly_better = [("page", Untrusted, 1.0), ("note", Trusted, 0.89)];
        check(&clearly_better, None, 9, &[("page", Untrusted), ("note", Trusted)]);
    }

    // spec: M-25
    #[test]
    fn belief_many_copies_of_a_page_do_not_hide_a_note() {
        let page = ("page", Untrusted, 1.0);
        let hits = [page, page, page, page, page, page, ("note", Trusted, 1.0)];
        check(&hits, None, 3, &[("note", Trusted), ("page", Untrusted)]);
        let pages = ["1", "2", "3", "4", "5", "6", "7"].map(|page| (page, Untrusted, 1.0));
        let hits = [&pages[..], &[("note", Trusted, 1.0)]].concat();
        check(&hits, None, 2, &[("note", Trusted), ("1", Untrusted)]);
    }

    // spec: M-11, M-25
    #[test]
    fn belief_keeps_the_most_trusted_copy_of_a_text() {
        let hits =
            [("Tea!", Untrusted, 0.8), ("other", Model, 0.8), ("tea", Model, 0.8), ("Tea", Trusted, 0.8)];
        check(&hits, None, 9, &[("Tea", Trusted), ("other", Model)]);
        check(&[("tea", Model, 0.8), ("Tea", Model, 0.8)], None, 9, &[("tea", Model)]);
        // The more trusted copy may have no vector, and therefore a lower relevance.
        check(&[("tea", Trusted, 0.1), ("Tea", Untrusted, 0.8)], Some(0.7), 9, &[("tea", Trusted)]);
    }

    // spec: M-25
    #[test]
    fn belief_orders_a_fact_after_the_valid_one_of_its_key() {
        let chosen = [("Bern", Trusted), ("Basel", Model)];
        // It replaces a page with the same text.
        let hits = [("Basel", Untrusted, 1.0), ("k=Bern", Trusted, 0.2), ("k=Basel", Model, 0.9)];
        check(&hits, None, 9, &chosen);
        check(&hits, Some(0.7), 9, &chosen);
        // It is as relevant as the best, but the fact that counts is not.
        let hits = [("page", Untrusted, 1.0), ("k=Bern", Trusted, 0.3), ("k=Basel", Model, 1.0)];
        check(&hits, None, 9, &[chosen[0], ("page", Untrusted), chosen[1]]);
        check(&hits, Some(0.7), 1, &chosen[..1]);
    }

    // spec: M-25
    #[test]
    fn belief_keeps_the_order_of_equally_trusted_hits() {
        for trust in [Untrusted, Model, Trusted] {
            let hits = [("a", trust, 0.4), ("b", trust, 1.0), ("a!", trust, 0.3), ("c", trust, 0.95)];
            check(&hits, None, 9, &[("a", trust), ("b", trust), ("c", trust)]);
            check(&hits, None, 2, &[("a", trust), ("b", trust)]);
        }
    }
}
