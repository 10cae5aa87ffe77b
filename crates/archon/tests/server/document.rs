//! The OpenAPI document says what the server does: real responses fit their schemas, and queries and bodies have exactly
//! the declared fields.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use archon::{
    RunId,
    server::{
        AccessToken, AllowedHosts, OPENAPI, RequestLog, Role, Scope, Server, ServerOptions, TokenLimits,
    },
    types::{Json, StartRuns},
};
use serde_json::json;

use crate::{
    tasks::{Tasks, definition},
    world::{Answer, Ask, Site, World},
};

/// A method in lower case, and a path of the document.
type Place = (&'static str, &'static str);

fn document() -> Json {
    serde_json::from_str(OPENAPI).unwrap()
}

/// Returns the value that a reference leads to, or the value itself.
fn follow<'a>(document: &'a Json, value: &'a Json) -> &'a Json {
    let Some(path) = value["$ref"].as_str() else { return value };
    document.pointer(path.strip_prefix('#').unwrap()).unwrap()
}

/// Returns the differences between a value and a schema of the document.
fn differences(document: &Json, schema: &Json, value: &Json) -> Vec<String> {
    let mut schema = schema.clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Returns the places that declare a JSON body for a status, with the status.
fn json_places(document: &Json) -> BTreeSet<(String, String, String)> {
    let mut all = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                if response["content"]["application/json"].is_object() {
                    all.insert((method.clone(), path.clone(), status.clone()));
                }
            }
        }
    }
    all
}

/// A server with a log of requests, tasks, and a store with a memory if the program has memories.
async fn site(folder: &Path) -> Site {
    let log = RequestLog::open(folder.join("requests.jsonl")).unwrap();
    let options = ServerOptions::default().with_request_log(log);
    let limits = TokenLimits::default().with_requests_per_minute(100_000);
    with_stores(World::new().site_with(options.clone(), limits), options).await
}

/// Puts a server before the same service, with tasks, and with a memory if the program has memories.
async fn with_stores(site: Site, options: ServerOptions) -> Site {
    let scope = Scope::new(Arc::new(site.runs.clone())).with_tasks(Arc::new(Tasks::default()));
    let scope = with_memory(scope).await;
    let limits = TokenLimits::default().with_requests_per_minute(100_000);
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap().with_limits(limits);
    let (hosts, clock) = (AllowedHosts::new([crate::world::HOST]), Arc::new(site.clock.clone()));
    site.with(&Server::new(hosts, [token], clock, options))
}

#[cfg(not(feature = "memory"))]
async fn with_memory(scope: Scope) -> Scope {
    scope
}

#[cfg(feature = "memory")]
async fn with_memory(scope: Scope) -> Scope {
    use archon::{
        memory::InMemoryStore,
        types::{MemoryChange, MemoryEntry, MemoryStore, Timestamp},
    };

    let store = InMemoryStore::new();
    let entry = MemoryEntry::new("a", "Anna likes tea", Timestamp::from_millis(1));
    store.apply(vec![MemoryChange::put(entry)]).await.unwrap();
    scope.with_memories(Arc::new(store))
}

/// Returns a response of each place that declares one, after the writes that lead to it.
async fn responses(site: &Site) -> Vec<(Place, Answer)> {
    const RUNS: &str = "/v1/runs";
    let (start, run) = (("post", RUNS), "/v1/runs/{run}");
    let mut all = Vec::new();
    let keyed = |text: &str| Ask::post(RUNS, &json!({ "text": text })).with("idempotency-key", "k");
    all.push((start, site.send(keyed("hello")).await));
    let ended = RunId::new(all[0].1.body["run"].as_str().unwrap());
    drop(site.runs.reply(&ended).await);
    all.push((start, site.send(keyed("hello")).await));
    let session = all[0].1.body["session"].as_str().unwrap().to_owned();
    let messages = site.get(&format!("/v1/sessions/{session}/messages")).await;
    all.push((("get", "/v1/sessions/{session}/messages"), messages));
    let working = json!({ "text": "wait", "session": "busy", "when_busy": "queue" });
    site.post(RUNS, working.clone()).await;
    site.world.gate.entered().await;
    all.push((start, site.post(RUNS, working).await));
    (0..2).for_each(|_| site.world.gate.open());
    site.run("step Paris-Orly").await;
    all.push((("get", "/v1/approvals"), site.get("/v1/approvals").await));
    let question = all.last().unwrap().1.body["approvals"][0]["request_id"].as_str().unwrap().to_owned();
    let answer = site.post(&format!("/v1/approvals/{question}/answer"), json!({ "answer": "approve" })).await;
    all.push((("post", "/v1/approvals/{request}/answer"), answer));
    let fork = site.post(&format!("{RUNS}/{ended}/fork"), json!({ "record": 1, "text": "goodbye" })).await;
    let resumed = format!("{RUNS}/{}/resume", fork.body["run"].as_str().unwrap());
    all.push((("post", "/v1/runs/{run}/fork"), fork));
    all.push((("post", "/v1/runs/{run}/resume"), site.post(&resumed, json!({})).await));
    for path in ["", "/records", "/usage", "/audit", "/timeline", "/graph"] {
        let answer = site.get(&format!("{RUNS}/{ended}{path}")).await;
        let place = match path {
            "" => run,
            "/records" => "/v1/runs/{run}/records",
            "/usage" => "/v1/runs/{run}/usage",
            "/audit" => "/v1/runs/{run}/audit",
            "/timeline" => "/v1/runs/{run}/timeline",
            _ => "/v1/runs/{run}/graph",
        };
        all.push((("get", place), answer));
    }
    all.push((("post", "/v1/tasks"), site.post("/v1/tasks", definition("mail")).await));
    for command in ["run", "pause", "resume"] {
        let place = match command {
            "run" => "/v1/tasks/{task}/run",
            "pause" => "/v1/tasks/{task}/pause",
            _ => "/v1/tasks/{task}/resume",
        };
        all.push((("post", place), site.post(&format!("/v1/tasks/mail/{command}"), json!({})).await));
    }
    all.push((("get", "/v1/tasks"), site.get("/v1/tasks").await));
    let delete = Ask::new("DELETE", "/v1/tasks/mail").with("content-type", "application/json");
    all.push((("delete", "/v1/tasks/{task}"), site.send(delete).await));
    for path in
        [RUNS, "/v1/sessions", "/v1/memories", "/v1/usage", "/v1/agents", "/v1/me", "/v1/openapi.json"]
    {
        all.push((("get", path), site.get(path).await));
    }
    all.push((("post", "/v1/links"), site.post("/v1/links", json!({})).await));
    all
}

// spec: EX-09
#[tokio::test]
async fn response_of_each_route_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let document = document();
    let mut seen = BTreeSet::new();
    for ((method, path), answer) in responses(&site).await {
        let status = answer.status.as_str().to_owned();
        if !cfg!(feature = "memory") && path == "/v1/memories" {
            continue;
        }
        let response = &document["paths"][path][method]["responses"][status.as_str()];
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path}: {answer:?}");
        assert_eq!(differences(&document, schema, &answer.body), [""; 0], "{method} {path}: {}", answer.body);
        // The schema refuses something.
        assert_ne!(differences(&document, schema, &json!(7)), [""; 0], "{method} {path}");
        seen.insert((method.to_owned(), path.to_owned(), status));
    }
    let mut declared = json_places(&document);
    if !cfg!(feature = "memory") {
        declared.retain(|(_, path, _)| path != "/v1/memories");
    }
    assert_eq!(seen, declared);
}

#[tokio::test]
async fn problem_fits_its_schema() {
    let site = World::new().site();
    let document = document();
    let schema = &document["components"]["schemas"]["Problem"];
    for ask in [
        Ask::get("/v1/runs/x"),
        Ask::get("/v1/runs").without("authorization"),
        Ask::get("/v1/runs?limit=x"),
        Ask::post("/v1/runs", &json!({})),
        Ask::get("/nowhere"),
    ] {
        let refused = site.send(ask).await;
        assert_ne!(refused.rule(), "", "{refused:?}");
        assert_eq!(differences(&document, schema, &refused.body), [""; 0], "{}", refused.body);
    }
}

/// Returns the path of an operation, with the run in place of its parameter.
fn fill(path: &str, run: &RunId) -> String {
    path.replace("{run}", run.as_str()).replace("{session}", "s").replace("{request}", "x")
}

/// Returns a value that a query parameter with this schema may have.
fn example(path: &str, name: &str, schema: &Json) -> &'static str {
    match (path, name, schema["type"].as_str().unwrap()) {
        ("/v1/runs", "status", _) => "finished,failed",
        ("/v1/runs", "after", _) => "0-x",
        (_, _, "boolean") => "true",
        (_, _, "integer") => "1",
        _ => "a",
    }
}

/// Returns the names in quotes behind the word `expected` of a message about an unknown field.
fn expected_names(refused: &Answer) -> BTreeSet<String> {
    let detail = refused.body["detail"].as_str().unwrap();
    let (_, names) = detail.split_once("expected").unwrap_or_else(|| panic!("{refused:?}"));
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn query_of_each_route_has_exactly_the_declared_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path()).await;
    let run = site.run("hello").await;
    let document = document();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let parameters = parameters.iter().map(|one| follow(&document, one));
        let in_query: Vec<_> = parameters.filter(|one| one["in"] == "query").collect();
        let place = fill(path, &run);
        // A sign-in answers alike whatever it is sent.
        if in_query.is_empty() || path == "/v1/sign-in" || !cfg!(feature = "memory") && path == "/v1/memories"
        {
            continue;
        }
        let mut names = BTreeSet::new();
        for parameter in in_query {
            let name = parameter["name"].as_str().unwrap();
            let answer =
                site.get(&format!("{place}?{name}={}", example(path, name, &parameter["schema"]))).await;
            assert!(answer.status.is_success(), "{path} {name}: {answer:?}");
            names.insert(name.to_owned());
            count += 1;
        }
        let refused = site.get(&format!("{place}?undeclared=1")).await;
        assert_eq!(refused.refusal(), (400, "query"), "{path}");
        assert_eq!(expected_names(&refused), names, "{path}");
    }
    assert!(count > 20, "{count} parameters");
}

#[tokio::test]
async fn body_of_each_route_has_exactly_the_declared_fields() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let document = document();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let body = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
        // The service of tasks reads the definition of a task, and not the server.
        if path == "/v1/tasks" {
            continue;
        }
        // An answer to a question is one of several objects.
        let Some(declared) = follow(&document, body)["properties"].as_object() else { continue };
        let refused = site.post(&fill(path, &run), json!({ "undeclared": 1 })).await;
        assert_eq!(refused.refusal(), (422, "body"), "{path}: {refused:?}");
        assert_eq!(expected_names(&refused), declared.keys().cloned().collect(), "{path}");
        count += 1;
    }
    assert!(count >= 6, "{count} bodies");
}
