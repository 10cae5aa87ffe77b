//! Converts the token counts of OpenAI's protocols, in which prompt tokens include cached tokens.

use archon_types::Usage;

/// Returns the usage with each token counted once. The argument's `input` counts the whole prompt, as in OpenAI's
/// protocols, so the cached tokens are subtracted from it.
///
/// Some gateways count differently, which their own numbers show. If the total is the sum of prompt, output and
/// cached tokens, the prompt does not include the cached tokens, and nothing is subtracted. If the tokens read from
/// and written to the cache exceed the prompt together, the tokens read include the written ones, which are then
/// subtracted from them.
pub(crate) fn with_cache_inside(mut usage: Usage) -> Usage {
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    let all = usage.input.saturating_add(usage.output);
    let is_beside = cached > 0 && usage.total_tokens == all.saturating_add(cached);
    if is_beside {
        return usage;
    }
    if cached > usage.input {
        usage.cache_read = usage.cache_read.saturating_sub(usage.cache_write);
    }
    usage.input = usage.input.saturating_sub(usage.cache_read.saturating_add(usage.cache_write));
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(input: u64, cache_read: u64, cache_write: u64, total_tokens: u64) -> (u64, u64, u64) {
        let usage = with_cache_inside(Usage { input, output: 10, cache_read, cache_write, total_tokens });
        (usage.input, usage.cache_read, usage.cache_write)
    }

    // spec: T-07
    #[test]
    fn with_cache_inside_counts_every_token_of_the_prompt_once() {
        assert_eq!(counted(2600, 2000, 400, 2610), (200, 2000, 400));
        assert_eq!(counted(100, 60, 0, 0), (40, 60, 0));
        // A new prompt, whose written tokens are reported as cached too.
        assert_eq!(counted(3438, 3435, 3435, 3448), (3, 0, 3435));
        // The prompt without cached tokens, and a total with them.
        assert_eq!(counted(26, 2000, 400, 2436), (26, 2000, 400));
        assert_eq!(counted(u64::MAX, u64::MAX, u64::MAX, 7), (0, u64::MAX, u64::MAX));
        assert_eq!(counted(0, 0, 0, 0), (0, 0, 0));
    }

    proptest::proptest! {
        #[test]
        fn parts_of_the_prompt_are_never_more_than_the_prompt(
            input in 0u64..1_000, read in 0u64..1_000, written in 0u64..1_000,
        ) {
            let usage = Usage { input, output: 5, cache_read: read, cache_write: written, total_tokens: input + 5 };
            let counted = with_cache_inside(usage);
            let parts = counted.input + counted.cache_read + counted.cache_write;
            // If the parts exceed the prompt, the parts are used.
            proptest::prop_assert!(parts == input || parts == counted.cache_read + counted.cache_write);
        }
    }
}
