//! Memories as lines of JSON, out of a store and into one.

use archon_types::{MemoryEntry, MemoryError, MemoryFilter, Trust};

use crate::Memory;

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Entries that are kept now.
    pub kept: usize,
    /// Lines that are not, from 1, and why.
    pub refused: Vec<(usize, String)>,
}

/// Lines that are kept together.
const BATCH: usize = 500;

impl Memory {
    /// Every entry as a line of JSON, closed ones too, with vectors; values of tasks as well.
    ///
    /// # Errors
    /// The store's.
    pub async fn export(&self) -> Result<Vec<String>, MemoryError> {
        let line = |entry: &MemoryEntry| {
            let damaged =
                |e: serde_json::Error| MemoryError::Corrupt { id: entry.id.clone(), problem: e.to_string() };
            serde_json::to_string(entry).map_err(damaged)
        };
        self.all(MemoryFilter::all()).await?.iter().map(line).collect()
    }

    /// Keeps the entries of lines of JSON, as [`export`](Self::export) writes them. A line that is none is left out and
    /// the others are kept. What a line says of its collection counts only within this memory's; what it says of its
    /// trust, only up to `trust`. `progress` is told how many lines are done.
    ///
    /// # Errors
    /// The store's. What was kept before stays.
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
                    Ok(entry) => entries.push(entry),
                    Err(problem) => imported.refused.push((*number, problem)),
                }
            }
            imported.kept += self.keep_checked(entries).await?;
            progress(batch.last().map_or(0, |(number, _)| *number));
        }
        Ok(imported)
    }

    fn line(&self, line: &[u8], trust: Trust) -> Result<MemoryEntry, String> {
        let text = std::str::from_utf8(line)
            .map_err(|e| format!("it is no UTF-8 from byte {} on", e.valid_up_to()))?;
        let entry: MemoryEntry = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut entry = entry.with_missing_filled(&*self.parts.ids, self.now());
        entry.trust = entry.trust.min(trust);
        // Its vector is made anew where nobody says whose it is.
        if entry.embedder.is_none() {
            entry.embedding = None;
        }
        entry.check().map_err(|e| e.to_string())?;
        Ok(entry)
    }

    async fn keep_checked(&self, entries: Vec<MemoryEntry>) -> Result<usize, MemoryError> {
        match entries.is_empty() {
            true => Ok(0),
            false => Ok(self.keep(entries).await?.len()),
        }
    }
}
