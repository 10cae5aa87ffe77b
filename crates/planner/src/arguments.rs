//! Checks the arguments of a subtask against its tool's JSON Schema, before the values of references are
//! known.

use archon_types::{Json, ToolDefinition};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};

use crate::{
    problem::ProblemKind,
    references::{only_reference, references},
};

/// Returns the problems of planned arguments for a tool. References in the arguments have no values yet, so
/// parts that depend on a reference are not checked.
pub(crate) fn problems(tool: &ToolDefinition, arguments: &Json) -> Vec<ProblemKind> {
    let name = &tool.name;
    if !arguments.is_object() {
        let found = type_of(arguments).to_owned();
        return vec![ProblemKind::ArgumentsNotAnObject { tool: name.clone(), found }];
    }
    let validator = match jsonschema::validator_for(&tool.parameters) {
        Ok(validator) => validator,
        Err(error) => return vec![ProblemKind::BadSchema { tool: name.clone(), problem: error.to_string() }],
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

/// Maximum number of problems that are listed for one subtask.
const MOST: usize = 20;
/// Maximum length of a problem's text, in characters.
const LONGEST: usize = 300;

/// Returns true if a schema error remains whatever values the references in the arguments get.
fn counts(error: &jsonschema::ValidationError<'_>) -> bool {
    let value = error.instance();
    if references(value).is_empty() {
        return true;
    }
    match error.kind() {
        Kind::Required { .. } | Kind::AdditionalProperties { .. } => true,
        // Text with a reference in it is text; a value that is only a reference may have any type.
        Kind::Type { kind } => match &**value {
            Json::String(text) => only_reference(text).is_none() && !allows_text(kind),
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

/// Returns the arguments with the types of the tool's schema: text is converted to numbers, and other
/// values to text. Missing arguments are taken from `context`, if it has a value of the same name.
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

/// Returns the name of a value's JSON type.
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
