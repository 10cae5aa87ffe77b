//! Draws a sample by a seed, so that a check can look at a part of a long list, and its failure can be repeated.

/// Returns `count` distinct items of `left`, or all of them if there are fewer, in the order of the draw.
pub(crate) fn draw<T>(mut left: Vec<T>, count: u64, seed: u64) -> Vec<T> {
    // SplitMix64: the same numbers on every machine and with every version of a library.
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut drawn = Vec::new();
    for _ in 0..count.min(left.len() as u64) {
        let place = usize::try_from(next() % left.len() as u64).unwrap_or(0);
        drawn.push(left.swap_remove(place));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_returns_distinct_items_that_the_seed_decides() {
        let items = || (0..50).collect::<Vec<u8>>();
        for seed in 0..20 {
            let mut drawn = draw(items(), 8, seed);
            assert_eq!(drawn, draw(items(), 8, seed));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), 8);
        }
        assert_ne!(draw(items(), 8, 1), draw(items(), 8, 2));
    }

    #[test]
    fn draw_of_more_than_there_are_returns_all() {
        let mut drawn = draw(vec![1, 2, 3], 9, 7);
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 2, 3]);
    }
}
