//! Random ids, which are the default outside of tests.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use archon_types::Ids;

/// Random ids that sort by time: version 7 UUIDs.
///
/// ```
/// use archon::{RandomIds, types::Ids};
///
/// assert!(RandomIds.fresh("run").starts_with("run_"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn fresh(&self, prefix: &str) -> String {
        // Each new hasher has other random keys.
        let random = RandomState::new().build_hasher().finish();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{prefix}_{:032x}", version_7(since_epoch, random))
    }
}

/// Returns a version 7 UUID (RFC 9562, 5.7): 48 bits of milliseconds; the version; in 12 bits the fraction of
/// the millisecond (6.2, method 3), so that ids of one millisecond sort too; the variant; 62 random bits.
fn version_7(since_epoch: Duration, random: u64) -> u128 {
    let millis = since_epoch.as_millis() & ((1 << 48) - 1);
    let fraction = u128::from(since_epoch.subsec_nanos() % 1_000_000) * 4096 / 1_000_000;
    let random = u128::from(random >> 2);
    millis << 80 | 7 << 76 | fraction << 64 | 0b10 << 62 | random
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_version_7_uuids_that_sort_by_time() {
        // The example in appendix A.6 of RFC 9562, without its random bits.
        let millis = 0x017F_22E2_79B0_u64;
        let id = version_7(Duration::from_millis(millis), u64::MAX);
        assert_eq!(format!("{id:032x}"), "017f22e279b07000bfffffffffffffff");
        let half = version_7(Duration::from_millis(millis) + Duration::from_micros(500), 0);
        assert_eq!(format!("{half:032x}"), "017f22e279b078008000000000000000");
        assert!(half > id);
        let ids: BTreeSet<String> = (0..100_000).map(|_| RandomIds.fresh("run")).collect();
        assert_eq!(ids.len(), 100_000);
        assert!(ids.iter().all(|id| id.len() == "run_".len() + 32 && id.starts_with("run_0")));
    }
}
