//! The model all-MiniLM-L6-v2 as an [`Embedder`].

use std::{path::Path, sync::Arc};

use archon_types::{BoxFuture, Embedder, MemoryError};
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use tokenizers::{Tokenizer, TruncationParams};

use crate::{
    bert::{Bert, Sizes, rows},
    blocking::{embed_in_thread, failed},
    error::{LocalEmbedderError, first_line, read},
};

/// The name of the model, which is also its [`Embedder::id`].
pub const MINI_LM: &str = "all-minilm-l6-v2";

const SIZES: Sizes =
    Sizes { vocabulary: 30_522, positions: 512, hidden: 384, between: 1536, layers: 6, heads: 12 };

/// The maximum number of word pieces of a text that are used: the model was trained with this length.
const MOST_PIECES: usize = 256;

/// The maximum number of bytes of a text that are tokenized. In any language, usual text reaches
/// `MOST_PIECES` pieces before that.
const MOST_BYTES: usize = 64 * 1024;

/// The number of texts that are embedded together.
const BATCH: usize = 16;

/// The embedder all-MiniLM-L6-v2. Clones share the weights, about 90 MB.
///
/// ```
/// use archon_local_embedder::{LocalEmbedderError, MiniLm};
///
/// fn load() -> Result<MiniLm, LocalEmbedderError> {
///     MiniLm::in_folder("models".as_ref())
/// }
/// ```
#[derive(Clone)]
pub struct MiniLm {
    model: Arc<Model>,
}

struct Model {
    bert: Bert,
    tokenizer: Tokenizer,
    hidden: usize,
}

archon_types::debug_fields!(MiniLm);

impl MiniLm {
    /// The number of dimensions of each vector: 384.
    pub const DIMENSIONS: usize = SIZES.hidden;

    /// Loads the model from the folder into which `archon model pull` downloads: the files
    /// `all-minilm-l6-v2.safetensors` and `all-minilm-l6-v2.tokenizer.json`. This reads 90 MB and takes about 0.1 s.
    ///
    /// # Errors
    /// [`LocalEmbedderError`] if a file cannot be read or does not belong to this model.
    pub fn in_folder(folder: &Path) -> Result<Self, LocalEmbedderError> {
        let file = |ending: &str| folder.join(format!("{MINI_LM}.{ending}"));
        Self::open(&file("safetensors"), &file("tokenizer.json"))
    }

    /// Loads the model from its two published files, which may have any names.
    ///
    /// # Errors
    /// As for [`in_folder`](Self::in_folder).
    pub fn open(weights: &Path, tokenizer: &Path) -> Result<Self, LocalEmbedderError> {
        Self::load(weights, tokenizer, SIZES)
    }

    pub(crate) fn load(weights: &Path, tokenizer: &Path, sizes: Sizes) -> Result<Self, LocalEmbedderError> {
        let tokenizer = read_tokenizer(tokenizer, sizes)?;
        let other = |e: candle_core::Error| LocalEmbedderError::Content {
            model: MINI_LM,
            path: weights.to_owned(),
            problem: first_line(&e.to_string()),
        };
        let builder =
            VarBuilder::from_buffered_safetensors(read(MINI_LM, weights)?, DType::F32, &Device::Cpu);
        let bert = builder.and_then(|weights| Bert::load(&weights, sizes)).map_err(other)?;
        Ok(Self { model: Arc::new(Model { bert, tokenizer, hidden: sizes.hidden }) })
    }

    /// Returns one vector for each text, in the order of the texts. This blocks the current thread;
    /// [`Embedder::embed`] works on another thread.
    ///
    /// # Errors
    /// [`MemoryError::Embedding`] if the model fails.
    pub fn embed_now(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, MemoryError> {
        self.model.embed(texts).map_err(|problem| failed(MINI_LM, problem))
    }
}

impl Embedder for MiniLm {
    fn id(&self) -> &str {
        MINI_LM
    }

    fn dimensions(&self) -> usize {
        self.model.hidden
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        let (embedder, texts) = (self.clone(), texts.to_vec());
        embed_in_thread(MINI_LM, move || embedder.embed_now(&texts))
    }
}

impl Model {
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let cut = texts.iter().map(|text| &text[..text.floor_char_boundary(MOST_BYTES)]).collect();
        let pieces = self.tokenizer.encode_batch_fast::<&str>(cut, true).map_err(|e| e.to_string())?;
        // Texts of similar length are batched together, so that there is little padding.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|text| pieces[*text].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in order.chunks(BATCH) {
            let longest = batch.iter().map(|text| pieces[*text].len()).max().unwrap_or_default();
            let (mut ids, mut mask) = (Vec::new(), Vec::new());
            for text in batch {
                let own = pieces[*text].get_ids();
                ids.extend(own.iter().copied().chain(std::iter::repeat_n(0, longest - own.len())));
                mask.extend((0..longest).map(|at| u32::from(at < own.len())));
            }
            let run =
                || self.bert.embed(&rows(ids, batch.len())?, &rows(mask, batch.len())?)?.to_vec2::<f32>();
            for (text, vector) in batch.iter().zip(run().map_err(|e| e.to_string())?) {
                vectors[*text] = vector;
            }
        }
        Ok(vectors)
    }
}

fn read_tokenizer(path: &Path, sizes: Sizes) -> Result<Tokenizer, LocalEmbedderError> {
    let other =
        |problem: String| LocalEmbedderError::Content { model: MINI_LM, path: path.to_owned(), problem };
    let mut tokenizer =
        Tokenizer::from_bytes(read(MINI_LM, path)?).map_err(|e| other(first_line(&e.to_string())))?;
    let words = tokenizer.get_vocab_size(true);
    if words > sizes.vocabulary {
        return Err(other(format!(
            "its vocabulary has {words} word pieces, that of the model has {}",
            sizes.vocabulary
        )));
    }
    let most = MOST_PIECES.min(sizes.positions);
    let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
    tokenizer.with_padding(None).with_truncation(Some(truncation)).map_err(|e| other(e.to_string()))?;
    Ok(tokenizer)
}
