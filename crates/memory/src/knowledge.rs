//! Facts: who stands in which relation to what, since when, until when, and who says so.
//!
//! All that was ever said of a subject and a relation is a timeline. A fact ends when one begins that is believed as
//! much or more; one that is believed less ends nothing. What held at a time is, of the facts whose time it is in, the
//! one that is believed most, and of these the one that began last.

mod sources;
mod timeline;
mod unread;

use std::collections::{BTreeMap, BTreeSet};

use archon_types::{
    Collection, Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    RunId, Timestamp, Trust, Validity,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Memory,
    extract::{KnowledgeExtractor, Passage},
    memory::Tries,
};
use timeline::Timeline;

pub(crate) use sources::{forgotten_with, sources_of, with_other_sources};
pub(crate) use timeline::name;

/// From here on are the positions of facts that are compared before they are stored: they are written last.
const NOT_STORED_YET: u64 = 1 << 63;

/// What somebody said of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Fact {
    /// Whom or what it is about.
    pub subject: String,
    /// What is said of it, as a verb: `lives in`.
    pub relation: String,
    /// Where the relation leads.
    pub object: String,
    /// Since when it holds; since it was learnt if unset.
    pub since: Option<Timestamp>,
    /// Until when it holds, if it says so itself.
    pub until: Option<Timestamp>,
    /// Whether another object can hold at the same time.
    pub objects: Objects,
    /// What it belongs to.
    pub topics: Vec<String>,
    /// When it was said again after it began, the latest 256 times in order. What is learnt late, of a time before one
    /// of these, ends it only until then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said_again: Vec<Timestamp>,
    /// The run that it was learnt in.
    pub run: Option<RunId>,
    /// How far it is believed.
    pub trust: Trust,
    /// The ids of the entries that say it; none if it was not learnt from entries. It is forgotten with the last of
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// How many objects a relation has at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objects {
    /// One: a new one ends the old one, as with `lives in`.
    #[default]
    One,
    /// Any number, as with `likes`.
    Many,
}

impl Fact {
    /// A fact that holds from when it is learnt.
    pub fn new(subject: impl Into<String>, relation: impl Into<String>, object: impl Into<String>) -> Self {
        Self { subject: subject.into(), relation: relation.into(), object: object.into(), ..Self::default() }
    }

    /// The same since a time.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// The same, believed so far.
    pub fn trusted(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// The same of a relation that may have many objects.
    pub fn one_of_many(mut self) -> Self {
        self.objects = Objects::Many;
        self
    }

    /// The same of a run.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Facts with the same key are about the same thing.
    pub(crate) fn key(&self) -> String {
        match self.objects {
            Objects::One => key_of(&[&self.subject, &self.relation]),
            Objects::Many => key_of(&[&self.subject, &self.relation, &self.object]),
        }
    }

    /// The id of a fact that an entry says: whoever learns it again from there, in whichever process, writes it in its own
    /// place. A fact that rests on no entry has none.
    fn content_id(&self) -> Option<String> {
        let source = self.sources.first()?;
        let content = json!([source, self.key(), normal(&self.object), self.since, self.until, self.trust]);
        let hash = hmac_sha256::Hash::hash(content.to_string().as_bytes());
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(format!("fact:{hex}"))
    }

    fn entry(&self, id: String, now: Timestamp) -> Result<MemoryEntry, MemoryError> {
        for (part, name) in
            [(&self.subject, "subject"), (&self.relation, "relation"), (&self.object, "object")]
        {
            if part.trim().is_empty() {
                return Err(MemoryError::Invalid { id, problem: format!("the fact has no {name}") });
            }
        }
        let text = format!("{} {} {}", self.subject.trim(), self.relation.trim(), self.object.trim());
        let mut entry = MemoryEntry::new(id.clone(), text, now);
        (entry.kind, entry.trust, entry.run) = (MemoryKind::Fact, self.trust, self.run.clone());
        (entry.key, entry.valid_from) = (Some(self.key()), Some(self.since.unwrap_or(now)));
        entry.valid_to = self.until;
        let problem = |e: serde_json::Error| MemoryError::Invalid { id, problem: e.to_string() };
        entry.metadata.insert(FACT.to_owned(), serde_json::to_value(self).map_err(problem)?);
        Ok(entry)
    }

    pub(crate) fn of(entry: &MemoryEntry) -> Option<Self> {
        let mut fact: Self = serde_json::from_value(entry.metadata.get(FACT)?.clone()).ok()?;
        (fact.since, fact.until) = (entry.valid_from, entry.valid_to);
        (fact.run, fact.trust) = (entry.run.clone(), entry.trust);
        Some(fact)
    }

    /// The end that the fact itself has, whatever came later.
    fn own_end(entry: &MemoryEntry) -> Option<Timestamp> {
        // Of what does not say what it is nothing but its end is known.
        let Some(fact) = entry.metadata.get(FACT) else { return entry.valid_to };
        let fact: Self = serde_json::from_value(fact.clone()).ok()?;
        fact.until
    }
}

const FACT: &str = "fact";

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
            let id = fact.content_id().unwrap_or_else(|| self.memory.fresh());
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
        let learnt_now = lines.all.iter().any(|(key, line)| key.starts_with(&many) && !line.is_empty());
        if fact.objects == Objects::Many || learnt_now || self.has_any(&many, of).await? {
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

    /// Whether there are facts in a collection whose keys begin so.
    async fn has_any(&self, prefix: &str, of: &Collection) -> Result<bool, MemoryError> {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Fact]).exactly(of);
        filter.key_prefix = Some(prefix.to_owned());
        let page = self.memory.store().list(&Listing::new(filter, MemoryOrder::First, 1)).await?;
        Ok(!page.entries.is_empty())
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

/// Which timeline a fact is in.
pub(crate) fn line_of(entry: &MemoryEntry) -> Option<(Collection, String)> {
    let key = entry.key.as_ref().filter(|_| entry.kind == MemoryKind::Fact)?;
    Some((entry.collection.clone(), key.clone()))
}

/// The key of facts about these, or what it begins with.
fn key_of(names: &[&str]) -> String {
    names.iter().map(|name| normal(name)).collect::<Vec<_>>().join(SEPARATOR)
}

/// Stands between the parts of a key.
const SEPARATOR: &str = "\u{1f}";

/// How names are compared: without case, and with single spaces.
pub(crate) fn normal(name: &str) -> String {
    name.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The object of an entry that is a fact.
fn object_of(entry: &MemoryEntry) -> Option<String> {
    entry.metadata.get(FACT)?.get("object").and_then(Json::as_str).map(normal)
}
