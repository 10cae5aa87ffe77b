//! Calls of tools: each is a run, behind guards, rules and questions.

use archon::{
    mcp_serve::Questions,
    types::{Answer, AnswerRuns, Json, RecordBody, RunStatus, Speaker, StartRuns},
};
use serde_json::json;

use crate::world::{Client, World, run, text};

const FORMS: &str = r#"{ "elicitation": {} }"#;

fn forms() -> Json {
    serde_json::from_str(FORMS).unwrap()
}

#[tokio::test]
async fn list_has_the_tools_with_their_hints_and_the_agents() {
    let mut client = World::new().client();
    let answer = client.ask("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["add", "step", "wait", "walker"]);
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], false);
    assert_eq!(tools[0]["inputSchema"]["properties"]["a"]["type"], "integer");
    assert_eq!(tools[3]["inputSchema"]["required"], json!(["prompt"]));
    assert_eq!(tools[3]["outputSchema"]["required"], json!(["run", "status"]));
    client.close().await;
}

#[tokio::test]
async fn call_is_a_run_with_the_call_in_its_log() {
    let (runs, server) = World::new().runs();
    for is_modern in [true, false] {
        let mut client = Client::of(server.clone());
        if !is_modern {
            client = client.initialized().await;
        }
        let answer = client.call("add", json!({ "a": 19, "b": 23 })).await;
        assert_eq!((text(&answer), &answer["result"]["isError"]), ("42", &json!(false)));
        let run = run(&answer);
        assert_eq!(runs.get(&run).await.unwrap().status, RunStatus::Finished);
        let log = runs.records(&run, None).await.unwrap().whole().unwrap();
        let is_result = |body: &RecordBody| matches!(body, RecordBody::ToolCallFinished { result, .. } if result.text() == "42");
        assert!(log.iter().any(|record| is_result(&record.body)));
        let speaker = |body: &RecordBody| match body {
            RecordBody::MessageAdded { message, .. } => message.speaker(),
            _ => None,
        };
        let speakers: Vec<_> = log.iter().filter_map(|record| speaker(&record.body)).collect();
        assert_eq!(speakers, [Speaker::Model], "the arguments are no words of a person");
        client.close().await;
    }
}

#[tokio::test]
async fn call_of_an_unknown_tool_is_an_error_of_the_protocol_and_wrong_arguments_one_of_the_tool() {
    let mut client = World::new().client();
    let answer = client.call("subtract", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.call("add", json!({ "a": "x" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer).contains("'b'") || text(&answer).contains("\"b\""), "{answer}");
    client.close().await;
}

#[tokio::test]
async fn call_that_a_rule_denies_does_not_run_and_one_that_a_rule_allows_does() {
    let world = World::new().with_rules(&["step"], &[]);
    let mut client = world.client();
    let answer = client.call("step", json!({ "to": "Paris" })).await;
    assert_eq!((&answer["result"]["isError"], world.steps()), (&json!(true), 0), "{answer}");
    client.close().await;

    let world = World::new().with_rules(&[], &["step"]);
    let mut client = world.client();
    let answer = client.call("step", json!({ "to": "Paris" })).await;
    assert_eq!((text(&answer), world.steps()), ("stepped to Paris", 1));
    client.close().await;
}

#[tokio::test]
async fn call_that_needs_consent_is_refused_with_the_rule_if_the_client_asks_nobody() {
    for is_modern in [true, false] {
        let world = World::new();
        let mut client = world.client();
        if !is_modern {
            client = client.initialized().await;
        }
        let answer = client.call("step", json!({ "to": "Paris" })).await;
        assert_eq!((&answer["result"]["isError"], world.steps()), (&json!(true), 0), "{answer}");
        assert!(text(&answer).contains("offers no elicitation"), "{answer}");
        assert!(text(&answer).contains("with the rule `step"), "{answer}");
        client.close().await;
    }
}

#[tokio::test]
async fn consent_is_asked_during_the_call_of_an_older_client() {
    for (action, decision, steps) in
        [("accept", "approve", 1), ("accept", "cancel", 0), ("decline", "approve", 0)]
    {
        let world = World::new();
        let mut client = world.client().with(forms()).initialized().await;
        let id =
            client.request("tools/call", json!({ "name": "step", "arguments": { "to": "Paris" } })).await;
        let question = client.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert!(question["params"]["message"].as_str().unwrap().contains("Paris"), "{question}");
        assert_eq!(world.steps(), 0);
        let content = json!({ "decision": decision });
        let result = json!({ "action": action, "content": content });
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
        let answer = client.answer(id).await;
        assert_eq!(world.steps(), steps, "{action} {decision}: {answer}");
        assert_eq!(answer["result"]["isError"], steps == 0, "{answer}");
        client.close().await;
    }
}

#[tokio::test]
async fn consent_is_asked_between_two_calls_of_a_newer_client_and_the_call_runs_once() {
    let world = World::new();
    let mut client = world.client().with(forms());
    let call = json!({ "name": "step", "arguments": { "to": "Paris" } });
    let asked = client.ask("tools/call", call.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (question, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    let mut repeated = call.clone();
    repeated["requestState"] = asked["result"]["requestState"].clone();

    // Without an answer it is asked again.
    let again = client.ask("tools/call", repeated.clone()).await;
    assert_eq!(again["result"]["inputRequests"], asked["result"]["inputRequests"], "{again}");
    assert_eq!(world.steps(), 0);

    // The state of one call is none of another.
    repeated["inputResponses"] = json!({ question: yes });
    let mut other = repeated.clone();
    other["arguments"]["to"] = json!("Rome");
    let refused = client.ask("tools/call", other).await;
    assert_eq!((&refused["error"]["code"], world.steps()), (&json!(-32602), 0), "{refused}");

    let answer = client.ask("tools/call", repeated.clone()).await;
    assert_eq!((text(&answer), world.steps()), ("stepped to Paris", 1));
    // A client that missed the answer gets it again, and the tool is not called again.
    let answer = client.ask("tools/call", repeated).await;
    assert_eq!((text(&answer), world.steps()), ("stepped to Paris", 1));
    client.close().await;
}

#[tokio::test]
async fn consent_that_is_given_at_the_server_is_never_asked_of_the_client() {
    let world = World::new();
    let (runs, server) = world.runs();
    let mut client = Client::of(server.with_questions(Questions::Here)).with(forms());
    let answer = client.call("step", json!({ "to": "Paris" })).await;
    assert!(text(&answer).contains("waits for a person's answer at the server"), "{answer}");
    assert_eq!(runs.get(&run(&answer)).await.unwrap().status, RunStatus::Suspended);
    let open = runs.questions(None).await.unwrap();
    assert!(runs.answer(&open[0].request.request_id, Answer::Approve).await.unwrap());
    let _ = runs.reply(&run(&answer)).await.unwrap();
    assert_eq!(world.steps(), 1);
    client.close().await;
}

#[tokio::test]
async fn file_that_an_earlier_call_read_may_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.md"), "Rome\n").unwrap();
    let world = World::new().with_files(folder.path()).with_rules(&[], &["edit_file"]);
    let mut client = world.client();
    let edit = json!({ "path": "notes.md", "old_text": "Rome", "new_text": "Paris" });
    let answer = client.call("edit_file", edit.clone()).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = client.call("read_file", json!({ "path": "notes.md" })).await;
    assert!(text(&answer).contains("Rome"), "{answer}");
    let answer = client.call("edit_file", edit).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.md")).unwrap(), "Paris\n");
    client.close().await;
}
