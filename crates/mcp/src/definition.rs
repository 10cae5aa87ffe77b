//! The description of a tool as its server gave it, and the hash that pins it.

use archon_types::Json;
use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};

use crate::text::is_unseen;

/// Maximum size of a definition, in bytes of JSON.
const LARGEST: usize = 64 << 10;
/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 256;

/// A tool as its server describes it. All texts are untrusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// The name on the server.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Json,
    /// JSON Schema of structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// The server's own, unchecked hints about the tool's effects.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub annotations: Json,
}

impl Definition {
    pub(crate) fn new(tool: &rmcp::model::Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            input_schema: Json::Object((*tool.input_schema).clone()),
            output_schema: tool.output_schema.as_ref().map(|schema| Json::Object((**schema).clone())),
            annotations: serde_json::to_value(&tool.annotations).unwrap_or_default(),
        }
    }

    /// Returns the SHA-256 of the definition together with the server's identity, as hexadecimal digits.
    /// The hash does not depend on the order of keys.
    pub fn hash(&self, identity: &str) -> String {
        hash(&serde_json::json!(["archon mcp tool 1", identity, self]))
    }

    /// Returns the hash without the name, to recognise a tool that was renamed.
    pub(crate) fn hash_without_name(&self, identity: &str) -> String {
        #[cfg(test)]
        tests::NAMELESS_HASHES.set(tests::NAMELESS_HASHES.get() + 1);
        let nameless = Self { name: String::new(), ..self.clone() };
        hash(&serde_json::json!(["archon mcp tool without name 1", identity, nameless]))
    }

    /// Returns the reason why no model can use the tool, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.name.is_empty() || self.name.chars().count() > LONGEST_NAME {
            return Some(format!("the name is empty or longer than {LONGEST_NAME} characters"));
        }
        if self.name.contains(|c: char| matches!(c, '\n' | '\t') || is_unseen(c)) {
            // A line break in a name could add lines to the text that a person agrees to.
            return Some("the name has a control character or an invisible one".to_owned());
        }
        if serde_json::to_vec(self).map_or(0, |bytes| bytes.len()) > LARGEST {
            return Some(format!("the definition is larger than {} KiB", LARGEST >> 10));
        }
        if self.input_schema.get("type").is_some_and(|kind| kind != "object") {
            return Some("the schema of the arguments does not describe an object".to_owned());
        }
        let foreign = [Some(&self.input_schema), self.output_schema.as_ref()];
        foreign.into_iter().flatten().find_map(foreign_reference).map(|at| {
            format!("a schema refers to '{}', which is outside of the schema", crate::text::plain(at, 100))
        })
    }
}

/// Returns a `$ref` or `$dynamicRef` that leads out of a schema, if there is one. No such reference is ever
/// followed.
fn foreign_reference(schema: &Json) -> Option<&str> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Json::Array(items) => open.extend(items),
            Json::Object(fields) => {
                for (key, value) in fields {
                    let target = matches!(&**key, "$ref" | "$dynamicRef").then(|| value.as_str()).flatten();
                    if let Some(target) = target.filter(|target| !target.starts_with('#')) {
                        return Some(target);
                    }
                    open.push(value);
                }
            }
            _ => {}
        }
    }
    None
}

fn hash(value: &Json) -> String {
    let mut hash = Hash::new();
    write_canonical(value, &mut hash);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds a value with sorted keys to the hash. Texts and numbers are written by the JSON library, so no two
/// different values give the same bytes.
fn write_canonical(value: &Json, hash: &mut Hash) {
    match value {
        Json::Array(items) => {
            hash.update("[");
            for item in items {
                write_canonical(item, hash);
                hash.update(",");
            }
            hash.update("]");
        }
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| key.as_str());
            hash.update("{");
            for (key, value) in fields {
                hash.update(Json::from(key.as_str()).to_string());
                hash.update(":");
                write_canonical(value, hash);
                hash.update(",");
            }
            hash.update("}");
        }
        plain => hash.update(plain.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    thread_local! {
        /// The number of hashes without a name that this thread made.
        pub(crate) static NAMELESS_HASHES: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn definition(name: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            title: None,
            description: "Reads a file.".to_owned(),
            input_schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
            output_schema: None,
            annotations: json!({ "readOnlyHint": true }),
        }
    }

    #[test]
    fn hash_of_a_definition_changes_with_every_part_and_not_with_the_order_of_keys() {
        let original = definition("read");
        let same = |change: &dyn Fn(&mut Definition)| {
            let mut changed = original.clone();
            change(&mut changed);
            changed.hash("npx files") == original.hash("npx files")
        };
        assert!(same(&|_| {}));
        assert!(same(&|d| {
            d.input_schema = json!({ "properties": { "path": { "type": "string" } }, "type": "object" });
        }));
        assert!(!same(&|d| d.name = "read2".to_owned()));
        assert!(!same(&|d| d.title = Some(String::new())));
        assert!(!same(&|d| d.description.push('\u{200b}')));
        assert!(!same(&|d| d.input_schema["properties"]["path"]["default"] = json!("/etc/passwd")));
        assert!(!same(&|d| d.output_schema = Some(json!({}))));
        assert!(!same(&|d| d.annotations = json!({ "readOnlyHint": false })));
        assert_ne!(original.hash("npx files"), original.hash("npx files2"));
    }

    #[test]
    fn definition_problem_names_the_unusable_part() {
        let problem = |change: &dyn Fn(&mut Definition)| {
            let mut changed = definition("read");
            change(&mut changed);
            changed.problem().unwrap_or_default()
        };
        assert_eq!(problem(&|_| {}), "");
        assert_eq!(problem(&|d| d.input_schema = json!({ "$ref": "#/$defs/a", "$defs": { "a": {} } })), "");
        assert!(problem(&|d| d.name.clear()).contains("name is empty"));
        for name in ["read\n+ name: write", "read\t", "re\u{200b}ad", "read\u{202e}", "read\u{fe0f}"] {
            assert!(problem(&|d| d.name = name.to_owned()).contains("the name has a control"), "{name:?}");
        }
        assert!(problem(&|d| d.description = "x".repeat(LARGEST)).contains("larger than 64 KiB"));
        assert!(
            problem(&|d| d.input_schema = json!({ "type": "array" })).contains("does not describe an object")
        );
        let foreign = json!({ "anyOf": [{ "$ref": "https://example.com/schema" }] });
        assert!(problem(&|d| d.output_schema = Some(foreign.clone())).contains("https://example.com/schema"));
    }
}
