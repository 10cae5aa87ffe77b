//! The registry: names, order, schemas, and tools that come and go.

use std::{sync::Arc, thread};

use archon_testkit::LateTools;
use archon_tools::{ToolEngine, ToolRegistry, ToolSetupError, builtin::Calculator, lint};
use archon_types::{Json, Tool, ToolSpec, Toolbox as _};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{Recorder, context, engine, run_call, spec};

fn register(spec: ToolSpec) -> Result<(), ToolSetupError> {
    ToolRegistry::new().register(Recorder::default().tool_with(spec))
}

fn check_refused(spec: ToolSpec, expected: Expect) {
    expected.assert_eq(&register(spec).unwrap_err().to_string());
}

// spec: TE-02
#[test]
fn a_name_is_taken_once() {
    let registry = ToolRegistry::new();
    registry.register(Calculator::new).unwrap();
    let again = registry.register(Calculator::new()).unwrap_err();
    assert_eq!(again.to_string(), "Tool 'calculator' already registered");
    assert!(registry.get("calculator").is_some());
    assert!(registry.get("Calculator").is_none());
}

// spec: TE-02
#[test]
fn registry_lists_tools_sorted_by_name() {
    let names = ["web.search", "a-b", "Zoo", "calc", "files__read"];
    for rotation in 0..names.len() {
        let registry = ToolRegistry::new();
        for index in 0..names.len() {
            registry
                .register(Recorder::default().tool_with(spec(names[(index + rotation) % names.len()])))
                .unwrap();
        }
        assert_eq!(registry.names(), ["Zoo", "a-b", "calc", "files__read", "web.search"]);
        let listed: Vec<String> = registry.list().iter().map(|tool| tool.spec().name.clone()).collect();
        assert_eq!(listed, registry.names());
        let specs: Vec<String> = registry.specs().iter().map(|spec| spec.name.clone()).collect();
        assert_eq!(specs, registry.names());
    }
}

// spec: TE-03
#[test]
fn registry_accepts_only_names_that_providers_accept() {
    for good in ["a", "math.calculator", "web__search", "A-1", &"x".repeat(64)] {
        register(spec(good)).unwrap();
    }
    check_refused(spec(""), expect!["Tool name '' cannot be used: it is empty"]);
    check_refused(
        spec("web search"),
        expect!["Tool name 'web search' cannot be used: only letters, digits, '_', '-' and '.' are allowed"],
    );
    check_refused(
        spec("größe"),
        expect!["Tool name 'größe' cannot be used: only letters, digits, '_', '-' and '.' are allowed"],
    );
    check_refused(
        spec("a/b"),
        expect!["Tool name 'a/b' cannot be used: only letters, digits, '_', '-' and '.' are allowed"],
    );
    let long = "x".repeat(65);
    assert!(register(spec(&long)).unwrap_err().to_string().ends_with("it has more than 64 characters"));
}

// spec: TE-04
#[test]
fn a_schema_that_cannot_be_checked_is_refused_at_once() {
    let with = |parameters: Json| ToolSpec::new("t", "A tool for a test.", parameters);
    register(with(json!({}))).unwrap();
    register(with(json!({ "type": "object", "$schema": "http://json-schema.org/draft-07/schema#" })))
        .unwrap();
    check_refused(
        with(json!({ "type": "string" })),
        expect![[
            r#"The parameters of tool 't' are not a usable JSON Schema: the schema must have "type": "object", because arguments are an object"#
        ]],
    );
    check_refused(
        with(json!(true)),
        expect![[
            r#"The parameters of tool 't' are not a usable JSON Schema: the schema must have "type": "object", because arguments are an object"#
        ]],
    );
    check_refused(
        with(json!({ "type": "object", "required": "path" })),
        expect![[
            r#"The parameters of tool 't' are not a usable JSON Schema: "path" is not of type "array""#
        ]],
    );
    let remote = register(with(json!({ "type": "object", "$ref": "https://example.com/other.json" })));
    assert!(matches!(remote, Err(ToolSetupError::InvalidSchema { .. })), "{remote:?}");
}

// spec: TE-36
#[test]
fn registry_lint_warns_of_a_useless_description() {
    let lint_of = |description: &str| lint(&ToolSpec::new("t", description, json!({}))).join("\n");
    assert_eq!(lint_of("Adds two numbers and returns the sum."), "");
    expect!["Tool 't' has no description: a model cannot know when to call it"].assert_eq(&lint_of("  "));
    expect!["The description of tool 't' is short (13 characters): describe what the tool does, when to use it, its arguments and its result"].assert_eq(&lint_of("Adds numbers."));
    assert_eq!([19, 20].map(|length| lint_of(&"x".repeat(length)).is_empty()), [false, true]);
    let with = |description: &str| ToolSpec::new("t", description, json!({ "type": "object" }));
    for empty in ["", " \n "] {
        check_refused(
            with(empty),
            expect![
                "Tool 't' has no description: describe what the tool does, when to use it, its arguments and its result"
            ],
        );
    }
    register(with("Adds.")).expect("a short one is a warning");
}

// spec: TE-02, TE-03
#[tokio::test]
async fn a_registered_definition_does_not_change_and_specs_are_made_once() {
    let registry = ToolRegistry::new();
    registry.register(Calculator::new()).unwrap();
    let (before, again) = (registry.specs(), registry.specs());
    assert!(Arc::ptr_eq(&before, &again));
    registry.register(Recorder::default().tool_with(spec("other"))).unwrap();
    assert_eq!(before.len(), 1);
    assert_eq!(registry.specs().len(), 2);
}

// spec: TE-02
#[test]
fn tools_come_and_go_while_others_are_called() {
    let engine = engine([Arc::new(Calculator::new()) as Arc<dyn Tool>]);
    thread::scope(|scope| {
        for n in 0..4 {
            let registry = engine.registry().clone();
            scope.spawn(move || {
                for round in 0..50 {
                    let name = format!("tool_{n}_{round}");
                    registry.register(Recorder::default().tool_with(spec(&name))).unwrap();
                    assert!(registry.get(&name).is_some());
                    assert!(registry.unregister(&name).is_some());
                    assert!(registry.unregister(&name).is_none());
                }
            });
        }
        let engine = &engine;
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for n in 0..100 {
                let call =
                    archon_types::ToolCall::new("c", "calculator", json!({ "expression": format!("{n}+1") }));
                let result = runtime.block_on(run_call(engine, &call, &context()));
                assert_eq!(result.text(), (n + 1).to_string());
            }
        });
    });
    assert_eq!(engine.registry().names(), ["calculator"]);
}

#[tokio::test]
async fn registry_calls_a_tool_of_a_source_once_it_is_known_and_lists_none() {
    let later = LateTools::silent("later", vec![Recorder::default().tool_with(spec("later__calc"))]);
    let registry = ToolRegistry::new();
    registry.register(later.clone() as Arc<dyn Tool>).unwrap();
    let engine = ToolEngine::new(registry.clone());
    let run = context();
    let call = || engine.execute_tool_call("later__calc", json!({}), &run);
    let refused = call().await.text();
    assert!(
        refused.contains("Tool 'later__calc' cannot be used now: later: it has not answered yet."),
        "{refused}"
    );
    assert_eq!(engine.sourced_spec("later__calc"), None);
    later.answer();
    assert!(!call().await.is_error());
    assert_eq!(engine.sourced_spec("later__calc").unwrap().name, "later__calc");
    assert!(registry.names().is_empty() && registry.specs().is_empty());
}
