//! The triggers of the files of `archon assistant`: their tasks, conditions, limits and channels.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon_testkit::{MockResponse, MockServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ANNA, BEN, get, reply, settle_office, start, write_file};
use crate::{questions::until, serve::client::Served, setup::Place};

/// Replaces a part of a file of the office.
fn edit(place: &Place, name: &str, from: &str, to: &str) {
    let path = place.path(&format!("office/agents/{name}"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Adds lines to the settings.
fn add_settings(place: &Place, more: &str) {
    let path = place.path(".config/archon/archon.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{text}\n{more}")).unwrap();
}

async fn office(shop: &MockServer) -> (MockServer, Place) {
    let (model, place) = (MockServer::answering(reply).await, Place::new());
    settle_office(&place, &model, shop).await;
    (model, place)
}

/// Makes the tasks equal to the files, and returns them by their ids.
async fn settled(place: &Place) -> Vec<(String, Value)> {
    let served = start(place).await;
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    let listed = place.archon("triggers list --json", &[]).await.json();
    listed.into_iter().map(|task| (task["task"]["id"].as_str().unwrap().to_owned(), task)).collect()
}

/// Returns the problems of the files that `archon doctor` finds.
async fn findings(place: &Place) -> Vec<String> {
    let found = place.archon("doctor --assistant office --json", &[]).await.json();
    let found = found.iter().filter(|found| found["check"] == "assistant");
    found.map(|found| found["found"].as_str().unwrap().to_owned()).collect()
}

/// Returns a task of Anna.
async fn task(served: &Served, id: &str) -> Value {
    let listed = get(served, ANNA, "/v1/tasks").await;
    let tasks = listed["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["id"] == id).unwrap().clone()
}

// spec: TR-05
#[tokio::test]
async fn condition_of_a_file_reads_a_tool_and_starts_a_run_each_time_that_it_becomes_true() {
    let (size, looks) = (Arc::new(AtomicUsize::new(2)), Arc::new(AtomicUsize::new(0)));
    let (orders, count) = (size.clone(), looks.clone());
    let shop = MockServer::answering(move |_| {
        let orders = vec!["a chair"; orders.load(Ordering::SeqCst)];
        count.fetch_add(1, Ordering::SeqCst);
        MockResponse::json(200, &json!(orders))
    })
    .await;
    let (model, place) = office(&shop).await;
    assert_eq!(place.pipe("credentials add SHOP_TOKEN --tenant anna", &[], "tok-anna").await.code, Some(0));
    edit(&place, "orders.md", "every: 10m", "every: 1s");
    let served = start(&place).await;
    let two_more_looks = async || {
        let before = looks.load(Ordering::SeqCst);
        until(async || (looks.load(Ordering::SeqCst) > before + 1).then_some(())).await;
    };
    // Returns the task once it has had this number of runs, and none is at work.
    let after_runs = async |runs: u64| {
        until(async || {
            let task = task(&served, "orders--backlog--anna").await;
            (task["runs"] == runs && task["is_busy"] == false).then_some(task)
        })
        .await
    };
    two_more_looks().await;
    assert_eq!(after_runs(0).await["problem"], json!(null));
    size.store(11, Ordering::SeqCst);
    after_runs(1).await;
    two_more_looks().await;
    size.store(2, Ordering::SeqCst);
    two_more_looks().await;
    after_runs(1).await;
    size.store(12, Ordering::SeqCst);
    let done = after_runs(2).await;
    let condition = &done["definition"]["trigger"]["condition"];
    assert_eq!(
        (&condition["probe"], &condition["every"], &condition["expression"]),
        (&json!("orders/shop__list_orders"), &json!(1), &json!("data.size() > 10"))
    );
    let run = get(&served, ANNA, &format!("/v1/runs/{}", done["last_runs"][1].as_str().unwrap())).await;
    let text = run["task"].to_string();
    assert!(text.contains("[Condition Trigger] Condition met: data.size() > 10"), "{text}");
    assert!(shop.requests().iter().all(|sent| sent.header("authorization") == Some("Bearer tok-anna")));
    assert_eq!(get(&served, BEN, "/v1/tasks").await["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

// spec: TR-05
#[tokio::test]
async fn look_that_fails_or_would_ask_is_a_problem_of_its_task() {
    let shop = MockServer::answering(|_| MockResponse::json(200, &json!([]))).await;
    let (model, place) = office(&shop).await;
    let problem = async |words: &str| {
        let served = start(&place).await;
        let problem = until(async || {
            task(&served, "orders--backlog--anna").await["problem"].as_str().map(str::to_owned)
        })
        .await;
        assert!(problem.contains("probe orders/shop__list_orders: "), "{problem}");
        assert!(problem.contains(words), "{problem}");
        assert_eq!(served.end(Signal::TERM).await, Some(0));
    };
    problem("No 'SHOP_TOKEN' account is connected").await;
    assert_eq!(place.pipe("credentials add SHOP_TOKEN --tenant anna", &[], "tok-anna").await.code, Some(0));
    // The new definition begins anew.
    edit(&place, "orders.md", "every: 10m", "every: 11m");
    edit(&place, "orders.md", "credentials:", "approval: shop__list_orders\ncredentials:");
    problem("needs a person's consent").await;
    assert!(shop.requests().is_empty());
    model.assert_paired();
}

// spec: TR-03, TR-05
#[tokio::test]
async fn trigger_of_a_file_has_the_rule_for_missed_times_and_the_limits() {
    let shop = MockServer::start([]).await;
    let (_model, place) = office(&shop).await;
    let tasks = settled(&place).await;
    let task = |id: &str| &tasks.iter().find(|(one, _)| one == id).unwrap().1["task"];
    let summary = task("letters--summary--anna");
    let until = "2099-12-31T10:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert_eq!(
        (&summary["missed"], &summary["limits"]["until"]),
        (&json!("skip"), &json!(until)),
        "six in the evening in Shanghai"
    );
    let backlog = task("orders--backlog--anna");
    assert_eq!(
        (&backlog["missed"], &backlog["limits"]["runs"], &backlog["limits"]["cost_micros"]),
        (&json!("once"), &json!(100), &json!(5_000_000))
    );
}

// spec: TR-09
#[tokio::test]
async fn trigger_of_a_file_notifies_the_channel_of_each_tenant_or_that_of_all() {
    let shop = MockServer::start([]).await;
    let (model, place) = office(&shop).await;
    let hook = |name: &str, tenant: &str| {
        format!("[channels.{name}]\nkind = 'webhook'\nurl = '{}/{name}'\ntenant = '{tenant}'\n", model.url())
    };
    add_settings(&place, &hook("mail-anna", "anna"));
    edit(&place, "letters.md", "if: data.sum > 100", "if: data.sum > 100\n    notify: mail-{tenant}");
    let channels = async || {
        let tasks = settled(&place).await;
        let thanks = tasks.into_iter().filter(|(id, _)| id.starts_with("letters--thanks--"));
        thanks.map(|(_, task)| task["task"]["notify"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(channels().await, [json!(["mail-anna"]), json!(null)]);
    let found = findings(&place).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .contains("letters.md:17: `notify` of the trigger `thanks` names no channel of the tenant `ben`")
    );
    assert!(found[0].contains("set [channels.mail-ben] with `tenant = \"ben\"`"), "{found:?}");

    add_settings(&place, &hook("mail-ben", "ben"));
    assert_eq!(channels().await, [json!(["mail-anna"]), json!(["mail-ben"])]);
    // A channel of another tenant is left out, and one of all is for both.
    add_settings(&place, &hook("team", "*"));
    edit(&place, "letters.md", "notify: mail-{tenant}", "notify: mail-anna, team");
    assert_eq!(channels().await, [json!(["mail-anna", "team"]), json!(["team"])]);
    assert_eq!(findings(&place).await, Vec::<String>::new());
}

#[tokio::test]
async fn tenant_that_no_token_has_is_a_warning_with_its_line() {
    let shop = MockServer::start([]).await;
    let (_model, place) = office(&shop).await;
    edit(&place, "letters.md", "tenants: anna", "tenants: anna, bob");
    let found = findings(&place).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("letters.md:27: `tenants` of the trigger `summary` has `bob`"), "{found:?}");
    assert!(found[0].contains("the tenants are: anna, ben"), "{found:?}");
    assert!(settled(&place).await.iter().any(|(id, _)| id == "letters--summary--anna"));
}

#[tokio::test]
async fn tasks_of_a_file_with_a_mistake_stay_and_those_of_other_files_follow_them() {
    let shop = MockServer::start([]).await;
    let (_model, place) = office(&shop).await;
    write_file(
        &place,
        "office/agents/notes.md",
        "---\nname: notes\ndescription: Notes.\ntriggers:\n  - name: look\n    every: 9h\n    instruction: Look.\n---\nYou note.\n",
    );
    let all = settled(&place).await;
    let paused = place.archon("triggers pause letters--thanks--anna", &[]).await;
    assert_eq!((all.len(), paused.code), (6, Some(0)), "{all:?}");
    let ids = |tasks: &[(String, Value)]| tasks.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let status = |tasks: &[(String, Value)]| {
        tasks.iter().find(|(id, _)| id == "letters--thanks--anna").unwrap().1["status"].clone()
    };

    edit(&place, "letters.md", "tools: write_file", "tools: pigeon");
    edit(&place, "orders.md", "name: backlog", "name: queue");
    std::fs::remove_file(place.path("office/agents/notes.md")).unwrap();
    let kept = settled(&place).await;
    let renamed: Vec<_> = ids(&all).iter().map(|id| id.replace("backlog", "queue")).collect();
    // The file with the mistake may be that of the agent `notes`, so its tasks stay, too.
    assert_eq!((ids(&kept), status(&kept)), (renamed.clone(), json!("paused")));

    edit(&place, "letters.md", "tools: pigeon", "tools: write_file");
    let mended = settled(&place).await;
    let without_notes: Vec<_> = renamed.into_iter().filter(|id| !id.starts_with("notes--")).collect();
    assert_eq!((ids(&mended), status(&mended)), (without_notes, json!("paused")));

    edit(&place, "letters.md", "Thank for the order.", "Thank warmly for the order.");
    let changed = settled(&place).await;
    let (_, thanks) = changed.iter().find(|(id, _)| id == "letters--thanks--anna").unwrap();
    assert!(thanks.to_string().contains("warmly"), "{thanks}");
    assert_eq!(status(&changed), json!("paused"));
}

#[tokio::test]
async fn too_many_messages_are_refused_before_any_work() {
    let shop = MockServer::start([]).await;
    let (model, place) = office(&shop).await;
    let served = start(&place).await;
    let send =
        async |body: Value| served.send("POST", "/v1/messages", &served.bearer(ANNA), Some(&body)).await;
    let mut sent = 0;
    let refused = loop {
        let response = send(json!({ "text": "" })).await;
        sent += 1;
        match response.status {
            422 => assert!(sent < 700, "{response:?}"),
            _ => break response,
        }
    };
    assert_eq!((refused.status, refused.rule()), (429, "message-limit"), "{refused:?}");
    assert!(sent > 600, "{sent}");
    let message = send(json!({ "text": "Hello." })).await;
    assert_eq!(message.status, 429, "{message:?}");
    assert!(message.head.to_lowercase().contains("\r\nretry-after: "), "{message:?}");
    assert!(model.requests().is_empty(), "no model was asked");
    let bens =
        served.send("POST", "/v1/messages", &served.bearer(BEN), Some(&json!({ "text": "Hello." }))).await;
    assert_eq!((bens.status, &bens.body["text"]), (200, &json!("Good.")), "{bens:?}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}
