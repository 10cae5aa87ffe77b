//! Models: how Archon talks to services and engines that run them.
//!
//! Each protocol is one [`Provider`](archon_types::Provider); what services of one protocol do
//! differently is data ([`Profile`], [`Compat`]), not code.
//!
//! | what | is |
//! |---|---|
//! | [`OpenAiCompatible`] | chat completions, streamed: OpenAI and the many that speak like it |
//! | [`Anthropic`] | Anthropic's Messages, streamed |
//! | `Gemini`, `Vertex` | Gemini's generateContent, streamed, with a key or at Google Cloud (features `gemini`, `vertex`) |
//! | [`OpenAiEmbedder`], `GeminiEmbedder` | vectors for texts |
//! | [`PROFILES`] | the services and servers that are known by name |
//! | [`resolve`] | from `openai:gpt-5-mini` to a provider and the model's name |
//! | [`ask_local_servers`] | what runs on this machine, and what was too slow to say so |
//! | [`ScriptedProvider`] | a model that says what a test wrote down |
//!
//! Providers never retry: the loop decides that, so that each attempt is recorded.
//!
//! ```
//! # #[cfg(feature = "openai-compatible")] {
//! use archon_providers::{OpenAiCompatible, OpenAiOptions};
//!
//! let options = OpenAiOptions::default().with_api_key("sk-secret");
//! let provider = OpenAiCompatible::new("https://api.example.com/v1", options).unwrap();
//! assert!(!format!("{provider:?}").contains("sk-secret"));
//! # }
//! ```

mod scripted;

#[cfg(feature = "http")]
#[allow(dead_code, reason = "not every protocol uses all of it")]
mod answer;
#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "http")]
mod classify;
#[cfg(feature = "openai-compatible")]
mod detect;
#[cfg(any(feature = "openai-compatible", feature = "gemini"))]
mod embed;
#[cfg(feature = "http")]
mod error;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod json_text;
#[cfg(feature = "openai-compatible")]
mod openai_compatible;
#[cfg(feature = "http")]
mod redact;
#[cfg(feature = "openai-compatible")]
mod resolve;
#[cfg(any(feature = "anthropic", feature = "gemini"))]
mod schema_subset;
#[cfg(feature = "http")]
#[allow(dead_code, reason = "not every protocol uses all of it")]
mod signature;
#[cfg(feature = "openai-compatible")]
mod think_tags;
#[cfg(feature = "http")]
mod tool_names;
#[cfg(feature = "vertex")]
mod vertex;
#[cfg(all(test, feature = "http"))]
#[allow(dead_code, reason = "not every protocol's tests use all of it")]
mod wire_fixture;

pub use scripted::{HistoryEntry, ScriptedProvider, Step, response_chain};

#[cfg(feature = "anthropic")]
pub use anthropic::{
    ANTHROPIC_URL, Anthropic, AnthropicOptions, AnthropicTraits, ChangedHistory, ThinkingBudgets,
    ThinkingForm, ThinkingOff,
};
#[cfg(feature = "vertex")]
pub use vertex::{TokenSource, Vertex, VertexOptions, VertexPlace};

#[cfg(any(feature = "openai-compatible", feature = "gemini"))]
pub use embed::EmbedderOptions;
#[cfg(feature = "gemini")]
pub use embed::GeminiEmbedder;
#[cfg(feature = "openai-compatible")]
pub use embed::OpenAiEmbedder;
#[cfg(feature = "gemini")]
pub use gemini::{GEMINI_URL, Gemini, GeminiOptions, SafetySetting};
#[cfg(feature = "http")]
pub use {
    classify::{OVERFLOW_PHRASES, is_context_overflow},
    error::SetupError,
    http::{HttpOptions, Timeouts, is_local_address},
};

#[cfg(feature = "openai-compatible")]
pub use {
    detect::{LocalServer, ServerAnswer, ask_local_servers},
    openai_compatible::{
        Compat, MaxTokensField, OpenAiCompatible, OpenAiOptions, PROFILES, Profile, ResponseFormatSupport,
        SystemRole,
    },
    resolve::{ModelRef, Resolved, openai_compatible_from, resolve},
};
