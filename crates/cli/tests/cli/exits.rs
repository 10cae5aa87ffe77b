//! Bad input: one line of what, one line of what to do, the right exit code, nothing half-written.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::setup::{Place, Ran, answer, asks_for};

#[tokio::test]
async fn run_without_a_model_lists_three_choices() {
    let ran = Place::new().archon("run", &["hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 3, "{ran:?}");
    for choice in ["OPENAI_API_KEY", "--base-url", "archon model pull"] {
        assert!(ran.err.contains(choice), "{choice}: {ran:?}");
    }
}

#[tokio::test]
async fn a_key_of_any_service_is_used_and_no_file_beside_it() {
    let place = Place::new();
    std::fs::create_dir_all(place.data().join("models")).unwrap();
    std::fs::write(place.data().join("models/small.gguf"), "no model").unwrap();
    let doctor =
        async |key: &str| Ran::from(place.command("doctor", &[]).env(key, "sk-1").output().await.unwrap());
    let ran = doctor("ANTHROPIC_API_KEY").await;
    assert!(ran.out.contains("claude-haiku-4-5 from anthropic: ANTHROPIC_API_KEY is set"), "{ran:?}");
    // Without a default the key is named, and the file is not taken in its place.
    let ran = doctor("NVIDIA_API_KEY").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.out.contains("NVIDIA_API_KEY is set, but no model was named; name one: --model nvidia:MODEL"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn slow_local_server_is_still_detected() {
    let hang = || MockResponse::new(200).hang();
    let list = MockResponse::json(200, &json!({"object": "list", "data": [{"id": "qwen3"}]}));
    // The look of the doctor, the first look for a model, and the second, which has more patience.
    let server = MockServer::start([hang(), hang(), list]).await;
    let address = format!("ollama@{}/v1", server.url());
    let place = Place::new();
    let mut doctor = place.command("doctor", &[]);
    let ran = Ran::from(doctor.env("ARCHON_LOCAL_SERVERS", &address).output().await.unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("did not list its models within 400 ms"), "{ran:?}");
    assert!(ran.out.contains(&format!("qwen3 from {address}: ollama runs on this machine")), "{ran:?}");
}

#[tokio::test]
async fn bad_arguments_are_refused_with_a_remedy() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let run = async |line: &str, more: &[&str]| place.archon(line, more).await;
    run("run", &["--tools", "calculater", "hi"]).await.check_refused(2, "calculater", "calculator");
    run("run", &["--workspace", "nowhere", "hi"]).await.check_refused(2, "nowhere", "--workspace DIR");
    run("runs show", &["run_x"]).await.check_refused(2, "run_x", "archon runs list");
    run("resume", &["run_x"]).await.check_refused(2, "run_x", "archon runs list");
    run("run", &["  "]).await.check_refused(2, "empty", "describe the task");
    let unknown = Place::new().archon("run", &["--model", "opnai:m", "hi"]).await;
    unknown.check_refused(2, "no provider is called", "did you mean openai");
    run("models show", &["openai:gtp-5-mini"]).await.check_refused(1, "openai:gtp-5-mini", "gpt-5-mini");
    run("models show", &["opnai:gpt-5"]).await.check_refused(
        2,
        "no provider is called",
        "did you mean openai",
    );
    run("models show", &["gpt-5"]).await.check_refused(2, "\"gpt-5\"", "openai:gpt-5-mini");
    run("models list", &["--provider", "opnai"]).await.check_refused(2, "no provider", "did you mean openai");
    run("run", &["--max-turns", "0", "hi"]).await.check_refused(2, "invalid value '0'", "--help");
    run("run", &[]).await.check_refused(2, "<TASK>", "usage: archon run");
    run("rnu", &["hi"]).await.check_refused(2, "'rnu'", "did you mean `run`?");
    run("run", &["--modle", "M", "hi"]).await.check_refused(2, "'--modle'", "did you mean `--model`?");
    assert!(server.requests().is_empty());
    assert!(
        !place.path("data/runs").exists()
            || std::fs::read_dir(place.path("data/runs")).is_ok_and(|d| d.count() == 0)
    );
}

// spec: P-31
#[tokio::test]
async fn a_service_that_refuses_ends_the_run_with_1_and_its_words() {
    let refused = MockResponse::json(401, &json!({"error": {"message": "bad key"}}));
    let server = MockServer::start([refused]).await;
    let ran = Place::with_server(&server).archon("run", &["hello"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("bad key"), "{ran:?}");
}

#[tokio::test]
async fn run_with_an_unreachable_address_reports_it() {
    let ran = Place::new().archon("run --base-url http://127.0.0.1:9/v1 --model m", &["hi"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let lines: Vec<_> = ran.err.lines().skip_while(|line| !line.starts_with("error: ")).collect();
    let [what, remedy] = lines.as_slice() else { panic!("not two lines: {ran:?}") };
    assert!(what.contains("127.0.0.1:9") && remedy.contains("start the service"), "{ran:?}");
}

// spec: A-06
#[tokio::test]
async fn a_limit_ends_with_4_and_resume_with_more_goes_on() {
    let asks = |n: u32| asks_for("calculator", &format!("{{\"expression\": \"{n} + 1\"}}"));
    let server = MockServer::start((0..3).map(asks)).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run", &["--max-turns", "3", "go on"]).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("Max turns reached (3)"), "{ran:?}");
    let run = place.archon("runs list --json", &[]).await.json()[0]["run_id"].as_str().unwrap().to_owned();
    let way_on = format!("archon resume {run} --data-dir {} --max-turns N", place.data().display());
    assert!(ran.err.contains(&way_on), "{ran:?}");
    let refused = place.archon("resume", &[&run]).await;
    refused.check_refused(2, "has ended: Max turns reached (3)", "--max-turns N");
    place.archon("resume --max-duration soon", &[&run]).await.check_refused(
        2,
        "a time such as 90s, 20m, 2h or 30d is needed",
        "--help",
    );
    server.push(answer("Done."));
    let resumed = place.archon("resume --max-turns 4 --max-duration 20m", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "Done.\n"), "{resumed:?}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn without_tools_none_are_offered() {
    let server = MockServer::start([answer("hi"), answer("hi")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["--tools", "none", "hello"]).await;
    place.archon("run", &["--tools", "calculator,search", "hello"]).await;
    let requests = server.requests();
    assert!(requests[0].body.get("tools").is_none());
    let names: Vec<_> =
        requests[1].body["tools"].as_array().expect("tools").iter().map(|t| &t["function"]["name"]).collect();
    assert_eq!(names, ["calculator", "search"]);
}

// spec: A-05, TE-45
#[tokio::test]
async fn a_tool_can_be_called_without_a_model() {
    let place = Place::new();
    assert_eq!(place.archon("tools call", &["calculator", r#"{"expression": "2+2"}"#]).await.out, "4\n");
    let refused = place.archon("tools call", &["calculator", r#"{"expression": 2}"#]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let listed = place.archon("tools list --json", &[]).await.json();
    let names: Vec<_> = listed.iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["calculator", "list_files", "read_file", "search"]);
}

// spec: P-40
#[tokio::test]
async fn models_are_shown_with_their_window_and_prices() {
    let place = Place::new();
    let shown = place.archon("models show", &["openai:gpt-5-mini"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for row in [
        "model       openai:gpt-5-mini",
        "window      272,000 tokens",
        "input       $0.25 per million tokens",
    ] {
        assert!(shown.out.contains(row), "{row}: {}", shown.out);
    }
    let long = place.archon("models show", &["gemini:gemini-2.5-pro"]).await.out;
    assert!(long.contains("long prompt $2.5 in, $15 out, above 200,000 tokens"), "{long}");
    let listed = place.archon("models list", &["--provider", "openai", "--json"]).await.json();
    let mini = listed.iter().find(|item| item["model"] == "openai:gpt-5-mini").unwrap();
    assert_eq!((&mini["context_window"], &mini["price"]["input"]), (&json!(272_000), &json!(250_000)));
}
