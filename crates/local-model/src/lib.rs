//! Runs a small language model in this process, as a [`Provider`](archon_types::Provider).
//!
//! Use this crate alone for a model without a service: it is one provider.
//!
//! A model file comes from `pull` (checked, resumable) or from another source: any instruct GGUF file can be
//! used. A grammar constrains the model's output: a tool call always has the name of an existing tool, and
//! its arguments fit the tool's schema. The model chooses the values of the arguments, which may be wrong.
//!
//! ```no_run
//! # #[cfg(all(feature = "engine", feature = "pull"))]
//! # async fn example() -> Result<(), archon_local_model::LocalModelError> {
//! use archon_local_model::{
//!     DEFAULT, LocalEngineOptions, LocalModel, LocalModelOptions, PullOptions, prebuilt, pull, pull_engine,
//! };
//!
//! let options = PullOptions::from_env();
//! let file = pull(DEFAULT, "models".as_ref(), &options, |_| {}).await?;
//! let mut engine = LocalEngineOptions::default();
//! if let Some(prebuilt) = prebuilt() {
//!     engine = engine.with_folder(pull_engine(prebuilt, "engines".as_ref(), &options, |_| {}).await?);
//! }
//! let provider = LocalModel::load(&file, LocalModelOptions::default().with_engine(engine))?;
//! # let _ = provider;
//! # Ok(())
//! # }
//! ```
//!
//! A request is answered in four steps; the names in brackets are the modules. The prompt is written
//! (`prompt`, with `worked` examples). The kind of reply, an answer or a call of one tool, is chosen by
//! comparing probabilities (`provider`). The engine's thread writes the reply token by token under the
//! grammar (`engine`, `sampler`, `matcher`, `copying`). The reply is split into events while it arrives
//! (`reply`, `listener`). The engine keeps its context, so the next turn processes only its new tokens.
//!
//! # Limits
//!
//! A small model works best with few choices, so this crate makes some choices for the model:
//!
//! - After the first tool call that succeeds, the model answers; with `AfterResult::Free` the model decides.
//! - Of a tool's optional arguments, only those in the tool's first example are offered, and they are always
//!   given. A tool that should be called with an optional argument needs an example with that argument.
//! - If a schema sets no maximum length for a text or a list, `SchemaLimits` sets it.
//! - A reply has at most one tool call.
//!
//! | feature | provides | needs |
//! |---|---|---|
//! | `engine` | `LocalModel`, on a prebuilt llama.cpp | Linux with glibc 2.34 and libstdc++ of GCC 11 |
//! | `pull` | `pull` and `pull_engine` | nothing |
//! | `from-source` | the same engine, built with the program | cmake, a C++ compiler, libclang |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "engine")]
mod copying;
#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod engine_options;
#[cfg(feature = "engine")]
mod listener;
#[cfg(feature = "engine")]
mod llama;
#[cfg(any(feature = "engine", feature = "pull"))]
mod prebuilt;
#[cfg(feature = "engine")]
mod prompt;
#[cfg(feature = "engine")]
mod provider;
#[cfg(feature = "engine")]
mod repetition;
#[cfg(feature = "engine")]
mod reply;
#[cfg(feature = "engine")]
mod sampler;
#[cfg(feature = "engine")]
mod vocabulary;
#[cfg(feature = "engine")]
mod worked;

mod catalogue;
mod error;
// Tested without the engine, which must be downloaded separately.
#[cfg(any(feature = "engine", test))]
mod grammar;
#[cfg(any(feature = "engine", test))]
mod grammar_node;
#[cfg(any(feature = "engine", test))]
mod json_text;
#[cfg(any(feature = "engine", test))]
mod matcher;
#[cfg(feature = "pull")]
mod pull;
#[cfg(any(feature = "engine", test))]
mod schema;
#[cfg(any(feature = "engine", test))]
mod shortest;

#[cfg(all(test, feature = "pull"))]
mod pull_engine_tests;
#[cfg(all(test, feature = "pull"))]
mod pull_tests;
#[cfg(test)]
mod schema_tests;

pub use catalogue::{DEFAULT, EMBEDDERS, MODELS, Model, Terms, Wheel, find};
#[cfg(feature = "engine")]
pub use engine::{EngineInfo, open_engine};
#[cfg(feature = "engine")]
pub use engine_options::LocalEngineOptions;
pub use error::LocalModelError;
#[cfg(any(feature = "engine", feature = "pull"))]
pub use prebuilt::{Pinned, Prebuilt, prebuilt};
#[cfg(feature = "engine")]
pub use prompt::AfterResult;
#[cfg(feature = "engine")]
pub use provider::{LocalModel, LocalModelOptions};
#[cfg(feature = "pull")]
pub use pull::{PullOptions, PullProgress, engine_path, model_path, pull, pull_engine};
#[cfg(any(feature = "engine", test))]
pub use schema::SchemaLimits;
