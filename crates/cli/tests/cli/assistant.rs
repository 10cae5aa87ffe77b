//! `archon assistant`: the folder of the page, served to two tenants.

use std::path::PathBuf;

use archon_testkit::{MockResponse, MockServer, RecordedRequest};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    openapi::write,
    serve::client::{Response, Served, settle},
    setup::{Place, answer, asks_for},
};

mod triggers;

const PAGE: &str = include_str!("../../../../docs/book/how-to/assistant.md");

const TOKENS: &str = "[serve.tokens.anna]\nrole = 'operator'\ntenant = 'anna'\nvariable = 'ANNA_TOKEN'\n\
                      [serve.tokens.ben]\nrole = 'operator'\ntenant = 'ben'\nvariable = 'BEN_TOKEN'\n";
const ANNA: &str = "secret-of-anna-1";
const BEN: &str = "secret-of-ben-12";

/// Writes the files of the page, as they stand there.
fn write_office(place: &Place) {
    for part in PAGE.split("\n`office/").skip(1) {
        let (name, rest) = part.split_once("`:\n\n```markdown\n").unwrap();
        let (text, _) = rest.split_once("\n```\n").unwrap();
        write_file(place, &format!("office/{name}"), &format!("{text}\n"));
    }
}

fn write_file(place: &Place, name: &str, text: &str) {
    let path: PathBuf = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Writes the settings, with the API of the shop, whose key is that of the tenant.
async fn settle_office(place: &Place, model: &MockServer, shop: &MockServer) {
    settle(place, model, TOKENS);
    let document = "openapi: 3.1.0\ninfo: { title: Shop, version: '1' }\nservers: [{ url: 'https://shop.example.com' }]\n\
                    paths:\n  /orders:\n    get:\n      operationId: list_orders\n";
    let file = write(place, "shop.yaml", document);
    let flags = [file.as_str(), "--name", "shop", "--base-url", &shop.url(), "--auth", "none"];
    let imported = place.archon("openapi import", &flags).await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let settings = place.path(".config/archon/archon.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("{text}\n[openapi.shop.auth]\naccount = 'SHOP_TOKEN'\n")).unwrap();
    write_office(place);
}

async fn start(place: &Place) -> Served {
    let mut command = place.command("assistant --json --listen 127.0.0.1:0", &["office"]);
    command.env("ANNA_TOKEN", ANNA).env("BEN_TOKEN", BEN);
    Served::of(command, 2).await
}

async fn says(served: &Served, who: &str, text: &str) -> Value {
    let sent = served.send("POST", "/v1/messages", &served.bearer(who), Some(&json!({ "text": text }))).await;
    assert_eq!(sent.status, 200, "{sent:?}");
    sent.body
}

async fn get(served: &Served, who: &str, path: &str) -> Value {
    let response: Response = served.send("GET", path, &served.bearer(who), None).await;
    assert_eq!(response.status, 200, "{path}: {response:?}");
    response.body
}

/// Returns the ids of the entries of a list.
async fn ids(served: &Served, who: &str, path: &str, list: &str, id: &str) -> Vec<String> {
    let listed = get(served, who, path).await;
    let ids = listed[list].as_array().unwrap().iter().map(|entry| entry[id].as_str().unwrap().to_owned());
    ids.collect()
}

/// Returns the first question of a tenant, once there is one.
async fn question(served: &Served, who: &str) -> Value {
    for _ in 0..600 {
        let open = get(served, who, "/v1/approvals").await;
        if let Some(first) = open["approvals"].as_array().unwrap().first() {
            return first.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("nobody asks")
}

/// Plays the models of all agents: each reply follows from the request alone.
fn reply(request: &RecordedRequest) -> MockResponse {
    let messages = request.body["messages"].as_array().unwrap();
    let content = |message: &Value| match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    };
    let (system, last) = (content(&messages[0]), messages.last().unwrap());
    let text = content(last);
    match () {
        () if system.starts_with("A program asked a person") => answer(r#"{"answers": []}"#),
        () if last["role"] == "tool" => answer(&format!("Done: {text}")),
        () if system.contains("You write short letters") => {
            let (_, fields) = text.split_once("Fields:\n").unwrap();
            let fields: Value =
                serde_json::Deserializer::from_str(fields).into_iter().next().unwrap().unwrap();
            let path = format!("outbox/{}.txt", fields["recipient"].as_str().unwrap());
            asks_for("write_file", &json!({ "path": path, "content": fields["tone"] }).to_string())
        }
        () if system.contains("questions about the orders") => asks_for("shop__list_orders", "{}"),
        () if text.contains("letter") => asks_for("letters", "{}"),
        () if text.contains("orders") => asks_for("orders", r#"{"task_instruction": "List all."}"#),
        () if text.contains("What do you know") => {
            let known = system.split_once("facts, not instructions:").map_or("nothing", |(_, known)| known);
            answer(&format!("I know: {known}"))
        }
        () => answer("Good."),
    }
}

// spec: MA-32, MA-34, A-27
#[tokio::test]
async fn tenants_of_an_assistant_see_nothing_of_each_other() {
    let model = MockServer::answering(reply).await;
    let shop = MockServer::answering(|_| MockResponse::json(200, &json!(["a chair"]))).await;
    let place = Place::new();
    settle_office(&place, &model, &shop).await;
    assert_eq!(place.pipe("credentials add SHOP_TOKEN --tenant anna", &[], "tok-anna").await.code, Some(0));
    let served = start(&place).await;

    assert_eq!(says(&served, ANNA, "My green tea is Longjing.").await["text"], "Good.");
    let known = says(&served, BEN, "What do you know about my green tea?").await;
    assert!(!known["text"].as_str().unwrap().contains("Longjing"), "{known}");
    let known = says(&served, ANNA, "What do you know about my green tea?").await;
    assert!(known["text"].as_str().unwrap().contains("Longjing"), "{known}");
    let has = async |who| get(&served, who, "/v1/memories").await.to_string().contains("Longjing");
    assert!(has(ANNA).await && !has(BEN).await);

    let orders = says(&served, ANNA, "Which orders are there?").await;
    assert!(orders["text"].as_str().unwrap().contains("a chair"), "{orders}");
    let orders = says(&served, BEN, "Which orders are there?").await;
    assert!(orders["text"].as_str().unwrap().contains("No 'SHOP_TOKEN' account is connected"), "{orders}");
    let sent: Vec<_> =
        shop.requests().iter().map(|sent| sent.header("authorization").map(str::to_owned)).collect();
    // The condition of the trigger reads with the account of its tenant, too.
    assert!(sent.iter().all(|key| key.as_deref() == Some("Bearer tok-anna")), "{sent:?}");

    let runs = async |who| ids(&served, who, "/v1/runs?limit=500", "runs", "run_id").await;
    let (of_anna, of_ben) = (runs(ANNA).await, runs(BEN).await);
    assert!(!of_anna.is_empty() && !of_ben.is_empty() && of_anna.iter().all(|run| !of_ben.contains(run)));
    let tasks = async |who| ids(&served, who, "/v1/tasks", "tasks", "id").await;
    assert_eq!(
        tasks(ANNA).await,
        ["letters--summary--anna", "letters--thanks--anna", "orders--backlog--anna"]
    );
    assert_eq!(tasks(BEN).await, ["letters--thanks--ben"]);
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

// spec: MA-33, MA-35, MA-38, AP-10
#[tokio::test]
async fn missing_field_is_asked_for_and_its_answer_continues_the_run_after_a_kill() {
    let model = MockServer::answering(reply).await;
    let shop = MockServer::start([]).await;
    let place = Place::new();
    settle_office(&place, &model, &shop).await;
    let first = start(&place).await;
    let asked = says(&first, ANNA, "Write a letter.").await;
    assert_eq!(asked["text"], "letters needs `recipient`: The person who gets the letter.");
    assert_eq!((&asked["status"], asked["waiting"].as_array().unwrap().len()), (&json!("suspended"), 1));
    assert_eq!(says(&first, BEN, "Carl").await["text"], "Good.", "it answers nobody else's question");
    assert_eq!(first.end(Signal::KILL).await, None);

    let next = start(&place).await;
    let asked_again = says(&next, ANNA, "Carl").await;
    assert_eq!(asked_again["run"], asked["run"]);
    assert_eq!(asked_again["text"], "Create 'outbox/Carl.txt'");
    assert!(!place.path("outbox/Carl.txt").exists());
    // Another command stores the answer; it does not have the agents.
    let foreign = place.archon("resume", &[asked["run"].as_str().unwrap()]).await;
    assert!(foreign.err.contains("is a run of an assistant"), "{foreign:?}");
    let done = says(&next, ANNA, "yes").await;
    assert!(done["text"].as_str().unwrap().starts_with("Done: Done: "), "{done}");
    assert_eq!(std::fs::read_to_string(place.path("outbox/Carl.txt")).unwrap(), "friendly");
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

// spec: TR-01, TR-04, TR-10, A-40
#[tokio::test]
async fn trigger_of_a_file_starts_a_run_whose_question_is_answered_over_http() {
    let model = MockServer::answering(reply).await;
    let shop = MockServer::start([]).await;
    let place = Place::new();
    settle_office(&place, &model, &shop).await;
    let served = start(&place).await;
    let published =
        place.archon("triggers publish --json --tenant anna shop order.created", &["{\"sum\": 120}"]).await;
    assert_eq!(published.json()[0]["tasks"], json!(["letters--thanks--anna"]), "{published:?}");
    let asked = question(&served, ANNA).await;
    assert_eq!((&asked["source"], &asked["task"]), (&json!("trigger"), &json!("letters--thanks--anna")));
    assert_eq!(get(&served, BEN, "/v1/approvals").await["approvals"], json!([]));
    // The conversation did not show the question, so a word in it answers nothing.
    assert_eq!(says(&served, ANNA, "yes").await["text"], "Good.");
    assert!(!place.path("outbox/the customer.txt").exists());
    let path = format!("/v1/approvals/{}/answer", asked["request_id"].as_str().unwrap());
    let body = json!({ "answer": "approve" });
    assert_eq!(served.send("POST", &path, &served.bearer(BEN), Some(&body)).await.status, 409);
    assert_eq!(served.send("POST", &path, &served.bearer(ANNA), Some(&body)).await.status, 200);
    let run = format!("/v1/runs/{}", asked["run"].as_str().unwrap());
    while get(&served, ANNA, &run).await["status"] != "finished" {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(std::fs::read_to_string(place.path("outbox/the customer.txt")).unwrap(), "friendly");
    let task = get(&served, ANNA, &run).await["task"].to_string();
    assert!(task.contains("[Event Trigger] shop.order.*: Thank for the order."), "{task}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

#[tokio::test]
async fn tasks_of_files_follow_the_files_and_a_paused_one_stays_paused() {
    let model = MockServer::answering(reply).await;
    let shop = MockServer::start([]).await;
    let place = Place::new();
    settle_office(&place, &model, &shop).await;
    place.archon("triggers add own", &["--every", "9h", "Look."]).await;
    let first = start(&place).await;
    let path = "/v1/tasks/letters--thanks--anna/pause";
    assert_eq!(first.send("POST", path, &first.bearer(ANNA), Some(&json!({}))).await.status, 200);
    assert_eq!(first.send("POST", path, &first.bearer(BEN), Some(&json!({}))).await.status, 404);
    assert_eq!(first.end(Signal::TERM).await, Some(0));

    let file = place.path("office/agents/letters.md");
    let text = std::fs::read_to_string(&file).unwrap().replace("name: summary", "name: weekly");
    std::fs::write(file, text).unwrap();
    let next = start(&place).await;
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    let listed = place.archon("triggers list --json", &[]).await.json();
    let tasks: Vec<_> =
        listed.iter().map(|task| (task["task"]["id"].as_str().unwrap(), &task["status"])).collect();
    let (active, paused) = (json!("active"), json!("paused"));
    assert_eq!(
        tasks,
        [
            ("letters--thanks--anna", &paused),
            ("letters--thanks--ben", &active),
            ("letters--weekly--anna", &active),
            ("orders--backlog--anna", &active),
            ("own", &active),
        ]
    );
}

#[tokio::test]
async fn broken_file_is_left_out_with_its_line_and_doctor_repeats_it() {
    let model = MockServer::answering(reply).await;
    let shop = MockServer::start([]).await;
    let place = Place::new();
    settle_office(&place, &model, &shop).await;
    let head = "---\nname: NAME\ndescription: x\n";
    let cases = [
        ("tools: pigeon\n", "a0.md:4: there is no tool `pigeon`"),
        ("approval: write_file\n", "a1.md:4: `approval` names `write_file`, which is not among `tools`"),
        ("fields:\n  - name: a\n    description: b\n    kind: money\n", "a2.md:7: there is no kind `money`"),
        ("fields:\n  - name: a\n", "a3.md:5: item 1 of `fields` has no `description`: add it"),
        (
            "fields:\n  - name: a\n    description: b\n    kind: integer\n    default: x\n",
            "a4.md:8: `a` must be a whole number",
        ),
        ("triggers:\n  - name: t\n    instruction: b\n", "a5.md:5: a trigger needs one of"),
        ("triggers:\n  - name: t\n    instruction: b\n    cron: 61 * * * *\n", "a6.md:7: the cron pattern"),
        (
            "fields:\n  - name: a\n    description: b\ntriggers:\n  - name: t\n    instruction: b\n    on: x.*\n",
            "a7.md:8: the trigger gives no value for the required field `a`",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    on: x.*\n    color: c\n",
            "a8.md:8: item 1 of `triggers` has no part `color`: remove it, or use one of: name",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    notify: pigeon\n",
            "a9.md:8: there is no notification channel `pigeon`; the channels are: console",
        ),
        ("model: sonnet\n", "a10.md:4: there is no model `sonnet`"),
        ("fields: a\n", "a11.md:4: `fields` must be a list: `- name: …`"),
        ("fields:\n  - a\n", "a12.md:5: item 1 of `fields` must be a mapping, such as `name: …`"),
        (
            "triggers:\n  - name: t\n    on: x.*\n    instruction: b\n    fields: all\n",
            "a13.md:8: `fields` in item 1 of `triggers` must be a mapping, such as `name: …`",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    when: data > 1\n    every: 1m\n",
            "a14.md:5: `when` needs `probe`: the tool",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    when: data > 1\n    probe: read_file\n    every: 1m\n",
            "a15.md:8: `probe` names `read_file`, which is not among `tools`",
        ),
        (
            "tools: write_file\ntriggers:\n  - name: t\n    instruction: b\n    when: data > 1\n    probe: write_file\n    \
             every: 1m\n",
            "a16.md:9: `probe` names `write_file`, which changes something",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    on: x.*\n    missed: all\n",
            "a17.md:8: `missed` is for `cron`, `every` and `at`",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    missed: maybe\n",
            "a18.md:8: `missed` must be skip, once or all",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    max_runs: 0\n",
            "a19.md:8: `max_runs` must be a whole number from 1",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    max_cost: much\n",
            "a20.md:8: `max_cost` is `much`: an amount in dollars is needed",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    until: soon\n",
            "a21.md:8: `soon` is not a time",
        ),
        (
            "triggers:\n  - name: t\n    instruction: b\n    every: 1h\n    arguments:\n      a: b\n",
            "a22.md:8: `arguments` is for `when`",
        ),
    ];
    for (at, (fields, _)) in cases.iter().enumerate() {
        let text = format!("{}{fields}---\nYou help.\n", head.replace("NAME", &format!("a{at}")));
        write_file(&place, &format!("office/agents/a{at}.md"), &text);
    }
    let mut command = place.command("assistant --json --listen 127.0.0.1:0", &["office"]);
    command.env("ANNA_TOKEN", ANNA).env("BEN_TOKEN", BEN);
    let served = Served::of(command, 2).await;
    let agents = get(&served, ANNA, "/v1/agents").await["agents"].to_string();
    assert!(agents.contains("assistant/letters") && !agents.contains("assistant/a0"), "{agents}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));

    let findings = place.archon("doctor --assistant office --json", &[]).await.json();
    let found: Vec<_> = findings.iter().filter(|found| found["check"] == "assistant").collect();
    for (_, expected) in cases {
        let is_found = found.iter().any(|found| found["found"].as_str().unwrap().contains(expected));
        assert!(is_found, "{expected}: {found:#?}");
    }
    assert_eq!(found.len(), cases.len(), "{found:#?}");
}

#[tokio::test]
async fn assistant_without_a_folder_or_with_a_broken_persona_is_refused() {
    let model = MockServer::answering(reply).await;
    let place = Place::new();
    settle(&place, &model, "");
    let refused = place.archon("assistant nowhere", &[]).await;
    refused.check_refused(2, "there is no folder", "agents/NAME.md");
    write_file(&place, "office/assistant.md", "---\nname: a\ndescription: b\nzone: Mars\n---\nYou help.\n");
    let refused = place.archon("assistant office", &[]).await;
    refused.check_refused(2, "assistant.md:4: the time zone `Mars`", "correct the file");
}
