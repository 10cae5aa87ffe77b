//! The BERT encoder as in its paper and published weights, for inference only.
//!
//! (Devlin and others, "BERT: Pre-training of Deep Bidirectional Transformers", 2018.) Sizes come from the
//! weights, except the number of attention heads, which is not in them.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, ops::softmax_last_dim};

/// A term that keeps the division of the layer norm finite if all numbers are equal.
const EPSILON: f64 = 1e-12;

/// A term that is added to the attention score of padding, so that its weight is zero.
const FAR_BELOW: f64 = -1e9;

/// Dimensions of the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) vocabulary: usize,
    pub(crate) positions: usize,
    pub(crate) hidden: usize,
    pub(crate) between: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
}

pub(crate) struct Bert {
    words: Embedding,
    positions: Embedding,
    /// The embedding of the first segment type; an input has no second segment.
    segment: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    wide: Linear,
    narrow: Linear,
    norm: LayerNorm,
    heads: usize,
}

impl Bert {
    pub(crate) fn load(weights: &VarBuilder<'_>, sizes: Sizes) -> Result<Self> {
        let tables = weights.pp("embeddings");
        let segments = tables.get((2, sizes.hidden), "token_type_embeddings.weight")?;
        let layer = |at| Layer::load(&weights.pp(format!("encoder.layer.{at}")), sizes);
        Ok(Self {
            words: candle_nn::embedding(sizes.vocabulary, sizes.hidden, tables.pp("word_embeddings"))?,
            positions: candle_nn::embedding(sizes.positions, sizes.hidden, tables.pp("position_embeddings"))?,
            segment: segments.get(0)?,
            norm: candle_nn::layer_norm(sizes.hidden, EPSILON, tables.pp("LayerNorm"))?,
            layers: (0..sizes.layers).map(layer).collect::<Result<_>>()?,
        })
    }

    /// Returns one vector of length 1 for each text. All texts are padded to the same length; `mask` is 1
    /// for each word piece and 0 for padding.
    pub(crate) fn embed(&self, pieces: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let mask = mask.to_dtype(DType::F32)?;
        let hidden = self.encode(pieces, &mask)?;
        let mask = mask.unsqueeze(D::Minus1)?;
        let sum = hidden.broadcast_mul(&mask)?.sum(1)?;
        let mean = sum.broadcast_div(&mask.sum(1)?)?;
        mean.broadcast_div(&mean.sqr()?.sum_keepdim(1)?.sqrt()?)
    }

    fn encode(&self, pieces: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let length = pieces.dim(1)? as u32;
        let positions = self.positions.forward(&Tensor::arange(0, length, pieces.device())?)?;
        let sum = self.words.forward(pieces)?.broadcast_add(&positions)?.broadcast_add(&self.segment)?;
        // 0 for pieces, far below zero for padding; the same for all heads and pieces of a text.
        let unseen = mask.affine(-FAR_BELOW, FAR_BELOW)?.unsqueeze(1)?.unsqueeze(1)?;
        let mut hidden = self.norm.forward(&sum)?;
        for layer in &self.layers {
            hidden = layer.forward(&hidden, &unseen)?;
        }
        Ok(hidden)
    }
}

impl Layer {
    fn load(weights: &VarBuilder<'_>, sizes: Sizes) -> Result<Self> {
        let (hidden, between) = (sizes.hidden, sizes.between);
        let square = |name: &str| candle_nn::linear(hidden, hidden, weights.pp(name));
        let norm = |name: &str| candle_nn::layer_norm(hidden, EPSILON, weights.pp(name));
        Ok(Self {
            query: square("attention.self.query")?,
            key: square("attention.self.key")?,
            value: square("attention.self.value")?,
            attended: square("attention.output.dense")?,
            attended_norm: norm("attention.output.LayerNorm")?,
            wide: candle_nn::linear(hidden, between, weights.pp("intermediate.dense"))?,
            narrow: candle_nn::linear(between, hidden, weights.pp("output.dense"))?,
            norm: norm("output.LayerNorm")?,
            heads: sizes.heads,
        })
    }

    fn forward(&self, hidden: &Tensor, unseen: &Tensor) -> Result<Tensor> {
        let attended = self.attended.forward(&self.attend(hidden, unseen)?)?;
        let hidden = self.attended_norm.forward(&(attended + hidden)?)?;
        let wide = self.wide.forward(&hidden)?.gelu_erf()?;
        self.norm.forward(&(self.narrow.forward(&wide)? + hidden)?)
    }

    fn attend(&self, hidden: &Tensor, unseen: &Tensor) -> Result<Tensor> {
        let (texts, length, width) = hidden.dims3()?;
        let apart = |projection: &Linear| {
            let heads =
                projection.forward(hidden)?.reshape((texts, length, self.heads, width / self.heads))?;
            heads.transpose(1, 2)?.contiguous()
        };
        let (query, key, value) = (apart(&self.query)?, apart(&self.key)?, apart(&self.value)?);
        let scale = 1.0 / ((width / self.heads) as f64).sqrt();
        let scores = (query.matmul(&key.transpose(2, 3)?.contiguous()?)? * scale)?.broadcast_add(unseen)?;
        let seen = softmax_last_dim(&scores)?.matmul(&value)?;
        seen.transpose(1, 2)?.contiguous()?.reshape((texts, length, width))
    }
}

/// Makes a tensor of numbers with one row for each text.
pub(crate) fn rows(values: Vec<u32>, texts: usize) -> Result<Tensor> {
    let length = values.len() / texts.max(1);
    Tensor::from_vec(values, (texts, length), &Device::Cpu)
}
