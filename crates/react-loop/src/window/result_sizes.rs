//! Average size of tool results, to estimate how many more results fit into the window.

use archon_types::ToolSpec;
use serde::{Deserialize, Serialize};

/// Number and total tokens of the latest tool results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultSizes {
    count: u64,
    tokens: u64,
    /// The estimated tokens of a result while there are no results; 0 in state that older versions stored.
    #[serde(default)]
    typical: u64,
}

impl ResultSizes {
    /// Creates the estimate for a run that has these tools and no results yet.
    pub(crate) fn of(tools: &[ToolSpec]) -> Self {
        let tokens =
            |name: &str| SIZES.iter().find(|(tool, _)| *tool == name).map_or(USUAL, |(_, size)| *size);
        let all: u64 = tools.iter().map(|tool| tokens(&tool.name)).sum();
        let typical = all.checked_div(tools.len() as u64).unwrap_or(USUAL);
        Self { typical, ..Self::default() }
    }

    /// Adds a result. After many results, the average so far counts as a single result, so that the average
    /// follows the current work.
    pub(crate) fn add(&mut self, tokens: u64) {
        if self.count > MOST {
            (self.count, self.tokens) = (1, self.average());
        }
        self.count += 1;
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Returns the average tokens of a result.
    pub(crate) fn average(self) -> u64 {
        let typical = if self.typical == 0 { USUAL } else { self.typical };
        self.tokens.checked_div(self.count).unwrap_or(typical)
    }
}

/// Assumed tokens of a result of a tool that is not in [`SIZES`].
const USUAL: u64 = 400;
/// Assumed tokens of a result of each tool whose results are usually larger or smaller.
const SIZES: [(&str, u64); 5] =
    [("read_file", 800), ("glob", 300), ("search", 600), ("write_file", 100), ("edit_file", 200)];
/// Number of counted results at which the count starts again with a single result of the average size.
const MOST: u64 = 100;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ContextUsage;

    fn with(names: &[&str]) -> ResultSizes {
        let tools: Vec<_> = names.iter().map(|name| ToolSpec::new(*name, "", json!({}))).collect();
        ResultSizes::of(&tools)
    }

    // spec: TE-26
    #[test]
    fn result_sizes_average_starts_from_the_tools_and_follows_the_results() {
        let usage = ContextUsage { tokens: 50_000, budget: 100_000 };
        let left = |sizes: ResultSizes| usage.remaining_calls(sizes.average());
        assert_eq!(
            (with(&[]).average(), with(&["bash"]).average(), with(&["mine"]).average()),
            (400, 400, 400)
        );
        assert_eq!(with(&["read_file", "write_file"]).average(), 450);
        assert_eq!(left(with(&["read_file"])), 50, "40,000 tokens are left without the tenth");
        let tight = ContextUsage { tokens: 80_000, budget: 100_000 };
        assert_eq!(tight.remaining_calls(with(&["read_file"]).average()), 12);
        let mut sizes = with(&["read_file"]);
        sizes.add(3_000);
        sizes.add(1_000);
        assert_eq!((sizes.average(), left(sizes)), (2_000, 20));
    }

    // spec: TE-26
    #[test]
    fn result_sizes_average_restarts_after_100_results() {
        let mut sizes = with(&[]);
        (0..101).for_each(|_| sizes.add(100));
        assert_eq!((sizes.count, sizes.average()), (101, 100));
        sizes.add(300);
        assert_eq!((sizes.count, sizes.average()), (2, 200));
        let stored: ResultSizes = serde_json::from_value(json!({ "count": 0, "tokens": 0 })).unwrap();
        assert_eq!(stored.average(), USUAL);
    }
}
