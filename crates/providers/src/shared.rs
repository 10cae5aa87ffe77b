//! The parts that the protocols share, in one place. For requests: JSON text, names, ids, schemas and messages.
//! For responses: the answer while it grows, its limits, and the classification of errors.

pub(crate) mod answer;
pub(crate) mod answer_limits;
pub(crate) mod blocks;
pub(crate) mod call_ids;
pub(crate) mod classify;
pub(crate) mod content_filter;
pub(crate) mod json_text;
pub(crate) mod media;
pub(crate) mod request;
pub(crate) mod schema_subset;
pub(crate) mod signature;
pub(crate) mod strict_schema;
pub(crate) mod token_counts;
pub(crate) mod tool_names;
pub(crate) mod turns;
