//! `archon init`: a key that works is kept with the default model, and otherwise nothing is.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::{
    setup::{Place, Ran, answer},
    terminal::Terminal,
};

const KEY: &str = "sk-canary-7f3a91";

fn settings(place: &Place) -> std::path::PathBuf {
    place.path(".config/archon/archon.toml")
}

fn check_nothing_is_kept(place: &Place) {
    assert!(!place.data().exists() && !place.path(".config").exists(), "nothing is kept, and no half of it");
}

/// A whole name of a model at this server, of a service that takes the key of openai.
fn model(server: &MockServer) -> String {
    format!("openai-responses@{}/v1:m", server.url())
}

fn responses() -> MockResponse {
    let done = json!({"type": "response.completed", "response": {
        "id": "r", "status": "completed", "output": [
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Paris"}]},
        ], "usage": {"input_tokens": 1, "output_tokens": 1},
    }});
    MockResponse::events([done.to_string()])
}

#[tokio::test]
async fn init_tries_the_key_keeps_it_and_sets_the_model_of_later_runs() {
    let server = MockServer::start([responses(), responses()]).await;
    let place = Place::new();
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(settings(&place), "# Mine.\nmax_turns = 3\n").unwrap();
    let ran = place.pipe("init --key-stdin --model", &[&model(&server)], &format!("{KEY}\n")).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.err.contains("the key of openai-responses (primary) is stored"), "{ran:?}");
    assert!(ran.err.contains("next: archon run") && !ran.err.contains("canary"), "{ran:?}");
    let text = std::fs::read_to_string(settings(&place)).unwrap();
    assert_eq!(text, format!("# Mine.\nmax_turns = 3\nmodel = \"{}\"\n", model(&server)));
    let listed = place.archon("credentials list", &[]).await;
    assert!(listed.out.starts_with("openai "), "{listed:?}");

    let ran = place.archon("run", &["Capital of France?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Paris\n"), "{ran:?}");
    let keys: Vec<_> =
        server.requests().iter().map(|r| r.header("authorization").unwrap_or_default().to_owned()).collect();
    assert_eq!(keys, [format!("Bearer {KEY}"), format!("Bearer {KEY}")]);
    assert!(server.requests()[0].body["tools"].is_null(), "the question is small");
}

#[tokio::test]
async fn init_with_a_key_that_the_service_refuses_keeps_nothing() {
    let refusal =
        json!({"error": {"message": format!("Incorrect API key: {KEY}"), "type": "invalid_request_error"}});
    let server = MockServer::start([MockResponse::json(401, &refusal)]).await;
    let place = Place::new();
    let ran = place.pipe("init --key-stdin --model", &[&model(&server)], KEY).await;
    ran.check_refused(
        1,
        "rejected the key: not authorised: Incorrect API key: ****",
        "nothing was stored: copy the key again",
    );
    assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    check_nothing_is_kept(&place);
}

#[tokio::test]
async fn init_with_a_model_or_an_address_that_is_not_there_keeps_nothing() {
    let missing = json!({"error": {"message": "no model m", "code": "model_not_found"}});
    let server = MockServer::start([MockResponse::json(404, &missing)]).await;
    let place = Place::new();
    let ran = place.pipe("init --key-stdin --model", &[&model(&server)], KEY).await;
    ran.check_refused(1, "cannot be used: ", "nothing was stored: choose another model with --model M");
    let ran =
        place.pipe("init --key-stdin --model", &["openai-responses@http://127.0.0.1:9/v1:m"], KEY).await;
    ran.check_refused(1, "gave no answer: network", "nothing was stored: try again, or store it without");
    check_nothing_is_kept(&place);
}

#[tokio::test]
async fn init_without_a_check_makes_no_request_and_takes_the_default_model() {
    let place = Place::new();
    let ran = place.pipe("init --provider anthropic --key-stdin --no-check --json", &[], KEY).await;
    let item = ran.json().remove(0);
    assert_eq!(
        (&item["provider"], &item["model"], &item["key"], &item["checked"]),
        (&json!("anthropic"), &json!("anthropic:claude-haiku-4-5"), &json!("kept"), &json!(false)),
        "{ran:?}"
    );
    let text = std::fs::read_to_string(settings(&place)).unwrap();
    assert_eq!(text, "model = \"anthropic:claude-haiku-4-5\"\n");
    let again =
        place.pipe("init --provider anthropic --model m --key-stdin --no-check --json", &[], "sk-2").await;
    assert_eq!(again.json()[0]["key"], "replaced", "{again:?}");
}

#[tokio::test]
async fn init_with_invalid_input_is_refused_and_stores_nothing() {
    let place = Place::new();
    place.archon("init", &[]).await.check_refused(
        2,
        "no terminal on which to ask for the provider",
        "the providers are: openai, anthropic",
    );
    place.archon("init --provider opnai", &[]).await.check_refused(
        2,
        "no provider is called \"opnai\"",
        "did you mean openai?",
    );
    place.archon("init --provider openai", &[]).await.check_refused(
        2,
        "no terminal on which to type the key",
        "--key-stdin < FILE",
    );
    place.archon("init --provider openai --key-stdin", &[]).await.check_refused(
        2,
        "no key on standard input",
        "--key-stdin < FILE",
    );
    place.archon("init --provider openrouter --key-stdin", &[]).await.check_refused(
        2,
        "openrouter has no default model",
        "--model M",
    );
    place.archon("init --provider ollama --model m --key-stdin", &[]).await.check_refused(
        2,
        "ollama needs no key",
        "leave out --key-stdin",
    );
    check_nothing_is_kept(&place);
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(settings(&place), "max_turns = \n").unwrap();
    let broken = place.pipe("init --provider openai --key-stdin --no-check", &[], KEY).await;
    broken.check_refused(2, "archon.toml:1: ", "known settings");
    assert!(!place.data().exists());
}

#[tokio::test]
async fn init_whose_settings_cannot_be_written_takes_the_key_back() {
    let place = Place::new();
    std::fs::create_dir_all(place.path(".config/archon/archon.toml.new")).unwrap();
    let ran = place.pipe("init --provider openai --key-stdin --no-check", &[], KEY).await;
    ran.check_refused(1, "cannot write ", "make the file and its folder writable");
    assert!(!settings(&place).exists());
    let listed = place.archon("credentials list", &[]).await;
    assert_eq!(listed.out, "", "{listed:?}");
}

#[tokio::test]
async fn init_with_a_server_of_this_machine_takes_its_first_model() {
    let models = json!({"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}]});
    let server = MockServer::start([MockResponse::json(200, &models), answer("ready")]).await;
    let place = Place::new();
    let mut command = place.command("init --provider ollama", &[]);
    command.env("ARCHON_LOCAL_SERVERS", format!("ollama@{}/v1", server.url()));
    let ran = Ran::from(command.output().await.unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = std::fs::read_to_string(settings(&place)).unwrap();
    assert_eq!(text, format!("model = \"ollama@{}/v1:qwen3\"\n", server.url()));
    assert!(!place.data().exists(), "there is no key to keep");
    let none = place.archon("init --provider vllm", &[]).await;
    none.check_refused(1, "lists no models", "--no-check");
}

#[cfg(unix)]
#[tokio::test]
async fn init_on_a_terminal_asks_for_the_provider_and_the_key_and_does_not_show_it() {
    let place = Place::new();
    let mut terminal = Terminal::open();
    let mut command = place.command("init --no-check", &[]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("1  openai").await;
    terminal.read_until("provider (its number or name): ").await;
    terminal.say("opnai\n");
    terminal.read_until("did you mean openai?").await;
    terminal.read_until("provider (its number or name): ").await;
    terminal.say("2\n");
    let mut shown = terminal.read_until("key of anthropic: ").await;
    terminal.say(&format!("{KEY}\n"));
    if cfg!(all(feature = "embedder", feature = "local")) {
        shown += &terminal.read_until("memories are also found in other words? [Y/n] ").await;
        // Tests have no registry to fetch from.
        terminal.say("\n");
        shown += &terminal.read_until("the table was not fetched: ").await;
        shown += &terminal.read_until("to fetch it later: archon model pull wordllama-256").await;
    }
    let status = child.wait().await.expect("it ends");
    shown += &terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("the key of anthropic (primary) is stored") && !shown.contains("canary"),
        "{shown}"
    );
}

#[tokio::test]
async fn init_with_a_key_in_the_environment_keeps_none() {
    let place = Place::new();
    let mut command = place.command("init --provider openai --no-check", &[]);
    let ran = Ran::from(command.env("OPENAI_API_KEY", KEY).output().await.unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("OPENAI_API_KEY is set, and is used: no key is stored"), "{ran:?}");
    assert!(!place.data().exists() && settings(&place).exists());
}
