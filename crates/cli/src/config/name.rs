//! Names of settings in `archon config`: `max_turns`, or a path into a table as in `permissions.allow`. The
//! schema of the settings has all names.

use std::fmt;

use archon::types::nearest;
use schemars::schema_for;
use serde_json::Value as Json;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{KEYS, Settings};
use crate::failure::Failure;

/// The name of a setting that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(Vec<String>);

impl Name {
    /// Parses the name of a setting, such as `permissions.allow`.
    ///
    /// # Errors
    /// [`Failure`] if there is no such setting; the advice has the nearest one.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let parts = parts(text).ok_or_else(|| {
            Failure::usage(
                format!("{text:?} is not the name of a setting"),
                "put a part with other characters between quotes, as in 'models.\"openai:gpt-5-mini\".input'",
            )
        })?;
        match first_unknown(&parts) {
            None => Ok(Self(parts)),
            Some(unknown) => Err(Failure::usage(unknown.what(&parts), unknown.advice())),
        }
    }

    /// Returns the name of a setting that is not in a table.
    pub(crate) fn of_key(key: &str) -> Self {
        Self(vec![key.to_owned()])
    }

    /// Returns the first part of the name, which is one of [`KEYS`].
    pub(crate) fn key(&self) -> &str {
        self.0.first().map(String::as_str).unwrap_or_default()
    }

    /// Returns the name with these parts. The caller ensures that such a setting exists.
    pub(crate) fn of_parts(parts: Vec<String>) -> Self {
        Self(parts)
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    /// Returns the name of a setting in the table that has this name.
    pub(crate) fn of_part(&self, part: &str) -> Self {
        Self(self.0.iter().cloned().chain([part.to_owned()]).collect())
    }

    /// Returns the name of the table of the agent, API, model, server or token to which this setting belongs; `None` if
    /// it belongs to none.
    #[cfg(feature = "setup")]
    pub(super) fn table(&self) -> Option<Self> {
        let depth = if self.key() == "serve" { 3 } else { 2 };
        (self.0.len() > depth).then(|| Self(self.0[..depth].to_vec()))
    }

    /// Returns true if the value of a later layer replaces that of an earlier one; false if the setting has
    /// the values of both.
    pub(crate) fn is_replaced(&self) -> bool {
        !matches!(self.key(), "agents" | "mcp" | "models" | "openapi" | "permissions")
    }

    /// Returns true if this name in a later layer removes `other` of an earlier layer: the setting has one
    /// value, or both names are parts of one agent, API, model or server.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        self.is_replaced() || (self.key() != "permissions" && self.0.get(..2) == other.0.get(..2))
    }

    /// Returns the description of the setting, in one line.
    pub(crate) fn description(&self) -> String {
        let schema = schema_for!(Settings).to_value();
        let found = self.0.iter().try_fold(&schema, |node, part| part_of(&schema, node, part).ok());
        let text = found.and_then(|node| node["description"].as_str()).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Formats the name as in TOML.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        for (at, part) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            match is_bare(part) {
                true => f.write_str(part)?,
                false => write!(f, "{}", toml::Value::from(part.as_str()))?,
            }
        }
        Ok(())
    }
}

/// Splits a name as in TOML: the parser reads the name as the key of a value.
fn parts(text: &str) -> Option<Vec<String>> {
    let line = format!("{text} = 0");
    let document = DeTable::parse(&line).ok()?.into_inner();
    let (mut table, mut parts) = (document, Vec::new());
    loop {
        let mut entries = table.into_iter();
        let (Some((key, value)), None) = (entries.next(), entries.next()) else { return None };
        parts.push(key.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            value => return value.is_integer().then_some(parts),
        }
    }
}

/// A part of a name that does not exist.
pub(crate) struct Unknown {
    part: String,
    at: usize,
    known: Vec<String>,
}

impl Unknown {
    fn what(&self, parts: &[String]) -> String {
        let name = Name(parts[..=self.at.min(parts.len() - 1)].to_vec());
        format!("there is no setting `{name}`")
    }

    pub(crate) fn advice(&self) -> String {
        match nearest(&self.part, self.known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.known.is_empty() => "it has no parts".to_owned(),
            None => format!("known settings: {}", self.known.join(", ")),
        }
    }
}

fn first_unknown(parts: &[String]) -> Option<Unknown> {
    let schema = schema_for!(Settings).to_value();
    let mut node = &schema;
    for (at, part) in parts.iter().enumerate() {
        match part_of(&schema, node, part) {
            Ok(inner) => node = inner,
            Err(known) => return Some(Unknown { part: part.clone(), at, known }),
        }
    }
    None
}

/// Returns the schema of a part of a table, or the names of all its parts if it has no such part.
fn part_of<'a>(schema: &'a Json, node: &'a Json, part: &str) -> Result<&'a Json, Vec<String>> {
    let node = resolve(schema, node);
    if let Some(fields) = node["properties"].as_object() {
        // In the order of the declaration for the settings, so that the common ones come first.
        let known = || match std::ptr::eq(node, schema) {
            true => KEYS.iter().map(ToString::to_string).collect(),
            false => fields.keys().cloned().collect(),
        };
        return fields.get(part).ok_or_else(known);
    }
    match &node["additionalProperties"] {
        inner if inner.is_object() => Ok(inner),
        _ => Err(Vec::new()),
    }
}

/// Follows a reference in the schema. For an optional value, returns the schema of the value itself.
fn resolve<'a>(schema: &'a Json, node: &'a Json) -> &'a Json {
    if let Some(name) = node["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return resolve(schema, &schema["$defs"][name]);
    }
    let is_something = |one: &&Json| one["type"] != "null";
    match node["anyOf"].as_array().and_then(|several| several.iter().find(is_something)) {
        Some(inner) => resolve(schema, inner),
        None => node,
    }
}

/// The names of all settings, as the schema of the settings.
pub(crate) struct Names(Json);

impl Names {
    pub(crate) fn new() -> Self {
        Self(schema_for!(Settings).to_value())
    }

    /// Removes all entries of a file that are no settings, and returns each with the offset of its name.
    pub(crate) fn remove_unknown(&self, document: &mut DeTable<'_>) -> Vec<(usize, String, Unknown)> {
        let mut found = Vec::new();
        self.remove(&self.0, document, &mut Vec::new(), &mut found);
        found
    }

    fn remove(
        &self,
        node: &Json,
        table: &mut DeTable<'_>,
        path: &mut Vec<String>,
        found: &mut Vec<(usize, String, Unknown)>,
    ) {
        let keys = table.keys().map(|key| (key.get_ref().clone().into_owned(), key.span().start));
        for (key, place) in keys.collect::<Vec<_>>() {
            path.push(key.clone());
            match part_of(&self.0, node, &key) {
                Ok(inner) => {
                    // A text or a list where a table belongs is a wrong value, and no unknown name.
                    if let Some(DeValue::Table(table)) = table.get_mut(key.as_str()).map(Spanned::get_mut)
                        && has_parts(resolve(&self.0, inner))
                    {
                        self.remove(inner, table, path, found);
                    }
                }
                Err(known) => {
                    let unknown = Unknown { part: key.clone(), at: path.len() - 1, known };
                    found.push((place, unknown.what(path), unknown));
                    table.remove(key.as_str());
                }
            }
            path.pop();
        }
    }
}

fn has_parts(node: &Json) -> bool {
    node["properties"].is_object() || node["additionalProperties"].is_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_read_as_toml_writes_it() {
        for name in [
            "max_turns",
            "permissions.allow",
            "agents.reviewer.max_turns",
            "models.\"openai:gpt-4.1\".long.above",
        ] {
            assert_eq!(Name::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(Name::parse(" permissions . \"allow\" ").unwrap().to_string(), "permissions.allow");
        for name in ["", "a b", "models.openai:x.input", "max_turns = 1\nmodel", "[agents]", "max_turns\n"] {
            assert!(
                Name::parse(name).unwrap_err().what().contains("is not the name of a setting"),
                "{name:?}"
            );
        }
    }

    #[test]
    fn name_that_does_not_exist_is_refused_with_the_nearest_one() {
        for (name, what, advice) in [
            ("max_turn", "there is no setting `max_turn`", "did you mean `max_turns`?"),
            ("permissions.alow", "there is no setting `permissions.alow`", "did you mean `allow`?"),
            ("agents.a.sistem", "there is no setting `agents.a.sistem`", "did you mean `system`?"),
            ("model.name", "there is no setting `model.name`", "it has no parts"),
        ] {
            let refused = Name::parse(name).unwrap_err();
            assert_eq!((refused.what(), refused.advice()[0].as_str()), (what, advice));
        }
        assert!(Name::parse("zzz").unwrap_err().advice()[0].starts_with("known settings: model, fallback, "));
    }

    #[test]
    fn every_setting_has_a_name_and_a_description() {
        for key in KEYS {
            let name = Name::parse(key).unwrap();
            assert_eq!(name, Name::of_key(key));
            assert!(!name.description().is_empty(), "{key}");
        }
    }
}
