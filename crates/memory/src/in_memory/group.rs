//! The entries of one collection, indexed by position, id and word.

use std::collections::{BTreeMap, HashMap};

use archon_types::{MemoryEntry, MemoryFilter};

use crate::rank::Analyzer;

#[derive(Default)]
pub(super) struct Group {
    entries: BTreeMap<u64, MemoryEntry>,
    ids: HashMap<String, u64>,
    /// The number of times that each word occurs, by the position of the entry.
    words: HashMap<String, BTreeMap<u64, u32>>,
    /// The number of words of each entry.
    lengths: HashMap<u64, u32>,
    total: u64,
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn at(&self, position: u64) -> Option<&MemoryEntry> {
        self.entries.get(&position)
    }

    /// Returns an entry for a change. Its text and position must not change, since they are indexed.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut MemoryEntry> {
        self.entries.get_mut(self.ids.get(id)?)
    }

    /// Returns the entries that a filter may match, before the filter is applied: all entries, or those with
    /// the filter's ids.
    pub(super) fn chosen<'a>(
        &'a self,
        filter: &'a MemoryFilter,
    ) -> Box<dyn Iterator<Item = &'a MemoryEntry> + 'a> {
        if filter.ids.is_empty() {
            return Box::new(self.entries.values());
        }
        Box::new(filter.ids.iter().filter_map(|id| self.entries.get(self.ids.get(id)?)))
    }

    pub(super) fn put(&mut self, entry: MemoryEntry) {
        let mut length = 0;
        for word in Analyzer::default().terms(&entry.content) {
            *self.words.entry(word).or_default().entry(entry.position).or_default() += 1;
            length += 1;
        }
        self.lengths.insert(entry.position, length);
        self.total += u64::from(length);
        self.ids.insert(entry.id.clone(), entry.position);
        self.entries.insert(entry.position, entry);
    }

    pub(super) fn take(&mut self, id: &str) -> Option<MemoryEntry> {
        let position = self.ids.remove(id)?;
        let entry = self.entries.remove(&position)?;
        for word in Analyzer::default().terms(&entry.content) {
            if let Some(places) = self.words.get_mut(&word) {
                places.remove(&position);
                if places.is_empty() {
                    self.words.remove(&word);
                }
            }
        }
        self.total -= u64::from(self.lengths.remove(&position).unwrap_or_default());
        Some(entry)
    }
}

/// Scores entries by BM25, with these groups as one collection of texts, k1 = 1.2 and b = 0.75: Robertson
/// and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the inverse document frequency kept
/// above zero.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "scores are estimates")]
pub(super) fn scores<'a>(
    groups: &[&'a Group],
    asked: &[String],
    filter: &MemoryFilter,
) -> Vec<(&'a MemoryEntry, f32)> {
    let entries: usize = groups.iter().map(|group| group.entries.len()).sum();
    let average = groups.iter().map(|group| group.total).sum::<u64>() as f64 / entries.max(1) as f64;
    let mut sums: HashMap<u64, (&MemoryEntry, f64)> = HashMap::new();
    for word in asked {
        let with = groups.iter().filter_map(|group| group.words.get(word)).map(BTreeMap::len).sum::<usize>();
        let rarity = ((entries - with) as f64 + 0.5) / (with as f64 + 0.5);
        let rarity = rarity.ln_1p();
        for group in groups {
            for (position, times) in group.words.get(word).into_iter().flatten() {
                let Some(entry) = group.entries.get(position) else { continue };
                let length = f64::from(group.lengths.get(position).copied().unwrap_or_default());
                let times = f64::from(*times);
                let part = times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average.max(1.0)));
                sums.entry(*position).or_insert((entry, 0.0)).1 += rarity * part;
            }
        }
    }
    let fitting = sums.into_values().filter(|(entry, _)| filter.fits(entry));
    fitting.map(|(entry, sum)| (entry, sum as f32)).collect()
}
