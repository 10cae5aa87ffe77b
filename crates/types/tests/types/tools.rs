//! What tools are handed, what they say of themselves, and what their calls come to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_types::{
    Content, DataFile, Effect, OutputLevel, Progress, Subject, ToolAnnotations, ToolContext, ToolError,
    ToolInvocationRequest, ToolResult, ToolResultStatus, ToolSpec, binding, metadata, rebound,
};
use expect_test::expect;
use serde_json::json;

use crate::{
    samples::spec,
    support::{context, names, round_trip},
};

// spec: T-10
#[test]
fn tool_context_progress_arrives_before_the_result() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut tool = ToolContext::new(context(), "c1".into(), "slow");
    let log = heard.clone();
    tool.progress = Some(Arc::new(move |p| log.lock().unwrap().push(p)));
    tool.on_progress("half way");
    tool.on_update(ToolResult::success("so far"));
    let expected = [Progress::Text("half way".into()), Progress::Partial(ToolResult::success("so far"))];
    assert_eq!(*heard.lock().unwrap(), expected);
    assert_eq!((tool.tool_call_id.as_str(), tool.tool_name.as_str()), ("c1", "slow"));
}

// spec: T-10
#[test]
fn tool_context_without_a_listener_drops_progress_and_follows_the_runs_cancel() {
    let run = context();
    let [one, two] = ["c1", "c2"].map(|id| ToolContext::new(run.clone(), id.into(), "slow"));
    one.on_progress("unheard");
    one.on_update(ToolResult::default());
    one.cancel.cancel();
    assert!(!run.cancel.is_cancelled() && !two.cancel.is_cancelled());
    run.cancel.cancel();
    assert!(two.cancel.is_cancelled());
}

// spec: T-13, T-33
#[test]
fn tool_results() {
    round_trip(
        &ToolResult::success("30"),
        &expect![[r#"{"content":[{"type":"text","text":"30"}],"status":"success"}"#]],
    );
    let mut full = ToolResult::error("broke").with_metadata("exit_code", 2);
    full.content.push(Content::Image { data: "aGk=".into(), mime_type: "image/png".into() });
    full.child_run = Some("run_2".into());
    full.output_level = Some(OutputLevel::Full);
    full.data_file = Some(DataFile {
        path: "tool_data/c1.json".into(),
        size_bytes: 2_000_000,
        hash: "0123456789abcdef".into(),
        summary: "List with 3 items".into(),
    });
    round_trip(
        &full,
        &expect![[
            r#"{"content":[{"type":"text","text":"Error: broke"},{"type":"image","data":"aGk=","mime_type":"image/png"}],"status":"error","error_message":"broke","metadata":{"exit_code":2},"child_run":"run_2","output_level":"full","data_file":{"path":"tool_data/c1.json","size_bytes":2000000,"hash":"0123456789abcdef","summary":"List with 3 items"}}"#
        ]],
    );
    assert_eq!(full.text(), "Error: broke");
}

// spec: T-14, T-34
#[test]
fn result_status() {
    use ToolResultStatus::{Cancelled, Error, Success, Timeout};
    let all = [Success, Error, Timeout, Cancelled];
    names(&all, "success error timeout cancelled");
    for status in all {
        let mut result = ToolResult::default();
        result.status = status;
        assert_eq!(result.is_error(), status != Success);
    }
}

// spec: T-15
#[test]
fn ready_made_results() {
    let table = [
        (ToolResult::success("30"), ToolResultStatus::Success, "30", None),
        (ToolResult::from("30"), ToolResultStatus::Success, "30", None),
        (ToolResult::error("no file"), ToolResultStatus::Error, "Error: no file", Some("no file")),
        (
            ToolResult::timeout(30.0),
            ToolResultStatus::Timeout,
            "Tool execution timed out after 30 seconds",
            Some("Tool execution timed out after 30 seconds"),
        ),
        (
            ToolResult::timeout(0.5),
            ToolResultStatus::Timeout,
            "Tool execution timed out after 0.5 seconds",
            Some("Tool execution timed out after 0.5 seconds"),
        ),
        (ToolResult::cancelled("Skipped"), ToolResultStatus::Cancelled, "Skipped", Some("Skipped")),
    ];
    for (result, status, text, detail) in table {
        assert_eq!((result.status, &*result.text(), result.error_message.as_deref()), (status, text, detail));
    }
}

// spec: T-16
#[test]
fn tool_errors_become_results() {
    use ToolResultStatus::{Cancelled, Error, Timeout};
    let text = || "text".to_owned();
    let table = [
        (ToolError::Failed(text()), "execution_error", Error, "Error: text"),
        (ToolError::NotFound(text()), "not_found", Error, "Error: text"),
        (ToolError::InvalidArgs(text()), "invalid_parameters", Error, "Error: text"),
        (ToolError::PermissionDenied(text()), "permission_denied", Error, "Error: text"),
        (ToolError::Resource(text()), "resource_error", Error, "Error: text"),
        (
            ToolError::Timeout(Duration::from_millis(1500)),
            "timeout",
            Timeout,
            "Tool execution timed out after 1.5 seconds",
        ),
        (ToolError::Cancelled, "cancelled", Cancelled, "Cancelled"),
    ];
    for (error, code, status, read) in table {
        assert_eq!(error.code(), code);
        let result = ToolResult::from(error);
        assert_eq!((result.status, &*result.text()), (status, read));
        assert_eq!(result.metadata[metadata::ERROR_TYPE], code);
    }
}

// spec: T-17, T-34
#[test]
fn output_levels() {
    use OutputLevel::{Brief, Full, Standard};
    names(&[Brief, Standard, Full], "brief standard full");
    assert_eq!(OutputLevel::default(), Standard);
}

// spec: T-19
#[test]
fn an_invocation_request_and_its_defaults() {
    let request = ToolInvocationRequest::new("req_1", "calculator", json!({"expression": "1+1"}));
    round_trip(
        &request,
        &expect![[
            r#"{"request_id":"req_1","tool_name":"calculator","tool_version":"1.0.0","parameters":{"expression":"1+1"},"timeout_ms":120000,"retry_on_timeout":true,"caller_id":"","permission_level":"default"}"#
        ]],
    );
    let sparse =
        json!({"request_id": "req_1", "tool_name": "calculator", "parameters": {"expression": "1+1"}});
    assert_eq!(serde_json::from_value::<ToolInvocationRequest>(sparse).unwrap(), request);
}

// spec: T-31
#[test]
fn tool_spec_definition_has_name_description_and_parameters() {
    round_trip(
        &spec().definition(),
        &expect![[
            r#"{"name":"calculator","description":"Calculates.","parameters":{"type":"object","properties":{"expression":{"type":"string"}}}}"#
        ]],
    );
    round_trip(
        &spec(),
        &expect![[
            r#"{"name":"calculator","label":"Calculator","description":"Calculates.","parameters":{"type":"object","properties":{"expression":{"type":"string"}}},"version":"1.0.0","annotations":{"effect":"read_only","concurrency_safe":true,"requires_confirmation":false,"destructive":false,"blocking":false,"permissions":["compute"],"timeout_ms":5000},"examples":[{"expression":"1+1"}]}"#
        ]],
    );
    let sparse = json!({"name": "t", "description": "", "parameters": {}});
    let read: ToolSpec = serde_json::from_value(sparse).unwrap();
    assert_eq!(read, ToolSpec::new("t", "", json!({})));
}

// spec: T-34
#[test]
fn tool_annotations_default_is_a_side_effect_without_concurrency() {
    use Effect::{Idempotent, ReadOnly, SideEffect};
    names(&[ReadOnly, Idempotent, SideEffect], "read_only idempotent side_effect");
    let annotations = ToolAnnotations::default();
    assert_eq!(
        (annotations.effect, annotations.concurrency_safe, annotations.timeout()),
        (SideEffect, false, None)
    );
    assert_eq!([ReadOnly, Idempotent, SideEffect].map(Effect::may_repeat), [true, true, false]);
    round_trip(
        &annotations,
        &expect![[
            r#"{"effect":"side_effect","concurrency_safe":false,"requires_confirmation":false,"destructive":false,"blocking":false}"#
        ]],
    );
}

// spec: T-35
#[test]
fn tool_result_measured_has_the_duration_and_the_tool_version() {
    let result = ToolResult::success("30").measured(Duration::from_micros(12_900), "1.2.0");
    assert_eq!(result.metadata[metadata::EXECUTION_TIME_MS], 12);
    assert_eq!(result.metadata[metadata::TOOL_VERSION], "1.2.0");
    // What the tool itself measured stays.
    let own = ToolResult::success("30").with_metadata(metadata::EXECUTION_TIME_MS, 3);
    assert_eq!(own.measured(Duration::from_secs(1), "1").metadata[metadata::EXECUTION_TIME_MS], 3);
    let keys =
        [metadata::TOKEN_USAGE, metadata::CONFIDENCE_SCORE, metadata::SOURCE_URL, metadata::LATENCY_MS];
    assert_eq!(keys, ["token_usage", "confidence_score", "source_url", "latency_ms"]);
}

// spec: AP-05
#[test]
fn binding_changes_with_the_tool_the_arguments_and_the_resolved_files() {
    let paths = |paths: &[&str]| Subject::Paths {
        root: "/w".into(),
        paths: paths.iter().map(std::path::PathBuf::from).collect(),
    };
    let (asked, wanted) = (json!({"path": "a"}), json!({"path": "a", "content": "x"}));
    let mut other = spec();
    other.version = "2".into();
    let all = [
        binding(&spec(), &asked, &Subject::Unknown),
        binding(&spec(), &wanted, &Subject::Unknown),
        binding(&other, &asked, &Subject::Unknown),
        binding(&spec(), &asked, &paths(&["/w/a"])),
        binding(&spec(), &asked, &paths(&["/w/b"])),
        binding(&spec(), &asked, &paths(&["/w/a", "/w/b"])),
        binding(&spec(), &asked, &paths(&["/w/a/w/b"])),
    ];
    let unlike: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(unlike.len(), all.len());
    // Whoever changes the arguments keeps to the tool and to the files.
    for subject in [Subject::Unknown, paths(&["/w/a"])] {
        let bound = binding(&spec(), &asked, &subject);
        assert_eq!(rebound(&bound, &spec(), &asked, &wanted), Some(binding(&spec(), &wanted, &subject)));
        assert_eq!(rebound(&bound, &other, &asked, &wanted), None);
        assert_eq!(rebound(&bound, &spec(), &wanted, &wanted), None);
    }
}
