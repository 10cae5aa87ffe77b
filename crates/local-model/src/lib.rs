//! Runs a small language model in process, as a [`Provider`](archon_types::Provider).
#[cfg(feature = "engine")]
mod copying;
#[cfg(feature = "engine")]
mod engine;
mod error;
mod grammar;
mod json_text;
#[cfg(feature = "engine")]
mod listener;
mod matcher;
#[cfg(feature = "engine")]
mod prompt;
#[cfg(feature = "engine")]
mod provider;
#[cfg(feature = "engine")]
mod reply;
#[cfg(feature = "engine")]
mod sampler;
mod schema;
#[cfg(feature = "engine")]
mod vocabulary;
#[cfg(feature = "engine")]
mod worked;
#[cfg(feature = "engine")]
pub use engine::{Engine, EngineOptions};
pub use error::*;
pub use grammar::*;
pub use matcher::*;
#[cfg(feature = "engine")]
pub use provider::*;
pub use schema::*;

mod catalogue;
pub use catalogue::*;
#[cfg(feature = "pull")]
mod pull;
#[cfg(feature = "pull")]
pub use pull::*;
#[cfg(all(test, feature = "pull"))]
mod pull_tests;
#[cfg(test)]
mod schema_tests;
