//! Finds tools by meaning: vectors of an embedder rank the tools that share words with a query, and find others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{Embedder, MemoryError, ToolSpec};

use crate::{ToolIndex, index::Ranking};

/// Maximum number of tools whose vectors a query is compared with: the best ones by words, then others in the order
/// of their positions. It bounds the time of a search, since an embedder in this process needs tens of milliseconds
/// for each definition without a vector.
const CANDIDATES: usize = 50;
/// Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): score = Σ 1 / (FUSION + rank).
const FUSION: f32 = 60.0;
/// Minimum cosine similarity of a tool that shares no word with the query.
const CLOSE: f32 = 0.35;
/// Maximum number of bytes of a description that are embedded.
const DESCRIPTION: usize = 512;

/// An embedder, with the vectors of the definitions that it has embedded.
///
/// A query is compared with the vectors of at most 50 tools: the best ones by words, and if fewer share words with
/// the query, others in the order of their positions.
///
/// ```
/// # async fn example(embedder: std::sync::Arc<dyn archon_types::Embedder>) {
/// use archon_tool_search::{ToolIndex, ToolVectors};
/// use archon_types::ToolSpec;
/// use serde_json::json;
///
/// let tools = [ToolSpec::new("weather__forecast", "Forecast for a town.", json!({ "type": "object" }))];
/// let (index, vectors) = (ToolIndex::new(&tools), ToolVectors::new(embedder));
/// let found = vectors.search(&index, &tools, "will it rain tomorrow?", 5).await;
/// assert_eq!(found.unwrap(), [0]);
/// # }
/// ```
pub struct ToolVectors {
    embedder: Arc<dyn Embedder>,
    /// The vector of each embedded definition, by its text.
    vectors: Mutex<HashMap<String, Arc<[f32]>>>,
}

impl ToolVectors {
    /// Creates an empty store of vectors. The vectors of `embedder` must have the length 1.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, vectors: Mutex::default() }
    }

    /// Returns the positions in `tools` of at most `limit` tools that fit the query, best first: tools that the query
    /// names, then tools that are close to it by words or by meaning. `index` must be the index of the same `tools`.
    ///
    /// # Errors
    /// The embedder's error; [`ToolIndex::search`] still finds tools by words.
    pub async fn search(
        &self,
        index: &ToolIndex,
        tools: &[ToolSpec],
        query: &str,
        limit: usize,
    ) -> Result<Vec<usize>, MemoryError> {
        let Ranking { mut named, mut by_words } = index.ranking(query);
        if named.len() < limit && !query.trim().is_empty() {
            let matched = by_words.len();
            let others = (0..tools.len()).filter(|place| !named.contains(place) && !by_words.contains(place));
            let others: Vec<usize> = others.take(CANDIDATES.saturating_sub(matched)).collect();
            by_words.extend(others);
            by_words.truncate(CANDIDATES);
            let similarities =
                self.similarities(query, by_words.iter().filter_map(|at| tools.get(*at))).await?;
            named.extend(fuse(&by_words, matched, &similarities));
        }
        named.truncate(limit);
        Ok(named)
    }

    /// Returns the cosine similarity of each definition to the query.
    async fn similarities<'s>(
        &self,
        query: &str,
        tools: impl Iterator<Item = &'s ToolSpec>,
    ) -> Result<Vec<f32>, MemoryError> {
        let texts: Vec<String> = tools.map(text).collect();
        let mut missing = vec![query.to_owned()];
        {
            let known = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
            missing.extend(texts.iter().filter(|text| !known.contains_key(*text)).cloned());
        }
        let mut made = self.embedder.embed(&missing).await?.into_iter();
        let query = made.next().unwrap_or_default();
        let mut known = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(missing.into_iter().skip(1).zip(made.map(Arc::from)));
        let similarity = |text| known.get(text).map_or(0.0, |vector| dot(&query, vector));
        Ok(texts.iter().map(similarity).collect())
    }
}

archon_types::debug_fields!(ToolVectors);

/// Returns the text of a definition that is embedded: the words of the name, and the description.
fn text(tool: &ToolSpec) -> String {
    let about = &tool.description[..tool.description.floor_char_boundary(DESCRIPTION)];
    format!("{}: {about}", tool.name.replace(['_', '.', '-'], " "))
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the places, best first: combines their rank by words with their rank by similarity. The first `matched`
/// places share words with the query and are sorted by score. The other places are left out unless their similarity
/// is at least `CLOSE`.
fn fuse(places: &[usize], matched: usize, similarities: &[f32]) -> Vec<usize> {
    let mut close: Vec<usize> = (0..places.len()).collect();
    close.retain(|at| *at < matched || similarities[*at] >= CLOSE);
    close.sort_by(|a, b| similarities[*b].total_cmp(&similarities[*a]));
    let of_rank = |rank: usize| 1.0 / (FUSION + rank as f32 + 1.0);
    let mut scored: Vec<(usize, f32)> = close
        .into_iter()
        .enumerate()
        .map(|(rank, at)| (at, of_rank(rank) + if at < matched { of_rank(at) } else { 0.0 }))
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.into_iter().map(|(at, _)| places[at]).collect()
}
