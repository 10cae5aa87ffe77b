//! The catalogue of models: context windows, prices, and abilities such as thinking and vision.
//!
//! The data are in `models.jsonl` next to the manifest: one line for each model, sorted by name, after a
//! line with their source and date. `cargo xtask catalogue` writes the file. A binary search runs on the
//! text itself, so an unused catalogue costs nothing. A [`Catalogue`](own::Catalogue) adds a person's own
//! facts.

mod own;

use std::cmp::Ordering;

use archon_types::{ApiErrorKind, Capabilities, LongPromptPrice, ModelPrice, ProviderError, Reads};
use serde::Deserialize;

pub use own::{Catalogue, CatalogueProvider};

const MODELS: &str = include_str!("../models.jsonl");

/// The facts about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider's id and the model's name: `openai:gpt-5-mini`.
    pub name: String,
    /// The context window in tokens. If the service limits output tokens separately, they are not part of it.
    pub context_window: Option<u64>,
    /// The maximum number of output tokens.
    pub max_output: Option<u64>,
    /// The list price in millionths of a US dollar per million tokens, without discounts for batches. `None`
    /// if the catalogue does not know the price of both input and output tokens.
    pub price: Option<ModelPrice>,
    /// True if the model can think before it answers; false also if the catalogue does not know.
    pub thinking: bool,
    /// True if the model accepts images; false also if the catalogue does not know.
    pub vision: bool,
    /// True if the model accepts PDF files. If the catalogue does not know: true for models of OpenAI (also at Azure)
    /// that accept images, else false.
    pub pdf: bool,
    /// True if the model accepts tool specs and answers with tool calls; `None` if the catalogue does not
    /// know.
    pub tools: Option<bool>,
    /// True if the model is small and needs short instructions; `None` if the catalogue does not know.
    pub is_small: Option<bool>,
    /// The source of these facts, as text for people, with the date if the source gives one.
    pub source: String,
}

/// The source and date of the built-in catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct CatalogueSource {
    /// The data from which the catalogue was made.
    pub source: String,
    /// The date of the data, such as `2026-11-22`.
    pub date: String,
}

impl std::fmt::Display for CatalogueSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.source, self.date)
    }
}

/// One line of the catalogue. Prices are US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Line {
    model: String,
    context_window: Option<u64>,
    max_output: Option<u64>,
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    long: Option<LongLine>,
    thinking: Option<bool>,
    vision: Option<bool>,
    pdf: Option<bool>,
    tools: Option<bool>,
    small: Option<bool>,
}

/// The prices of prompts with more than `above` tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct LongLine {
    above: u64,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl From<LongLine> for LongPromptPrice {
    fn from(line: LongLine) -> Self {
        let mut price = Self::new(line.above, micros(line.input), micros(line.output));
        price.cache_read = line.cache_read.map_or(price.input, micros);
        price.cache_write = line.cache_write.map_or(price.input, micros);
        price
    }
}

impl Line {
    /// Returns true for a model of OpenAI, also at Azure. Its models with vision read the text and the pictures of PDF
    /// files: <https://developers.openai.com/api/docs/guides/file-inputs>.
    fn is_of_openai(&self) -> bool {
        ["openai:", "azure:"].iter().any(|provider| self.model.starts_with(provider))
    }

    /// Returns the price; `None` unless the line has both input and output prices.
    fn price(&self) -> Option<ModelPrice> {
        let (input, output) = self.input.zip(self.output)?;
        let mut price = ModelPrice::new(micros(input), micros(output));
        price.cache_read = self.cache_read.map_or(price.input, micros);
        price.cache_write = self.cache_write.map_or(price.input, micros);
        price.long = self.long.clone().map(LongPromptPrice::from);
        Some(price)
    }
}

impl From<Line> for ModelInfo {
    fn from(line: Line) -> Self {
        Self {
            context_window: line.context_window,
            max_output: line.max_output,
            price: line.price(),
            thinking: line.thinking == Some(true),
            vision: line.vision == Some(true),
            pdf: line.pdf.unwrap_or(line.vision == Some(true) && line.is_of_openai()),
            tools: line.tools,
            is_small: line.small,
            name: line.model,
            source: catalogue_source().to_string(),
        }
    }
}

fn micros(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

/// Returns the facts of the built-in catalogue about a model; `None` if it is not listed. `provider` is the
/// [id](archon_types::Provider::id) of the provider.
///
/// The address of the provider does not count, only its id. So a gateway with other models or prices needs an id of its
/// own.
pub fn model_info(provider: &str, model: &str) -> Option<ModelInfo> {
    let line = line_of(&format!("{}:{model}", listed(provider)))?;
    serde_json::from_slice::<Line>(line).ok().map(ModelInfo::from)
}

/// Returns the line of a model; a binary search in the sorted file.
fn line_of(model: &str) -> Option<&'static [u8]> {
    let mut lines = MODELS.as_bytes();
    lines = &lines[lines.iter().position(|byte| *byte == b'\n')? + 1..];
    while !lines.is_empty() {
        let middle = lines.len() / 2;
        let start = lines[..middle].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let end = lines[middle..].iter().position(|byte| *byte == b'\n').map_or(lines.len(), |n| middle + n);
        let line = &lines[start..end];
        match name_in(line).cmp(model.as_bytes()) {
            Ordering::Less => lines = lines.get(end + 1..).unwrap_or_default(),
            Ordering::Greater => lines = &lines[..start],
            Ordering::Equal => return Some(line),
        }
    }
    None
}

/// Returns the model's name in its line: it is the first value, and has no escapes.
fn name_in(line: &[u8]) -> &[u8] {
    let name = line.strip_prefix(b"{\"model\":\"").unwrap_or_default();
    name.split(|byte| *byte == b'"').next().unwrap_or_default()
}

/// Returns the abilities and the price of a provider's model, as far as the catalogue knows them.
pub(crate) fn capabilities(provider: &str, model: &str) -> Capabilities {
    let mut capabilities = Capabilities::default();
    if let Some(known) = model_info(provider, model) {
        (capabilities.context_window, capabilities.price) = (known.context_window, known.price);
        capabilities.reads = Reads { images: Some(known.vision), pdfs: Some(known.pdf) };
    }
    capabilities
}

/// Returns every model of the built-in catalogue, sorted by name.
pub fn known_models() -> impl Iterator<Item = ModelInfo> {
    MODELS.lines().skip(1).filter_map(|line| serde_json::from_str::<Line>(line).ok()).map(ModelInfo::from)
}

/// Returns the names of at most three models of this provider that are most similar to `model`, the most similar first.
pub fn nearest_models(provider: &str, model: &str) -> Vec<String> {
    Catalogue::default().nearest(provider, model)
}

/// Adds similar model names to the error that a model does not exist. Adds none if the catalogue lists the
/// model: then it exists, and perhaps the caller has no access to it.
pub(crate) fn with_nearest(error: ProviderError, provider: &str, model: &str) -> ProviderError {
    match error {
        ProviderError::Api { status, kind: ApiErrorKind::NotFound, message }
            if model_info(provider, model).is_none() =>
        {
            let nearest = nearest_models(provider, model).join(", ");
            let message =
                if nearest.is_empty() { message } else { format!("{message}; similar names: {nearest}") };
            ProviderError::Api { status, kind: ApiErrorKind::NotFound, message }
        }
        other => other,
    }
}

/// Returns the source and the date of the built-in catalogue.
pub fn catalogue_source() -> CatalogueSource {
    source_of(MODELS).unwrap_or_else(|| CatalogueSource { source: String::new(), date: String::new() })
}

/// Returns the source and date in the first line of a catalogue.
fn source_of(text: &str) -> Option<CatalogueSource> {
    serde_json::from_str(text.lines().next()?).ok()
}

/// Returns the name under which the catalogue lists a provider. A service with several protocols or names is listed
/// once.
fn listed(provider: &str) -> &str {
    match provider {
        "openai-responses" => "openai",
        "google" => "gemini",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_model_and_they_are_sorted() {
        let models: Vec<_> = known_models().collect();
        assert_eq!(models.len(), MODELS.lines().count() - 1, "a line that is no model");
        assert!(models.is_sorted_by(|a, b| a.name < b.name));
        for model in &models {
            let (provider, name) = model.name.split_once(':').unwrap();
            assert_eq!(model_info(provider, name).as_ref(), Some(model));
        }
        let source = catalogue_source();
        assert!(!source.source.is_empty() && source.date.len() == 10, "{source:?}");
    }

    // spec: P-40
    #[test]
    fn prices_are_those_of_a_million_tokens() {
        let line = r#"{"model":"openai:m","input":0.25,"output":2.0,"cache_read":0.025}"#;
        let model = ModelInfo::from(serde_json::from_str::<Line>(line).unwrap());
        let mut price = ModelPrice::new(250_000, 2_000_000);
        price.cache_read = 25_000;
        assert_eq!(model.price, Some(price));
        let line = r#"{"model":"gemini:m","input":1.25,"output":10.0,"long":{"above":200000,"input":2.5,"output":15.0,"cache_read":0.25}}"#;
        let price = ModelInfo::from(serde_json::from_str::<Line>(line).unwrap()).price.unwrap();
        let mut long = LongPromptPrice::new(200_000, 2_500_000, 15_000_000);
        long.cache_read = 250_000;
        assert_eq!(price, ModelPrice::new(1_250_000, 10_000_000).with_long(long));
        let line = r#"{"model":"openai:m","input":0.25}"#;
        assert_eq!(ModelInfo::from(serde_json::from_str::<Line>(line).unwrap()).price, None);
    }

    #[test]
    fn every_protocol_finds_its_models_and_strangers_find_none() {
        for (provider, model) in [
            ("openai", "gpt-5-mini"),
            ("openai-responses", "gpt-5-mini"),
            ("anthropic", "claude-sonnet-4-5"),
            ("gemini", "gemini-2.5-pro"),
            ("vertex", "gemini-2.5-pro"),
            ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
            ("deepseek", "deepseek-chat"),
            ("azure", "gpt-5-mini"),
        ] {
            let known = model_info(provider, model).unwrap();
            assert!(known.price.is_some() && known.context_window > Some(10_000), "{known:?}");
        }
        for (provider, model) in
            [("openai", "gpt-5-min"), ("openai@http://gateway/v1", "gpt-5-mini"), ("", ""), ("openai", "\"")]
        {
            assert_eq!(model_info(provider, model), None, "{provider} {model}");
        }
    }

    // spec: EX-16
    #[test]
    fn capabilities_of_a_listed_model_say_what_it_reads_and_others_say_nothing() {
        let reads = |provider, model| {
            let reads = capabilities(provider, model).reads;
            (reads.images, reads.pdfs)
        };
        for (provider, model, images, pdfs) in [
            ("anthropic", "claude-sonnet-4-5", true, true),
            ("openai", "gpt-4o", true, true),
            ("azure", "gpt-4o", true, true),
            ("gemini", "gemini-2.5-pro", true, true),
            ("openai", "gpt-3.5-turbo", false, false),
            ("deepseek", "deepseek-chat", false, false),
        ] {
            assert_eq!(reads(provider, model), (Some(images), Some(pdfs)), "{provider}:{model}");
        }
        assert_eq!(reads("openai", "gpt-unknown"), (None, None));
    }

    #[test]
    fn catalogue_nearest_finds_a_misspelt_model() {
        assert_eq!(nearest_models("openai", "gtp-5-mini")[0], "gpt-5-mini");
        assert_eq!(nearest_models("anthropic", "claude-sonet-4-5")[0], "claude-sonnet-4-5");
        assert!(nearest_models("nobody", "gpt-5-mini").is_empty());
    }

    #[test]
    fn catalogue_unknown_model_error_lists_similar_names() {
        let with = |kind, provider: &str, model: &str| {
            let error = ProviderError::Api { status: 404, kind, message: "no such model".to_owned() };
            match with_nearest(error, provider, model) {
                ProviderError::Api { status: 404, message, .. } => message,
                other => panic!("{other:?}"),
            }
        };
        let missing = ApiErrorKind::NotFound;
        let said = with(missing, "openai", "gtp-5-mini");
        assert!(said.starts_with("no such model; similar names: gpt-5-mini, "), "{said}");
        for (kind, provider, model) in [
            (missing, "openai", "gpt-5-mini"),
            (missing, "openai", "nothing at all"),
            (missing, "openai@http://127.0.0.1/v1", "gtp-5-mini"),
            (ApiErrorKind::InvalidRequest, "openai", "gtp-5-mini"),
        ] {
            assert_eq!(with(kind, provider, model), "no such model", "{kind:?} {provider} {model}");
        }
    }
}
