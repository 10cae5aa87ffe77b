//! Calls that a person has to agree to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_tools::ToolEngine;
use archon_types::{
    Answer, ApprovalRequest, Approver, Decision, Executed, Json, Prepared, ReadyCall, ToolAnnotations,
    ToolCall, ToolResultStatus, ToolSpec, Toolbox,
};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{Recorder, call_id, context, engine, show};

/// Gives the same answer to every question, and keeps the questions.
struct Says(Decision, Mutex<Vec<ApprovalRequest>>);

impl Approver for Says {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.1.lock().unwrap().push(request.clone());
        self.0.clone()
    }
}

fn delete_tool(recorder: &Recorder) -> ToolEngine {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    });
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    annotations.destructive = true;
    let spec = ToolSpec::new("delete", "Deletes a file for good.", parameters).with_annotations(annotations);
    engine([recorder.tool_with(spec)])
}

async fn check(decision: Option<Decision>, expected: Expect, ran_with: &[Json]) {
    let recorder = Recorder::default();
    let mut engine = delete_tool(&recorder);
    let asked = decision.map(|decision| Arc::new(Says(decision, Mutex::default())));
    if let Some(approver) = asked.clone() {
        engine = engine.with_approver(approver);
    }
    let call = ToolCall::new("c", "delete", json!({ "path": "a.txt" }));
    let shown = match engine.prepare(call_id(), &call, &context()).await {
        Prepared::Ready(ready) => match engine.execute(ready, &context()).await {
            Executed::Done(result) => show(&result),
            other => format!("{other:?}"),
        },
        Prepared::Refused(result) => show(&result),
        Prepared::Ask(question) => serde_json::to_string_pretty(&question).unwrap(),
        other => format!("{other:?}"),
    };
    expected.assert_eq(&shown);
    assert_eq!(recorder.take(), ran_with);
    if let Some(asked) = asked {
        assert_eq!(asked.1.lock().unwrap().len(), 1);
    }
}

// spec: AP-09
#[tokio::test]
async fn consent_ask_before_destruction_applies_to_irreversible_tools() {
    let (recorder, mut options) = (Recorder::default(), archon_tools::EngineOptions::default());
    options.ask = archon_tools::Ask::BeforeDestruction;
    let tool = |name: &str, destructive: bool| {
        let mut annotations = ToolAnnotations::default();
        annotations.destructive = destructive;
        let spec = ToolSpec::new(name, "Changes something, for a test.", json!({ "type": "object" }));
        recorder.tool_with(spec.with_annotations(annotations))
    };
    let engine = engine([tool("drop_table", true), tool("add_row", false)]).with_options(options);
    let mut run = context();
    run.can_ask = true;
    let is_asked = async |name: &str| {
        let call = ToolCall::new("c", name, json!({}));
        matches!(engine.prepare(call_id(), &call, &run).await, Prepared::Ask(_))
    };
    assert_eq!((is_asked("drop_table").await, is_asked("add_row").await), (true, false));
}

// Invariant 5. spec: TE-01
#[tokio::test]
async fn consent_without_an_approver_is_denied() {
    check(None, expect![[r#"
        Error
        Error: Tool 'delete' needs a person's consent and there is nobody to ask. It was not run. Go on without it.
        {"error_type":"permission_denied","nobody_asked":"","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]], &[]).await;
}

// spec: TE-01
#[tokio::test]
async fn consent_answers_approve_deny_edit_and_later() {
    check(
        Some(Decision::Now(Answer::Approve)),
        expect![[r#"
        Success
        done
        {"validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]],
        &[json!({ "path": "a.txt" })],
    )
    .await;
    check(Some(Decision::Now(Answer::Cancel { reason: String::new() })), expect![[r#"
        Error
        Error: A person declined this call of 'delete'. It was not run. Go on without it, or ask what they want instead.
        {"error_type":"permission_denied","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]], &[]).await;
    check(Some(Decision::Now(Answer::Cancel { reason: "keep it".to_owned() })), expect![[r#"
        Error
        Error: A person declined this call of 'delete': keep it. It was not run. Go on as they want it.
        {"error_type":"permission_denied","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]], &[]).await;
    check(Some(Decision::Now(Answer::Reply { text: "I did it by hand.".to_owned() })), expect![[r#"
        Success
        I did it by hand.
        {"answered_by":"person","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]], &[]).await;
    let edit = |arguments: Json| Some(Decision::Now(Answer::Edit { arguments }));
    check(
        edit(json!({ "path": "b.txt" })),
        expect![[r#"
        Success
        done
        {"validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]],
        &[json!({ "path": "b.txt" })],
    )
    .await;
    check(edit(json!({ "path": 7 })), expect![[r#"
        Error
        Error: Parameter validation error: expected string, received integer 7 at path '$.path'
        The tool was not run. Call it again with arguments that fit.
        {"error_type":"validation_error","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]], &[]).await;
    check(
        Some(Decision::Later),
        expect![[r#"
            {
              "request_id": "approval_00010001",
              "agent_name": "",
              "action_summary": "Run delete with {\"path\":\"a.txt\"}",
              "details": {
                "tool": "delete",
                "arguments": {
                  "path": "a.txt"
                }
              },
              "options": [
                "approve",
                "edit",
                "cancel"
              ],
              "allow_modification": true,
              "binding": "3ab7e28458c2aa608fd432321341f4943d7b687be41953150e4799df87c5b9c0"
            }"#]],
        &[],
    )
    .await;
}

/// Never answers.
struct Silent;

impl Approver for Silent {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn call_cancelled_while_a_person_is_asked_ends_as_cancelled() {
    let recorder = Recorder::default();
    let engine = delete_tool(&recorder).with_approver(Silent);
    let run = context();
    run.cancel.cancel();
    let call = engine.execute_tool_call("delete", json!({ "path": "a.txt" }), &run);
    // The time stands still, so nothing but an endless wait takes an hour.
    let result = tokio::time::timeout(Duration::from_secs(3_600), call).await.expect("it ends");
    assert_eq!(result.status, ToolResultStatus::Cancelled, "{result:?}");
    assert_eq!(recorder.take(), Vec::<Json>::new());
}

// spec: TE-01, TE-06
#[tokio::test]
async fn a_bad_call_is_refused_before_anyone_is_asked() {
    let recorder = Recorder::default();
    let asked = Arc::new(Says(Decision::Now(Answer::Approve), Mutex::default()));
    let engine = delete_tool(&recorder).with_approver(asked.clone());
    let result = engine.execute_tool_call("delete", json!({ "file": 1 }), &context()).await;
    assert_eq!(result.metadata["error_type"], "validation_error");
    assert!(asked.1.lock().unwrap().is_empty());
}

// spec: TE-01
#[tokio::test]
async fn a_call_that_was_approved_while_the_run_slept_is_not_asked_about_again() {
    let recorder = Recorder::default();
    let engine = delete_tool(&recorder);
    let ready = ReadyCall::new(
        call_id(),
        ToolCall::new("c", "delete", json!({ "path": "a.txt" })),
        Default::default(),
    );
    let Executed::Done(result) = engine.execute(ready, &context()).await else { panic!("suspended") };
    assert_eq!(result.text(), "done");
    assert_eq!(recorder.take(), [json!({ "path": "a.txt" })]);
}

// spec: AP-05
#[tokio::test]
async fn consent_summary_counts_the_omitted_arguments() {
    let engine = delete_tool(&Recorder::default());
    let mut run = context();
    run.can_ask = true;
    for (path, expected) in [
        ("é".repeat(69), format!("Run delete with {{\"path\":\"{}\"}}", "é".repeat(69))),
        (
            "é".repeat(75),
            format!("Run delete with {{\"path\":\"{} ... 6 more characters in the arguments", "é".repeat(71)),
        ),
    ] {
        let call = ToolCall::new("c", "delete", json!({ "path": path }));
        let Prepared::Ask(question) = engine.prepare(call_id(), &call, &run).await else {
            panic!("nobody is asked")
        };
        assert_eq!(question.action_summary, expected);
        assert_eq!(question.details["arguments"]["path"], path);
    }
}
