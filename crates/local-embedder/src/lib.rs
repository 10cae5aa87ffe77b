//! Embeds texts in this process: no service, no native library, no network.
//!
//! Use this crate alone to embed texts without a service.
//!
//! | embedder | is | files |
//! |---|---|---|
//! | [`MiniLm`] | all-MiniLM-L6-v2: 22 million parameters, vectors of 384 numbers, English | 91 MB: `archon model pull all-minilm-l6-v2` |
//! | [`WordTable`] | WordLlama's table of word pieces: vectors of 256 numbers, mostly English, some microseconds for a sentence | 18 MB: `archon model pull wordllama-256` |
//!
//! The files are not part of this crate.
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
//! MiniLM cuts a text into word pieces, of which it uses the first 256. Six layers of attention make a vector of
//! each piece; the text's vector is their mean, scaled to length 1. (Wang and others, "MiniLM", 2020; Reimers
//! and Gurevych, "Sentence-BERT", 2019.)

mod bert;
mod blocking;
mod error;
mod mini_lm;
mod word_table;

pub use error::LocalEmbedderError;
pub use mini_lm::{MINI_LM, MiniLm};
pub use word_table::{WORD_TABLE, WordTable};

#[cfg(test)]
mod tests;
