//! Providers: connections to the services and engines that run models.
//!
//! Use this crate alone to speak to any model service through one trait; it needs no agent.
//!
//! Each protocol is one [`Provider`](archon_types::Provider); the differences between services of one
//! protocol are data ([`Profile`], [`Compat`]), not code.
//!
//! | item | description |
//! |---|---|
//! | [`OpenAiCompatible`] | chat completions, streamed: OpenAI and the many compatible services |
//! | `OpenAiResponses` | OpenAI's Responses, streamed, with the model's reasoning kept encrypted (feature `openai-responses`) |
//! | `Anthropic` | Anthropic's Messages, streamed |
//! | `Gemini`, `Vertex` | Gemini's generateContent, streamed, with a key or at Google Cloud (features `gemini`, `vertex`) |
//! | `AzureOpenAi` | both of OpenAI's protocols on Azure (feature `azure`) |
//! | `Bedrock` | Amazon Bedrock's ConverseStream, in binary messages, with signed requests (feature `bedrock`) |
//! | `OpenAiEmbedder`, `GeminiEmbedder` | vectors for texts |
//! | [`PROTOCOLS`] | the protocols with their names, including those that are not in this build |
//! | [`PROFILES`] | the known services and servers with their names |
//! | [`resolve`] | from `openai:gpt-5-mini` to a provider and the model's name |
//! | [`ask_local_servers`] | finds model servers on this machine |
//! | [`model_info`] | the facts about a model: context window, prices, thinking and vision |
//! | [`Catalogue`] | these facts, with a person's own models and prices added |
//! | [`ScriptedProvider`] | a model that gives the answers of a test's script |
//! | [`RecordingProvider`], [`ReplayProvider`] | records calls of a model in a file, and answers from that file |
//!
//! Providers never retry: the loop decides about retries, so that each attempt is recorded. A caller without
//! a loop uses wrappers; a wrapper is a provider around another provider:
//!
//! | wrapper | behaviour |
//! |---|---|
//! | [`RetryProvider`] | sends a request again after a failure that may pass |
//! | [`FallbackProvider`] | asks another model when one cannot answer |
//! | [`KeyRotationProvider`] | switches to the next key when one is refused |
//! | [`RateLimitProvider`] | delays calls to keep a rate limit |
//! | [`CachingProvider`] | gives the cached answer to a repeated request |
//! | [`CatalogueProvider`] | uses the context windows and prices that a person added to a catalogue |
//! | [`ThinkingTagsProvider`] | separates thinking between tags from the text |
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

// | concept | file |
// |---|---|
// | from a model string to a provider | `resolve.rs`, `protocols.rs`, `profile.rs` |
// | one protocol: its requests, its stream, its JSON | `anthropic.rs`, `anthropic/encode.rs`, `anthropic/decode.rs`, `anthropic/wire.rs`; the others alike |
// | the parts that protocols share | `shared.rs` and `shared/`; the answer that grows: `shared/answer.rs` |
// | HTTP: connections, streamed events, timeouts | `http.rs` and `http/`, `connect.rs` |
// | access tokens that expire | `token_source.rs` |
// | facts about models | `catalogue.rs` |
// | wrappers | `retry.rs`, `fallback.rs`, `key_rotation.rs`, `rate_limit.rs`, `response_cache.rs`, `thinking_tags.rs` |
// | recorded calls | `cassette.rs`, `recording.rs`, `replay.rs` |
// | the scripted model | `scripted.rs` |
// | embedders | `embed.rs` and `embed/` |
// | servers on this machine | `detect.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "openai-compatible",
        feature = "anthropic",
        feature = "vertex",
        feature = "azure",
        feature = "bedrock",
    )),
    allow(dead_code, unused_imports, unused_macros, reason = "protocols share more than each of them uses")
)]

mod attempts;
mod cassette;
mod catalogue;
mod error;
mod fallback;
mod key_rotation;
mod profile;
mod rate_limit;
mod recording;
mod replay;
mod response_cache;
mod retry;
mod scripted;
mod scrub;
mod tap;
mod think_tags;
mod thinking_tags;

#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "bedrock")]
mod bedrock;
#[cfg(feature = "http")]
mod connect;
#[cfg(feature = "openai-compatible")]
mod detect;
#[cfg(any(feature = "openai-compatible", feature = "gemini"))]
mod embed;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "http")]
mod http;
#[cfg(all(test, feature = "vertex", feature = "azure", feature = "bedrock"))]
mod media_tests;
#[cfg(feature = "openai-compatible")]
mod openai_compatible;
#[cfg(feature = "openai-responses")]
mod openai_responses;
#[cfg(feature = "http")]
mod protocols;
#[cfg(feature = "http")]
mod resolve;
#[cfg(feature = "http")]
mod shared;
#[cfg(any(feature = "azure", feature = "vertex"))]
mod token_source;
#[cfg(feature = "vertex")]
mod vertex;
#[cfg(all(test, feature = "http"))]
#[allow(dead_code, reason = "not every protocol's tests use all of it")]
mod wire_fixture;

#[cfg(feature = "http")]
use shared::{
    answer, answer_limits, blocks, call_ids, classify, content_filter, json_text, media, request,
    schema_subset, signature, strict_schema, token_counts, tool_names, turns,
};

/// The stream of a provider.
type Events = archon_types::BoxStream<'static, Result<archon_types::ModelEvent, archon_types::ProviderError>>;

pub use {
    catalogue::{
        Catalogue, CatalogueProvider, CatalogueSource, ModelInfo, catalogue_source, known_models, model_info,
        nearest_models,
    },
    error::SetupError,
    fallback::FallbackProvider,
    key_rotation::KeyRotationProvider,
    profile::{
        Compat, DocumentPart, MaxTokensField, Models, PROFILES, Profile, ReasoningField,
        ResponseFormatSupport, ResultMedia, SystemRole, ThinkingParameter, ToolCallIds, ToolChoiceSupport,
    },
    rate_limit::{RateLimitProvider, RateLimiter},
    recording::RecordingProvider,
    replay::ReplayProvider,
    response_cache::CachingProvider,
    retry::RetryProvider,
    scripted::{HistoryEntry, ScriptedProvider, Step, response_chain},
    thinking_tags::ThinkingTagsProvider,
};

#[cfg(feature = "anthropic")]
pub use anthropic::{
    ANTHROPIC_URL, Anthropic, AnthropicOptions, AnthropicTraits, ChangedHistory, ThinkingBudgets,
    ThinkingForm, ThinkingOff,
};
#[cfg(feature = "vertex")]
pub use vertex::{Vertex, VertexOptions, VertexPlace};

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
    answer_limits::AnswerLimits,
    classify::{OVERFLOW_PHRASES, is_context_overflow},
    connect::ConnectOptions,
    http::{HttpOptions, Timeouts, is_local_address},
    protocols::{PROTOCOLS, Protocol},
    resolve::{ModelRef, Resolved, connect, resolve},
};

#[cfg(feature = "openai-compatible")]
pub use {
    detect::{LocalServer, ServerAnswer, ask_local_servers},
    openai_compatible::{OpenAiCompatible, OpenAiOptions, read_chat_stream},
};

#[cfg(feature = "openai-responses")]
pub use openai_responses::{
    OpenAiResponses, ReasoningModels, ReasoningSummary, ResponsesCompat, ResponsesOptions,
};

#[cfg(any(feature = "azure", feature = "vertex"))]
pub use token_source::TokenSource;

#[cfg(feature = "azure")]
pub use azure::{AzureAddress, AzureApi, AzureAuth, AzureOpenAi, AzureOptions};

#[cfg(feature = "bedrock")]
pub use bedrock::{
    AwsCredentialSource, AwsCredentials, Bedrock, BedrockAuth, BedrockOptions, ModelFamily, StructuredOutput,
    count_event_stream_messages,
};
