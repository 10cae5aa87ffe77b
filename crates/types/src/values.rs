//! Values that do not depend on agents: ids, time, hashes, secrets, and helpers for texts.
//!
//! Imports no other folder.

#[cfg(feature = "almost-json")]
pub mod almost_json;
mod content_hash;
mod debug_fields;
mod encoded;
mod from_text;
mod hidden;
mod ids;
mod named;
mod nearest;
mod refusal;
mod secret;
mod setters;
mod shorten;
mod this_machine;
mod time;
mod token_bucket;

#[cfg(feature = "almost-json")]
pub use almost_json::json_in;
pub use content_hash::ContentHash;
pub use encoded::Encoded;
pub use hidden::{is_hidden, one_line, printable, visible};
pub use ids::{
    AgentId, CallId, CommandId, Ids, LoopId, MessageId, RunId, SessionId, SubTaskId, TaskId, TenantId,
    ToolCallId, TurnId,
};
pub use nearest::{likeness, nearest};
pub use secret::Secret;
pub use shorten::shorten;
pub use this_machine::is_this_machine;
pub use time::{Clock, Timestamp, iso8601, not_before};
pub use token_bucket::TokenBucket;

pub(crate) use from_text::from_text;
pub(crate) use named::named;
pub(crate) use refusal::is_refusal;

/// Returns true if a value is the default of its type, so that serde leaves it out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
