//! Describes invalid arguments in words that a model can act on.

use archon_types::{Json, ToolSpec};
use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};

use crate::{
    arguments::{clip, excerpt},
    suggestion,
};

/// Maximum number of violations that are listed; more would not help a model.
const LISTED: usize = 20;

/// Size of arguments in bytes above which only the first violation is searched: a list of a million wrong
/// numbers has a million violations.
const SEARCHED_WHOLE: usize = 64 * 1024;

/// Maximum number of characters of a wrong value that are quoted.
const QUOTED: usize = 60;

/// The error text for arguments that do not match the schema.
pub(crate) struct Report {
    /// The violations, one on each line, then the suggestion.
    pub(crate) text: String,
    /// Advice for the model on how to correct the arguments.
    pub(crate) suggestion: Option<String>,
}

/// Describes arguments that are not an object or that `validator` refuses.
pub(crate) fn report(spec: &ToolSpec, validator: &Validator, arguments: &Json, bytes: usize) -> Report {
    let mut findings = Findings { schema: &spec.parameters, ..Findings::default() };
    if bytes <= SEARCHED_WHOLE {
        validator.iter_errors(arguments).for_each(|e| findings.add(&e));
    } else if let Err(e) = validator.validate(arguments) {
        findings.add(&e);
    }
    if findings.lines.is_empty() && !arguments.is_object() {
        findings.line(format!("expected object, received {}", received(arguments)), "$".to_owned());
    }
    findings.into_report(spec, bytes > SEARCHED_WHOLE)
}

#[derive(Default)]
struct Findings<'a> {
    schema: &'a Json,
    lines: Vec<String>,
    /// Required parameters that are missing in the arguments themselves, not in an object within them.
    missing: Vec<String>,
    /// Probable spelling mistakes: the name or option that was sent, and the one that was probably meant.
    slips: Vec<(String, String)>,
}

impl Findings<'_> {
    fn add(&mut self, error: &ValidationError<'_>) {
        let path = json_path(error.instance_path());
        match error.kind() {
            Kind::Required { property } => self.required(error, property.as_str().unwrap_or_default(), path),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                self.unexpected(error, unexpected, &path);
            }
            Kind::Type { kind } => {
                self.line(
                    format!("expected {}, received {}", type_names(kind), received(error.instance())),
                    path,
                );
            }
            Kind::Enum { options } => self.not_an_option(error.instance(), options, path),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.no_branch(error, context, path),
            Kind::FalseSchema => self.line("nothing is allowed here".to_owned(), path),
            _ => {
                let rule = clip(&error.masked_with("the value").to_string(), 200);
                self.line(format!("{rule}; received {}", excerpt(error.instance(), QUOTED)), path);
            }
        }
    }

    fn line(&mut self, message: String, path: String) {
        let line = format!("Parameter validation error: {message} at path '{path}'");
        // Several branches of a schema may have the same problem.
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    fn required(&mut self, error: &ValidationError<'_>, name: &str, path: String) {
        let properties = self.sibling_properties(error.schema_path());
        let kind =
            properties.and_then(|p| p.get(name)?.get("type")?.as_str()).map(|kind| format!(" ({kind})"));
        let sent = error.instance().as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        let stray = sent.filter(|key| properties.is_none_or(|p| p.get(*key).is_none()));
        if let Some(slip) = archon_types::nearest(name, stray) {
            self.slip(slip, name);
        }
        if path == "$" && !self.missing.iter().any(|known| known == name) {
            self.missing.push(name.to_owned());
        }
        self.line(format!("missing required parameter '{name}'{}", kind.unwrap_or_default()), path);
    }

    fn unexpected(&mut self, error: &ValidationError<'_>, names: &[String], path: &str) {
        let known: Vec<&str> = match self.sibling_properties(error.schema_path()) {
            Some(Json::Object(properties)) => properties.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let unused =
            known.into_iter().filter(|name| error.instance().get(name).is_none()).collect::<Vec<_>>();
        let slips: Vec<_> = names
            .iter()
            .filter_map(|name| {
                Some((name.clone(), archon_types::nearest(name, unused.iter().copied())?.to_owned()))
            })
            .collect();
        for name in names.iter().take(LISTED) {
            self.line(format!("unknown parameter '{}'", clip(name, QUOTED)), path.to_owned());
        }
        slips.into_iter().for_each(|(sent, meant)| self.slip(&sent, &meant));
    }

    fn not_an_option(&mut self, sent: &Json, options: &Json, path: String) {
        let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
        let listed: Vec<String> = options.iter().take(LISTED).map(|option| excerpt(option, QUOTED)).collect();
        let more = if options.len() > listed.len() { ", …" } else { "" };
        self.line(
            format!("expected one of {}{more}; received {}", listed.join(", "), excerpt(sent, QUOTED)),
            path,
        );
        let words = options.iter().filter_map(Json::as_str);
        if let Some(meant) = sent.as_str().and_then(|sent| archon_types::nearest(sent, words)) {
            self.slip(sent.as_str().unwrap_or_default(), meant);
        }
    }

    /// Reports that no branch of an `anyOf` or `oneOf` matches, with the problems of the closest branch.
    fn no_branch(
        &mut self,
        error: &ValidationError<'_>,
        branches: &[Vec<ValidationError<'static>>],
        path: String,
    ) {
        if let Some(types) = only_types(branches, error.instance_path()) {
            return self.line(format!("expected {types}, received {}", received(error.instance())), path);
        }
        // A branch that needs another type of value is further away than one with problems in its parts, and
        // a branch with missing parts is further away than one without.
        let distance = |branch: &&Vec<ValidationError<'_>>| {
            let other_kind = branch
                .iter()
                .any(|e| matches!(e.kind(), Kind::Type { .. }) && e.instance_path() == error.instance_path());
            let missing = branch.iter().filter(|e| matches!(e.kind(), Kind::Required { .. })).count();
            (other_kind, missing, branch.len())
        };
        match branches.iter().min_by_key(distance) {
            Some(branch) => branch.iter().for_each(|e| self.add(e)),
            None => self.line("no alternative fits".to_owned(), path),
        }
    }

    fn slip(&mut self, sent: &str, meant: &str) {
        if sent != meant && !self.slips.iter().any(|(known, _)| known == sent) {
            self.slips.push((clip(sent, QUOTED), meant.to_owned()));
        }
    }

    /// Returns the `properties` of the object schema that the keyword at `path` belongs to. If that schema is
    /// a branch of an `anyOf` or `oneOf` and has no `properties`, returns those of the schema around it.
    fn sibling_properties(&self, path: &Location) -> Option<&Json> {
        let pointer = path.as_str();
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        let own = self.schema.pointer(parent).and_then(|schema| schema.get("properties"));
        let outer = || parent.find("/anyOf").or_else(|| parent.find("/oneOf")).map(|at| &parent[..at]);
        own.or_else(|| self.schema.pointer(outer()?)?.get("properties"))
    }

    fn into_report(mut self, spec: &ToolSpec, cut_short: bool) -> Report {
        let found = self.lines.len();
        self.lines.truncate(LISTED);
        if found > LISTED {
            self.lines.push(format!("… and {} more", found - LISTED));
        } else if cut_short {
            self.lines.push("There may be more.".to_owned());
        }
        let mut advice: Vec<String> = self
            .slips
            .iter()
            .map(|(sent, meant)| format!("Did you mean '{meant}' instead of '{sent}'?"))
            .collect();
        if !self.missing.is_empty() {
            let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
            advice.push(format!(
                "Example: {}",
                suggestion::example_call(spec, &example_parameters(spec, &missing))
            ));
        }
        let suggestion = (!advice.is_empty()).then(|| advice.join("\n"));
        if advice.is_empty() {
            advice.push("The tool was not run. Call it again with arguments that fit.".to_owned());
        }
        self.lines.extend(advice);
        Report { text: self.lines.join("\n"), suggestion }
    }
}

/// Returns the parameters for an example call: all required ones, then those in `missing` that are not among
/// them.
fn example_parameters<'a>(spec: &'a ToolSpec, missing: &[&'a str]) -> Vec<&'a str> {
    let required = spec.parameters.get("required").and_then(Json::as_array).into_iter().flatten();
    let mut names: Vec<&str> = required.filter_map(Json::as_str).collect();
    for name in missing {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
}

/// Returns the types of all branches, such as `string or integer`, if the only problem of each branch is
/// the type of the value at `path`.
fn only_types(branches: &[Vec<ValidationError<'_>>], path: &Location) -> Option<String> {
    let names: Option<Vec<String>> = branches
        .iter()
        .map(|branch| match branch.as_slice() {
            [only] if only.instance_path() == path => match only.kind() {
                Kind::Type { kind } => Some(type_names(kind)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    names.filter(|names| !names.is_empty()).map(|names| names.join(" or "))
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Returns the type of a value, and the value or its beginning.
fn received(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) => format!("boolean {value}"),
        Json::Number(n) if n.is_f64() => format!("number {value}"),
        Json::Number(_) => format!("integer {value}"),
        Json::String(_) => format!("string {}", excerpt(value, QUOTED)),
        Json::Array(_) => format!("array {}", excerpt(value, QUOTED)),
        Json::Object(_) => format!("object {}", excerpt(value, QUOTED)),
    }
}

/// Formats the path to a value in the arguments: `$`, `$.items[0].name`, `$['odd key']`.
fn json_path(location: &Location) -> String {
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    location.segments().fold("$".to_owned(), |path, segment| match segment {
        LocationSegment::Index(index) => format!("{path}[{index}]"),
        LocationSegment::Property(name) if plain(&name) => format!("{path}.{name}"),
        LocationSegment::Property(name) => format!("{path}['{}']", clip(&name, QUOTED)),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(parameters: Json, arguments: Json, expected: Expect) {
        let spec = ToolSpec::new("demo", "", parameters);
        let validator = jsonschema::validator_for(&spec.parameters).unwrap();
        let bytes = arguments.to_string().len();
        expected.assert_eq(&report(&spec, &validator, &arguments, bytes).text);
    }

    fn object(properties: Json, required: Json) -> Json {
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    // spec: TE-04
    #[test]
    fn violation_of_a_type_names_expected_and_actual_type() {
        let schema = object(
            json!({ "n": { "type": "integer" }, "list": { "type": "array", "items": { "type": ["string", "null"] } } }),
            json!([]),
        );
        check(
            schema.clone(),
            json!({ "n": "five" }),
            expect![[r#"
                Parameter validation error: expected integer, received string "five" at path '$.n'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            schema.clone(),
            json!({ "n": 1.5, "list": ["a", 2, null, {}] }),
            expect![[r#"
                Parameter validation error: expected integer, received number 1.5 at path '$.n'
                Parameter validation error: expected null or string, received integer 2 at path '$.list[1]'
                Parameter validation error: expected null or string, received object {} at path '$.list[3]'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            schema.clone(),
            json!([1]),
            expect![[r#"
                Parameter validation error: expected object, received array [1] at path '$'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            schema.clone(),
            json!("{}"),
            expect![[r#"
                Parameter validation error: expected object, received string "{}" at path '$'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            schema,
            json!({ "n": "x".repeat(500) }),
            expect![[r#"
                Parameter validation error: expected integer, received string "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… at path '$.n'
                The tool was not run. Call it again with arguments that fit."#]],
        );
    }

    // spec: TE-05
    #[test]
    fn violation_of_a_missing_property_has_an_example() {
        let schema = object(
            json!({ "path": { "type": "string" }, "content": { "type": "string" }, "append": { "type": "boolean" } }),
            json!(["path", "content"]),
        );
        check(
            schema.clone(),
            json!({}),
            expect![[r#"
            Parameter validation error: missing required parameter 'path' (string) at path '$'
            Parameter validation error: missing required parameter 'content' (string) at path '$'
            Example: demo(path="notes.txt", content="...")"#]],
        );
        check(
            schema.clone(),
            json!({ "path": "a.txt" }),
            expect![[r#"
            Parameter validation error: missing required parameter 'content' (string) at path '$'
            Example: demo(path="notes.txt", content="...")"#]],
        );
        check(
            schema.clone(),
            json!({ "path": "a.txt", "contents": "x" }),
            expect![[r#"
            Parameter validation error: missing required parameter 'content' (string) at path '$'
            Parameter validation error: unknown parameter 'contents' at path '$'
            Did you mean 'content' instead of 'contents'?
            Example: demo(path="notes.txt", content="...")"#]],
        );
        check(
            schema,
            json!({ "path": "a", "content": "b", "apend": true, "colour": 1 }),
            expect![[r#"
            Parameter validation error: unknown parameter 'apend' at path '$'
            Parameter validation error: unknown parameter 'colour' at path '$'
            Did you mean 'append' instead of 'apend'?"#]],
        );
    }

    // spec: TE-05
    #[test]
    fn violation_reports_a_misspelt_parameter_even_if_extra_ones_are_allowed() {
        let schema = json!({ "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] });
        check(
            schema,
            json!({ "qurey": "rust" }),
            expect![[r#"
            Parameter validation error: missing required parameter 'query' (string) at path '$'
            Did you mean 'query' instead of 'qurey'?
            Example: demo(query="what to look for")"#]],
        );
    }

    // spec: TE-04
    #[test]
    fn options_and_limits_are_named() {
        let schema = object(
            json!({
                "unit": { "enum": ["celsius", "fahrenheit"] },
                "days": { "type": "integer", "minimum": 1, "maximum": 7 },
                "code": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 3 },
                "odd key": { "type": "object", "properties": { "x": { "type": "null" } } },
            }),
            json!([]),
        );
        check(
            schema.clone(),
            json!({ "unit": "Celcius" }),
            expect![[r#"
            Parameter validation error: expected one of "celsius", "fahrenheit"; received "Celcius" at path '$.unit'
            Did you mean 'celsius' instead of 'Celcius'?"#]],
        );
        check(
            schema.clone(),
            json!({ "days": 9, "code": "ABCD" }),
            expect![[r#"
                Parameter validation error: the value is greater than the maximum of 7; received 9 at path '$.days'
                Parameter validation error: the value is longer than 3 characters; received "ABCD" at path '$.code'
                Parameter validation error: the value does not match "^[a-z]+$"; received "ABCD" at path '$.code'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            schema,
            json!({ "odd key": { "x": true } }),
            expect![[r#"
                Parameter validation error: expected null, received boolean true at path '$['odd key'].x'
                The tool was not run. Call it again with arguments that fit."#]],
        );
    }

    // spec: TE-04
    #[test]
    fn violation_of_any_of_reports_the_closest_alternative() {
        let either = json!({ "type": "object", "properties": {
            "value": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "shape": { "oneOf": [
                { "type": "object", "properties": { "r": { "type": "number" } }, "required": ["r"] },
                { "type": "object", "properties": { "w": { "type": "number" }, "h": { "type": "number" } },
                  "required": ["w", "h"] },
                { "type": "string" },
            ]},
        }});
        check(
            either.clone(),
            json!({ "value": [] }),
            expect![[r#"
                Parameter validation error: expected string or integer, received array [] at path '$.value'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            either.clone(),
            json!({ "shape": {} }),
            expect![[r#"
                Parameter validation error: missing required parameter 'r' (number) at path '$.shape'
                The tool was not run. Call it again with arguments that fit."#]],
        );
        check(
            either,
            json!({ "shape": { "w": "wide", "h": 2 } }),
            expect![[r#"
                Parameter validation error: expected number, received string "wide" at path '$.shape.w'
                The tool was not run. Call it again with arguments that fit."#]],
        );
    }

    // spec: TE-04, TE-22
    #[test]
    fn violations_are_limited_in_number() {
        let schema = object(json!({ "list": { "type": "array", "items": { "type": "string" } } }), json!([]));
        let few = json!({ "list": vec![0; 30] });
        let many = json!({ "list": vec![0; 1_000_000] });
        let spec = ToolSpec::new("demo", "", schema);
        let validator = jsonschema::validator_for(&spec.parameters).unwrap();
        let text = |arguments: &Json, bytes| report(&spec, &validator, arguments, bytes).text;
        assert!(text(&few, 100).ends_with("at path '$.list[19]'\n… and 10 more\nThe tool was not run. Call it again with arguments that fit."), "{}", text(&few, 100));
        expect![[r#"
            Parameter validation error: expected string, received integer 0 at path '$.list[0]'
            There may be more.
            The tool was not run. Call it again with arguments that fit."#]]
        .assert_eq(&text(&many, 2_000_000));
    }
}
