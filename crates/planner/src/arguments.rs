//! The arguments of a subtask against its tool's schema, as far as they are written in the plan.

use archon_types::{Json, ToolDefinition};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};

use crate::{
    problem::ProblemKind,
    references::{Piece, pieces, references},
};

/// What is wrong with arguments whose references have no values yet: what depends on a value is not looked at.
pub(crate) fn problems(tool: &ToolDefinition, arguments: &Json) -> Vec<ProblemKind> {
    let name = &tool.name;
    if !arguments.is_object() {
        let found = type_of(arguments).to_owned();
        return vec![ProblemKind::ArgumentsNotAnObject { tool: name.clone(), found }];
    }
    let validator = match jsonschema::validator_for(&tool.parameters) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![ProblemKind::BadSchema { tool: name.clone(), problem: error.to_string() }];
        }
    };
    let errors = validator.iter_errors(arguments).filter(|error| counts(error));
    let problem = |error: jsonschema::ValidationError<'_>| {
        let at = error.instance_path().to_string();
        ProblemKind::BadArguments {
            tool: name.clone(),
            at: if at.is_empty() { "the top".to_owned() } else { at },
            problem: error.to_string().chars().take(LONGEST).collect(),
        }
    };
    errors.take(MOST).map(problem).collect()
}

/// Problems of one subtask's arguments that are named.
const MOST: usize = 20;
/// Characters of a problem that are shown.
const LONGEST: usize = 300;

/// Whether an error stands whatever the values of the references are.
fn counts(error: &jsonschema::ValidationError<'_>) -> bool {
    let value = error.instance();
    if references(value).is_empty() {
        return true;
    }
    match error.kind() {
        Kind::Required { .. } | Kind::AdditionalProperties { .. } => true,
        // A text with a reference in it is a text, a value that is nothing but a reference may be anything.
        Kind::Type { kind } => match &**value {
            Json::String(text) => !is_reference(text) && !allows_text(kind),
            _ => true,
        },
        _ => false,
    }
}

fn allows_text(kind: &TypeKind) -> bool {
    use jsonschema::JsonType::String;
    match kind {
        TypeKind::Single(one) => *one == String,
        TypeKind::Multiple(several) => several.contains(String),
    }
}

fn is_reference(text: &str) -> bool {
    matches!(pieces(text).as_slice(), [Piece::Reference(_)])
}

/// Arguments as the tool's schema wants them: texts of numbers become numbers and the other way round, and what
/// is missing is taken from `context` where that has something of the name.
pub(crate) fn fitted(
    tool: Option<&ToolDefinition>,
    mut arguments: Json,
    context: &serde_json::Map<String, Json>,
) -> Json {
    let properties = tool.and_then(|tool| tool.parameters.get("properties")).and_then(Json::as_object);
    let (Some(properties), Json::Object(entries)) = (properties, &mut arguments) else { return arguments };
    for (name, schema) in properties {
        match (entries.get_mut(name), context.get(name)) {
            (Some(value), _) => fit(value, schema),
            (None, Some(known)) => {
                let mut known = known.clone();
                fit(&mut known, schema);
                entries.insert(name.clone(), known);
            }
            (None, None) => {}
        }
    }
    arguments
}

fn fit(value: &mut Json, schema: &Json) {
    let wanted = schema.get("type").and_then(Json::as_str);
    let fitting = match (wanted, &*value) {
        (Some("string"), Json::Number(_) | Json::Bool(_) | Json::Array(_) | Json::Object(_)) => {
            Some(Json::String(value.to_string()))
        }
        (Some("number"), Json::String(text)) => {
            serde_json::from_str(text.trim()).ok().filter(Json::is_number)
        }
        (Some("integer"), Json::String(text)) => text.trim().parse::<i64>().ok().map(Json::from),
        _ => None,
    };
    if let Some(fitting) = fitting {
        *value = fitting;
    }
}

/// What a value is, in words.
pub(crate) fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
