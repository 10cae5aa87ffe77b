//! Ordering what a store found: pure functions from candidates with raw scores to one list.
