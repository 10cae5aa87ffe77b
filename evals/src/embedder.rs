//! An embedder that remembers: each text is embedded once, also over several runs of this program.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use archon_types::{BoxFuture, Embedder, MemoryError};

/// MiniLM and the table of words, in the folder of models.
#[cfg(feature = "minilm")]
pub(crate) fn both(models: &Path) -> anyhow::Result<[Box<dyn Embedder>; 2]> {
    use archon_local_embedder::{MiniLm, WordTable};

    Ok([Box::new(MiniLm::in_folder(models)?), Box::new(WordTable::in_folder(models)?)])
}

/// The names of both and nothing else: they embed no text that is new.
#[cfg(not(feature = "minilm"))]
#[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
pub(crate) fn both(_: &Path) -> anyhow::Result<[Box<dyn Embedder>; 2]> {
    struct Absent(&'static str, usize);

    impl Embedder for Absent {
        fn id(&self) -> &str {
            self.0
        }

        fn dimensions(&self) -> usize {
            self.1
        }

        fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
            let problem =
                format!("{} texts are not in the file of vectors, the first: {}", texts.len(), texts[0]);
            Box::pin(async { Err(MemoryError::Embedding { embedder: self.id().to_owned(), problem }) })
        }
    }

    Ok([Box::new(Absent("all-minilm-l6-v2", 384)), Box::new(Absent("wordllama-256:1", 256))])
}

pub(crate) struct Remembering {
    inner: Box<dyn Embedder>,
    file: PathBuf,
    known: Mutex<HashMap<u64, Vec<f32>>>,
}

impl Remembering {
    /// With the vectors that are in `file`, if there is one.
    pub(crate) fn open(inner: Box<dyn Embedder>, file: PathBuf) -> Self {
        let size = 8 + 4 * inner.dimensions();
        let mut known = HashMap::new();
        for row in fs::read(&file).unwrap_or_default().chunks_exact(size) {
            let (key, numbers) = row.split_at(8);
            let numbers = numbers.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            known.insert(u64::from_le_bytes(key.try_into().unwrap_or_default()), numbers);
        }
        Self { inner, file, known: Mutex::new(known) }
    }

    fn get(&self, text: &str) -> Option<Vec<f32>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key(text)).cloned()
    }

    fn keep(&self, texts: &[String], vectors: &[Vec<f32>]) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        for (text, vector) in texts.iter().zip(vectors) {
            bytes.extend(key(text).to_le_bytes());
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(texts.iter().map(|text| key(text)).zip(vectors.iter().cloned()));
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.file)?;
        std::io::Write::write_all(&mut file, &bytes)
    }
}

impl Embedder for Remembering {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        Box::pin(async move {
            let new: Vec<String> = texts.iter().filter(|text| self.get(text).is_none()).cloned().collect();
            if !new.is_empty() {
                let vectors = self.inner.embed(&new).await.inspect_err(|error| eprintln!("{error}"))?;
                if let Err(error) = self.keep(&new, &vectors) {
                    eprintln!("vectors are not kept in {}: {error}", self.file.display());
                }
            }
            Ok(texts.iter().map(|text| self.get(text).unwrap_or_default()).collect())
        })
    }
}

/// FNV-1a with 64 bits: the same on each machine and for each version.
fn key(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |key, byte| (key ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
