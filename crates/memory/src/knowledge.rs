//! Facts: who stands in which relation to what, since when, until when, and who says so.
//!
//! All that was ever said of a subject and a relation is a timeline. A fact ends when one begins that is believed as
//! much or more; one that is believed less ends nothing. What held at a time is, of the facts whose time it is in, the
//! one that is believed most, and of these the one that began last.

mod fact;
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
    memory::Tries,
};
use fact::{SEPARATOR, key_of};
use timeline::Timeline;

pub use fact::{Fact, Objects};
pub(crate) use fact::{line_of, normal};
pub(crate) use sources::{forgotten_with, sources_of, with_other_sources};
pub(crate) use timeline::name;

/// From here on are the positions of facts that are compared before they are stored: they are written last.
const NOT_STORED_YET: u64 = 1 << 63;

/// The timelines that facts are compared with, by key, and that they are expected to stay as they were read.
#[derive(Default)]
struct Lines {
    all: BTreeMap<String, Timeline>,
    expected: Vec<MemoryChange>,
}

/// What becomes of facts that are learnt: what is to be written, from what was read.
struct Compared {
    learnt: Vec<Learnt>,
    entries: Vec<MemoryEntry>,
    expected: Vec<MemoryChange>,
}

/// New facts are written in the order in which they were learnt.
fn as_written(mut changed: Vec<MemoryEntry>) -> Vec<MemoryEntry> {
    changed.sort_by_key(|entry| entry.position);
    changed.iter_mut().filter(|entry| entry.position >= NOT_STORED_YET).for_each(|new| new.position = 0);
    changed
}

/// Somebody or something that facts are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entity {
    /// As it is called.
    pub name: String,
    /// What holds of it: relation and object.
    pub facets: Vec<(String, String)>,
    /// Whose knowledge it is: one name may stand for another in each collection.
    pub collection: Collection,
}

/// What became of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learnt {
    /// It is new; so many others ended with it.
    New {
        /// How many.
        ended: usize,
    },
    /// It was known, from a source that is believed as much.
    Known,
    /// It is kept, and something that is believed more says otherwise.
    Outranked,
}

/// The facts of one owner.
#[derive(Clone)]
pub struct Knowledge {
    memory: Memory,
}

impl Knowledge {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory }
    }

    /// Learns facts, in order: all of them, or none.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for a fact without subject, relation or object, and the store's errors.
    pub async fn learn(&self, facts: impl IntoIterator<Item = Fact>) -> Result<Vec<Learnt>, MemoryError> {
        let facts: Vec<Fact> = facts.into_iter().collect();
        let _one_at_a_time = self.memory.parts.facts.lock().await;
        let mut tries = Tries::default();
        loop {
            let Compared { learnt, entries, expected } =
                self.compared(&facts, self.memory.store().scope()).await?;
            if self.memory.attempt(entries, expected, &mut tries).await?.is_some() {
                return Ok(learnt);
            }
        }
    }

    /// What becomes of facts that are of one collection.
    async fn compared(&self, facts: &[Fact], of: &Collection) -> Result<Compared, MemoryError> {
        let now = self.memory.now();
        let (mut learnt, mut lines) = (Vec::new(), Lines::default());
        for (nth, fact) in (NOT_STORED_YET..).zip(facts) {
            let fact = self.as_known(fact.clone(), of, &mut lines).await?;
            let id = fact.content_id(now).unwrap_or_else(|| self.memory.fresh());
            let mut new = fact.entry(id, now)?;
            (new.position, new.collection) = (nth, of.clone());
            learnt.push(lines.all.entry(fact.key()).or_default().learn(new, &fact, now));
        }
        let entries = as_written(lines.all.into_values().flat_map(Timeline::changed).collect());
        Ok(Compared { learnt, entries, expected: lines.expected })
    }

    /// The fact with as many objects as its relation has here, whatever it says of it: else a fact of one kind would
    /// not end one of the other. The timelines that it may belong to are read.
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

    /// Whether there is anything in a timeline.
    async fn read_line(&self, key: &str, of: &Collection, lines: &mut Lines) -> Result<bool, MemoryError> {
        if !lines.all.contains_key(key) {
            let (line, as_read) = self.timeline(key, of).await?;
            lines.expected.push(as_read);
            lines.all.insert(key.to_owned(), Timeline::new(line));
        }
        Ok(lines.all.get(key).is_some_and(|line| !line.is_empty()))
    }

    /// Whether there are facts in a collection whose keys begin so; if there are none, that is expected to stay so.
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

    /// The other facts that end elsewhere once entries are kept, in place of those of before, and what that rests on. The
    /// entries get the ends that they have then.
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

    /// The facts of a key in one collection, and that they are expected to stay so.
    async fn timeline(
        &self,
        key: &str,
        of: &Collection,
    ) -> Result<(Vec<MemoryEntry>, MemoryChange), MemoryError> {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Fact]).exactly(of);
        filter.key = Some(key.to_owned());
        self.memory.expected(filter).await
    }

    /// What holds now of a subject and a relation: one fact, or several where the relation may have many objects. Of a
    /// memory with other collections within it, that of each of them.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn current(&self, subject: &str, relation: &str) -> Result<Vec<Fact>, MemoryError> {
        self.as_of(subject, relation, self.memory.now()).await
    }

    /// What held at a time.
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

    /// All that holds of a subject now.
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

    /// The facts that hold at a time and whose keys begin so, of each key in each collection the one that counts.
    async fn holding(&self, time: Timestamp, prefix: String) -> Result<Vec<(Collection, Fact)>, MemoryError> {
        let mut filter = MemoryFilter::default().of(&[MemoryKind::Fact]);
        (filter.validity, filter.key_prefix) = (Validity::At(time), Some(prefix));
        Ok(winners(self.memory.all(filter).await?, time))
    }

    /// Who and what facts are about, with what holds of each now.
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

    /// What facts belong to, with how many there are.
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

    /// Learns what an extractor finds in a text. The facts are believed as far as the text is, whatever it says of
    /// itself.
    ///
    /// # Errors
    /// The extractor's, and as [`learn`](Self::learn). A fact that is none is left out.
    pub async fn learn_from(
        &self,
        extractor: &dyn KnowledgeExtractor,
        passage: &Passage,
    ) -> Result<Vec<Learnt>, MemoryError> {
        let facts = found_in(extractor, passage).await?;
        self.learn(facts).await
    }
}

/// Of each key in each collection the fact that counts at a time.
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

/// The facts that an extractor finds in a passage, without those that are none.
async fn found_in(extractor: &dyn KnowledgeExtractor, passage: &Passage) -> Result<Vec<Fact>, MemoryError> {
    let found = extractor.extract(passage).await?;
    // One whose key no store keeps is left out, too: it would take the others along.
    let is_one = |fact: &Fact| {
        ![&fact.subject, &fact.relation, &fact.object].iter().any(|part| part.trim().is_empty())
            && fact.key().len() <= MemoryEntry::MAX_NAME_BYTES
    };
    let facts = found.into_iter().filter(is_one).map(|mut fact| {
        fact.trust = fact.trust.min(passage.trust);
        fact.run = passage.run.clone();
        fact.sources = passage.entry.iter().cloned().collect();
        fact.since = fact.since.or(Some(passage.at));
        fact
    });
    Ok(facts.collect())
}
