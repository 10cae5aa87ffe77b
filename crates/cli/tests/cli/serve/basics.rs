//! Start, sign-in, roles, questions, stop.

use std::os::unix::fs::PermissionsExt as _;

use archon_testkit::{MockResponse, MockServer};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::client::{Served, settle};
use crate::setup::{Place, answer, asks_for};

// spec: EX-11
#[tokio::test]
async fn serve_signs_a_browser_in_by_a_link_and_a_program_by_the_token_of_the_file() {
    let model = MockServer::start([answer("Hello.")]).await;
    let place = Place::new();
    settle(&place, &model, "");
    let served = Served::start(&place, &[]).await;
    let owner = &served.tokens[0];
    assert_eq!((&owner["token"], &owner["role"]), (&json!("owner"), &json!("admin")));
    let file = place.data().join("tokens/owner");
    assert_eq!(owner["secret"], file.display().to_string());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let link = owner["link"].as_str().unwrap();
    let path = format!("/v1/sign-in{}", link.split_once("/v1/sign-in").unwrap().1);
    let opened = served.send("GET", &path, "X-Nothing: 1", None).await;
    assert_eq!(opened.status, 303, "{opened:?}");
    let cookie = opened.head.lines().find_map(|line| line.split_once("set-cookie: ")).unwrap().1;
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert!(cookie.starts_with("Cookie: archon-"), "{cookie}");
    let me = served.send("GET", "/v1/me", &cookie, None).await;
    assert_eq!((me.status, &me.body["name"]), (200, &json!("owner")), "{me:?}");
    assert_eq!(served.send("GET", &path, "X-Nothing: 1", None).await.rule(), "one-time-link");
    assert_eq!(served.send("GET", "/v1/runs", "X-Nothing: 1", None).await.rule(), "token-missing");

    let made = served.post("/v1/links", &json!({})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let opened = served.send("GET", made.body["link"].as_str().unwrap(), "X-Nothing: 1", None).await;
    assert_eq!(opened.status, 303, "{opened:?}");

    let run = served.start_run("Hi.").await;
    served.until(&run, "finished").await;
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    let listed = place.archon("runs list --json", &[]).await.json();
    assert_eq!((listed[0]["run_id"].as_str(), listed.len()), (Some(run.as_str()), 1));

    let secret = std::fs::read_to_string(&file).unwrap();
    let again = Served::start(&place, &[]).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), secret, "the token stays");
    let me = again.send("GET", "/v1/me", &cookie, None).await;
    assert_eq!(me.status, 200, "the cookie of a browser stays: {me:?}");
    assert_eq!(again.end(Signal::INT).await, Some(0));
}

#[tokio::test]
async fn serve_without_a_terminal_prints_no_link() {
    let model = MockServer::start([]).await;
    let place = Place::new();
    settle(&place, &model, "");
    let mut child = place.command("serve --listen 127.0.0.1:0", &[]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut printed = String::new();
    while !printed.contains("start it on a terminal") {
        printed += &lines.next_line().await.unwrap().expect("it listens");
    }
    assert!(printed.contains("owner (admin)") && !printed.contains("sign-in"), "{printed}");
    child.kill().await.unwrap();
}

// spec: EX-11
#[tokio::test]
async fn serve_gives_each_token_of_the_settings_its_role_and_its_tenant() {
    let model = MockServer::start([answer("For Anna."), answer("For all.")]).await;
    let place = Place::new();
    let tokens = "[serve.tokens.anna]\nrole = 'operator'\ntenant = 'anna'\nvariable = 'ANNA_TOKEN'\n\
                  [serve.tokens.eve]\nrole = 'viewer'\nvariable = 'EVE_TOKEN'\n\
                  [serve.tokens.ops]\nrole = 'operator'\n[agents.reviewer]\ndescription = 'Reviews.'\n";
    settle(&place, &model, tokens);
    let mut command = place.command("serve --json --listen 127.0.0.1:0", &[]);
    command.env("ANNA_TOKEN", "secret-of-anna-1").env("EVE_TOKEN", "secret-of-eve-12");
    let served = Served::of(command, 3).await;
    let names: Vec<_> = served.tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert_eq!(names, ["anna", "eve", "ops"]);
    assert_eq!(served.tokens[0]["secret"], "$ANNA_TOKEN");

    let (anna, eve) = (served.bearer("secret-of-anna-1"), served.bearer("secret-of-eve-12"));
    let started = served.send("POST", "/v1/runs", &anna, Some(&json!({ "text": "Hi." }))).await;
    assert_eq!(started.status, 201, "{started:?}");
    let of_anna = started.body["run"].as_str().unwrap();
    served.until(of_anna, "finished").await;
    let body = json!({ "text": "Hi.", "agent": "reviewer" });
    let started = served.post("/v1/runs", &body).await;
    assert_eq!(started.status, 201, "{started:?}");
    let of_ops = started.body["run"].as_str().unwrap();
    served.until(of_ops, "finished").await;

    let seen = served.send("GET", "/v1/runs", &anna, None).await.body;
    let seen: Vec<_> = seen["runs"].as_array().unwrap().iter().map(|run| &run["run_id"]).collect();
    assert_eq!(seen, [of_anna]);
    let foreign = served.send("GET", &format!("/v1/runs/{of_ops}"), &anna, None).await;
    assert_eq!(foreign.rule(), "unknown-run");
    let watched = served.send("GET", "/v1/runs", &eve, None).await;
    assert_eq!(watched.body["runs"].as_array().unwrap().len(), 2, "{watched:?}");
    for (method, path) in [("POST", "/v1/runs"), ("GET", "/v1/approvals"), ("DELETE", "/v1/runs/x")] {
        assert_eq!(served.send(method, path, &eve, None).await.rule(), "role", "{method} {path}");
    }
    let ops = served.bearer(&served.secret);
    assert_eq!(served.send("DELETE", "/v1/runs/x", &ops, None).await.rule(), "role");
    assert!(!place.data().join("tokens/owner").exists(), "no other token is made");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn question_of_a_run_waits_over_a_kill_of_the_server_and_its_answer_is_carried_out_once() {
    let call = asks_for("write_file", r#"{"path": "a.txt", "content": "x"}"#);
    let model = MockServer::start([call, answer("It is written.")]).await;
    let place = Place::new();
    settle(&place, &model, "tools = ['write_file']");
    let first = Served::start(&place, &[]).await;
    let run = first.start_run("Write it.").await;
    first.until(&run, "suspended").await;
    let open = first.questions().await;
    assert_eq!(first.end(Signal::KILL).await, None);

    let next = Served::start(&place, &[]).await;
    assert_eq!((next.questions().await, place.path("a.txt").exists()), (open.clone(), false));
    next.until(&run, "suspended").await;
    let approved = next.answer(&open[0], "approve").await;
    assert_eq!(approved.status, 200, "{approved:?}");
    next.until(&run, "finished").await;
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "x");
    assert_eq!(next.answer(&open[0], "approve").await.rule(), "no-open-question");
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    model.assert_paired();
}

#[tokio::test]
async fn serve_that_is_stopped_leaves_a_run_at_work_and_the_next_one_goes_on_with_it() {
    let model = MockServer::start([MockResponse::new(200).hang(), answer("Now.")]).await;
    let place = Place::new();
    settle(&place, &model, "");
    for signal in [Signal::TERM, Signal::INT] {
        if signal == Signal::INT {
            model.push(MockResponse::new(200).hang());
            model.push(answer("Now."));
        }
        let asked = model.requests().len();
        let first = Served::start(&place, &[]).await;
        let run = first.start_run("Wait.").await;
        while model.requests().len() == asked {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(first.end(signal).await, Some(0));
        let listed = place.archon("runs list --json", &[]).await.json();
        assert_eq!((&listed[0]["run_id"], &listed[0]["status"]), (&json!(run), &json!("interrupted")));
        let next = Served::start(&place, &[]).await;
        next.until(&run, "finished").await;
        assert_eq!(next.end(signal).await, Some(0));
    }
}

#[tokio::test]
async fn fork_with_a_text_has_the_agent_of_the_log_and_with_an_agent_that_one() {
    let model = MockServer::start([answer("Hello."), answer("Again."), answer("Reviewed.")]).await;
    let place = Place::new();
    settle(&place, &model, "[agents.reviewer]\ndescription = 'Reviews.'\nsystem = 'You review.'");
    let served = Served::start(&place, &[]).await;
    let run = served.start_run("Hi.").await;
    served.until(&run, "finished").await;
    for (body, is_reviewer) in [
        (json!({ "text": "Once more." }), false),
        (json!({ "text": "Look at it.", "agent": "reviewer" }), true),
    ] {
        let fork = served.post(&format!("/v1/runs/{run}/fork"), &body).await;
        assert_eq!(fork.status, 201, "{body}: {fork:?}");
        let fork = fork.body["run"].as_str().unwrap();
        let resumed = served.post(&format!("/v1/runs/{fork}/resume"), &json!({})).await;
        assert_eq!(resumed.status, 202, "{resumed:?}");
        served.until(fork, "finished").await;
        let asked = model.requests().last().unwrap().body.to_string();
        assert!(asked.contains("Hello.") && asked.contains(body["text"].as_str().unwrap()), "{asked}");
        assert_eq!(asked.contains("You review."), is_reviewer, "{asked}");
    }
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn run_of_another_command_goes_on_and_one_of_another_folder_waits_for_its_resume() {
    let call = asks_for("write_file", r#"{"path": "a.txt", "content": "x"}"#);
    let model = MockServer::start([MockResponse::new(200).hang()]).await;
    let place = Place::new();
    std::fs::create_dir(place.path("other")).unwrap();
    settle(&place, &model, "[permissions]\nallow = ['write_file']");
    let kill_at_work = async |line: &str| {
        let asked = model.requests().len();
        let mut child = place.command(line, &["Write it."]).spawn().unwrap();
        while model.requests().len() == asked {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        child.kill().await.unwrap();
        let listed = place.archon("runs list --json", &[]).await.json();
        listed[0]["run_id"].as_str().unwrap().to_owned()
    };
    let elsewhere = kill_at_work("run --tools write_file --workspace other").await;
    model.push(MockResponse::new(200).hang());
    let here = kill_at_work("run --tools write_file").await;
    model.push(call.clone());
    model.push(answer("It is written."));
    // The flags are for the runs that begin here.
    let served = Served::start(&place, &["--tools", "none"]).await;
    served.until(&here, "finished").await;
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "x");
    let refused = served.post(&format!("/v1/runs/{elsewhere}/resume"), &json!({})).await;
    assert_eq!((refused.status, &refused.body["type"]), (409, &json!("urn:archon:problem:other-folder")));
    assert!(refused.body.to_string().contains("belongs to the folder"), "{refused:?}");
    served.until(&elsewhere, "interrupted").await;
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    assert!(!place.path("other/a.txt").exists());
    model.push(call);
    model.push(answer("It is written."));
    let resumed = place.archon("resume", &[&elsewhere]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(std::fs::read_to_string(place.path("other/a.txt")).unwrap(), "x");
}

#[tokio::test]
async fn serve_at_a_unix_socket_replaces_one_that_a_kill_left_and_removes_it_at_its_end() {
    let model = MockServer::start([answer("Hello.")]).await;
    let place = Place::new();
    settle(&place, &model, "[serve]\nlisten = '127.0.0.1:7420'\n");
    let socket = place.path("archon.sock");
    let path = socket.display().to_string();
    let start = async || Served::of(place.command("serve --json --socket", &[&path]), 1).await;
    let first = start().await;
    assert_eq!(first.tokens[0]["link"], json!(null), "a browser opens no socket");
    assert_eq!(first.get("/v1/me").await.status, 200);
    let refused = place.archon("serve --socket", &[&path]).await;
    refused.check_refused(2, "another program listens at the socket", "choose another path");
    assert_eq!(first.end(Signal::KILL).await, None);
    assert!(socket.exists());
    let next = start().await;
    let run = next.start_run("Hi.").await;
    next.until(&run, "finished").await;
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    assert!(!socket.exists());
}
