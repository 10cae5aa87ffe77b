//! What the memories promise.

mod compression;
mod knowledge;
mod recall;
mod store;
mod support;
mod upkeep;
