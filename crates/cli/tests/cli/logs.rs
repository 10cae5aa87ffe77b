//! The commands around the log: replay it, read it, fork it, remove it, see its session.

use std::sync::Arc;

use archon::{
    store::JsonlJournal,
    types::{Durability, Journal, OpenMode, RecordBody, RunId, ToolResult},
};
use archon_testkit::{MockResponse, MockServer};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, answer, asks_for, sealed, text};

const CALCULATE: &str = r#"{"expression": "15% of 200"}"#;

/// A place where one task was worked on with a tool; the id of the run.
async fn worked(server: &MockServer) -> (Place, String) {
    let place = Place::with_server(server);
    assert_eq!(place.archon("run", &["What is 15% of 200?"]).await.code, Some(0));
    let run = newest(&place, "run_id").await;
    (place, run)
}

async fn newest(place: &Place, what: &str) -> String {
    place.archon("runs list --json", &[]).await.json()[0][what].as_str().expect("text").to_owned()
}

// spec: OB-10
#[tokio::test]
async fn replay_needs_no_model_and_names_the_altered_record() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let asked = server.requests().len();
    let same = place.archon("replay", &[&run]).await;
    assert_eq!((same.code, same.out.as_str()), (Some(0), "identical\n"), "{same:?}");
    let json = place.archon("replay --json", &[&run]).await.json();
    assert_eq!(json[0]["replay"], "identical");

    // The tool's result is altered in a copy of the log.
    let journal = JsonlJournal::new(place.data());
    let mut records: Vec<_> = journal
        .read(&RunId::new(run.as_str()))
        .await
        .expect("a log")
        .iter()
        .map(|record| (**record).clone())
        .collect();
    let at =
        records.iter().position(|r| matches!(r.body, RecordBody::ToolCallFinished { .. })).expect("a result");
    if let RecordBody::ToolCallFinished { result, .. } = &mut records[at].body {
        *result = ToolResult::success("31").into();
    }
    let mut copy = journal.open(&RunId::new("copy"), OpenMode::Create).await.expect("a new run");
    let records: Vec<_> = records.into_iter().map(Arc::new).collect();
    copy.writer.append(&records, Durability::Synced).await.expect("space");

    let differs = place.archon("replay", &["copy"]).await;
    assert_eq!(differs.code, Some(1), "{differs:?}");
    let lines: Vec<_> = differs.out.lines().collect();
    assert_eq!(lines[0], format!("differs at record {}", at + 1));
    assert!(
        lines[1].contains("expected  model_call_started")
            && lines[2].contains("found     model_call_started")
    );
    assert_ne!(lines[1].split("request").last(), lines[2].split("request").last());
    let json = place.archon("replay --json", &["copy"]).await;
    assert_eq!((json.code, &json.json()[0]["record"]), (Some(1), &Value::from(at + 1)), "{json:?}");
    assert_eq!(server.requests().len(), asked, "no model was asked");
}

// spec: OB-01, OB-02
#[tokio::test]
async fn the_log_can_be_read_as_one_entry_a_turn() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let cycles = place.archon("runs events --cycles --json", &[&run]).await.json();
    let brief: Vec<_> =
        cycles.iter().map(|c| (&c["cycle"], c["correlation_id"].as_str(), c["state"].as_str())).collect();
    let run_id = Some(run.as_str());
    assert_eq!(
        brief,
        [(&Value::from(1), run_id, Some("observing")), (&Value::from(2), run_id, Some("finished"))]
    );
    let text = place.archon("runs events --cycles", &[&run]).await.out;
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('[')).collect();
    assert_eq!(
        lines,
        [r#"Action: calculator {"expression":"15% of 200"}"#, "Observation: 30", "Answer: It is 30."]
    );
}

#[tokio::test]
async fn the_log_is_one_record_a_line() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let lines = place.archon("runs events --json", &[&run]).await.json();
    let kinds: Vec<_> = lines.iter().map(|l| l["type"].as_str().expect("a type")).collect();
    let expected = [
        "run_started",
        "message_added",
        "model_call_started",
        "model_call_finished",
        "tool_call_started",
        "tool_call_finished",
        "model_call_started",
        "model_call_finished",
        "run_finished",
    ];
    assert_eq!(kinds, expected);
    assert!(lines.iter().all(|line| line["run_id"] == run.as_str()));

    let shown = place.archon("runs events", &[&run]).await;
    assert_eq!(shown.out.lines().count(), expected.len(), "{shown:?}");
    for (line, kind) in shown.out.lines().zip(expected) {
        assert!(line.contains(kind), "{kind}: {line}");
    }
    assert!(shown.out.contains("What is 15% of 200?") && shown.out.contains("calculator"), "{shown:?}");
}

#[tokio::test]
async fn a_run_is_forked_after_a_turn_and_goes_on_another_way() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let forked = place.archon("runs fork --at 1", &[&run]).await;
    let fork = forked.out.trim().to_owned();
    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert!(forked.err.contains(&format!("archon resume {fork}")), "{forked:?}");
    server.push(answer("Thirty."));
    let resumed = place.archon("resume", &[&fork]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "Thirty.\n"), "{resumed:?}");
    let requests = server.requests();
    assert_eq!(requests[2].body["messages"], requests[1].body["messages"]);
    assert_eq!(place.archon("replay", &[&fork]).await.out, "identical\n");

    // At its end nothing is open: the fork waits for a prompt.
    let json = place.archon("runs fork --json", &[&run]).await.json();
    assert_eq!((&json[0]["turns"], &json[0]["wants_answer"]), (&2.into(), &false.into()));
    server.push(answer("60"));
    let next = place.archon("run --continue", &["Twice that?"]).await;
    assert_eq!(next.out, "60\n", "{next:?}");

    let refused = place.archon("runs fork --at 9", &[&run]).await;
    refused.check_refused(2, "has 2 turns", "archon runs events");
}

// spec: EX-13
#[tokio::test]
async fn runs_explain_prints_a_paragraph_and_the_records_and_needs_an_answer() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let explained = place.archon("runs explain", &[&run]).await;
    let lines: Vec<_> = explained.out.lines().collect();
    let [paragraph, record] = lines.as_slice() else { panic!("not two lines: {explained:?}") };
    let begin = "The answer is \"It is 30.\". It has words of these results: calculator 15% of 200 gave";
    assert!(paragraph.starts_with(begin), "{explained:?}");
    let json = place.archon("runs explain --json", &[&run]).await.json();
    assert_eq!((&json[0]["conclusion"], json.len()), (&"It is 30.".into(), 1));
    let seq = json[0]["evidence"][0]["record"].as_u64().expect("a number");
    assert_eq!(*record, format!("record {seq}: calculator 15% of 200"));
    let log = place.archon("runs events --json", &[&run]).await.json();
    let found = log.iter().find(|record| record["seq"] == seq).expect("the record");
    assert_eq!(found["type"], "tool_call_finished");

    server.push(MockResponse::json(401, &serde_json::json!({ "error": { "message": "bad key" } })));
    assert_eq!(place.archon("run", &["Fail."]).await.code, Some(1));
    place.archon("runs explain", &["last"]).await.check_refused(2, "no final answer", "archon runs show");
}

// spec: EX-10
#[tokio::test]
async fn fork_with_another_message_and_another_model_goes_on_from_the_results_in_the_log() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let log = place.archon("runs events --json", &[&run]).await.json();
    let last = log.iter().rposition(|record| record["type"] == "model_call_started").expect("a request");
    let url = format!("{}/v1", server.url());
    let record = last.to_string();
    let line = "runs fork --model larger --message Briefly.";
    let forked = place.archon(line, &["--base-url", &url, "--record", &record, &run]).await;
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let fork = forked.out.trim();
    server.push(answer("30"));
    let resumed = place.alone("resume", &[fork]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "30\n"), "{resumed:?}");
    let requests = server.requests();
    let (before, after) = (&requests[1].body, &requests[2].body);
    assert_eq!(after["model"], "larger");
    let messages = |body: &Value| body["messages"].as_array().cloned().expect("a list");
    let (before, after) = (messages(before), messages(after));
    let (message, kept) = after.split_last().expect("a message");
    assert_eq!(kept, before);
    assert!(message["role"] == "user" && message.to_string().contains("Briefly."), "{message}");
    assert_eq!(place.archon("replay", &[fork]).await.out, "identical\n");

    let empty = place.archon("runs fork --message", &[" ", &run]).await;
    empty.check_refused(2, "message is empty", "--message");
    let beyond = log.len().to_string();
    let refused = place.archon("runs fork --record", &[&beyond, &run]).await;
    refused.check_refused(2, "cannot be forked at record", "archon runs events");
    let both = place.archon("runs fork --at 1 --record 2", &[&run]).await;
    both.check_refused(2, "cannot be used with", "--help");
}

#[tokio::test]
async fn fork_of_a_run_whose_log_is_damaged_goes_on_from_the_turns_before_the_damage() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let path = place.data().join("runs").join(format!("{run}.jsonl"));
    let mut log = std::fs::read(&path).expect("a log");
    let at = log.windows(9).position(|found| found == b"It is 30.").expect("the second answer");
    log[at] ^= 1;
    std::fs::write(&path, &log).expect("space");
    // Whatever needs the whole log names the way on.
    let fork = format!("`archon runs fork {run} --at 1`");
    for command in ["resume", "replay", "runs show", "runs fork", "runs fork --at 2"] {
        let refused = place.archon(command, &[&run]).await;
        assert!(
            refused.err.contains("is damaged at record") && refused.err.contains(&fork),
            "{command}: {refused:?}"
        );
    }
    let forked = place.archon("runs fork --at 1", &[&run]).await;
    assert_eq!(forked.code, Some(0), "{forked:?}");
    server.push(answer("Thirty."));
    let resumed = place.archon("resume", &[forked.out.trim()]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "Thirty.\n"), "{resumed:?}");
    server.push(answer("60"));
    let next = place.archon("run --continue", &["Twice that?"]).await;
    assert_eq!(next.out, "60\n", "{next:?}");
}

#[tokio::test]
async fn resume_of_a_log_without_a_valid_record_fails_with_advice() {
    let server = MockServer::start([answer("It is 30.")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["What is 15% of 200?"]).await;
    let run = newest(&place, "run_id").await;
    let path = place.data().join("runs").join(format!("{run}.jsonl"));
    let mut log = std::fs::read(&path).expect("a log");
    log[20] ^= 1;
    std::fs::write(&path, &log).expect("space");
    let delete = format!("`archon runs delete {run}`");
    place.archon("resume", &[&run]).await.check_refused(1, "is damaged at record 0", &delete);
    std::fs::write(&path, "").expect("space");
    place.archon("resume", &[&run]).await.check_refused(2, "is empty: it was emptied", &delete);
    assert_eq!(place.archon("runs delete", &[&run]).await.code, Some(0));
}

#[tokio::test]
async fn runs_list_shows_the_last_twenty_all_or_those_of_a_status() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    for n in 0..22 {
        if n == 3 {
            server.push(MockResponse::json(400, &serde_json::json!({"error": "no"})));
        } else {
            server.push(answer("30"));
        }
        place.archon("run", &[&format!("task {n}")]).await;
    }
    let listed = place.archon("runs list", &[]).await;
    assert_eq!(listed.out.lines().count(), 20, "{listed:?}");
    assert!(listed.err.contains("archon runs list --all"), "{listed:?}");
    assert_eq!(place.archon("runs list --all", &[]).await.out.lines().count(), 22);
    let failed = place.archon("runs list --status failed", &[]).await;
    assert!(failed.out.lines().count() == 1 && failed.out.contains("task 3"), "{failed:?}");
    place.archon("runs list --status lost", &[]).await.check_refused(2, "lost", "--help");
}

#[tokio::test]
async fn run_is_named_by_the_end_of_its_id_or_as_the_last_one() {
    let server = MockServer::start([answer("one"), answer("two")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["First?"]).await;
    let first = newest(&place, "run_id").await;
    place.archon("run", &["Second?"]).await;
    let end = &first[first.len() - 8..];
    assert!(place.archon("runs events", &[end]).await.out.contains("First?"));
    assert!(place.archon("runs events", &["last"]).await.out.contains("Second?"));
    assert_eq!(place.archon("replay", &["last"]).await.out, "identical\n");
    let refused = place.archon("runs show", &["run_"]).await;
    refused.check_refused(2, "2 runs begin or end with", &first);
}

#[tokio::test]
async fn run_in_a_session_of_a_chosen_name_begins_it_and_goes_on_in_it() {
    let server = MockServer::start([answer("Paris"), answer("2 million")]).await;
    let place = Place::with_server(&server);
    for (task, said) in [("Capital of France?", "Paris\n"), ("Its population?", "2 million\n")] {
        assert_eq!(place.archon("run --session trip", &[task]).await.out, said);
    }
    assert_eq!(server.requests()[1].body["messages"].as_array().expect("messages").len(), 3);
    assert!(place.archon("sessions list", &[]).await.out.starts_with("trip "));
}

#[tokio::test]
async fn a_run_is_deleted_unless_another_needs_it() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let fork = place.archon("runs fork", &[&run]).await.out.trim().to_owned();
    place.archon("runs delete", &[&run]).await.check_refused(1, &fork, "delete the runs that need it first");
    let deleted = place.archon("runs delete", &[&fork]).await;
    assert_eq!((deleted.code, deleted.out), (Some(0), format!("deleted {fork}\n")));
    let deleted = place.archon("runs delete --json", &[&run]).await.json();
    assert_eq!(deleted[0]["deleted"], run.as_str());
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

#[tokio::test]
async fn a_run_that_is_worked_on_can_be_neither_deleted_nor_resumed() {
    let server = MockServer::start([MockResponse::sse("").event(&text("half ")).hang()]).await;
    let place = Place::with_server(&server);
    let mut child = place.command("run --json", &["speak"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("half") {}
    let run = newest(&place, "run_id").await;
    place.archon("runs delete", &[&run]).await.check_refused(1, "in use", "wait for the other process");
    place.archon("resume", &[&run]).await.check_refused(1, "in use", "wait for the other process");
    assert_eq!(place.archon("replay", &[&run]).await.out, "identical\n", "reading is allowed");
    child.kill().await.expect("it is killed");
    assert_eq!(place.archon("runs delete", &[&run]).await.code, Some(0));
}

// spec: S-08
#[tokio::test]
async fn a_session_is_listed_shown_and_exported() {
    let server =
        MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30."), answer("60")]).await;
    let (place, first) = worked(&server).await;
    place.archon("run --continue", &["Twice that?"]).await;
    let session = newest(&place, "session").await;

    let listed = place.archon("sessions list --json", &[]).await.json();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["session_id"], &listed[0]["runs"]), (&session.as_str().into(), &2.into()));
    assert_eq!(listed[0]["task"], "What is 15% of 200?");
    assert!(place.archon("sessions list", &[]).await.out.contains("2 runs"));

    let shown = place.archon("sessions show", &[&session]).await;
    let lines: Vec<_> = shown.out.lines().collect();
    assert!(lines[0].starts_with(&first) && lines[0].contains("completed"), "{shown:?}");
    let conversation =
        ["> What is 15% of 200?", "-> calculator {\"expression\":\"15% of 200\"}", "<- 30", "It is 30.", ""];
    assert_eq!(lines[1..6], conversation, "{shown:?}");
    assert_eq!(lines[7..10], ["> Twice that?", "60", ""], "{shown:?}");

    let printed = place.archon("sessions export", &[&session]).await;
    assert!(printed.out.starts_with("{\n  \"session_id\": "), "{printed:?}");
    let out = place.path("session.json");
    let wrote = place.archon("sessions export", &[&session, "--out", out.to_str().expect("UTF-8")]).await;
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    assert_eq!(std::fs::read_to_string(&out).expect("a file"), printed.out.trim_end());
    let export: Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(export["loops"].as_array().expect("loops").len(), 2);
    assert_eq!(export["loops"][1]["parent_loop_id"], export["loops"][0]["loop_id"]);
    assert_eq!(export["loops"][0]["status"], "Completed");
    assert_eq!(export["loops"][0]["messages"].as_array().expect("messages").len(), 4);

    // Into a directory: under the session's name.
    std::fs::create_dir(place.path("sessions")).expect("a directory");
    let dir = place.path("sessions");
    place.archon("sessions export", &[&session, "--out", dir.to_str().expect("UTF-8")]).await;
    assert!(dir.join(format!("{session}.json")).exists());
}

// spec: OB-05
#[tokio::test]
async fn sessions_metrics_prints_the_report_of_one_and_the_sums_of_all() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let records = JsonlJournal::new(place.data()).read(&RunId::new(run.as_str())).await.expect("a log");
    let RecordBody::RunStarted(started) = &records[0].body else { panic!("a start") };
    let report = place.archon("sessions metrics", &[started.session.as_str()]).await;
    for line in ["  - Total: 1\n  - Successful: 1", "  calculator:\n    - Calls: 1", "  - Messages: 4"] {
        assert!(report.out.contains(line), "{line}: {report:?}");
    }
    let all = place.archon("sessions metrics", &[]).await;
    assert!(all.out.starts_with("1 sessions, 1 tool calls, "), "{all:?}");
    place.archon("sessions metrics", &["s_x"]).await.check_refused(
        2,
        "no session s_x",
        "archon sessions list",
    );
}

#[tokio::test]
async fn unknown_runs_and_sessions_are_refused_with_a_remedy() {
    let place = Place::new();
    for line in ["replay", "runs events", "runs fork", "runs delete"] {
        place.archon(line, &["run_x"]).await.check_refused(2, "run run_x does not exist", "archon runs list");
        place.archon(line, &["../x"]).await.check_refused(2, "../x", "archon run");
    }
    for line in ["sessions show", "sessions export"] {
        place.archon(line, &["s_x"]).await.check_refused(2, "no session s_x", "archon sessions list");
    }
    assert_eq!(place.archon("sessions list", &[]).await.code, Some(0));
    assert!(!place.data().exists(), "nothing is made for looking");
}

#[tokio::test]
async fn log_of_another_version_is_refused_with_what_to_do_and_is_not_touched() {
    let server = MockServer::start([asks_for("calculator", CALCULATE), answer("It is 30.")]).await;
    let (place, run) = worked(&server).await;
    let journal = JsonlJournal::new(place.data());
    let file = |name: &str| journal.path(&RunId::new(name)).expect("a plain id");
    let whole = std::fs::read_to_string(file(&run)).expect("a log");
    let (first, rest) = whole.split_once('\n').expect("a line");
    let of_format = |format: u32| {
        assert!(first.contains("\"format\":2"), "{first}");
        format!("{}{rest}", sealed(&first.replacen("\"format\":2", &format!("\"format\":{format}"), 1)))
    };
    let count = whole.lines().count();
    let moon = format!("{{\"crc\":\"\",\"seq\":{count},\"at\":0,\"type\":\"moon_landed\"}}");
    for (name, text, what, remedy) in [
        ("older", of_format(1), "log format 1", "start the task again"),
        ("newer", of_format(99), "log format 99", "a newer one"),
        ("other", format!("{whole}{}", sealed(&moon)), "`moon_landed`", "a newer one"),
    ] {
        std::fs::write(file(name), &text).expect("space");
        for line in ["replay", "runs fork"] {
            place.archon(line, &[name]).await.check_refused(1, what, remedy);
        }
        assert_eq!(std::fs::read_to_string(file(name)).expect("a log"), text, "{name}");
    }
    assert_eq!(place.archon("replay", &[&run]).await.code, Some(0));
    assert_eq!(place.archon("sessions list", &[]).await.code, Some(0));
}
