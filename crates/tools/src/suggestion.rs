//! What a model probably meant, and what a right call looks like.

use archon_types::{Json, ToolSpec};

use crate::arguments::excerpt;

/// Names less alike than this (0 to 1) are different words, not slips.
const ALIKE: f64 = 0.6;

/// Longer names are not compared: nobody meant them, and comparing takes their product in time.
const LONGEST: usize = 100;

/// The candidate that is most like `name`, if any is like it. Case and `-` for `_` count little.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = simplified(name)?;
    let likeness = |candidate: &str| match simplified(candidate) {
        Some(known) if known == wanted => 1.0,
        // `file` for `file_path`, `search_files` for `search`: a part of a name stands for it.
        Some(known)
            if wanted.len() > 3
                && known.len() > 3
                && (known.contains(&wanted) || wanted.contains(&known)) =>
        {
            0.9
        }
        Some(known) => strsim::normalized_damerau_levenshtein(&wanted, &known),
        None => 0.0,
    };
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        // The first of equals, so that the answer does not depend on what comes later.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

fn simplified(name: &str) -> Option<String> {
    (name.len() <= LONGEST).then(|| name.to_lowercase().replace(['-', '.', ' '], "_"))
}

/// A call as a model could write it: `tool(param="value", other=1)`.
pub(crate) fn example_call(spec: &ToolSpec, parameters: &[&str]) -> String {
    let arguments = parameters.iter().map(|name| format!("{name}={}", example_value(spec, name)));
    format!("{}({})", spec.name, arguments.collect::<Vec<_>>().join(", "))
}

/// From the tool's own examples, else from the parameter's schema, else from its name or type.
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

/// The type that a schema names, the first one if there are several.
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

    // spec: TE-05, TE-07
    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["expression", "file_path", "old_string", "recursive", "a"];
        for (name, expected) in [
            ("expresion", Some("expression")),
            ("Expression", Some("expression")),
            ("filePath", Some("file_path")),
            ("file-path", Some("file_path")),
            ("path", Some("file_path")),
            ("old_str", Some("old_string")),
            ("recusrive", Some("recursive")),
            ("b", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(closest(name, known), expected, "{name}");
        }
        assert_eq!(closest(&"expression".repeat(100_000), known), None);
    }

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
