//! Makes examples of correct calls.

use archon_types::{Json, ToolSpec};

use crate::arguments::excerpt;

/// Returns a call as a model could write it: `tool(param="value", other=1)`.
pub(crate) fn example_call(spec: &ToolSpec, parameters: &[&str]) -> String {
    let arguments = parameters.iter().map(|name| format!("{name}={}", example_value(spec, name)));
    format!("{}({})", spec.name, arguments.collect::<Vec<_>>().join(", "))
}

/// Returns an example value of a parameter: from the tool's own examples, else from the parameter's schema,
/// else by the parameter's name or type.
fn example_value(spec: &ToolSpec, parameter: &str) -> String {
    let schema = spec.parameters.get("properties").and_then(|properties| properties.get(parameter));
    let keyword = |key: &str| schema.and_then(|schema| schema.get(key));
    let first = |key: &str| keyword(key).and_then(|list| list.get(0));
    let own = spec.examples.iter().find_map(|example| example.get(parameter));
    let given = own.or_else(|| first("examples")).or_else(|| first("enum")).or_else(|| keyword("const"));
    match given.or_else(|| keyword("default").filter(|value| !value.is_null())) {
        Some(value) => excerpt(value, 80),
        None => stand_in(parameter, schema_type(schema)).to_owned(),
    }
}

/// Returns the type in a schema, the first one if there are several.
fn schema_type(schema: Option<&Json>) -> Option<&str> {
    let kind = schema?.get("type")?;
    kind.as_str().or_else(|| kind.get(0)?.as_str())
}

fn stand_in(parameter: &str, kind: Option<&str>) -> &'static str {
    match kind {
        Some("integer") => "1",
        Some("number") => "1.5",
        Some("boolean") => "true",
        Some("array") => "[]",
        Some("object") => "{}",
        _ => match parameter {
            "path" | "file_path" | "file" | "filename" => r#""notes.txt""#,
            "directory" | "dir" | "cwd" => r#""src""#,
            "command" => r#""ls""#,
            "pattern" | "regex" => r#""TODO""#,
            "expression" => r#""2 + 2""#,
            "query" => r#""what to look for""#,
            "url" => r#""https://example.com""#,
            _ => r#""...""#,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // spec: TE-05
    #[test]
    fn an_example_comes_from_the_tool_before_it_comes_from_us() {
        let parameters = json!({ "type": "object", "properties": {
            "path": { "type": "string" },
            "mode": { "enum": ["fast", "slow"] },
            "n": { "type": ["integer", "null"] },
            "depth": { "type": "integer", "default": 3 },
            "word": { "type": "string", "examples": ["tree"] },
            "text": { "type": "string" },
        }});
        let mut spec = ToolSpec::new("t", "", parameters);
        spec.examples.push(json!({ "text": "hi" }));
        assert_eq!(
            example_call(&spec, &["path", "mode", "n", "depth", "word", "text", "unknown"]),
            r#"t(path="notes.txt", mode="fast", n=1, depth=3, word="tree", text="hi", unknown="...")"#
        );
    }
}
