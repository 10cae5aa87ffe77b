//! What somebody said of a subject, and the entry that it is kept as.

use archon_types::{Collection, Json, MemoryEntry, MemoryError, MemoryKind, RunId, Timestamp, Trust};
use serde::{Deserialize, Serialize};
use serde_json::json;

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
    /// them; which of them said it when is not known, so a time at which it was said again stays until then.
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
    pub(super) fn content_id(&self, now: Timestamp) -> Option<String> {
        let source = self.sources.first()?;
        let since = self.since.unwrap_or(now);
        let content = json!([source, self.key(), normal(&self.object), since, self.until, self.trust]);
        let hash = hmac_sha256::Hash::hash(content.to_string().as_bytes());
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(format!("fact:{hex}"))
    }

    pub(super) fn entry(&self, id: String, now: Timestamp) -> Result<MemoryEntry, MemoryError> {
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
    pub(super) fn own_end(entry: &MemoryEntry) -> Option<Timestamp> {
        // Of what does not say what it is nothing but its end is known.
        let Some(fact) = entry.metadata.get(FACT) else { return entry.valid_to };
        let fact: Self = serde_json::from_value(fact.clone()).ok()?;
        fact.until
    }
}

const FACT: &str = "fact";
const SOURCES: &str = "sources";
const SAID_AGAIN: &str = "said_again";
/// Times of a fact that are kept.
const MOST_TIMES: usize = 256;

/// Which timeline a fact is in.
pub(crate) fn line_of(entry: &MemoryEntry) -> Option<(Collection, String)> {
    let key = entry.key.as_ref().filter(|_| entry.kind == MemoryKind::Fact)?;
    Some((entry.collection.clone(), key.clone()))
}

/// The key of facts about these, or what it begins with.
pub(super) fn key_of(names: &[&str]) -> String {
    names.iter().map(|name| normal(name)).collect::<Vec<_>>().join(SEPARATOR)
}

/// Stands between the parts of a key.
pub(super) const SEPARATOR: &str = "\u{1f}";

/// How names are compared: without case, and with single spaces.
pub(crate) fn normal(name: &str) -> String {
    name.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The object of an entry that is a fact.
pub(super) fn object_of(entry: &MemoryEntry) -> Option<String> {
    entry.metadata.get(FACT)?.get("object").and_then(Json::as_str).map(normal)
}

/// Whether an entry is a fact that was said again after it began.
pub(super) fn was_said_again(entry: &MemoryEntry) -> bool {
    entry.metadata.get(FACT).is_some_and(|fact| fact.get(SAID_AGAIN).is_some())
}

/// A known fact after it was said again, if that changes what it rests on or how long it is known to hold. What is said
/// by itself rests on nothing else any more; what is believed less holds nothing up.
pub(super) fn said_again(known: &MemoryEntry, again: &Fact, at: Timestamp) -> Option<MemoryEntry> {
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

/// The entry of a fact that rests on other entries now, or was said at other times.
pub(super) fn rewritten(entry: &MemoryEntry, fact: &Fact) -> Option<MemoryEntry> {
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
