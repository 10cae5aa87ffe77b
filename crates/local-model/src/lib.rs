//! Runs a small language model in this process, as a [`Provider`](archon_types::Provider).
//!
//! A model file comes from `pull` (checked, resumable) or from anywhere: any instruct GGUF will do. What the
//! model writes is held by a grammar: a call names a tool that exists and its arguments fit the tool's
//! schema, or it does not come at all. Whether they are the right ones is another matter, and the model's.
//!
//! ```no_run
//! # #[cfg(all(feature = "engine", feature = "pull"))]
//! # async fn example() -> Result<(), archon_local_model::LocalModelError> {
//! use archon_local_model::{
//!     DEFAULT, EngineOptions, LocalModel, LocalModelOptions, PullOptions, prebuilt, pull, pull_engine,
//! };
//!
//! let options = PullOptions::from_env();
//! let file = pull(DEFAULT, "models".as_ref(), &options, |_| {}).await?;
//! let mut engine = EngineOptions::default();
//! if let Some(prebuilt) = prebuilt() {
//!     engine = engine.with_folder(pull_engine(prebuilt, "engines".as_ref(), &options, |_| {}).await?);
//! }
//! let provider = LocalModel::load(&file, LocalModelOptions::default().with_engine(engine))?;
//! # let _ = provider;
//! # Ok(())
//! # }
//! ```
//!
//! A request is answered in four steps: the prompt is written (`prompt`, with `worked` examples), the kind of
//! reply is chosen by comparing likelihoods (`provider`), the engine's thread writes it token by token under
//! the grammar (`engine`, `sampler`, `matcher`, `copying`), and it is taken apart into events while it comes
//! (`reply`, `listener`). What the engine has read it keeps: the next turn reads only what is new.
//!
//! # What it cannot do
//!
//! A small model does well what it has little choice in, so some choices are taken from it:
//!
//! - A question is answered after the first call that succeeds; `AfterResult::Free` lets the model decide.
//! - Of a tool's optional arguments it is offered those that the tool's first example shows, and no others; it always
//!   gives them. A tool that should be called with an optional argument needs an example that has it.
//! - Texts and lists whose schema gives no bound end where `SchemaLimits` says.
//! - A reply holds one call at the most.
//!
//! | feature | brings | needs |
//! |---|---|---|
//! | `engine` | `LocalModel`, on a prebuilt llama.cpp | Linux with glibc 2.34 and libstdc++ of GCC 11 |
//! | `pull` | `pull` and `pull_engine` | nothing |
//! | `from-source` | the same engine, built with the program | cmake, a C++ compiler, libclang |

#[cfg(feature = "engine")]
mod copying;
#[cfg(feature = "engine")]
mod engine;
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
// Tested without the engine, which has to be fetched.
#[cfg(any(feature = "engine", test))]
mod grammar;
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

pub use catalogue::{DEFAULT, EMBEDDERS, MODELS, Model, Source, Terms, Wheel, find};
#[cfg(feature = "engine")]
pub use engine::{EngineInfo, EngineOptions, open_engine};
pub use error::LocalModelError;
#[cfg(any(feature = "engine", feature = "pull"))]
pub use prebuilt::{Pinned, Prebuilt, prebuilt};
#[cfg(feature = "engine")]
pub use prompt::AfterResult;
#[cfg(feature = "engine")]
pub use provider::{LocalModel, LocalModelOptions};
#[cfg(feature = "pull")]
pub use pull::{Progress, PullOptions, engine_path, model_path, pull, pull_engine};
#[cfg(any(feature = "engine", test))]
pub use schema::SchemaLimits;
