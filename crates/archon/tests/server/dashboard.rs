//! The data that the dashboard reads, and the files of its page.

use std::sync::Arc;

use archon::{
    RunId,
    server::{
        AccessToken, AllowedHosts, Role, Scope, Server, ServerOptions, TokenLimits, axum::http::StatusCode,
    },
    types::{Json, StartRuns},
};
use archon_testkit::Ended;
use serde_json::json;

use crate::world::{Ask, HOST, Site, World};

fn texts<'a>(list: &'a Json, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

async fn part(site: &Site, run: &RunId, part: &str) -> Json {
    let answer = site.get(&format!("/v1/runs/{run}/{part}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{part}: {}", answer.body);
    answer.body
}

// spec: EX-10
#[tokio::test]
async fn timeline_has_the_question_while_it_is_open_and_then_the_call() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let open = part(&site, &run, "timeline").await;
    assert_eq!(texts(&open["spans"], "kind"), ["model", "wait"]);
    assert_eq!((&open["spans"][1]["status"], &open["spans"][1]["to_ms"]), (&json!("running"), &Json::Null));
    assert_eq!(open["spans"][1]["parent"], open["spans"][0]["id"]);
    site.approve().await;
    site.runs.reply(&run).await.ended();
    let whole = part(&site, &run, "timeline").await;
    assert_eq!(texts(&whole["spans"], "kind"), ["model", "wait", "tool", "model"]);
    assert_eq!(texts(&whole["spans"], "status"), ["completed"; 4]);
    assert_eq!(whole["spans"][2]["label"], "step Paris");
    let model = &whole["spans"][0];
    assert_eq!((&model["tokens"]["output"], &model["cost_micros"]), (&json!(20), &json!(140)));
    assert_eq!(model["cached_share"], json!(0.0));
    let newest = part(&site, &run, "timeline?last=1").await;
    assert_eq!((texts(&newest["spans"], "kind"), &newest["is_cut"]), (vec!["model"], &json!(true)));
    assert_eq!(part(&site, &run, "graph").await["kind"], "none");
}

#[tokio::test]
async fn timeline_leads_to_the_child_run_of_a_call() {
    let site = World::new().site();
    let started = site.post("/v1/runs", json!({ "text": "delegate hello", "agent": "boss" })).await.body;
    let run = RunId::new(started["run"].as_str().unwrap());
    drop(site.runs.reply(&run).await);
    site.approve().await;
    site.runs.reply(&run).await.ended();
    let timeline = part(&site, &run, "timeline").await;
    let children: Vec<_> =
        timeline["spans"].as_array().unwrap().iter().filter(|span| span["kind"] == "child").collect();
    let [child] = &children[..] else { panic!("{timeline}") };
    let head = site.get(&format!("/v1/runs/{}", child["child_run"].as_str().unwrap())).await;
    assert_eq!((&head.body["status"], &head.body["called_by"]), (&json!("finished"), &json!(run)));
}

// spec: OB-07
#[tokio::test]
async fn records_are_read_from_the_end_back() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let log = json!(site.world.log(&run).await);
    let log = log.as_array().unwrap();
    let mut page = part(&site, &run, "records?last=3").await;
    let mut found = page["records"].as_array().unwrap().clone();
    assert_eq!((found.len(), &page["next"]), (3, &Json::Null));
    while let Some(before) = page["previous"].as_u64() {
        page = part(&site, &run, &format!("records?before={before}&limit=2")).await;
        let earlier = page["records"].as_array().unwrap().clone();
        found = [earlier, found].concat();
    }
    assert_eq!(&found, log);
    let whole = part(&site, &run, "records?last=100000").await;
    assert_eq!((whole["records"].as_array(), &whole["previous"]), (Some(log), &Json::Null));
    for both in ["after=1&last=2", "before=2&last=2", "after=1&before=3"] {
        let refused = site.get(&format!("/v1/runs/{run}/records?{both}")).await;
        assert_eq!(refused.refusal(), (400, "query"), "{both}");
    }
    assert_eq!(site.get("/v1/runs/never/records?last=2").await.refusal(), (404, "unknown-run"));
}

// spec: AP-05
#[tokio::test]
async fn approvals_name_the_record_that_has_the_words_of_an_argument() {
    let site = World::new().site();
    let run = site.run("step Paris-Orly").await;
    site.run("step Rome").await;
    let open = site.get("/v1/approvals").await.body["approvals"].clone();
    assert_eq!(open[0]["run"], json!(run));
    let found = &open[0]["provenance"][0];
    assert_eq!((&found["argument"], &found["text"]), (&json!("to"), &json!("Paris-Orly")));
    assert_eq!(found["source"], json!({ "kind": "message", "beginning": "step Paris-Orly" }));
    let seq = usize::try_from(found["seq"].as_u64().unwrap()).unwrap();
    let record = json!(site.world.log(&run).await[seq]);
    assert_eq!((&found["run"], &record["type"]), (&json!(run), &json!("message_added")));
    // Four characters stand everywhere.
    assert_eq!(open[1]["provenance"], json!([]));
    let quick = site.get("/v1/approvals?provenance=false").await.body["approvals"].clone();
    assert_eq!((&quick[0]["provenance"], &quick[0]["run"]), (&Json::Null, &json!(run)));
}

#[tokio::test]
async fn agents_are_those_of_the_service_with_the_descriptions_of_the_scope() {
    let site = World::new().site();
    let agents = site.send(Ask::get("/v1/agents").by("viewer")).await.body["agents"].clone();
    assert_eq!(
        agents,
        json!([
            { "id": "boss", "kind": "loop", "is_default": false, "description": null },
            { "id": "walker", "kind": "loop", "is_default": true, "description": null },
        ])
    );
    let scope = Scope::new(Arc::new(site.runs.for_tenant("anna"))).with_description("walker", "It walks.");
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap();
    let clock = Arc::new(site.clock.clone());
    let site = site.with(&Server::new(AllowedHosts::new([HOST]), [token], clock, ServerOptions::default()));
    let agents = site.get("/v1/agents").await.body["agents"].clone();
    assert_eq!((&agents[0]["description"], &agents[1]["description"]), (&Json::Null, &json!("It walks.")));
}

// spec: OB-09
#[tokio::test]
async fn usage_has_the_performance_of_the_runs() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    site.approve().await;
    site.runs.reply(&run).await.ended();
    let performance = site.get("/v1/usage").await.body["performance"].clone();
    let tool = &performance["tools"][0];
    assert_eq!((&tool["tool"], &tool["calls"], &tool["failures"]), (&json!("step"), &json!(1), &json!(0)));
    assert_eq!((&performance["turns"]["count"], &performance["alerts"]), (&json!(2), &json!([])));
}

#[cfg(feature = "planner")]
#[tokio::test]
async fn graph_has_the_subtasks_of_a_plan_with_their_states() {
    use archon::{
        Runs,
        types::{FnPlanner, RunKind, StartRun, SubTask, Task},
    };

    let site = World::new().site();
    let agent = site.world.builder("walker").build().unwrap();
    let planning = agent.planning(FnPlanner::new(|goal, _| async move {
        let paris = SubTask::new("paris", "Go to Paris").with_tool("step", Some(json!({ "to": "Paris" })));
        let report = SubTask::new("report", "hello").after(["paris"]);
        Ok(Task::new("task", goal).with_subtasks(vec![paris, report]))
    }));
    let runs = Runs::new(agent).with_agent(planning.run_agent());
    let scope = Scope::new(Arc::new(runs.clone()));
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap();
    let clock = Arc::new(site.clock.clone());
    let site = site.with(&Server::new(AllowedHosts::new([HOST]), [token], clock, ServerOptions::default()));
    let run = runs.start(StartRun::new("Walk").kind(RunKind::Plan)).await.unwrap().run;
    drop(runs.reply(&run).await);
    let asking = part(&site, &run, "graph").await;
    assert_eq!(asking["kind"], "plan");
    assert_eq!(texts(&asking["nodes"], "status"), ["asking", "pending"]);
    site.approve().await;
    runs.reply(&run).await.ended();
    let graph = part(&site, &run, "graph").await;
    assert_eq!(texts(&graph["nodes"], "status"), ["completed", "completed"]);
    let edge = &graph["edges"][0];
    assert_eq!((&edge["from"], &edge["to"]), (&json!("paris"), &json!("report")));
    let child = graph["nodes"][1]["run"].as_str().unwrap();
    assert_eq!(site.get(&format!("/v1/runs/{child}")).await.body["called_by"], json!(run));
    let steps = part(&site, &run, "timeline").await;
    let kinds = texts(&steps["spans"], "kind");
    assert_eq!(kinds.iter().filter(|kind| **kind == "step").count(), 2, "{kinds:?}");
}

fn with_dashboard() -> Site {
    World::new().site_with(ServerOptions::default().with_dashboard(), TokenLimits::default())
}

fn anyone(path: &str) -> Ask {
    Ask::get(path).without("authorization")
}

// spec: EX-09
#[tokio::test]
async fn page_is_served_without_a_token_and_may_load_nothing_from_elsewhere() {
    let site = with_dashboard();
    let page = site.send(anyone("/").with("sec-fetch-site", "none")).await;
    assert_eq!(page.status, StatusCode::OK);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.headers[name], value);
    }
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'self'; ") && !policy.contains("unsafe"), "{policy}");
    for part in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "object-src 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    let script = site.send(anyone("/dashboard/app.js").with("sec-fetch-site", "same-origin")).await;
    assert_eq!(script.headers["content-type"], "text/javascript; charset=utf-8");
    let tag = script.headers["etag"].to_str().unwrap().to_owned();
    let again = site.send(anyone("/dashboard/app.js").with("if-none-match", &tag)).await;
    assert_eq!((again.status, &again.headers["etag"]), (StatusCode::NOT_MODIFIED, &script.headers["etag"]));
}

#[tokio::test]
async fn files_are_compressed_for_browsers_that_accept_it() {
    let site = with_dashboard();
    let ask = || anyone("/dashboard/app.js");
    let zipped = site.send(ask().with("accept-encoding", "br, GZIP;q=0.8")).await;
    assert_eq!(zipped.headers["content-encoding"], "gzip");
    assert_eq!(zipped.headers["vary"], "accept-encoding");
    let tag = zipped.headers["etag"].to_str().unwrap().to_owned();
    for accepted in ["", "br", "gzip;q=0", "gzip; q=0.0, identity", "x-gzipped"] {
        let plain = site.send(ask().with("accept-encoding", accepted)).await;
        assert!(!plain.headers.contains_key("content-encoding"), "{accepted}");
        assert_eq!(plain.headers["etag"], tag);
        assert_eq!(plain.headers["vary"], "accept-encoding");
    }
    let strong = tag.strip_prefix("W/").unwrap();
    for (known, status) in [
        (tag.clone(), StatusCode::NOT_MODIFIED),
        (strong.to_owned(), StatusCode::NOT_MODIFIED),
        (format!("\"other\", {tag}"), StatusCode::NOT_MODIFIED),
        ("*".to_owned(), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let again = site.send(ask().with("accept-encoding", "gzip").with("if-none-match", &known)).await;
        assert_eq!(again.status, status, "{known}");
        assert_eq!(again.headers["etag"], tag);
        assert_eq!(again.headers["vary"], "accept-encoding");
        assert_eq!(again.headers.contains_key("content-encoding"), status == StatusCode::OK);
    }
}

#[tokio::test]
async fn page_is_refused_to_pages_of_other_sites_and_at_foreign_hosts() {
    let site = with_dashboard();
    for (ask, rule) in [
        (anyone("/").with("sec-fetch-site", "cross-site"), "cross-site"),
        (anyone("/").with("host", "evil.example:8080"), "host-not-allowed"),
        (anyone("/dashboard/app.js").with("origin", "http://evil.example"), "origin-not-allowed"),
        (anyone("/dashboard/secret.js"), "token-missing"),
        (anyone("/dashboard/../openapi.json"), "token-missing"),
        (anyone("/").with_method("POST"), "token-missing"),
        (anyone("/v1/runs"), "token-missing"),
    ] {
        let refused = site.send(ask.clone()).await;
        assert_eq!(refused.rule(), rule, "{ask:?}: {refused:?}");
    }
    let off = World::new().site().send(anyone("/")).await;
    assert_eq!(off.rule(), "token-missing", "without the option there is no page");
}

#[tokio::test]
async fn one_time_link_leads_to_the_page() {
    let site = with_dashboard();
    let link = site.server.one_time_link("admin").unwrap();
    let signed_in = site.send(anyone(&link)).await;
    assert_eq!(signed_in.status, StatusCode::SEE_OTHER);
    // From `/v1/sign-in` that is `/`.
    assert_eq!(signed_in.headers["location"], "../");
}
