//! Providers of models: requests, answers, errors and prices.
//!
//! Imports only `memory` and the folders below it.

mod failure_kind;
mod price;
mod provider;
mod provider_wrapper;
mod reads;

pub use failure_kind::{FailureKind, ModelErrorCode};
pub use price::{LongPromptPrice, ModelPrice, format_money};
pub use provider::{
    ApiErrorKind, CacheConfig, CacheStrategy, CachedParts, Capabilities, ErrorText, ModelEvent, Provider,
    ProviderError, Request, RequestOptions, ResponseFormat, ThinkingLevel, ToolChoice,
};
pub use reads::Reads;
