//! Models in settings: prices and windows of models that the built-in catalogue does not have.

use std::collections::BTreeMap;

use archon::providers::{Catalogue, ModelRef, SetupError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[models."PROVIDER:MODEL"]` of a settings file: properties of a model, over the built-in catalogue and
/// the imported one. Prices are US dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSettings {
    /// The context window in tokens.
    pub(crate) context_window: Option<u64>,
    /// The maximum number of tokens of an answer.
    pub(crate) max_output: Option<u64>,
    /// The price of input tokens.
    pub(crate) input: Option<f64>,
    /// The price of output tokens; a price needs both `input` and `output`.
    pub(crate) output: Option<f64>,
    /// The price of input tokens from a cache; by default as `input`.
    pub(crate) cache_read: Option<f64>,
    /// The price of input tokens written into a cache; by default as `input`.
    pub(crate) cache_write: Option<f64>,
    /// The prices of calls with a long prompt, if they differ.
    pub(crate) long: Option<LongSettings>,
    /// True if the model can think before it answers.
    pub(crate) thinking: Option<bool>,
    /// True if the model can read pictures.
    pub(crate) vision: Option<bool>,
    /// True if the model can read PDF files.
    pub(crate) pdf: Option<bool>,
    /// True if the model supports native tool calls; other models use tools in text mode.
    pub(crate) tools: Option<bool>,
    /// True if the model has so few parameters that it needs short instructions.
    pub(crate) small: Option<bool>,
}

/// `[models."PROVIDER:MODEL".long]`: prices of calls with a long prompt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongSettings {
    /// The number of tokens above which a prompt is long.
    pub(crate) above: u64,
    /// The price of input tokens.
    pub(crate) input: f64,
    /// The price of output tokens.
    pub(crate) output: f64,
    /// The price of input tokens from a cache; by default as `input`.
    pub(crate) cache_read: Option<f64>,
    /// The price of input tokens written into a cache; by default as `input`.
    pub(crate) cache_write: Option<f64>,
}

/// Models by their names, in the form of `--model`: `openai:gpt-5-mini`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, ModelSettings>")]
pub(crate) struct Models(BTreeMap<String, ModelSettings>);

/// A line of a catalogue.
#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    #[serde(flatten)]
    settings: &'a ModelSettings,
}

impl Models {
    /// Adds another layer, which takes precedence for a model that both have.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Returns the catalogue with these models over it.
    ///
    /// # Errors
    /// The reason, if a price is below zero.
    pub(crate) fn over(&self, catalogue: Catalogue) -> Result<Catalogue, String> {
        let line = |(model, settings): (&String, &ModelSettings)| {
            serde_json::to_string(&Line { model, settings }).unwrap_or_default()
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        catalogue.with_lines(&lines.join("\n"), "the settings").map_err(catalogue_reason)
    }
}

/// Returns only the reason why a catalogue cannot be read, for callers that name its file themselves.
pub(crate) fn catalogue_reason(error: SetupError) -> String {
    match error {
        SetupError::Catalogue { reason } => reason,
        other => other.to_string(),
    }
}

impl TryFrom<BTreeMap<String, ModelSettings>> for Models {
    type Error = String;

    fn try_from(models: BTreeMap<String, ModelSettings>) -> Result<Self, String> {
        for (name, model) in &models {
            let wrong = |what: &str| Err(format!("[models.{name:?}]: {what}"));
            match name.parse::<ModelRef>() {
                Err(SetupError::UnknownProfile { nearest, .. }) => {
                    return wrong(&format!("no such provider; did you mean {}?", nearest.join(", ")));
                }
                Err(_) => return wrong("the name must have the form of --model, PROVIDER:MODEL"),
                Ok(_) => {}
            }
            let cached = model.cache_read.is_some() || model.cache_write.is_some() || model.long.is_some();
            match (model.input, model.output) {
                (Some(_), Some(_)) => {}
                (None, None) if !cached => {}
                _ => return wrong("a price needs both `input` and `output`"),
            }
        }
        let models = Self(models);
        models.over(Catalogue::default())?;
        Ok(models)
    }
}
