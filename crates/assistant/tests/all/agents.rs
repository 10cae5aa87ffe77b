//! Tests of agents as tools: fields, questions, approvals, and the state after a crash.

use archon_assistant::{AgentTool, FieldKind, InputField, exposed};
use archon_testkit::{FnAgent, answer};
use archon_types::{
    AgentStatus, Answer, QuestionKind, RecordBody, Subject, Tool, ToolContext, ToolError, ToolResultStatus,
};
use serde_json::json;

use crate::office::{Office, complete, mailer};

fn waits(result: &Result<archon_types::ToolResult, ToolError>) -> bool {
    matches!(result, Err(ToolError::Suspended(_)))
}

// spec: MA-35, MA-36, MA-37
#[test]
fn agent_tool_spec_describes_the_fields_and_their_rules() {
    let (tool, _) = mailer();
    let spec = tool.spec();
    assert_eq!(spec.description, "Writes and sends an email.");
    let properties = &spec.parameters["properties"];
    let recipient = properties["recipient"]["description"].as_str().unwrap();
    assert!(recipient.starts_with("Address of the recipient. (must contain @)"), "{recipient}");
    assert!(recipient.contains("Required"), "{recipient}");
    assert_eq!(
        (&properties["subject"]["default"], &properties["copies"]["type"]),
        (&json!("Hello"), &json!("integer"))
    );
    assert!(!properties["copies"]["description"].as_str().unwrap().contains("Required"));
    assert!(properties["task_instruction"]["description"].as_str().unwrap().contains("Example:"));
    assert!(spec.annotations.agent);

    let careful = tool.clone().needs_approval().needs_approval();
    assert_eq!(
        careful.spec().description,
        "Writes and sends an email. [Requires user confirmation before execution]"
    );
    let hidden = AgentTool::new("Hidden", "", FnAgent::saying("")).hidden();
    let names: Vec<_> = exposed(&[tool, hidden]).iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["SendEmailAgent"]);
}

// spec: MA-38, MA-35
#[tokio::test]
async fn valid_fields_are_used_and_missing_optional_ones_have_their_default() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    let result = office.call("t", "run_1", &tool, complete()).await.unwrap();
    assert_eq!(
        (result.status, result.text().as_str()),
        (ToolResultStatus::Success, "Sent to ann@example.com")
    );
    assert_eq!(
        *sent.lock().unwrap(),
        [json!({ "recipient": "ann@example.com", "subject": "Hello", "copies": 2 })]
    );
    // The form is a run of its own, and so is the work.
    let log = office.journal.logs().log("run_1.0-0");
    assert_eq!(AgentStatus::of(&log), AgentStatus::Completed);
    let RecordBody::RunFinished(outcome) = &log.last().unwrap().body else { panic!("no end") };
    assert_eq!((outcome.usage.total(), outcome.child_spending.tokens), (0, 10));
}

// spec: MA-38
#[tokio::test]
async fn agent_tool_invalid_field_fails_with_the_problem() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    let result =
        office.call("t", "run_1", &tool, json!({ "recipient": "ann", "copies": "two" })).await.unwrap();
    assert_eq!(result.status, ToolResultStatus::Error);
    assert_eq!(
        result.text(),
        "`recipient` cannot be \"ann\": must contain @; `copies` must be a whole number, and \"two\" is not. Call \
         `SendEmailAgent` again with values that fit."
    );
    assert!(sent.lock().unwrap().is_empty());
    assert_eq!(AgentStatus::of(&office.journal.logs().log("run_1.0-0")), AgentStatus::Error);
}

// spec: MA-38, MA-39, A-38
#[tokio::test]
async fn a_missing_required_field_is_asked_for_and_the_next_message_completes_it() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    assert!(waits(&office.call("t", "run_1", &tool, json!({ "subject": "Hi" })).await));
    let open = office.open("run_1");
    assert_eq!((open.len(), open[0].status()), (1, AgentStatus::WaitingForInput));
    assert_eq!(open[0].request.action_summary, "SendEmailAgent needs `recipient`: Address of the recipient.");
    assert_eq!(AgentStatus::of(&office.journal.logs().log("run_1.0-0")), AgentStatus::WaitingForInput);
    assert!(sent.lock().unwrap().is_empty());

    // What does not fit is asked for again, and says why.
    office.answer("run_1", Answer::Reply { text: "Ann".into() }).await;
    assert!(waits(&office.call("t", "run_1", &tool, json!({ "subject": "Hi" })).await));
    let again = &office.open("run_1")[0].request;
    assert_eq!(again.kind, QuestionKind::Input);
    assert!(
        again.action_summary.starts_with("`recipient` cannot be \"Ann\": must contain @. Send"),
        "{again:?}"
    );

    office.answer("run_1", Answer::Reply { text: " ann@example.com ".into() }).await;
    let result = office.call("t", "run_1", &tool, json!({ "subject": "Hi" })).await.unwrap();
    assert_eq!(result.text(), "Sent to ann@example.com");
    assert_eq!(*sent.lock().unwrap(), [json!({ "recipient": "ann@example.com", "subject": "Hi" })]);
    // Called again, it is not done again.
    assert_eq!(office.call("t", "run_1", &tool, json!({})).await.unwrap().text(), "Sent to ann@example.com");
    assert_eq!(sent.lock().unwrap().len(), 1);
}

// spec: MA-38
#[tokio::test]
async fn agent_tool_gives_up_after_five_unusable_answers() {
    let (office, (tool, _)) = (Office::new(), mailer());
    assert!(waits(&office.call("t", "run_1", &tool, json!({})).await));
    for n in 0..5 {
        office.answer("run_1", Answer::Approve).await;
        let result = office.call("t", "run_1", &tool, json!({})).await;
        assert_eq!(waits(&result), n < 4, "{n}");
    }
}

// spec: MA-39, MA-36
#[tokio::test]
async fn agent_tool_asks_for_consent_with_the_complete_fields() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    let tool = tool.needs_approval();
    assert!(waits(&office.call("t", "run_1", &tool, json!({})).await));
    office
        .answer("run_1", Answer::Edit { arguments: json!({ "recipient": "ann@example.com", "copies": "3" }) })
        .await;
    assert!(waits(&office.call("t", "run_1", &tool, json!({})).await));
    let open = office.open("run_1");
    assert_eq!(open[0].status(), AgentStatus::WaitingForApproval);
    let fields = json!({ "recipient": "ann@example.com", "subject": "Hello", "copies": 3 });
    assert_eq!(open[0].request.details["arguments"], fields);
    assert!(!open[0].request.binding.is_empty());
    assert!(sent.lock().unwrap().is_empty(), "what completes the fields is no consent");
    // A change that does not fit is no consent either.
    office.answer("run_1", Answer::Edit { arguments: json!({ "copies": "many" }) }).await;
    assert!(waits(&office.call("t", "run_1", &tool, json!({})).await));
    assert!(sent.lock().unwrap().is_empty());
    office.answer("run_1", Answer::Edit { arguments: json!({ "subject": "Bye" }) }).await;
    office.call("t", "run_1", &tool, json!({})).await.unwrap();
    assert_eq!(sent.lock().unwrap()[0]["subject"], "Bye");
}

// spec: MA-35, MA-39, AP-01
#[tokio::test]
async fn agent_tool_approval_covers_the_request_text_and_takes_edits() {
    let given = json!({ "to": "ann", "task_instruction": " And copy eve. " });
    for (change, expected) in [
        (json!({}), Some("And copy eve.")),
        (json!({ "task_instruction": "Be brief." }), Some("Be brief.")),
        (json!({ "task_instruction": "" }), None),
        (json!({ "task_instruction": null, "to": "bob" }), None),
    ] {
        let office = Office::new();
        let tool = AgentTool::new("Mail", "Sends.", FnAgent::echo())
            .field(InputField::required("to", FieldKind::Text, "To whom."))
            .needs_approval();
        assert!(waits(&office.call("t", "run_1", &tool, given.clone()).await));
        let asked = office.open("run_1").remove(0).request;
        assert!(asked.action_summary.contains("And copy eve."), "{}", asked.action_summary);
        let arguments = json!({ "to": "ann", "task_instruction": "And copy eve." });
        assert_eq!(asked.details["arguments"], arguments);
        assert_eq!(asked.binding, archon_types::binding(tool.spec(), &arguments, &Subject::Unknown));
        office.answer("run_1", Answer::Edit { arguments: change }).await;
        let task = office.call("t", "run_1", &tool, given.clone()).await.unwrap().text();
        match expected {
            Some(text) => assert!(task.starts_with(&format!("{text}\n\nFields:")), "{task}"),
            None => assert!(task.starts_with("Fields:"), "{task}"),
        }
    }
    // What is no text is no change, and no consent.
    let (office, (tool, sent)) = (Office::new(), mailer());
    let tool = tool.needs_approval();
    assert!(waits(&office.call("t", "run_1", &tool, complete()).await));
    office.answer("run_1", Answer::Edit { arguments: json!({ "task_instruction": 7 }) }).await;
    assert!(waits(&office.call("t", "run_1", &tool, complete()).await));
    assert!(sent.lock().unwrap().is_empty());
}

// spec: A-33
#[tokio::test]
async fn agent_tool_denied_approval_is_an_error_result() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    let tool = tool.needs_approval();
    assert!(waits(&office.call("t", "run_1", &tool, complete()).await));
    office.answer("run_1", Answer::Cancel { reason: String::new() }).await;
    let result = office.call("t", "run_1", &tool, complete()).await.unwrap();
    assert_eq!(
        (result.status, result.text().as_str()),
        (ToolResultStatus::Error, "User cancelled this action.")
    );
    assert!(sent.lock().unwrap().is_empty());
}

// spec: MA-38
#[tokio::test]
async fn agent_tool_missing_field_without_an_approver_is_an_error() {
    let (mut office, (tool, sent)) = (Office::new(), mailer());
    office.can_ask = false;
    let result = office.call("t", "run_1", &tool, json!({})).await.unwrap();
    assert!(result.text().contains("needs `recipient`, and nobody can be asked"), "{}", result.text());
    let result = office.call("t", "run_2", &tool.clone().needs_approval(), complete()).await.unwrap();
    assert!(result.text().contains("approval and nobody can be asked"), "{}", result.text());
    // A call that no run keeps cannot wait.
    let context = ToolContext::new(office.context("t", "run_3"), "c".into(), "SendEmailAgent");
    let result = tool.call(json!({}), &context).await.unwrap();
    assert!(result.text().contains("needs `recipient`"), "{}", result.text());
    assert!(sent.lock().unwrap().is_empty());
}

// spec: MA-41, A-37
#[tokio::test]
async fn an_agent_whose_fields_have_changed_does_not_go_on() {
    let (office, (tool, sent)) = (Office::new(), mailer());
    let tool = tool.needs_approval();
    assert!(waits(&office.call("t", "run_1", &tool, complete()).await));
    office.answer("run_1", Answer::Approve).await;
    let other = tool.clone().field(InputField::optional("cc", FieldKind::Text, "Who else."));
    assert_ne!(tool.schema_version(), other.schema_version());
    let result = office.call("t", "run_1", &other, complete()).await.unwrap();
    assert_eq!(result.status, ToolResultStatus::Error);
    assert!(result.text().contains("has changed since"), "{}", result.text());
    assert!(sent.lock().unwrap().is_empty());
}

// spec: MA-38, MA-40
#[tokio::test]
async fn agent_tool_call_killed_at_any_record_resumes() {
    let mut deaths = 0;
    // The first record is there: a log without one is no run.
    for moment in 2..40 {
        for is_written in [false, true] {
            let (office, (tool, sent)) = (Office::new(), mailer());
            let tool = tool.needs_approval();
            let journal = office.journal.logs();
            // The calls of the loop around it are not what dies here: only the form's appends are counted.
            journal.die_after(moment, is_written);
            let mut answers = vec![Answer::Approve, Answer::Reply { text: "ann@example.com".into() }];
            let mut result = None;
            for _ in 0..12 {
                let called = alone(&office, &tool).await;
                match called {
                    Err(ToolError::Suspended(_)) => {
                        let log = journal.log("run_1.0-0");
                        let entry = archon_types::pending_approvals(&log).remove(0);
                        if let Some(answer) = answers.pop() {
                            office.pool.answer(&entry, answer).await.unwrap();
                        }
                    }
                    Ok(done) if done.text().contains("the process died") => {
                        deaths += 1;
                        journal.live();
                    }
                    Ok(done) => {
                        result = Some(done);
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(result.unwrap().text(), "Sent to ann@example.com", "{moment} {is_written}");
            // The agent here keeps no log; one that does is found again by its run.
            assert!((1..=2).contains(&sent.lock().unwrap().len()), "{moment} {is_written}");
        }
    }
    assert!(deaths > 10, "{deaths}");
}

/// Calls a tool without a run.
async fn alone(office: &Office, tool: &AgentTool) -> Result<archon_types::ToolResult, ToolError> {
    use std::sync::Arc;
    let mut context = office.context("t", "run_1");
    context.delegation = Some(Arc::new(archon_types::Delegation::new(
        context.run.clone(),
        crate::office::CALL,
        archon_types::Lease::new(1_000, 60_000),
        2,
        Arc::new(office.journal.clone()),
    )));
    tool.call(json!({}), &ToolContext::new(context, "c".into(), tool.name())).await
}

#[tokio::test]
async fn a_cancelled_call_goes_on_with_its_caller() {
    let office = Office::new();
    let agent = FnAgent::new(|_, context| async move {
        match context.cancel.is_cancelled() {
            true => archon_types::Outcome::new(context.run.clone(), archon_types::OutcomeStatus::Cancelled),
            false => answer(&context, "done"),
        }
    });
    let tool = AgentTool::new("Worker", "Works.", agent);
    let mut context = office.context("t", "run_1");
    context.cancel.cancel();
    context.delegation = Some(std::sync::Arc::new(archon_types::Delegation::new(
        context.run.clone(),
        crate::office::CALL,
        archon_types::Lease::new(1_000, 60_000),
        2,
        std::sync::Arc::new(office.journal.clone()),
    )));
    let result = tool.call(json!({}), &ToolContext::new(context, "c".into(), "Worker")).await.unwrap();
    assert_eq!(result.status, ToolResultStatus::Cancelled);
    assert_eq!(AgentStatus::of(&office.journal.logs().log("run_1.0-0")), AgentStatus::Cancelled);
    assert_eq!(alone(&office, &tool).await.unwrap().text(), "done");
}
