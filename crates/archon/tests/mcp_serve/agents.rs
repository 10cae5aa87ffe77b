//! Agents as tools with a prompt: their runs as calls with progress, and as tasks that are polled.

use archon::types::{Json, RunStatus, StartRun, StartRuns};
use serde_json::json;

use crate::world::{Client, World, run, text};

fn tasks() -> Json {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

#[tokio::test]
async fn call_of_an_agent_is_its_run_with_progress_for_a_client_that_wants_it() {
    let world = World::new().with_rules(&[], &["step"]);
    let (runs, server) = world.runs();
    for is_modern in [true, false] {
        let mut client = Client::of(server.clone());
        if !is_modern {
            client = client.initialized().await;
        }
        let mut call = json!({ "name": "walker", "arguments": { "prompt": "step Paris" } });
        call["_meta"] = json!({ "progressToken": "p" });
        let answer = client.ask("tools/call", call).await;
        assert_eq!(text(&answer), "done: stepped to Paris");
        let structured = &answer["result"]["structuredContent"];
        assert_eq!(
            (&structured["status"], &structured["answer"]),
            (&json!("finished"), &json!("done: stepped to Paris"))
        );
        assert_eq!(structured["run"], json!(run(&answer)));
        assert_eq!(runs.get(&run(&answer)).await.unwrap().task, "step Paris");
        let progress: Vec<_> = client.received.iter().map(|message| &message["params"]).collect();
        let messages: Vec<_> = progress.iter().map(|params| params["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["turn 1", "calls step", "turn 2"]);
        let counts: Vec<_> = progress.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
        client.close().await;
    }
    assert_eq!(world.steps(), 2);
}

#[tokio::test]
async fn call_of_an_agent_without_a_prompt_is_refused() {
    let mut client = World::new().client();
    for arguments in [json!({}), json!({ "prompt": " " }), json!({ "prompt": 1 })] {
        let answer = client.call("walker", arguments).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    client.close().await;
}

#[tokio::test]
async fn cancel_of_a_call_ends_the_run() {
    let world = World::new();
    let (runs, server) = world.runs();
    let mut client = Client::of(server);
    let id =
        client.request("tools/call", json!({ "name": "walker", "arguments": { "prompt": "wait" } })).await;
    world.gate.entered.notified().await;
    let head = runs.list(&Default::default()).await.unwrap().remove(0);
    assert_eq!(head.status, RunStatus::Running);
    let params = json!({ "requestId": id, "reason": "enough" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    let _ = runs.reply(&head.run_id).await.unwrap();
    assert_eq!(runs.get(&head.run_id).await.unwrap().status, RunStatus::Cancelled);
    client.close().await;
}

/// Polls a task until it leaves a status.
async fn after(client: &mut Client, task: &Json, status: &str) -> Json {
    loop {
        let answer = client.ask("tasks/get", json!({ "taskId": task })).await;
        assert!(answer.get("error").is_none(), "{answer}");
        if answer["result"]["status"] != status {
            return answer["result"].clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn run_of_an_agent_is_a_task_for_a_client_that_polls() {
    let world = World::new();
    let mut client = world.client().with(tasks());
    let answer = client.call("walker", json!({ "prompt": "wait" })).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    let task = &answer["result"]["taskId"];
    world.gate.entered.notified().await;
    let working = client.ask("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    world.gate.open.notify_one();
    let done = after(&mut client, task, "working").await;
    assert_eq!((&done["status"], &done["result"]["structuredContent"]["run"]), (&json!("completed"), task));
    assert_eq!(done["result"]["content"][0]["text"], "done: went on");
    client.close().await;
}

#[tokio::test]
async fn task_asks_for_consent_and_goes_on_with_the_answer() {
    for (action, steps, said) in [("accept", 1, "done: stepped to Paris"), ("decline", 0, "done: ")] {
        let world = World::new();
        let mut client = world.client().with(tasks());
        let answer = client.call("walker", json!({ "prompt": "step Paris" })).await;
        let task = &answer["result"]["taskId"];
        let asked = after(&mut client, task, "working").await;
        assert_eq!(asked["status"], "input_required", "{asked}");
        let question = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let response = json!({ "action": action, "content": { "decision": "approve" } });
        let params = json!({ "taskId": task, "inputResponses": { &question: response, "unknown": {} } });
        let updated = client.ask("tasks/update", params).await;
        assert!(updated.get("result").is_some(), "{updated}");
        let done = after(&mut client, task, "working").await;
        assert_eq!((&done["status"], world.steps()), (&json!("completed"), steps), "{done}");
        let text = done["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(said), "{text}");
        client.close().await;
    }
}

#[tokio::test]
async fn task_cancel_works_while_running_and_not_after_its_end() {
    let world = World::new();
    let mut client = world.client().with(tasks());
    let answer = client.call("walker", json!({ "prompt": "wait" })).await;
    let task = answer["result"]["taskId"].clone();
    world.gate.entered.notified().await;
    for _ in 0..2 {
        let cancelled = client.ask("tasks/cancel", json!({ "taskId": task })).await;
        assert!(cancelled.get("result").is_some(), "{cancelled}");
        assert_eq!(after(&mut client, &task, "working").await["status"], "cancelled");
    }
    client.close().await;
}

#[tokio::test]
async fn task_is_found_by_another_server_over_the_same_journal() {
    let world = World::new();
    let mut client = world.client().with(tasks());
    let answer = client.call("walker", json!({ "prompt": "step Paris" })).await;
    let task = answer["result"]["taskId"].clone();
    let asked = after(&mut client, &task, "working").await;
    client.close().await;
    let mut other = world.client().with(tasks());
    assert_eq!(after(&mut other, &task, "working").await["inputRequests"], asked["inputRequests"]);
    other.close().await;
}

#[tokio::test]
async fn runs_that_no_client_started_are_no_tasks() {
    let world = World::new();
    let (runs, server) = world.runs();
    let own = runs.start(StartRun::new("hello").agent("own")).await.unwrap().run;
    let _ = runs.reply(&own).await.unwrap();
    let mut client = Client::of(server).with(tasks());
    let called = client.call("add", json!({ "a": 1, "b": 2 })).await;
    for id in [own, run(&called), archon::RunId::new("run_unknown")] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = client.ask(method, json!({ "taskId": id, "inputResponses": {} })).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {id}: {answer}");
        }
    }
    client.close().await;
}

#[tokio::test]
async fn tasks_need_a_client_that_declares_them() {
    let world = World::new();
    let mut client = world.client();
    let answer = client.ask("tasks/get", json!({ "taskId": "run_unknown" })).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    client.close().await;
}
