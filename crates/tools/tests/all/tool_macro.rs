//! `#[tool]`: what becomes of a function's signature, documentation and result.

use std::{fmt, num::ParseIntError};

use archon_tools::{ToolRegistry, schemars, tool};
use archon_types::{Effect, Json, Tool, ToolContext, ToolError, ToolResult};
use expect_test::{Expect, expect};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fixture::{call_directly, context, engine};

/// How warm it is.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

/// A place on Earth.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Place {
    /// North is positive.
    latitude: f64,
    name: Option<String>,
}

/// Forecasts the weather.
///
/// Use it when somebody asks about tomorrow.
///
/// # Arguments
/// - `days`: how far ahead
/// - unit: of the answer
///
/// # Errors
/// For people, not for the model.
#[tool(name = "weather.forecast", idempotent, concurrency_safe, timeout_ms = 5000, version = "2.1.0")]
async fn forecast(
    /// Where.
    /// As exactly as possible.
    place: Place,
    #[default(3)] days: u8,
    unit: Option<Unit>,
    #[default(vec!["rain".to_owned()])] watch: Vec<String>,
    file_path: &str,
    context: &ToolContext,
    r#type: bool,
) -> Result<String, ToolError> {
    if days > 14 {
        return Err(ToolError::InvalidArgs("too far".to_owned()));
    }
    Ok(format!(
        "{} {:?} {days} {unit:?} {watch:?} {file_path} {} {}",
        place.latitude, place.name, context.tool_name, r#type
    ))
}

// spec: TE-34
#[test]
fn the_signature_is_the_schema() {
    let spec = forecast().spec().clone();
    expect![[r#"
        {
          "name": "weather.forecast",
          "description": "Forecasts the weather.\n\nUse it when somebody asks about tomorrow.",
          "parameters": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
              "place": {
                "type": "object",
                "properties": {
                  "latitude": {
                    "type": "number",
                    "description": "North is positive."
                  },
                  "name": {
                    "type": [
                      "string",
                      "null"
                    ]
                  }
                },
                "required": [
                  "latitude"
                ],
                "description": "Where.\nAs exactly as possible."
              },
              "days": {
                "type": "integer",
                "default": 3,
                "minimum": 0,
                "maximum": 255,
                "description": "how far ahead"
              },
              "unit": {
                "type": [
                  "string",
                  "null"
                ],
                "enum": [
                  "celsius",
                  "fahrenheit",
                  null
                ],
                "description": "of the answer"
              },
              "watch": {
                "type": "array",
                "items": {
                  "type": "string"
                },
                "default": [
                  "rain"
                ]
              },
              "file_path": {
                "type": "string",
                "description": "File path"
              },
              "type": {
                "type": "boolean"
              }
            },
            "required": [
              "place",
              "file_path",
              "type"
            ]
          },
          "version": "2.1.0",
          "annotations": {
            "effect": "idempotent",
            "concurrency_safe": true,
            "requires_confirmation": false,
            "destructive": false,
            "blocking": false,
            "timeout_ms": 5000
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&spec).unwrap());
}

// spec: TE-34
#[tokio::test]
async fn arguments_reach_the_parameters() {
    let registry = ToolRegistry::new();
    registry.register(forecast).unwrap();
    let engine = archon_tools::ToolEngine::new(registry);
    let call = |arguments: Json| {
        let engine = engine.clone();
        async move { engine.execute_tool_call("weather.forecast", arguments, &context()).await.text() }
    };
    let least = json!({ "place": { "latitude": 1.5 }, "file_path": "a", "type": true });
    assert_eq!(call(least).await, r#"1.5 None 3 None ["rain"] a weather.forecast true"#);
    let most = json!({
        "place": { "latitude": -3, "name": "Quito" }, "days": 14, "unit": "celsius", "watch": [], "file_path": "b",
        "type": false,
    });
    assert_eq!(call(most).await, r#"-3 Some("Quito") 14 Some(Celsius) [] b weather.forecast false"#);
    let wrong =
        json!({ "place": {}, "days": 300, "unit": "kelvin", "watch": "rain", "type": 1, "file": "x" });
    expect![[r#"
        Error: Parameter validation error: missing required parameter 'file_path' (string) at path '$'
        Parameter validation error: missing required parameter 'latitude' (number) at path '$.place'
        Parameter validation error: the value is greater than the maximum of 255; received 300 at path '$.days'
        Parameter validation error: expected one of "celsius", "fahrenheit", null; received "kelvin" at path '$.unit'
        Parameter validation error: expected array, received string "rain" at path '$.watch'
        Parameter validation error: expected boolean, received integer 1 at path '$.type'
        Parameter validation error: unknown parameter 'file' at path '$'
        Did you mean 'file_path' instead of 'file'?
        Example: weather.forecast(place={}, file_path="notes.txt", type=true)"#]].assert_eq(&call(wrong).await);
    assert_eq!(
        forecast::run(
            Place { latitude: 0.0, name: None },
            15,
            Some(Unit::Fahrenheit),
            vec![],
            "",
            &tool_context(),
            true
        )
        .await,
        Err(ToolError::InvalidArgs("too far".to_owned()))
    );
}

fn tool_context() -> ToolContext {
    ToolContext::new(context(), "c".into(), "t")
}

/// Adds two numbers.
#[tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Does nothing at all, whatever is said.
#[tool(description = "Says nothing.", destructive, requires_confirmation)]
async fn nothing() {}

/// Gives a result of its own.
#[tool]
async fn own_result() -> ToolResult {
    ToolResult::cancelled("not today")
}

/// Gives text of no fixed length.
#[tool]
async fn borrowed(words: &[String]) -> &'static str {
    if words.is_empty() { "none" } else { "some" }
}

#[derive(Serialize)]
struct Row {
    id: u32,
    tags: Vec<&'static str>,
}

/// Gives rows of a table.
#[tool]
async fn rows() -> Vec<Row> {
    vec![Row { id: 1, tags: vec!["a"] }]
}

/// Gives what may be missing.
#[tool]
async fn maybe(here: bool) -> Option<u8> {
    here.then_some(7)
}

/// Fails as the standard library fails.
#[tool]
async fn parse(text: String) -> Result<i32, ParseIntError> {
    text.parse()
}

/// An error that turns into a tool's.
#[derive(Debug)]
struct Locked;

impl From<Locked> for ToolError {
    fn from(_: Locked) -> Self {
        Self::PermissionDenied("locked".to_owned())
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("the conversion is preferred")
    }
}

/// Fails in its own way.
#[tool]
async fn open() -> Result<(), Locked> {
    Err(Locked)
}

/// Stands for a crate that re-exports ours under another name.
mod renamed {
    pub(crate) use archon_tools::*;
}

/// Reaches everything through another path.
#[tool(crate = crate::tool_macro::renamed)]
async fn through_another_path(text: String) -> String {
    text
}

fn check(tool: impl Tool, arguments: Json, expected: Expect) {
    let shown = match call_directly(&tool, arguments) {
        Ok(result) => format!("{:?}: {}", result.status, result.text()),
        Err(error) => format!("{}: {error}", error.code()),
    };
    expected.assert_eq(&shown);
}

// spec: TE-34
#[test]
fn tool_macro_return_types_become_results() {
    check(add(), json!({ "a": 1, "b": 2 }), expect!["Success: 3"]);
    check(nothing(), json!({}), expect!["Success: Done."]);
    check(own_result(), json!({}), expect!["Cancelled: not today"]);
    check(borrowed(), json!({ "words": ["x"] }), expect!["Success: some"]);
    check(rows(), json!({}), expect![[r#"Success: [{"id":1,"tags":["a"]}]"#]]);
    check(maybe(), json!({ "here": true }), expect!["Success: 7"]);
    check(maybe(), json!({ "here": false }), expect!["Success: null"]);
    check(parse(), json!({ "text": "12" }), expect!["Success: 12"]);
    check(parse(), json!({ "text": "twelve" }), expect!["execution_error: invalid digit found in string"]);
    check(through_another_path(), json!({ "text": "hi" }), expect!["Success: hi"]);
    check(open(), json!({}), expect!["permission_denied: locked"]);
    // A schema says "integer"; what i64 cannot hold is still no crash.
    check(
        add(),
        json!({ "a": 1, "b": 1e300 }),
        expect!["invalid_parameters: Invalid arguments: invalid type: floating point `1e+300`, expected i64"],
    );
}

// spec: TE-01
#[test]
fn the_words_in_the_parentheses_are_annotations() {
    let annotations = |tool: &dyn Tool| tool.spec().annotations.clone();
    let adding = annotations(&add());
    assert_eq!((adding.effect, adding.concurrency_safe, adding.blocking), (Effect::ReadOnly, true, true));
    let doing = annotations(&nothing());
    assert!(doing.destructive && doing.requires_confirmation && !doing.blocking && !doing.concurrency_safe);
    assert_eq!(doing.effect, Effect::SideEffect);
    assert_eq!(nothing().spec().description, "Says nothing.");
    assert_eq!(annotations(&forecast()).effect, Effect::Idempotent);
}

// spec: TE-02, Q-02
#[tokio::test]
async fn a_function_and_what_it_makes_register_alike() {
    for register in [|r: &ToolRegistry| r.register(add), |r: &ToolRegistry| r.register(add())] {
        let registry = ToolRegistry::new();
        register(&registry).unwrap();
        // A local value may have the tool's name.
        let add = registry.get("add").unwrap();
        let text =
            engine([add]).execute_tool_call("add", json!({ "a": 40, "b": 2 }), &context()).await.text();
        assert_eq!(text, "42");
    }
    assert_eq!(add::run(1, 2), 3);
}
