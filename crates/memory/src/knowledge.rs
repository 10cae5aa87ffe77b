//! Facts: a subject, a relation and an object, with the time in which they hold and the trust level of their
//! source.
//!
//! All facts of one subject and relation are a timeline. A fact ends when another fact with the same or a
//! higher trust level begins; a fact with a lower trust level ends nothing. At a given time, the fact with
//! the highest trust level counts, and among several of these the one that began last.

mod outdated;
mod sources;
mod timeline;
mod unread;

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{
    Collection, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    Timestamp, Validity,
};

use crate::{
    Memory,
    extract::{KnowledgeExtractor, Passage},
    fact::{Fact, Objects, SEPARATOR, key_of, line_of, normal},
    memory::Tries,
};
use timeline::Timeline;

pub(crate) use sources::{sources_of, with_other_sources};
pub(crate) use timeline::name;

/// The first position of new facts until they are stored, so that they sort after all stored facts.
const NOT_STORED_YET: u64 = 1 << 63;

/// The timelines that new facts are compared with, by key. `expected` makes the write fail if another writer
/// changed a timeline meanwhile.
#[derive(Default)]
struct Lines {
    all: BTreeMap<String, Timeline>,
    expected: Vec<MemoryChange>,
}

/// The result of comparing new facts with the stored facts. `entries` are written only if all entries in
/// `expected` are still unchanged.
struct Compared {
    learnt: Vec<Learnt>,
    /// The key and the object of each fact that is stated.
    stated: Vec<(String, String)>,
    entries: Vec<MemoryEntry>,
    expected: Vec<MemoryChange>,
}

/// Sorts changed entries for writing, and gives new entries no position, so that the store assigns positions
/// in the order of learning.
fn as_written(mut changed: Vec<MemoryEntry>) -> Vec<MemoryEntry> {
    changed.sort_by_key(|entry| entry.position);
    changed.iter_mut().filter(|entry| entry.position >= NOT_STORED_YET).for_each(|new| new.position = 0);
    changed
}

/// A person or thing that facts are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entity {
    /// The name of the entity.
    pub name: String,
    /// The relation and the object of each fact that holds.
    pub facets: Vec<(String, String)>,
    /// The collection of the facts: the same name in two collections may mean two entities.
    pub collection: Collection,
}

/// The result of learning one fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learnt {
    /// The fact is new.
    New {
        /// The number of other facts that this fact ended.
        ended: usize,
    },
    /// The fact was known already, from a source with the same or a higher trust level.
    Known,
    /// The fact was stored, but a fact with a higher trust level contradicts it.
    Outranked,
}

/// A handle to the facts of one memory: learns facts and finds them.
#[derive(Clone)]
pub struct Knowledge {
    memory: Memory,
}

impl Memory {
    /// Returns a handle to the facts of this memory. Nothing is read yet.
    pub fn knowledge(&self) -> Knowledge {
        Knowledge { memory: self.clone() }
    }
}

impl Knowledge {
    /// Stores facts in order, either all of them or none. Returns one result for each fact, in the same order.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for a fact without subject, relation or object; errors of the store.
    pub async fn learn(&self, facts: impl IntoIterator<Item = Fact>) -> Result<Vec<Learnt>, MemoryError> {
        let facts: Vec<Fact> = facts.into_iter().collect();
        let _one_at_a_time = self.memory.parts.facts.lock().await;
        let mut tries = Tries::default();
        loop {
            let Compared { learnt, entries, expected, .. } =
                self.compared(&facts, self.memory.store().scope()).await?;
            if self.memory.attempt(entries, expected, &mut tries).await?.is_some() {
                return Ok(learnt);
            }
        }
    }

    /// Compares facts with the stored ones of one collection.
    async fn compared(&self, facts: &[Fact], of: &Collection) -> Result<Compared, MemoryError> {
        let now = self.memory.now();
        let (mut learnt, mut stated, mut lines) = (Vec::new(), Vec::new(), Lines::default());
        for (nth, fact) in (NOT_STORED_YET..).zip(facts) {
            let fact = self.as_known(fact.clone(), of, &mut lines).await?;
            let id = fact.content_id(now).unwrap_or_else(|| self.memory.fresh());
            let mut new = fact.entry(id, now)?;
            (new.position, new.collection) = (nth, of.clone());
            if !fact.ends {
                stated.push((fact.key(), normal(&fact.object)));
            }
            learnt.push(lines.all.entry(fact.key()).or_default().learn(new, &fact, now));
        }
        let entries = as_written(lines.all.into_values().flat_map(Timeline::changed).collect());
        Ok(Compared { learnt, stated, entries, expected: lines.expected })
    }

    /// Returns the fact with the [`Objects`] that its relation already has in this collection, even if the
    /// fact itself has another value. Otherwise facts of one relation would be in different timelines, and
    /// would not end each other. Reads the timelines to which the fact may belong.
    async fn as_known(
        &self,
        mut fact: Fact,
        of: &Collection,
        lines: &mut Lines,
    ) -> Result<Fact, MemoryError> {
        let one = key_of(&[&fact.subject, &fact.relation]);
        if self.read_line(&one, of, lines).await? {
            fact.objects = Objects::One;
            return Ok(fact);
        }
        let many = one + SEPARATOR;
        let mut of_many = lines.all.range(many.clone()..).take_while(|(key, _)| key.starts_with(&many));
        let learnt_now = of_many.any(|(_, line)| !line.is_empty());
        if fact.objects == Objects::Many || learnt_now || self.has_any(&many, of, lines).await? {
            fact.objects = Objects::Many;
            self.read_line(&fact.key(), of, lines).await?;
        }
        Ok(fact)
    }

    /// Reads a timeline unless it was read already. Returns true if the timeline has facts.
    async fn read_line(&self, key: &str, of: &Collection, lines: &mut Lines) -> Result<bool, MemoryError> {
        if !lines.all.contains_key(key) {
            let (line, as_read) = self.timeline(key, of).await?;
            lines.expected.push(as_read);
            lines.all.insert(key.to_owned(), Timeline::new(line));
        }
        Ok(lines.all.get(key).is_some_and(|line| !line.is_empty()))
    }

    /// Returns true if a collection has facts whose keys have this prefix. If it has none, adds the
    /// expectation that it has none when the facts are written.
    async fn has_any(&self, prefix: &str, of: &Collection, lines: &mut Lines) -> Result<bool, MemoryError> {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Fact]).exactly(of);
        filter.key_prefix = Some(prefix.to_owned());
        let page = self.memory.store().list(&Listing::new(filter.clone(), MemoryOrder::First, 1)).await?;
        let none = page.entries.is_empty() && page.damaged.is_empty();
        if none {
            lines.expected.push(MemoryChange::Expect { filter, entries: Vec::new() });
        }
        Ok(!none)
    }

    /// Returns the other facts whose ends change when `entries` replace `before`, and the expectations for
    /// the write. Sets the new ends of `entries` in place.
    pub(crate) async fn settled(
        &self,
        entries: &mut [MemoryEntry],
        before: &[MemoryEntry],
    ) -> Result<(Vec<MemoryEntry>, Vec<MemoryChange>), MemoryError> {
        let places: BTreeMap<_, u64> = before.iter().map(|entry| (name(entry), entry.position)).collect();
        for (nth, entry) in (NOT_STORED_YET..).zip(&mut *entries) {
            entry.position = places.get(&name(entry)).copied().unwrap_or(nth);
        }
        let lines: BTreeSet<_> = entries.iter().chain(before).filter_map(line_of).collect();
        let (mut moved, mut expected) = (Vec::new(), Vec::new());
        for line in lines {
            let (mut facts, expectation) = self.timeline(&line.1, &line.0).await?;
            expected.push(expectation);
            facts.retain(|fact| !entries.iter().any(|entry| name(entry) == name(fact)));
            facts.extend(entries.iter().filter(|entry| line_of(entry).as_ref() == Some(&line)).cloned());
            for fact in timeline::moved(facts) {
                match entries.iter_mut().find(|entry| name(entry) == name(&fact)) {
                    Some(entry) => *entry = fact,
                    None => moved.push(fact),
                }
            }
        }
        Ok((moved, expected))
    }

    /// Returns the facts with a key in one collection, and the expectation that they are unchanged.
    async fn timeline(
        &self,
        key: &str,
        of: &Collection,
    ) -> Result<(Vec<MemoryEntry>, MemoryChange), MemoryError> {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Fact]).exactly(of);
        filter.key = Some(key.to_owned());
        self.memory.expected(filter).await
    }

    /// Returns the facts about a subject and a relation that hold now: one fact, or several if the relation
    /// can have many objects. A memory with nested collections returns the facts of each collection.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn current(&self, subject: &str, relation: &str) -> Result<Vec<Fact>, MemoryError> {
        self.as_of(subject, relation, self.memory.now()).await
    }

    /// Returns the facts about a subject and a relation that held at `time`.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn as_of(
        &self,
        subject: &str,
        relation: &str,
        time: Timestamp,
    ) -> Result<Vec<Fact>, MemoryError> {
        let same = |fact: &Fact| normal(&fact.relation) == normal(relation);
        Ok(self.about_at(subject, time).await?.into_iter().filter(same).collect())
    }

    /// Returns all facts about a subject that hold now.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn about(&self, subject: &str) -> Result<Vec<Fact>, MemoryError> {
        self.about_at(subject, self.memory.now()).await
    }

    async fn about_at(&self, subject: &str, time: Timestamp) -> Result<Vec<Fact>, MemoryError> {
        let all = self.holding(time, key_of(&[subject, ""])).await?;
        Ok(all.into_iter().map(|(_, fact)| fact).collect())
    }

    /// Returns the facts that hold at a time and whose keys have this prefix: for each key and collection,
    /// the fact that counts (see [`timeline::at`]).
    async fn holding(&self, time: Timestamp, prefix: String) -> Result<Vec<(Collection, Fact)>, MemoryError> {
        let mut filter = MemoryFilter::default().of(&[MemoryKind::Fact]);
        (filter.validity, filter.key_prefix) = (Validity::At(time), Some(prefix));
        Ok(winners(self.memory.all(filter).await?, time))
    }

    /// Returns the subjects of all facts that hold now, each with its facts.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn entities(&self) -> Result<Vec<Entity>, MemoryError> {
        let mut entities: BTreeMap<(Collection, String), Entity> = BTreeMap::new();
        for (collection, fact) in self.holding(self.memory.now(), String::new()).await? {
            let entity = entities.entry((collection.clone(), normal(&fact.subject))).or_default();
            (entity.name, entity.collection) = (fact.subject, collection);
            entity.facets.push((fact.relation, fact.object));
        }
        Ok(entities.into_values().collect())
    }

    /// Returns the topics of the facts that hold now, with the number of facts of each.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn topics(&self) -> Result<BTreeMap<String, usize>, MemoryError> {
        let mut topics = BTreeMap::new();
        for (_, fact) in self.holding(self.memory.now(), String::new()).await? {
            for topic in fact.topics {
                *topics.entry(topic).or_default() += 1;
            }
        }
        Ok(topics)
    }

    /// Learns the facts that an extractor finds in a text. Their trust level is at most that of the text.
    /// Facts with an empty part are left out.
    ///
    /// # Errors
    /// The extractor's errors, and those of [`learn`](Self::learn).
    pub async fn learn_from(
        &self,
        extractor: &dyn KnowledgeExtractor,
        passage: &Passage,
    ) -> Result<Vec<Learnt>, MemoryError> {
        let facts = extract_facts(extractor, passage).await?;
        self.learn(facts).await
    }
}

/// Returns, for each key and collection, the fact that counts at a time (see [`timeline::at`]).
fn winners(facts: Vec<MemoryEntry>, time: Timestamp) -> Vec<(Collection, Fact)> {
    let mut lines: BTreeMap<(Collection, String), Vec<MemoryEntry>> = BTreeMap::new();
    for entry in facts {
        let line = (entry.collection.clone(), entry.key.clone().unwrap_or_default());
        lines.entry(line).or_default().push(entry);
    }
    let winners =
        lines.into_iter().filter_map(|((of, _), line)| Some((of, Fact::of(timeline::at(&line, time)?)?)));
    winners.collect()
}

/// Returns the facts that an extractor finds in a passage, without the invalid ones.
async fn extract_facts(
    extractor: &dyn KnowledgeExtractor,
    passage: &Passage,
) -> Result<Vec<Fact>, MemoryError> {
    let found = extractor.extract(passage).await?;
    // A key that is too long for stores is invalid too: it would make the whole write fail.
    let fits = |fact: &Fact| fact.is_whole() && fact.key().len() <= MemoryEntry::MAX_NAME_BYTES;
    let facts = found.into_iter().filter(fits).map(|mut fact| {
        fact.trust = fact.trust.min(passage.trust);
        fact.run = passage.run.clone();
        fact.sources = passage.entry.iter().cloned().collect();
        fact.since = fact.since.or(Some(passage.at));
        fact
    });
    Ok(facts.collect())
}
