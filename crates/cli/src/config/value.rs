//! Values of settings, and their form in a file, a variable and a flag.

use std::{borrow::Cow, path::PathBuf};

use archon::{
    providers::{LocalServer, Profile},
    types::{OutputLevel, ThinkingLevel, ToolExecutionStrategy, ToolMode},
};
use clap::ValueEnum;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// A choice of tools, as in the setting `tools`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TextOrList")]
pub(crate) enum ToolSelection {
    /// All tools.
    All,
    /// No tools.
    None,
    /// The tools with these names.
    Names(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

/// Implements the conversions of settings whose value in a file is a text or a list.
macro_rules! of_text_or_list {
    ($($name:ident: $about:literal, $of_list:expr,)+) => {$(
        impl TryFrom<TextOrList> for $name {
            type Error = String;

            fn try_from(value: TextOrList) -> Result<Self, String> {
                match value {
                    TextOrList::Text(text) => Self::from_text(&text),
                    TextOrList::List(list) => $of_list(list),
                }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $about,
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                })
            }
        }
    )+};
}

of_text_or_list! {
    ToolSelection: "`all`, `none`, names separated by commas, or a list of names.", |names| Ok(Self::Names(names)),
    LocalServers: "`none`, servers separated by commas, or a list of servers; each `PROFILE` or `PROFILE@URL`.",
    |servers: Vec<String>| servers.iter().map(|server| local_server(server)).collect(),
}

/// The servers to look for on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TextOrList")]
pub(crate) struct LocalServers(pub(crate) Vec<LocalServer>);

impl FromIterator<LocalServer> for LocalServers {
    fn from_iter<I: IntoIterator<Item = LocalServer>>(servers: I) -> Self {
        Self(servers.into_iter().collect())
    }
}

impl FromText for LocalServers {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" | "" => Ok(Self(Vec::new())),
            list => list_of(list).map(local_server).collect(),
        }
    }
}

fn local_server(text: &str) -> Result<LocalServer, String> {
    let (name, url) = text.split_once('@').unzip();
    let name = name.unwrap_or(text);
    let profile = Profile::named(name)
        .ok_or_else(|| format!("there is no profile {name:?}; write PROFILE or PROFILE@URL"))?;
    Ok(LocalServer::new(profile.name, url.unwrap_or(profile.base_url)))
}

/// The form in which a model gets tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// In the form of the model's protocol
    Native,
    /// As text: Thought, Action, Observation, Final Answer
    Text,
}

/// The embedder of memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EmbedderChoice {
    /// `local` if its model was fetched, otherwise `table` if that was fetched, otherwise `none`
    #[default]
    Auto,
    /// No embedder: memories are found by words
    None,
    /// By spelling: needs no model, but does not compare meanings
    Hash,
    /// all-MiniLM-L6-v2, in this program: the best, but 91 MB
    Local,
    /// WordLlama's table of words, in this program: small and quick
    Table,
}

/// The reader of facts from a person's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExtractorChoice {
    /// Rules for plain English sentences, which cost no model call
    #[default]
    Rules,
    /// The model of the run, in any language that it reads: one more call for each message
    Model,
}

/// The amount of thinking before an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Thinking {
    /// Not at all, or as little as the model allows
    Off,
    /// Very little
    Minimal,
    /// A little
    Low,
    /// Some
    Medium,
    /// A lot
    High,
}

/// The length of tool results that a model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    /// One line
    Brief,
    /// The most important parts
    Standard,
    /// Everything
    Full,
}

/// Implements the conversion of a setting into the library's type with the same variants.
macro_rules! into_library {
    ($($name:ident => $library:ident { $($variant:ident),+ },)+) => {$(
        impl From<$name> for $library {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }
    )+};
}

into_library! {
    Mode => ToolMode { Native, Text },
    Thinking => ThinkingLevel { Off, Minimal, Low, Medium, High },
    Detail => OutputLevel { Brief, Standard, Full },
}

/// An amount of money in US dollars, stored in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Money(pub(crate) u64);

/// A duration in the form that people write, stored in milliseconds; a number alone is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) u64);

/// The number of a turn's calls that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ToolExecution(pub(crate) ToolExecutionStrategy);

impl FromText for ToolExecution {
    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = || "`parallel`, `sequential` or a number of calls is needed".to_owned();
        Ok(Self(match text.trim() {
            "parallel" => ToolExecutionStrategy::Parallel,
            "sequential" => ToolExecutionStrategy::Sequential,
            size => match size.parse().map_err(|_| wrong())? {
                0 => return Err(wrong()),
                size => ToolExecutionStrategy::Batched { size },
            },
        }))
    }
}

impl FromText for Money {
    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = || "an amount in dollars is needed, as in 0.50".to_owned();
        let number = text.trim().trim_start_matches('$');
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let has_digits = !whole.is_empty() || !part.is_empty();
        if !has_digits || !digits(whole) || !digits(part) || part.len() > 6 {
            return Err(wrong());
        }
        let whole: u64 = format!("0{whole}").parse().map_err(|_| wrong())?;
        let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
        Ok(Self(whole.saturating_mul(1_000_000).saturating_add(part)))
    }
}

impl FromText for Span {
    fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
            Some(number) => (number, &text[number.len()..]),
            None => (text, "s"),
        };
        let seconds = match unit {
            "d" => 86_400,
            "h" => 3_600,
            "m" => 60,
            _ => 1,
        };
        let number: u64 =
            number.parse().map_err(|_| "a time such as 90s, 20m, 2h or 30d is needed".to_owned())?;
        Ok(Self(number.saturating_mul(seconds).saturating_mul(1_000)))
    }
}

/// Implements the conversions of settings whose value is a text, in a file and on the command line.
macro_rules! of_text {
    ($($name:ident: $about:literal,)+) => {$(
        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                Self::from_text(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::from_text(text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "description": $about, "type": "string" })
            }
        }
    )+};
}

of_text! {
    Money: "US dollars, as in `0.50`.",
    ToolExecution: "`parallel`, `sequential`, or the number of calls at the same time, as in `4`.",
    Span: "A time: `90s`, `20m`, `2h` or `30d`.",
}

/// Parses a value from the text of a variable or a flag, or returns the problem with the text.
pub(super) trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
}

/// Implements [`FromText`] by another parser; all its errors have the same text.
macro_rules! parsed_by {
    ($parse:expr; $($name:ty: $needed:literal,)+) => {$(
        impl FromText for $name {
            fn from_text(text: &str) -> Result<Self, String> {
                ($parse)(text).map_err(|_| $needed.to_owned())
            }
        }
    )+};
}

parsed_by! {
    str::parse;
    bool: "`true` or `false` is needed",
    u32: "a whole number is needed",
    u64: "a whole number is needed",
}

parsed_by! {
    |text| ValueEnum::from_str(text, true);
    Mode: "`native` or `text` is needed",
    Thinking: "`off`, `minimal`, `low`, `medium` or `high` is needed",
    Detail: "`brief`, `standard` or `full` is needed",
    EmbedderChoice: "`auto`, `none`, `hash`, `local` or `table` is needed",
    ExtractorChoice: "`rules` or `model` is needed",
}

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl FromText for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
}

/// Parses a list of names separated by commas.
impl FromText for Vec<String> {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(list_of(text).map(str::to_owned).collect())
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

/// Splits a list at its commas.
fn list_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Parses a flag, for clap.
impl std::str::FromStr for ToolSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_from_text_converts_dollars_to_micros() {
        for (text, expected) in [
            ("0.50", Some(500_000)),
            ("2", Some(2_000_000)),
            ("$1.000001", Some(1_000_001)),
            (".5", Some(500_000)),
            ("", None),
            (".", None),
            ("1.0000001", None),
            ("-1", None),
            ("1e3", None),
            ("ten", None),
        ] {
            assert_eq!(Money::from_text(text).ok().map(|money| money.0), expected, "{text:?}");
        }
    }

    #[test]
    fn a_time_is_read_in_seconds_minutes_or_hours() {
        for (text, expected) in [
            ("90s", Some(90_000)),
            ("20m", Some(1_200_000)),
            ("2h", Some(7_200_000)),
            ("30d", Some(2_592_000_000)),
            ("5", Some(5_000)),
            ("soon", None),
        ] {
            assert_eq!(Span::from_text(text).ok().map(|span| span.0), expected, "{text:?}");
        }
    }
}
