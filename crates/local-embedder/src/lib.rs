//! Embeds texts in this process: no service, no native library, no network.
//!
//! Use this crate alone to embed texts without a service.
//!
//! The model is all-MiniLM-L6-v2: 22 million parameters, vectors of 384 numbers, English. Its two files are not part
//! of this crate; `archon model pull all-minilm-l6-v2` fetches them, and [`MiniLm::in_folder`] reads them.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use archon_local_embedder::MiniLm;
//! use archon_types::Embedder;
//!
//! let embedder = MiniLm::in_folder("models".as_ref())?;
//! let vectors = embedder.embed(&["A man is eating food.".to_owned()]).await?;
//! assert_eq!(vectors[0].len(), 384);
//! # Ok(()) }
//! ```
//!
//! A text is cut into word pieces, of which the first 256 are used. Six layers of attention make a vector of
//! each piece; the text's vector is their mean, scaled to length 1. (Wang and others, "MiniLM", 2020; Reimers
//! and Gurevych, "Sentence-BERT", 2019.)

mod bert;
mod error;
mod mini_lm;

pub use error::LocalEmbedderError;
pub use mini_lm::{MINI_LM, MiniLm};

#[cfg(test)]
mod tests;
