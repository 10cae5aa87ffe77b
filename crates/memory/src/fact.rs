//! A fact, and its conversion into a memory entry.

use archon_types::{Collection, Json, MemoryEntry, MemoryError, MemoryKind, RunId, Timestamp, Trust};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A statement about a subject.
///
/// ```
/// use archon_memory::Fact;
/// use archon_types::{Timestamp, Trust};
///
/// let fact = Fact::new("Anna", "likes", "tea")
///     .one_of_many()
///     .since(Timestamp::from_millis(0))
///     .trusted(Trust::Trusted)
///     .of_run("run_1".into());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Fact {
    /// The subject.
    pub subject: String,
    /// The relation as a verb phrase: `lives in`.
    pub relation: String,
    /// The object of the relation.
    pub object: String,
    /// The time from which the fact holds; `None` for the time of learning.
    pub since: Option<Timestamp>,
    /// The time at which the fact ends, if the statement itself contains it.
    pub until: Option<Timestamp>,
    /// The number of objects that the relation can have at the same time.
    pub objects: Objects,
    /// True if this is a statement that a fact no longer holds. The statement itself holds at no time. It ends the fact
    /// with the same subject, relation and object; with an empty object, it ends every fact with the same subject and
    /// relation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// Topics for grouping facts.
    pub topics: Vec<String>,
    /// The times at which the fact was stated again after it began: the latest 256, in order. If another fact
    /// ends this fact before one of these times, this fact holds again from that time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said_again: Vec<Timestamp>,
    /// The run in which the fact was learnt.
    pub run: Option<RunId>,
    /// The trust level of the fact.
    pub trust: Trust,
    /// The ids of the entries that state the fact; empty if it was not learnt from entries. The fact is
    /// forgotten with the last of these entries. The entry that stated the fact at a given time is not
    /// known, so a time in `said_again` stays until the fact is forgotten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// The number of objects that a relation can have at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objects {
    /// One: a new object ends the old one, as with `lives in`.
    #[default]
    One,
    /// Any number, as with `likes`.
    Many,
}

impl Fact {
    /// Creates a fact that holds from the time of learning.
    pub fn new(subject: impl Into<String>, relation: impl Into<String>, object: impl Into<String>) -> Self {
        Self { subject: subject.into(), relation: relation.into(), object: object.into(), ..Self::default() }
    }

    /// Sets the time from which the fact holds. Default: the time at which the fact is learnt.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Sets the trust level of the fact. Default: untrusted.
    pub fn trusted(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Turns the fact into the statement that it no longer holds.
    ///
    /// ```
    /// use archon_memory::Fact;
    ///
    /// let moved_away = Fact::new("Anna", "lives in", "Bern").no_longer();
    /// assert!(moved_away.ends);
    /// ```
    pub fn no_longer(mut self) -> Self {
        self.ends = true;
        self
    }

    /// Returns true if the fact has all its parts. Only an end of the one fact of a relation needs no object.
    pub(crate) fn is_whole(&self) -> bool {
        let needs_object = !self.ends || self.objects == Objects::Many;
        let parts = [&self.subject, &self.relation, &self.object].map(|part| part.trim().is_empty());
        !(parts[0] || parts[1] || parts[2] && needs_object)
    }

    /// Lets the relation have any number of objects at the same time.
    pub fn one_of_many(mut self) -> Self {
        self.objects = Objects::Many;
        self
    }

    /// Sets the run in which the fact was learnt. Default: none.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Returns the key of the fact's timeline.
    pub(crate) fn key(&self) -> String {
        match self.objects {
            Objects::One => key_of(&[&self.subject, &self.relation]),
            Objects::Many => key_of(&[&self.subject, &self.relation, &self.object]),
        }
    }

    /// Returns an id that is derived from the fact's content and its first source entry. If any process learns
    /// the fact again, the new entry overwrites the old one. `None` for a fact without a source entry.
    pub(crate) fn content_id(&self, now: Timestamp) -> Option<String> {
        let source = self.sources.first()?;
        let since = self.since.unwrap_or(now);
        let content =
            json!([source, self.key(), normal(&self.object), since, self.until, self.ends, self.trust]);
        Some(hashed_id("fact", &content))
    }

    pub(crate) fn entry(&self, id: String, now: Timestamp) -> Result<MemoryEntry, MemoryError> {
        let parts = [&self.subject, &self.relation, &self.object].map(|part| part.trim());
        if let (false, Some(empty)) = (self.is_whole(), parts.iter().position(|part| part.is_empty())) {
            let problem = format!("the fact has no {}", ["subject", "relation", "object"][empty]);
            return Err(MemoryError::Invalid { id, problem });
        }
        let [subject, relation, object] = parts;
        let text = match self.ends {
            true => format!("{subject} no longer {relation} {object}").trim_end().to_owned(),
            false => parts.join(" "),
        };
        let mut entry = MemoryEntry::new(id.clone(), text, now);
        (entry.kind, entry.trust, entry.run) = (MemoryKind::Fact, self.trust, self.run.clone());
        (entry.key, entry.valid_from) = (Some(self.key()), Some(self.since.unwrap_or(now)));
        entry.valid_to = if self.ends { entry.valid_from } else { self.until };
        let problem = |e: serde_json::Error| MemoryError::Invalid { id, problem: e.to_string() };
        let fact = Self { until: entry.valid_to, ..self.clone() };
        entry.metadata.insert(FACT.to_owned(), serde_json::to_value(fact).map_err(problem)?);
        Ok(entry)
    }

    pub(crate) fn of(entry: &MemoryEntry) -> Option<Self> {
        let mut fact: Self = serde_json::from_value(entry.metadata.get(FACT)?.clone()).ok()?;
        (fact.since, fact.until) = (entry.valid_from, entry.valid_to);
        (fact.run, fact.trust) = (entry.run.clone(), entry.trust);
        Some(fact)
    }

    /// Returns the end time that the statement of the fact itself contains; later facts do not change it.
    pub(crate) fn own_end(entry: &MemoryEntry) -> Option<Timestamp> {
        // Without the fact's metadata only the entry's end is known.
        let Some(fact) = entry.metadata.get(FACT) else { return entry.valid_to };
        let fact: Self = serde_json::from_value(fact.clone()).ok()?;
        fact.until
    }
}

/// Makes an id from the content alone, so that the same content has the same id. SHA-256 prevents anyone
/// from writing a text with another text's id.
pub(crate) fn hashed_id(kind: &str, content: &Json) -> String {
    let hash = hmac_sha256::Hash::hash(content.to_string().as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}:{hex}")
}

const FACT: &str = "fact";
const SOURCES: &str = "sources";
const SAID_AGAIN: &str = "said_again";
/// The maximum number of times that are kept in `said_again`.
const MOST_TIMES: usize = 256;

/// Returns the timeline of an entry, as its collection and key; `None` if the entry is not a fact.
pub(crate) fn line_of(entry: &MemoryEntry) -> Option<(Collection, String)> {
    let key = entry.key.as_ref().filter(|_| entry.kind == MemoryKind::Fact)?;
    Some((entry.collection.clone(), key.clone()))
}

/// Returns the key of facts from its parts: subject, relation and, for some facts, object. The first parts
/// alone give a prefix of keys.
pub(crate) fn key_of(names: &[&str]) -> String {
    names.iter().map(|name| normal(name)).collect::<Vec<_>>().join(SEPARATOR)
}

/// Separator between the parts of a key.
pub(crate) const SEPARATOR: &str = "\u{1f}";

/// Normalizes a name for comparison: lower case, single spaces.
pub(crate) fn normal(name: &str) -> String {
    name.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Returns the normalized object of an entry; `None` if the entry is not a fact.
pub(crate) fn object_of(entry: &MemoryEntry) -> Option<String> {
    entry.metadata.get(FACT)?.get("object").and_then(Json::as_str).map(normal)
}

/// Returns the normalized object of the facts that an entry ends, which is empty if it ends all facts of its
/// timeline; `None` if the entry states a fact.
pub(crate) fn ended_object(entry: &MemoryEntry) -> Option<String> {
    let ends = entry.metadata.get(FACT)?.get("ends").and_then(Json::as_bool) == Some(true);
    object_of(entry).filter(|_| ends)
}

/// Returns true if an entry is a fact that was stated again after it began.
pub(crate) fn was_said_again(entry: &MemoryEntry) -> bool {
    entry.metadata.get(FACT).is_some_and(|fact| fact.get(SAID_AGAIN).is_some())
}

/// Returns the updated entry of a known fact that was stated again; `None` if neither its sources nor its times
/// change. A statement without a source entry removes all sources, so that the fact is no longer forgotten with
/// them. A statement with a lower trust level changes nothing.
pub(crate) fn restated(known: &MemoryEntry, again: &Fact, at: Timestamp) -> Option<MemoryEntry> {
    let before = Fact::of(known).filter(|_| again.trust >= known.trust)?;
    let mut fact = before.clone();
    if !fact.sources.is_empty() {
        let new: Vec<_> = again.sources.iter().filter(|id| !before.sources.contains(id)).cloned().collect();
        fact.sources.extend(new);
        if again.sources.is_empty() {
            fact.sources.clear();
        }
    }
    if let (true, Err(place)) = (known.valid_from < Some(at), fact.said_again.binary_search(&at)) {
        fact.said_again.insert(place, at);
        fact.said_again.drain(..fact.said_again.len().saturating_sub(MOST_TIMES));
    }
    if fact == before { None } else { rewritten(known, &fact) }
}

/// Returns the entry of a fact with the sources and times of `fact`.
pub(crate) fn rewritten(entry: &MemoryEntry, fact: &Fact) -> Option<MemoryEntry> {
    let mut entry = entry.clone();
    let written = entry.metadata.get_mut(FACT)?.as_object_mut()?;
    match fact.sources.is_empty() {
        true => written.remove(SOURCES),
        false => written.insert(SOURCES.to_owned(), fact.sources.clone().into()),
    };
    match fact.said_again.is_empty() {
        true => written.remove(SAID_AGAIN),
        false => written.insert(SAID_AGAIN.to_owned(), serde_json::to_value(&fact.said_again).ok()?),
    };
    Some(entry)
}
