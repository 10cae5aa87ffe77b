//! An embedder without a model, for tests and for programs that have no model.

use archon_types::{BoxFuture, Embedder, MemoryError};

use crate::words::words;

/// An embedder that hashes words and their three-letter parts to positions of the vector, each with a sign
/// (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009). The same text always
/// gives the same vector. Texts that share words or parts of words are similar, whatever they mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashEmbedder;

impl HashEmbedder {
    /// The number of dimensions of the vectors.
    pub const DIMENSIONS: usize = 384;
    /// The embedder's id.
    pub const ID: &'static str = "hash:1:384";

    /// Returns the vector of a text, of length 1; all values are 0 for a text without words.
    pub fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; Self::DIMENSIONS];
        for word in words(text) {
            add(&mut vector, &word, 1.0);
            let marked: Vec<char> = format!("<{word}>").chars().collect();
            for part in marked.windows(3) {
                add(&mut vector, &part.iter().collect::<String>(), 0.4);
            }
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
        vector
    }
}

fn add(vector: &mut [f32], feature: &str, weight: f32) {
    let hash = fnv(feature);
    let place = usize::try_from((hash >> 1) % 384).unwrap_or(0);
    vector[place] += if hash & 1 == 0 { weight } else { -weight };
}

/// FNV-1a with 64 bits: <https://www.ietf.org/archive/id/draft-eastlake-fnv-17.html>. The high half is mixed
/// into the low bits at the end.
fn fnv(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

impl Embedder for HashEmbedder {
    fn id(&self) -> &str {
        Self::ID
    }

    fn dimensions(&self) -> usize {
        Self::DIMENSIONS
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move { Ok(texts.iter().map(|text| Self::vector(text)).collect()) })
    }
}
