//! The index: finds the tools that fit a query, by their names and by BM25.

use std::collections::HashMap;

use archon_types::ToolSpec;

use crate::{document, exact::Names, terms::Terms};

/// BM25's parameter k1, which limits the effect of repeated words.
const K1: f32 = 1.2;
/// BM25's parameter b, from 0 to 1: the effect of a definition's length.
const B: f32 = 0.75;

/// Finds tools by their names, and by the words of their definitions.
///
/// The score is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009)
/// over the name and the groups, which count three times, the description, and the names, descriptions and allowed
/// values of the parameters. `cargo xtask eval tools` measures it.
///
/// ```
/// use archon_tool_search::ToolIndex;
/// use archon_types::ToolSpec;
/// use serde_json::json;
///
/// let object = || json!({ "type": "object" });
/// let tools = [
///     ToolSpec::new("files__read", "Reads a file.", object()),
///     ToolSpec::new("github__create_issue", "Opens a new issue in a repository.", object()),
/// ];
/// let index = ToolIndex::new(&tools);
/// assert_eq!(index.search("report a bug as an issue", 5), [1]);
/// assert_eq!(index.search("read", 5), [0]);
/// ```
pub struct ToolIndex {
    terms: Terms,
    names: Names,
    /// For each term, the positions of the tools whose texts contain the term, with the score that the term
    /// gives each tool.
    postings: HashMap<String, Vec<(usize, f32)>>,
    tools: usize,
}

impl ToolIndex {
    /// Indexes tools. The results of a search are positions in `tools`.
    pub fn new<'s>(tools: impl IntoIterator<Item = &'s ToolSpec>) -> Self {
        let terms = Terms::default();
        let mut names = Vec::new();
        let mut postings: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
        let mut lengths: Vec<f32> = Vec::new();
        for (place, spec) in tools.into_iter().enumerate() {
            names.push(spec.name.as_str());
            let mut length = 0.0;
            document::texts(spec, &mut |text, weight| {
                terms.each(text, |term| {
                    length += weight;
                    count(&mut postings, term, place, weight);
                });
            });
            lengths.push(length);
        }
        score(&mut postings, &lengths);
        Self { terms, names: Names::new(names.iter().copied()), postings, tools: lengths.len() }
    }

    /// Returns the positions of the tools that fit, best first, at most `limit`: tools that the query
    /// names, then tools that share words with it. Of tools with equal scores, the one with the lower
    /// position comes first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let Ranking { named: mut found, by_words } = self.ranking(query);
        found.extend(by_words);
        found.truncate(limit);
        found
    }

    /// Returns the positions of all tools that fit.
    pub(crate) fn ranking(&self, query: &str) -> Ranking {
        let named = self.names.named(query);
        let mut scored: Vec<(usize, f32)> = self.scores(query).into_iter().enumerate().collect();
        scored.retain(|(place, score)| *score > 0.0 && !named.contains(place));
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ranking { named, by_words: scored.into_iter().map(|(place, _)| place).collect() }
    }

    /// Returns the score of each tool.
    fn scores(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.tools];
        self.terms.each(query, |term| {
            for (place, score) in self.postings.get(term).map_or(&[][..], Vec::as_slice) {
                scores[*place] += score;
            }
        });
        scores
    }
}

archon_types::debug_fields!(ToolIndex: tools);

/// The positions of the tools that fit a query.
pub(crate) struct Ranking {
    /// Tools that the query names.
    pub(crate) named: Vec<usize>,
    /// The other tools that share words with the query, best first.
    pub(crate) by_words: Vec<usize>,
}

/// Adds `weight` to the count of a term in the texts of the tool at the position `place`. Tools must be added in the
/// order of their positions.
fn count(postings: &mut HashMap<String, Vec<(usize, f32)>>, term: &str, place: usize, weight: f32) {
    let Some(tools) = postings.get_mut(term) else {
        postings.insert(term.to_owned(), vec![(place, weight)]);
        return;
    };
    match tools.last_mut() {
        Some((last, times)) if *last == place => *times += weight,
        _ => tools.push((place, weight)),
    }
}

/// Replaces the weighted count of each term in each tool by the BM25 score.
fn score(postings: &mut HashMap<String, Vec<(usize, f32)>>, lengths: &[f32]) {
    let all = lengths.len() as f32;
    let mean = lengths.iter().sum::<f32>() / all.max(1.0);
    for tools in postings.values_mut() {
        let with = tools.len() as f32;
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (place, times) in tools {
            let length = 1.0 - B + B * lengths[*place] / mean;
            *times = rarity * *times * (K1 + 1.0) / (*times + K1 * length);
        }
    }
}
