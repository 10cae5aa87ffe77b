//! Long-term memory, which stores entries and finds them by words and by meaning.

mod belief;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use archon_types::{
    BoxFuture, Candidate, Json, Listing, LongTerm, MemoryEntry, MemoryError, MemoryFilter, MemoryKind,
    MemoryOrder, MemoryQuery, MemorySearch, Recalled, Timestamp, Trust, Validity,
};
use hmac_sha256::Hash;
use serde_json::Map;

use crate::{
    Memory,
    embedding::vectors,
    memory::warn_of_damaged,
    rank::{Item, Ranked, Ranker, SESSION, ends_of},
};
use belief::{belief, chosen};

/// A handle to the long-term memory: stores notes, and finds notes, turns, summaries and facts.
#[derive(Clone)]
pub struct LongTermMemory {
    pub(crate) memory: Memory,
}

impl Memory {
    /// Returns a handle to the long-term memory. Nothing is read yet.
    pub fn long_term(&self) -> LongTermMemory {
        LongTermMemory { memory: self.clone() }
    }
}

impl LongTermMemory {
    /// Finds memories for a query; `context` is additional text about the task that improves the ranking.
    ///
    /// # Errors
    /// As [`LongTerm::query`].
    pub async fn query_with(&self, query: &MemoryQuery, context: &str) -> Result<Vec<Recalled>, MemoryError> {
        let mut bounded = query.clone();
        bounded.text = ends_of(&query.text).into_owned();
        let query = &bounded;
        // The key has the minute, because facts hold for a time.
        let minute = self.memory.now().as_millis() / 60_000;
        // Hashed, because the context and the ids to leave out may be long.
        let key = Hash::hash(format!("{query:?}\u{1f}{context}\u{1f}{minute}").as_bytes());
        let (cached, generation) = self.memory.answers(|answers| {
            let cached = answers.cached.iter().find(|(asked, _)| *asked == key);
            (cached.map(|(_, answer)| answer.clone()), answers.generation)
        });
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let found = self.search(query, context).await?;
        let most = self.memory.options().cached;
        self.memory.answers(|answers| {
            if most > 0 && answers.generation == generation {
                answers.cached.push_back((key, found.clone()));
                while answers.cached.len() > most {
                    answers.cached.pop_front();
                }
            }
        });
        Ok(found)
    }

    /// Runs queries in advance, for instance when a phase of work begins, and caches their answers. The cache serves
    /// the same queries, without a `context`, until the next write or the end of the clock's minute. Returns the number
    /// of successful queries. A failed query is not cached.
    pub async fn prefetch(&self, queries: &[MemoryQuery]) -> usize {
        let mut ready = 0;
        for query in queries {
            match self.query_with(query, "").await {
                Ok(_) => ready += 1,
                Err(error) => tracing::warn!(%error, "a query could not be run in advance"),
            }
        }
        ready
    }

    async fn search(&self, query: &MemoryQuery, context: &str) -> Result<Vec<Recalled>, MemoryError> {
        let (candidates, ranking) = self.ordered(query, context).await?;
        let hits = chosen(&ranking, &candidates, query.threshold, query.limit);
        Ok(hits.into_iter().map(|hit| recalled(&candidates[hit.item], hit)).collect())
    }

    /// Returns the candidates of a query and their order.
    async fn ordered(
        &self,
        query: &MemoryQuery,
        context: &str,
    ) -> Result<(Vec<Candidate>, Vec<Ranked>), MemoryError> {
        let embedder = self.memory.parts.embedder.as_deref();
        let ranker = Ranker::default().with_weights(self.memory.options().weights);
        let question = ranker
            .question(&query.text)
            .with_now(self.memory.now())
            .with_context(&ranker.analyzer, [context]);
        let pool = query.limit.max(LEAST_POOL);
        let mut search = MemorySearch::words(question.search_text(), pool);
        search.filter = filter_of(query, self.memory.now());
        let mut candidates = self.find_candidates(&search).await?;
        let speakers: Vec<String> =
            candidates.iter().filter_map(|candidate| candidate.entry.role()).map(str::to_owned).collect();
        let question = question.with_speakers(speakers.iter().map(String::as_str));
        if let Some(embedder) = embedder {
            match vectors(embedder, &[question.meaning()]).await {
                Ok(mut made) => search.vector = made.pop().map(|vector| (embedder.id().to_owned(), vector)),
                Err(error) => {
                    tracing::warn!(%error, "the query could not be embedded: memories are found by words alone")
                }
            }
        }
        if search.vector.is_some() {
            search.text.clear();
            join(&mut candidates, self.find_candidates(&search).await?);
        }
        let mut candidates = self.with_neighbours(candidates, &search.filter, &ranker, &question).await?;
        let rank = |candidates: &[Candidate]| {
            let items: Vec<Item<'_>> = candidates.iter().map(Item::from).collect();
            ranker.rank(&question, &items)
        };
        let ranking = rank(&candidates);
        let missing = self.contradicting(&candidates, &ranking, &search.filter, query).await?;
        if missing.is_empty() {
            return Ok((candidates, ranking));
        }
        candidates.extend(missing);
        let ranking = rank(&candidates);
        Ok((candidates, ranking))
    }

    /// Returns facts that the searches did not find, but that contradict a likely hit and have a higher trust
    /// level than that hit.
    async fn contradicting(
        &self,
        candidates: &[Candidate],
        ranking: &[Ranked],
        filter: &MemoryFilter,
        query: &MemoryQuery,
    ) -> Result<Vec<Candidate>, MemoryError> {
        let doubtful = |candidate: &&Candidate| {
            candidate.entry.kind == MemoryKind::Fact && candidate.entry.trust < Trust::Trusted
        };
        let likely = chosen(ranking, candidates, query.threshold, query.limit.saturating_mul(2));
        let mut keys = BTreeSet::new();
        let mut missing = Vec::new();
        for hit in likely.iter().map(|hit| &candidates[hit.item]).filter(doubtful) {
            let of = &hit.entry.collection;
            let Some(key) = hit.entry.key.as_ref().filter(|key| keys.insert((of, *key))) else { continue };
            let mut line = filter.clone().exactly(of);
            (line.kinds, line.key) = (vec![MemoryKind::Fact], Some(key.clone()));
            let facts = self.memory.all(line).await?;
            let Some(mut winner) = facts.into_iter().max_by_key(belief) else { continue };
            if candidates.iter().all(|candidate| candidate.entry.position != winner.position) {
                winner.embedding = None;
                // It gets the score of the hit that it contradicts.
                missing.push(Candidate::new(winner, hit.lexical, None));
            }
        }
        Ok(missing)
    }

    /// Returns true if a query chooses among at most `count` memories.
    pub(crate) async fn has_at_most(&self, count: usize, query: &MemoryQuery) -> bool {
        let listing = Listing::new(filter_of(query, self.memory.now()), MemoryOrder::First, count);
        self.memory.store().list(&listing).await.is_ok_and(|page| page.next.is_none())
    }

    async fn find_candidates(&self, search: &MemorySearch) -> Result<Vec<Candidate>, MemoryError> {
        let found = self.memory.store().candidates(search).await?;
        warn_of_damaged(&found.damaged);
        Ok(found.candidates)
    }

    /// Adds the turns around the best candidates.
    async fn with_neighbours(
        &self,
        candidates: Vec<Candidate>,
        filter: &MemoryFilter,
        ranker: &Ranker,
        question: &crate::rank::RankQuestion,
    ) -> Result<Vec<Candidate>, MemoryError> {
        let near = self.memory.options().neighbours;
        let items: Vec<Item<'_>> = candidates.iter().map(Item::from).collect();
        let first = ranker.rank(question, &items);
        let turns = first.iter().map(|hit| &candidates[hit.item].entry);
        let turns: Vec<MemoryEntry> = turns
            .filter(|entry| entry.kind == MemoryKind::Turn && entry.metadata.contains_key(SESSION))
            .take(if near > 0 { LOOKED_AROUND } else { 0 })
            .cloned()
            .collect();
        let mut all: BTreeMap<u64, Candidate> =
            candidates.into_iter().map(|candidate| (candidate.entry.position, candidate)).collect();
        for turn in turns {
            let mut around = filter.clone().exactly(&turn.collection);
            around.kinds = vec![MemoryKind::Turn];
            let session = turn.metadata.get(SESSION).cloned().unwrap_or_default();
            around.metadata.insert(SESSION.to_owned(), session);
            for order in [MemoryOrder::First, MemoryOrder::Latest] {
                let listing = Listing::new(around.clone(), order, near).after(turn.position);
                for mut entry in self.memory.store().list(&listing).await?.entries {
                    entry.embedding = None;
                    all.entry(entry.position).or_insert_with(|| Candidate::new(entry, None, None));
                }
            }
        }
        Ok(all.into_values().collect())
    }
}

/// Merges the hits of the search by vector into the hits of the search by words.
fn join(candidates: &mut Vec<Candidate>, by_vector: Vec<Candidate>) {
    let places: HashMap<u64, usize> =
        candidates.iter().enumerate().map(|(at, candidate)| (candidate.entry.position, at)).collect();
    for candidate in by_vector {
        match places.get(&candidate.entry.position) {
            Some(at) => candidates[*at].vector = candidate.vector,
            None => candidates.push(candidate),
        }
    }
}

/// The minimum number of candidates that each of the two searches (by words and by vector) requests.
const LEAST_POOL: usize = 50;

/// The maximum number of hits whose neighbouring turns are added to the candidates.
const LOOKED_AROUND: usize = 6;

fn filter_of(query: &MemoryQuery, now: Timestamp) -> MemoryFilter {
    let mut filter = MemoryFilter::default();
    filter.metadata = query.metadata.clone();
    filter.trust = query.trust;
    filter.collection = query.collection.clone();
    filter.validity = Validity::At(query.as_of.unwrap_or(now));
    filter.kinds = query.kinds.clone();
    filter.without = query.without.clone();
    if filter.kinds.is_empty() {
        filter.kinds = vec![MemoryKind::Note, MemoryKind::Turn, MemoryKind::Summary, MemoryKind::Fact];
    }
    filter
}

fn recalled(candidate: &Candidate, hit: Ranked) -> Recalled {
    let mut recalled = Recalled::new(candidate.entry.clone(), hit.relevance);
    (recalled.lexical, recalled.vector) = (candidate.lexical, candidate.vector);
    recalled
}

impl LongTerm for LongTermMemory {
    fn store<'a>(
        &'a self,
        content: &'a str,
        metadata: Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(async move {
            let mut entry = MemoryEntry::new(self.memory.fresh(), content, self.memory.now());
            entry.metadata = metadata;
            let id = entry.id.clone();
            self.memory.keep(vec![entry]).await?;
            Ok(id)
        })
    }

    fn query<'a>(&'a self, query: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        Box::pin(self.query_with(query, ""))
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(self.memory.forget(id))
    }

    fn newest(&self, limit: usize) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async move {
            let filter = filter_of(&MemoryQuery::new(""), self.memory.now());
            let listing = Listing::new(filter, MemoryOrder::Latest, limit);
            let page = self.memory.store().list(&listing).await?;
            warn_of_damaged(&page.damaged);
            Ok(page.entries)
        })
    }
}
