//! Runs a small language model in process, as a [`Provider`](archon_types::Provider).
#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod listener;
#[cfg(feature = "engine")]
mod provider;
mod copying; mod error; mod grammar; mod json_text; mod matcher; mod prompt; mod reply; mod sampler; mod schema; mod vocabulary; mod worked;
#[cfg(feature = "engine")]
pub use engine::{Engine, EngineOptions};
#[cfg(feature = "engine")]
pub use provider::*;
pub use error::*; pub use grammar::*; pub use matcher::*; pub use schema::*;
