//! Exports and imports memories as lines of JSON.

use std::collections::{HashMap, HashSet};

use archon_types::{
    Collection, Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    Trust,
};

use crate::{
    Fact, Memory, compress::UNTIL, knowledge::name, memory::Tries, rank::SESSION, task_memory::is_value,
};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The number of entries that were stored.
    pub stored: usize,
    /// The numbers of the refused lines, from 1, each with the reason.
    pub refused: Vec<(usize, String)>,
}

/// The number of lines that are written together.
const BATCH: usize = 500;

impl Memory {
    /// Returns all entries as lines of JSON, with vectors; ended facts and values of tasks are included.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn export(&self) -> Result<Vec<String>, MemoryError> {
        let line = |entry: &MemoryEntry| {
            let damaged =
                |e: serde_json::Error| MemoryError::Corrupt { id: entry.id.clone(), problem: e.to_string() };
            serde_json::to_string(entry).map_err(damaged)
        };
        self.all(MemoryFilter::all().of(&MemoryKind::WITH_CONTENT)).await?.iter().map(line).collect()
    }

    /// Stores the entries of JSON lines in the format of [`export`](Self::export). Invalid lines, and lines
    /// that the store refuses, are left out. `progress` gets the number of lines done so far.
    ///
    /// - A line's collection must be within this memory's collection.
    /// - A line's trust level is lowered to `trust`; a line replaces no entry with a higher trust level.
    /// - Values of tasks are imported only with `Trust::Trusted`.
    /// - Turns are refused for a session that already has turns with a higher trust level than `trust`.
    /// - Vectors of other embedders than this memory's are computed again, or left out without an embedder.
    /// - A summary replaces no turns in this store, since the positions of its turns are those of another store.
    ///
    /// # Errors
    /// Errors of the store that are not about a single line, and [`MemoryError::OutOfScope`]. Lines that were
    /// stored before the error stay.
    pub async fn import(
        &self,
        bytes: &[u8],
        trust: Trust,
        mut progress: impl FnMut(usize) + Send,
    ) -> Result<Imported, MemoryError> {
        let mut imported = Imported::default();
        let lines: Vec<(usize, &[u8])> = (1..).zip(bytes.split(|byte| *byte == b'\n')).collect();
        for batch in lines.chunks(BATCH) {
            let mut entries = Vec::new();
            for (number, line) in batch.iter().filter(|(_, line)| !line.trim_ascii().is_empty()) {
                match self.line(line, trust) {
                    Ok(entry) => entries.push((*number, entry)),
                    Err(problem) => imported.refused.push((*number, problem)),
                }
            }
            self.import_batch(entries, trust, &mut imported).await?;
            progress(batch.last().map_or(0, |(number, _)| *number));
        }
        imported.refused.sort();
        Ok(imported)
    }

    fn line(&self, line: &[u8], trust: Trust) -> Result<MemoryEntry, String> {
        let text = std::str::from_utf8(line)
            .map_err(|e| format!("the line is not valid UTF-8 from byte {} on", e.valid_up_to()))?;
        let entry: MemoryEntry = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut entry = entry.with_missing_filled(&*self.parts.ids, self.now());
        if entry.collection.is_root() {
            entry.collection = self.store().scope().clone();
        }
        entry.trust = entry.trust.min(trust);
        // Foreign vectors are made again: the first one would fix the length for all.
        if !self.has_own_vector(&entry) {
            (entry.embedder, entry.embedding) = (None, None);
        }
        entry.check().map_err(|e| e.to_string())?;
        match entry.kind {
            MemoryKind::Value => check_value(&entry, trust)?,
            MemoryKind::Fact => check_fact(&entry)?,
            MemoryKind::Forgotten => return Err("the entry is a marker of a deleted entry".to_owned()),
            _ => {}
        }
        Ok(entry)
    }

    /// Refuses turns of sessions that already have turns with a higher trust level than the import, since they would
    /// displace these. Returns expectations that make the write fail if another session gets such turns meanwhile.
    async fn without_trusted_turns(
        &self,
        entries: &mut Vec<(usize, MemoryEntry)>,
        trust: Trust,
        imported: &mut Imported,
    ) -> Result<Vec<MemoryChange>, MemoryError> {
        let more = match trust {
            Trust::Untrusted => Trust::Model,
            Trust::Model => Trust::Trusted,
            Trust::Trusted => return Ok(Vec::new()),
        };
        let sessions: HashSet<(Collection, String)> =
            entries.iter().filter_map(|(_, entry)| session_of(entry)).collect();
        let (mut believed, mut expected) = (HashSet::new(), Vec::new());
        for (collection, session) in sessions {
            let mut filter = MemoryFilter::all().of(&[MemoryKind::Turn]).exactly(&collection);
            filter.trust = more;
            filter.metadata.insert(SESSION.to_owned(), Json::String(session.clone()));
            let page = self.store().list(&Listing::new(filter.clone(), MemoryOrder::First, 1)).await?;
            // A damaged turn counts as trusted.
            if page.entries.is_empty() && page.damaged.is_empty() {
                expected.push(MemoryChange::Expect { filter, entries: Vec::new() });
            } else {
                believed.insert((collection, session));
            }
        }
        entries.retain(|(number, entry)| {
            let Some(of) = session_of(entry).filter(|of| believed.contains(of)) else { return true };
            imported.refused.push((
                *number,
                format!("the store has turns of session {} with a higher trust level", of.1),
            ));
            false
        });
        Ok(expected)
    }

    fn has_own_vector(&self, entry: &MemoryEntry) -> bool {
        let length = entry.embedding.as_ref().map(Vec::len);
        self.embedder().is_some_and(|own| {
            entry.embedder.as_deref() == Some(own.id()) && length == Some(own.dimensions())
        })
    }

    async fn import_batch(
        &self,
        entries: Vec<(usize, MemoryEntry)>,
        trust: Trust,
        imported: &mut Imported,
    ) -> Result<(), MemoryError> {
        if entries.is_empty() {
            return Ok(());
        }
        let (numbers, mut entries): (Vec<usize>, Vec<MemoryEntry>) = entries.into_iter().unzip();
        self.add_vectors(&mut entries).await;
        let lines: Vec<(usize, MemoryEntry)> = numbers.into_iter().zip(entries).collect();
        let _one_at_a_time = self.parts.facts.lock().await;
        match self.import_in_one(&lines, trust).await {
            Ok(done) => {
                imported.add(done);
                return Ok(());
            }
            Err(error @ MemoryError::OutOfScope { .. }) => return Err(error),
            Err(error) if lines.len() == 1 && !is_refusal(&error) => return Err(error),
            Err(_) => {}
        }
        // A refused entry must not make the whole batch fail.
        let mut failed = false;
        for line in &lines {
            match self.import_in_one(std::slice::from_ref(line), trust).await {
                Ok(done) => {
                    imported.add(done);
                    failed = false;
                }
                // Two failures in a row mean that the store itself has a problem.
                Err(error) if failed => return Err(error),
                Err(error) => {
                    failed = !is_refusal(&error);
                    imported.refused.push((line.0, error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Imports all lines except those that would replace an entry with a higher trust level; on an error,
    /// none. An imported fact ends other facts, or is ended by them, in the same way as a learnt one.
    async fn import_in_one(
        &self,
        lines: &[(usize, MemoryEntry)],
        trust: Trust,
    ) -> Result<Imported, MemoryError> {
        let mut filter = MemoryFilter::all();
        filter.ids = lines.iter().map(|(_, entry)| entry.id.clone()).collect();
        let mut tries = Tries::default();
        loop {
            let (mut before, as_read) = self.expected(filter.clone()).await?;
            let (mut imported, mut lines) = (Imported::default(), lines.to_vec());
            let mut changes = self.without_trusted_turns(&mut lines, trust, &mut imported).await?;
            let (mut entries, done) = with_trust(with_places_of(lines, &before), &before);
            imported.add(done);
            if entries.is_empty() {
                return Ok(imported);
            }
            before.retain(|known| entries.iter().any(|entry| name(entry) == name(known)));
            let (moved, lines_as_read) = self.knowledge().settled(&mut entries, &before).await?;
            changes.extend(lines_as_read);
            changes.push(as_read);
            entries.extend(moved);
            if self.attempt(entries, changes, &mut tries).await?.is_some() {
                return Ok(imported);
            }
        }
    }
}

/// Returns true if the error is about an entry rather than the store.
fn is_refusal(error: &MemoryError) -> bool {
    matches!(error, MemoryError::Invalid { .. })
}

impl Imported {
    fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.refused.extend(other.refused);
    }
}

/// Checks that a fact's key matches its content, because facts are compared by key.
fn check_fact(entry: &MemoryEntry) -> Result<(), String> {
    let is_other = Fact::of(entry).is_some_and(|fact| entry.key != Some(fact.key()));
    if is_other { Err("the key of the fact does not match its content".to_owned()) } else { Ok(()) }
}

/// Returns a turn's collection and session.
fn session_of(entry: &MemoryEntry) -> Option<(Collection, String)> {
    let session = entry.metadata.get(SESSION)?.as_str()?;
    (entry.kind == MemoryKind::Turn).then(|| (entry.collection.clone(), session.to_owned()))
}

fn check_value(entry: &MemoryEntry, trust: Trust) -> Result<(), String> {
    if trust < Trust::Trusted {
        return Err("a value of a task can be imported only with the trust level `trusted`".to_owned());
    }
    if !is_value(entry) {
        return Err(format!("the id {} does not match the value's task and key", entry.id));
    }
    let read: Result<Json, _> = serde_json::from_str(&entry.content);
    read.map(drop).map_err(|e| format!("the value is not JSON: {e}"))
}

/// Removes from imported summaries the position of the last turn that they replace, which is valid only in the store of
/// the export. A summary that this store already has keeps its position there.
fn with_places_of(
    mut entries: Vec<(usize, MemoryEntry)>,
    before: &[MemoryEntry],
) -> Vec<(usize, MemoryEntry)> {
    for (_, entry) in &mut entries {
        entry.metadata.remove(UNTIL);
        let same = |known: &&MemoryEntry| {
            (known.kind, &known.id, &known.content) == (entry.kind, &entry.id, &entry.content)
                && known.metadata.get(SESSION) == entry.metadata.get(SESSION)
                && known.collection == entry.collection
        };
        if let Some(place) = before.iter().find(same).and_then(|known| known.metadata.get(UNTIL)) {
            entry.metadata.insert(UNTIL.to_owned(), place.clone());
        }
    }
    entries
}

/// Refuses entries that would replace an entry with a higher trust level. Of several entries with the same
/// id, the last one is used.
fn with_trust(lines: Vec<(usize, MemoryEntry)>, before: &[MemoryEntry]) -> (Vec<MemoryEntry>, Imported) {
    let mut known: HashMap<_, Trust> = before.iter().map(|entry| (name(entry), entry.trust)).collect();
    let (mut entries, mut imported) = (Vec::<MemoryEntry>::new(), Imported::default());
    let mut places = HashMap::new();
    for (number, entry) in lines {
        let name = name(&entry);
        if known.get(&name).is_some_and(|trust| *trust > entry.trust) {
            let problem = format!("the stored entry {} has a higher trust level", entry.id);
            imported.refused.push((number, problem));
            continue;
        }
        imported.stored += 1;
        known.insert(name.clone(), entry.trust);
        match places.get(&name) {
            Some(place) => entries[*place] = entry,
            None => {
                places.insert(name, entries.len());
                entries.push(entry);
            }
        }
    }
    (entries, imported)
}
