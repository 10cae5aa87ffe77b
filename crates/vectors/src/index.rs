//! An index of vectors by group and row, searched by cosine similarity.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap, HashMap},
    ops::{Bound, Range},
};

use crate::quantized::{Quantized, dot};

/// A set of vectors with the same number of dimensions. Each vector has a row number and a group. A group
/// name has levels with `:` between them: the group `notes:paris` is within the group `notes`. A search
/// covers one group, or one group and all groups within it.
///
/// ```
/// use archon_vectors::{GroupRange, VectorIndex};
///
/// let mut index = VectorIndex::new(2); // dimensions
/// index.insert("notes", 7, &[0.6, 0.8]);
/// assert_eq!(index.nearest(&GroupRange::of("notes"), &[0.6, 0.8], 1, |_| true)[0].row, 7);
/// ```
#[derive(Clone, Debug, Default)]
pub struct VectorIndex {
    dimensions: usize,
    groups: BTreeMap<String, Group>,
    rows: usize,
}

/// The vectors of one group, contiguous in memory so that a scan is fast.
#[derive(Clone, Debug, Default)]
struct Group {
    values: Vec<i8>,
    scales: Vec<f32>,
    rows: Vec<u64>,
    slots: HashMap<u64, usize>,
}

/// A row that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// The row number with which the vector was inserted.
    pub row: u64,
    /// The cosine similarity, from -1 to 1; wrong by at most about 0.01.
    pub cosine: f32,
}

/// The groups of a search: one group, or one group and all groups within it. The name of a group within
/// `notes` begins with `notes:`, so these names lie between `from` = `notes:` and `to` = `notes;` (`;` is the
/// byte after `:`). An ordered map or an SQL index can search this range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRange {
    /// The name of the group itself. An empty name means all groups if `to` is `None`.
    pub name: String,
    /// The start, inclusive, of the names within the group: `notes:` for the group `notes`. Equal to `to` for
    /// a range without inner groups.
    pub from: String,
    /// The end, exclusive, of the names within the group: `notes;` for the group `notes`. `None` for all groups.
    pub to: Option<String>,
}

impl GroupRange {
    /// Creates the range of a group and all groups within it. An empty name means all groups.
    pub fn of(name: &str) -> Self {
        match name {
            "" => Self { name: String::new(), from: String::new(), to: None },
            _ => Self { name: name.to_owned(), from: format!("{name}:"), to: Some(format!("{name};")) },
        }
    }

    /// Creates the range of this group alone. An empty name means the group with the empty name.
    pub fn only(name: &str) -> Self {
        let name = name.to_owned();
        Self { from: name.clone(), to: Some(name.clone()), name }
    }

    /// Returns the entries of an ordered map whose keys are in the range.
    pub fn select<'a, T>(&self, map: &'a BTreeMap<String, T>) -> impl Iterator<Item = (&'a String, &'a T)> {
        let upper = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let itself = self.to.as_ref().and_then(|_| map.get_key_value(&self.name));
        itself.into_iter().chain(map.range::<str, _>((Bound::Included(self.from.as_str()), upper)))
    }
}

impl VectorIndex {
    /// Creates an empty index for vectors of `dimensions` dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, ..Self::default() }
    }

    /// Returns the number of dimensions of the vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if the index has no vectors.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a vector. If the group already has a vector with this row number, it is replaced. Returns false
    /// and adds nothing if the vector has another number of dimensions than the index.
    pub fn insert(&mut self, group: &str, row: u64, vector: &[f32]) -> bool {
        let Quantized { values, scale } = Quantized::of(vector);
        let bytes: Vec<u8> = values.iter().map(|value| value.cast_unsigned()).collect();
        self.insert_bytes(group, row, &bytes, scale)
    }

    /// Inserts a stored [`Quantized`] vector like [`insert`](Self::insert): `bytes` are its `values` as two's
    /// complement bytes, and `scale` is its `scale`.
    pub fn insert_bytes(&mut self, group: &str, row: u64, bytes: &[u8], scale: f32) -> bool {
        if bytes.len() != self.dimensions {
            return false;
        }
        if !self.groups.contains_key(group) {
            self.groups.insert(group.to_owned(), Group::default());
        }
        let Some(group) = self.groups.get_mut(group) else { return false };
        let slot = *group.slots.entry(row).or_insert(group.rows.len());
        let values = bytes.iter().map(|byte| byte.cast_signed());
        if slot == group.rows.len() {
            group.rows.push(row);
            group.scales.push(scale);
            group.values.extend(values);
            self.rows += 1;
        } else {
            group.scales[slot] = scale;
            let old = &mut group.values[slot * self.dimensions..][..self.dimensions];
            old.iter_mut().zip(values).for_each(|(old, new)| *old = new);
        }
        true
    }

    /// Removes the vector with this row number from the group. Returns false if there is none.
    pub fn remove(&mut self, group: &str, row: u64) -> bool {
        let Some(part) = self.groups.get_mut(group) else { return false };
        let Some(slot) = part.slots.remove(&row) else { return false };
        let (n, last) = (self.dimensions, part.rows.len() - 1);
        part.rows.swap_remove(slot);
        part.scales.swap_remove(slot);
        part.values.copy_within(last * n..(last + 1) * n, slot * n);
        part.values.truncate(last * n);
        if let Some(moved) = part.rows.get(slot) {
            part.slots.insert(*moved, slot);
        }
        if part.rows.is_empty() {
            self.groups.remove(group);
        }
        self.rows -= 1;
        true
    }

    /// Returns the `count` rows of these groups with the highest cosine similarity, the highest first; rows
    /// of equal similarity are ordered by row number. Only rows for which `keep` returns true are returned;
    /// it is called only for rows that would be among the nearest. A vector of zeros is never returned.
    ///
    /// The order of the quantized vectors differs from the exact order by a few places. To get the exact
    /// nearest `k` rows, request `4 * k + 16` rows and sort them by the exact cosine of your own vectors.
    pub fn nearest(
        &self,
        groups: &GroupRange,
        vector: &[f32],
        count: usize,
        keep: impl Fn(u64) -> bool + Sync,
    ) -> Vec<Near> {
        let query = Quantized::of(vector);
        if query.values.len() != self.dimensions || query.scale == 0.0 || count == 0 {
            return Vec::new();
        }
        let wide: Vec<i16> = query.values.iter().map(|x| i16::from(*x)).collect();
        let scan = Scan { dimensions: self.dimensions, wide: &wide, scale: query.scale, count, keep: &keep };
        let groups: Vec<&Group> = groups.select(&self.groups).map(|(_, group)| group).collect();
        let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
        let mut best = match threads(rows) {
            1 => scan.nearest(&Part { groups: &groups, first: 0, rows }),
            threads => scan.in_threads(&groups, rows, threads),
        };
        best.sort_unstable();
        best.truncate(count);
        best.into_iter().map(|worst| worst.0).collect()
    }
}

/// The number of rows that is worth a thread of its own: a few tenths of a millisecond of work.
const ROWS_OF_A_THREAD: usize = 16 * 1024;

/// The maximum number of threads of one search. The scan is limited by memory bandwidth, so more threads do
/// not help.
const MOST_THREADS: usize = 4;

fn threads(rows: usize) -> usize {
    match rows / ROWS_OF_A_THREAD {
        0 | 1 => 1,
        worth => {
            let there = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            worth.min(there).min(MOST_THREADS)
        }
    }
}

/// The input that all parts of one search share.
struct Scan<'a, K> {
    dimensions: usize,
    wide: &'a [i16],
    scale: f32,
    count: usize,
    keep: &'a K,
}

/// A range of `rows` rows from the row `first` on, counted through all groups as one list.
struct Part<'a> {
    groups: &'a [&'a Group],
    first: usize,
    rows: usize,
}

impl<K: Fn(u64) -> bool + Sync> Scan<'_, K> {
    fn in_threads(&self, groups: &[&Group], rows: usize, threads: usize) -> Vec<Worst> {
        let each = rows.div_ceil(threads);
        let part = |first: usize| Part { groups, first, rows: each.min(rows - first) };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|n| part((n * each).min(rows)))
                .map(|part| scope.spawn(move || self.nearest(&part)))
                .collect();
            let mut best = self.nearest(&part(0));
            for other in others {
                match other.join() {
                    Ok(more) => best.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            best
        })
    }

    /// Returns the nearest rows of a part, in no particular order.
    fn nearest(&self, part: &Part<'_>) -> Vec<Worst> {
        let mut best: BinaryHeap<Worst> = BinaryHeap::with_capacity(self.count.min(part.rows) + 1);
        let (mut skip, mut remaining) = (part.first, part.rows);
        for group in part.groups {
            let from = skip.min(group.rows.len());
            let to = group.rows.len().min(from + remaining);
            (skip, remaining) = (skip - from, remaining - (to - from));
            self.scan(group, from..to, &mut best);
        }
        best.into_vec()
    }

    fn scan(&self, group: &Group, slots: Range<usize>, best: &mut BinaryHeap<Worst>) {
        let values = &group.values[slots.start * self.dimensions..slots.end * self.dimensions];
        for (slot, values) in slots.zip(values.chunks_exact(self.dimensions)) {
            let scale = group.scales[slot];
            #[allow(clippy::cast_precision_loss, reason = "good to 24 bits, far finer than the bytes")]
            let cosine = dot(self.wide, values) as f32 * scale * self.scale;
            let near = Near { row: group.rows[slot], cosine };
            let full = best.len() == self.count;
            if scale == 0.0 || (full && best.peek().is_some_and(|worst| Worst(near) >= *worst)) {
                continue;
            }
            if (self.keep)(near.row) {
                if full {
                    best.pop();
                }
                best.push(Worst(near));
            }
        }
    }
}

/// A found row in reverse order: the greatest element is the worst row, which is dropped first.
#[derive(PartialEq)]
struct Worst(Near);

impl Eq for Worst {}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cosine.total_cmp(&self.0.cosine).then(self.0.row.cmp(&other.0.row))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cosine;

    fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            #[allow(clippy::cast_precision_loss, reason = "a test")]
            let unit = (state >> 40) as f32 / (1_u64 << 24) as f32;
            unit - 0.5
        };
        (0..dimensions).map(|_| next() + next() + next()).collect()
    }

    // spec: M-06
    #[test]
    fn more_rows_ordered_exactly_are_the_exact_nearest() {
        let vectors: Vec<_> = (0..3000).map(|i| vector(i, 96)).collect();
        let mut index = VectorIndex::new(96);
        for (row, vector) in (0..).zip(&vectors) {
            assert!(index.insert(if row % 2 == 0 { "a" } else { "b" }, row, vector));
        }
        let (mut same, mut all) = (0, 0);
        for seed in 5000..5050 {
            let query = vector(seed, 96);
            let exact = |row: u64| cosine(&query, &vectors[usize::try_from(row).unwrap()]);
            let order = |mut rows: Vec<u64>| {
                rows.sort_by(|a, b| exact(*b).total_cmp(&exact(*a)));
                rows.truncate(10);
                rows
            };
            let found = index.nearest(&GroupRange::of(""), &query, 56, |_| true);
            assert!(found.iter().all(|near| (near.cosine - exact(near.row)).abs() < 0.01));
            let expected = order((0..3000).collect());
            let found = order(found.iter().map(|near| near.row).collect());
            same += expected.iter().filter(|row| found.contains(row)).count();
            all += 10;
        }
        assert!(same * 1000 >= all * 998, "{same} of {all}");
    }

    // spec: M-06
    #[test]
    fn many_rows_are_searched_side_by_side_with_the_same_answer() {
        let mut index = VectorIndex::new(4);
        let rows = ROWS_OF_A_THREAD as u64 * 3 + 7;
        for row in 0..rows {
            index.insert(["a", "a:b", "c"][usize::try_from(row % 3).unwrap()], row, &vector(row, 4));
        }
        for (group, among) in [("", vec![0, 1, 2]), ("a", vec![0, 1]), ("c", vec![2])] {
            let query = vector(rows + 1, 4);
            let found = index.nearest(&GroupRange::of(group), &query, 40, |row| row % 5 != 0);
            let wide: Vec<i16> = Quantized::of(&query).values.iter().map(|x| i16::from(*x)).collect();
            let mut all: Vec<Worst> = (0..rows)
                .filter(|row| among.contains(&(row % 3)) && row % 5 != 0)
                .map(|row| {
                    let stored = Quantized::of(&vector(row, 4));
                    #[allow(clippy::cast_precision_loss, reason = "a test")]
                    let cosine =
                        dot(&wide, &stored.values) as f32 * stored.scale * Quantized::of(&query).scale;
                    Worst(Near { row, cosine })
                })
                .collect();
            all.sort_unstable();
            all.truncate(40);
            assert!(found.iter().zip(&all).all(|(found, all)| *found == all.0), "{group}");
            assert_eq!(found.len(), 40);
        }
    }

    // spec: M-27
    #[test]
    fn a_search_sees_its_groups_only() {
        let mut index = VectorIndex::new(2);
        let names = ["team:eng", "team:eng:alice", "team:engine", "team", "team:eng;x", "user:x"];
        for (row, name) in (0..).zip(names) {
            index.insert(name, row, &[1.0, 0.0]);
        }
        let rows = |group| -> Vec<u64> {
            index.nearest(&GroupRange::of(group), &[1.0, 0.0], 9, |_| true).iter().map(|n| n.row).collect()
        };
        assert_eq!(rows("team:eng"), [0, 1]);
        assert_eq!(rows("team:engine"), [2]);
        assert_eq!(rows("team"), [0, 1, 2, 3, 4]);
        assert_eq!(rows("nobody"), [0; 0]);
        assert_eq!(rows(""), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn vector_index_insert_of_a_vector_of_another_length_is_ignored() {
        let mut index = VectorIndex::new(2);
        assert!(!index.insert("a", 1, &[1.0]));
        assert!(index.insert("a", 2, &[0.0, 0.0]));
        assert!(index.nearest(&GroupRange::of("a"), &[1.0, 0.0], 3, |_| true).is_empty());
        assert!(index.nearest(&GroupRange::of("a"), &[1.0], 3, |_| true).is_empty());
        assert_eq!(index.len(), 1);
    }

    proptest! {
        #[test]
        fn vector_index_after_random_changes_equals_a_plain_list(steps in prop::collection::vec((0_u64..20, 0_u64..50, any::<bool>()), 0..200)) {
            let mut index = VectorIndex::new(8);
            let mut plain: BTreeMap<u64, u64> = BTreeMap::new();
            for (row, seed, insert) in steps {
                if insert {
                    index.insert("g", row, &vector(seed, 8));
                    plain.insert(row, seed);
                } else {
                    prop_assert_eq!(index.remove("g", row), plain.remove(&row).is_some());
                }
            }
            prop_assert_eq!(index.len(), plain.len());
            let query = vector(99, 8);
            let found = index.nearest(&GroupRange::of("g"), &query, 100, |_| true);
            prop_assert_eq!(found.len(), plain.len());
            for near in found {
                let exact = cosine(&query, &vector(plain[&near.row], 8));
                prop_assert!((near.cosine - exact).abs() < 0.02);
            }
        }
    }
}
