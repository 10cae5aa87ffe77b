//! Collects the texts of a tool's definition that a search compares with a query, with their weights, and counts the
//! tokens of the definition.

use archon_types::{Json, TokenCounter as _, TokenEstimate, ToolSpec};

/// Weight of a tool's name and of the names of its groups in the score of a search. The other texts of the tool have
/// the weight 1.
const NAME: f32 = 3.0;
/// Maximum number of levels of a schema that are read, so that hostile nesting cannot overflow the stack.
const DEEPEST: usize = 24;

/// Calls `take` with each text and its weight: name, groups, description, and the names, descriptions and allowed
/// values of the parameters.
pub(crate) fn texts<'s>(spec: &'s ToolSpec, take: &mut impl FnMut(&'s str, f32)) {
    take(&spec.name, NAME);
    spec.groups.iter().for_each(|group| take(group, NAME));
    take(&spec.description, 1.0);
    parameters(&spec.parameters, DEEPEST, false, &mut |text| take(text, 1.0));
}

/// Returns the estimated number of tokens of a tool's definition in a request.
pub(crate) fn tokens(spec: &ToolSpec) -> u64 {
    TokenEstimate.count(&serde_json::to_string(&spec.definition()).unwrap_or_default())
}

/// Calls `take` with the texts in a schema. `names` is true if the keys of the object `schema` are names of
/// parameters, as in `properties`, not keywords.
fn parameters<'s>(schema: &'s Json, levels: usize, names: bool, take: &mut impl FnMut(&'s str)) {
    let Some(below) = levels.checked_sub(1) else { return };
    match schema {
        Json::Array(items) => items.iter().for_each(|item| parameters(item, below, false, take)),
        Json::Object(fields) if names => {
            for (name, schema) in fields {
                take(name);
                parameters(schema, below, false, take);
            }
        }
        Json::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("description" | "const", Json::String(text)) => take(text),
                    ("enum", Json::Array(values)) => {
                        values.iter().filter_map(Json::as_str).for_each(&mut *take)
                    }
                    ("default" | "examples", _) => {}
                    (keyword, value) => parameters(value, below, keyword == "properties", take),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn document_texts_are_names_groups_descriptions_and_parameters() {
        let mut spec = ToolSpec::new(
            "book",
            "Books a room.",
            json!({ "type": "object", "required": ["room"], "properties": {
                "description": { "type": "string", "default": "none" },
                "room": { "enum": ["single", "double", 3], "description": "The kind." },
                "guests": { "type": "array", "items": { "properties": { "name": { "const": "x" } } } },
            }}),
        );
        spec.groups = vec!["rooms".to_owned()];
        let mut found = Vec::new();
        texts(&spec, &mut |text, weight| found.push(format!("{text}*{weight}")));
        let expected = "book*3 rooms*3 Books a room.*1 description*1 room*1 single*1 double*1 The kind.*1 guests*1 name*1 x*1";
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn texts_of_a_deep_schema_are_not_read_to_the_bottom() {
        let deep = (0..100).fold(json!({ "description": "deep" }), |inner, _| json!({ "items": inner }));
        let mut found = Vec::new();
        let spec = ToolSpec::new("t", "d", deep);
        texts(&spec, &mut |text, _| found.push(text));
        assert_eq!(found, ["t", "d"]);
    }
}
