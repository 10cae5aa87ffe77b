//! Run ids and other ids that are the same in every run of a test, so that whole logs can be compared.

use std::sync::atomic::{AtomicU64, Ordering};

use archon_types::Ids;

/// An id generator that counts: `run_00070001`, `run_00070002`, … for seed 7. Two seeds never share an id.
///
/// ```
/// use archon_testkit::SeededIds;
/// use archon_types::Ids;
///
/// assert_eq!(SeededIds::new(7).fresh("run"), SeededIds::new(7).fresh("run"));
/// ```
#[derive(Debug, Default)]
pub struct SeededIds {
    seed: u16,
    count: AtomicU64,
}

impl SeededIds {
    /// Creates a generator for one seed.
    pub fn new(seed: u16) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }
}

impl Ids for SeededIds {
    fn fresh(&self, prefix: &str) -> String {
        let n = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{prefix}_{:04x}{n:04x}", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_ids_and_no_id_twice() {
        let (a, b, other) = (SeededIds::new(7), SeededIds::new(7), SeededIds::new(8));
        let first = a.fresh("run");
        assert_eq!(first, "run_00070001");
        assert_eq!(b.fresh("run"), first);
        assert_ne!(a.fresh("run"), first);
        assert_ne!(other.fresh("run"), first);
    }
}
