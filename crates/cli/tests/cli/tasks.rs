//! `archon triggers`: tasks that start runs, which `archon serve` starts.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    serve::client::{Served, settle},
    setup::{Place, answer},
};

// spec: TR-01, TR-02
#[tokio::test]
async fn triggers_are_added_listed_paused_resumed_and_deleted() {
    let place = Place::new();
    let archon = async |line: &str, more: &[&str]| place.archon(line, more).await;
    assert!(archon("triggers list", &[]).await.err.contains("no tasks"));
    assert!(!place.data().join("tasks.db").exists());
    let added = archon(
        "triggers add mail --zone Asia/Shanghai",
        &["--cron", "0 8 * * *", "Summarize", "unread emails"],
    )
    .await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.err.contains("`archon serve` starts the runs of tasks"), "{added:?}");
    archon("triggers add orders --max-cost 5", &["--on", "shop.*", "--if", "data.sum > 100", "Check it."])
        .await;
    let listed = archon("triggers list --json", &[]).await.json();
    assert_eq!(
        listed[0]["task"]["trigger"],
        json!({ "schedule": { "cron": "0 8 * * *", "zone": "Asia/Shanghai" } })
    );
    assert_eq!(listed[0]["task"]["action"], json!({ "agent": { "instruction": "Summarize unread emails" } }));
    assert!(listed[0]["next"].is_u64());
    assert_eq!(
        listed[1]["task"]["trigger"],
        json!({ "event": { "pattern": "shop.*", "if": "data.sum > 100" } })
    );
    assert_eq!(listed[1]["task"]["limits"]["cost_micros"], 5_000_000);

    let published = archon("triggers publish --json shop order", &["{\"sum\": 120}"]).await.json();
    assert_eq!(published[0]["tasks"], json!(["orders"]));
    assert_eq!(
        archon("triggers publish --json shop order", &["{\"sum\": 12}"]).await.json()[0]["tasks"],
        json!([])
    );

    archon("triggers pause mail", &[]).await;
    assert!(archon("triggers list", &[]).await.out.contains("paused"));
    archon("triggers resume mail", &[]).await;
    assert_eq!(archon("triggers list --json", &[]).await.json()[0]["status"], "active");
    archon("triggers delete mail", &[]).await;
    let gone = archon("triggers pause mail", &[]).await;
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.err.contains("there is no task mail"), "{gone:?}");
}

#[tokio::test]
async fn task_that_cannot_work_is_refused_with_the_reason() {
    let place = Place::new();
    for (flags, reason) in [
        (&["--cron", "61 * * * *"][..], "the cron pattern"),
        (&["--cron", "0 8 * * *", "--zone", "Mars/Olympus"], "there is no time zone"),
        (&["--at", "2020-01-01T08:00"], "no time in the future"),
        (&["--at", "tomorrow"], "is not a time"),
        (&["--on", "shop.*", "--if", "data.sum >"], "the expression"),
        (
            &["--every", "10m", "--notify", "pigeon"],
            "there is no notification channel \"pigeon\"; there is: console",
        ),
        (&["--every", "10m", "--agent", "nobody"], "there is no agent \"nobody\""),
        (&[], "required"),
    ] {
        let refused = place.archon("triggers add mail Read.", flags).await;
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.err.contains(reason), "{flags:?}: {}", refused.err);
    }
}

// spec: TR-01, TR-06
#[tokio::test]
async fn run_that_a_command_asks_for_is_started_by_the_server_and_is_in_the_history() {
    let model = MockServer::start([answer("Two mails.")]).await;
    let place = Place::new();
    settle(&place, &model, "");
    place.archon("triggers add mail", &["--cron", "0 8 1 1 *", "Summarize unread emails"]).await;
    let served = Served::start(&place, &[]).await;
    let asked = place.archon("triggers run mail", &[]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let run = loop {
        let listed = served.get("/v1/tasks").await;
        assert_eq!(listed.status, 200, "{listed:?}");
        if let Some(run) = listed.body["tasks"][0]["last_runs"][0].as_str() {
            break run.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    served.until(&run, "finished").await;
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    let history = place.archon("triggers history mail --json", &[]).await.json();
    assert_eq!((history[0]["run_id"].as_str(), history.len()), (Some(run.as_str()), 1));
    assert_eq!(history[0]["task"], "[Scheduled Task] Summarize unread emails");
}

// spec: TR-09
#[tokio::test]
async fn result_of_a_task_goes_to_a_channel_of_the_settings() {
    let model = MockServer::start([answer("Two mails."), MockResponse::json(200, &json!({}))]).await;
    let place = Place::new();
    settle(&place, &model, &format!("[channels.ops]\nkind = 'webhook'\nurl = '{}/hook'\n", model.url()));
    place.archon("triggers add mail --notify ops", &["--cron", "0 8 1 1 *", "Summarize unread emails"]).await;
    let served = Served::start(&place, &[]).await;
    place.archon("triggers run mail", &[]).await;
    let hook = loop {
        let requests = model.requests();
        if let Some(hook) = requests.into_iter().find(|request| request.path == "/hook") {
            break hook;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    let data = &hook.body["data"];
    assert_eq!(hook.body["type"], "archon.result");
    assert_eq!((&data["task"], &data["text"]), (&json!("mail"), &json!("Two mails.")));
}
