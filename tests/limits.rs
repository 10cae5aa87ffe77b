//! Limits of time, money, tokens and memory, and the cost of the loop itself.

pub(crate) mod last_words;
pub(crate) mod memory_limit;
pub(crate) mod overhead;
pub(crate) mod parallel_budget;
pub(crate) mod times;
pub(crate) mod uncounted;
