//! Models as settings describe them: prices and windows of models that the built-in catalogue does not know.

use std::collections::BTreeMap;

use archon::providers::{Catalogue, ModelRef, SetupError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[models."PROVIDER:MODEL"]` of a settings file: what is known of a model, over the built-in catalogue and the one that
/// was imported. Prices are US dollars for a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSettings {
    /// Tokens that it can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_window: Option<u64>,
    /// Most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
    /// Price of what it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<f64>,
    /// Price of what it says; a price needs both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
    /// Price of what it is told from a cache; by default as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<f64>,
    /// Price of what is written into a cache; by default as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
    /// Prices of calls with a long prompt, where they are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) long: Option<LongSettings>,
    /// Whether it thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<bool>,
    /// Whether it sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vision: Option<bool>,
    /// Whether it takes tool specs and answers with tool calls; a model that does not is spoken to in text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<bool>,
    /// Whether it has so few parameters that it needs short instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) small: Option<bool>,
}

/// `[models."PROVIDER:MODEL".long]`: what calls with a long prompt cost.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongSettings {
    /// Prompts of more tokens than this are long.
    pub(crate) above: u64,
    /// Price of what it is told.
    pub(crate) input: f64,
    /// Price of what it says.
    pub(crate) output: f64,
    /// Price of what it is told from a cache; by default as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<f64>,
    /// Price of what is written into a cache; by default as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
}

/// Models by their names, as `--model` takes them: `openai:gpt-5-mini`.
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
    /// The same with what another layer says: of a model that both describe, the layer's word holds.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// This catalogue, with these models over it.
    ///
    /// # Errors
    /// A price is below zero.
    pub(crate) fn over(&self, catalogue: Catalogue) -> Result<Catalogue, SetupError> {
        let line = |(model, settings): (&String, &ModelSettings)| {
            serde_json::to_string(&Line { model, settings }).unwrap_or_default()
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        catalogue.with_lines(&lines.join("\n"), "the settings")
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
                Err(_) => return wrong("the name is written as --model takes it, PROVIDER:MODEL"),
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
        models.over(Catalogue::default()).map_err(|e| e.to_string())?;
        Ok(models)
    }
}
