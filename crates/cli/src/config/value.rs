//! Values of settings, and how they are written in a file, a variable and a flag.

use std::{borrow::Cow, path::PathBuf};

use archon::types::ToolMode;
use clap::ValueEnum;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// Which tools an agent has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TextOrList")]
pub(crate) enum ToolSelection {
    /// All there are.
    All,
    /// None.
    None,
    /// These.
    Names(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

impl TryFrom<TextOrList> for ToolSelection {
    type Error = String;

    fn try_from(value: TextOrList) -> Result<Self, String> {
        match value {
            TextOrList::Text(text) => Self::from_text(&text),
            TextOrList::List(names) => Ok(Self::Names(names)),
        }
    }
}

impl JsonSchema for ToolSelection {
    fn schema_name() -> Cow<'static, str> {
        "ToolSelection".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`all`, `none`, names separated by commas, or a list of names.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        })
    }
}

/// How tools are spoken about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// As the model's protocol does
    Native,
    /// In prose: Thought, Action, Observation, Final Answer
    Text,
}

impl From<Mode> for ToolMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Native => Self::Native,
            Mode::Text => Self::Text,
        }
    }
}

/// Reads a value from the text of a variable or a flag.
pub(super) trait FromText: Sized {
    /// Reads it, or says what is wrong with it.
    fn from_text(text: &str) -> Result<Self, String>;
}

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// Names separated by commas.
impl FromText for Vec<String> {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
    }
}

impl FromText for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
}

impl FromText for u32 {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number is needed".to_owned())
    }
}

impl FromText for Mode {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_str(text, true).map_err(|_| "`native` or `text` is needed".to_owned())
    }
}

impl FromText for ToolSelection {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" => Ok(Self::All),
            "none" | "" => Ok(Self::None),
            list => Vec::from_text(list).map(Self::Names),
        }
    }
}

/// For clap.
impl std::str::FromStr for ToolSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_text(text)
    }
}
