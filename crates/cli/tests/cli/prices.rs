//! What a person says of models that the built-in catalogue does not know: in the settings, or in a catalogue of their own.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::setup::{Place, asks_for, chunk, text};

/// An answer of a hundred tokens to a thousand.
fn counted(words: &str) -> MockResponse {
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100});
    let count = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [],
                       "usage": usage});
    let end = chunk(&json!({}), Some("stop"));
    MockResponse::events([text(words), end, count.to_string(), "[DONE]".into()])
}

/// Writes the settings of a person.
fn set(place: &Place, settings: &str) {
    std::fs::create_dir_all(place.path(".config/archon")).expect("a folder");
    std::fs::write(place.path(".config/archon/archon.toml"), settings).expect("it is written");
}

// spec: P-40
#[tokio::test]
async fn run_max_cost_of_a_model_that_the_settings_describe_is_counted_with_its_price() {
    let server =
        MockServer::start([counted("Hello."), asks_for("calculator", r#"{"expression": "1 + 1"}"#)]).await;
    let place = Place::with_server(&server);
    let name = format!("openai-compatible@{}/v1:mock", server.url());
    set(&place, &format!("[models.{name:?}]\ncontext_window = 54321\ninput = 2\noutput = 10.5\n"));
    let ran = place.archon("run --max-cost 0.5 --json", &["hi"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // 1000 tokens at 2 dollars and 100 at 10.50 for a million of them.
    assert!(ran.out.contains("\"cost_micros\":3050"), "{ran:?}");
    assert!(ran.out.contains("\"max_context_tokens\":54321"), "{ran:?}");
    set(&place, &format!("[models.{name:?}]\ninput = 2000000\noutput = 0\n"));
    let ran = place.archon("run --max-cost 0.5", &["1 + 1?"]).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("--max-cost USD"), "{ran:?}");
}

#[tokio::test]
async fn run_of_a_model_without_native_tools_uses_text_mode() {
    let server = MockServer::start([counted("Final Answer: two")]).await;
    let place = Place::with_server(&server);
    set(&place, &format!("[models.\"openai-compatible@{}/v1:mock\"]\ntools = false\n", server.url()));
    let ran = place.archon("run", &["1 + 1?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "two\n"), "{ran:?}");
    assert!(server.requests()[0].body.get("tools").is_none());
}

// spec: P-40
#[tokio::test]
async fn models_import_keeps_a_catalogue_that_settings_win_over() {
    let place = Place::new();
    let file = "{\"source\":\"a list\",\"date\":\"2027-01-01\"}\n\
                {\"model\":\"openai:gpt-9\",\"context_window\":9000,\"input\":1.5,\"output\":6}\n\
                {\"model\":\"openai:gpt-5-mini\",\"input\":0.5,\"output\":4,\"cache_read\":0.05}\n";
    std::fs::write(place.path("new.jsonl"), file).unwrap();
    let imported = place.archon("models import", &["new.jsonl"]).await;
    let kept = place.data().join("models.jsonl");
    let said = format!("2 models, 1 of them not built in; stored in {}\n", kept.display());
    assert_eq!((imported.code, imported.out), (Some(0), said));
    set(&place, "[models.\"openai:gpt-9\"]\ninput = 3\noutput = 6\nsmall = true\n");
    let shown = place.archon("models show", &["openai:gpt-9"]).await.out;
    for row in [
        "window      9,000 tokens",
        "input       $3 per million tokens",
        "small       yes",
        "source      the settings, a list of 2027-01-01",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    let listed = place.archon("models list --json", &["--provider", "openai"]).await.json();
    let price =
        |name: &str| listed.iter().find(|item| item["model"] == name).unwrap()["price"]["input"].clone();
    assert_eq!((price("openai:gpt-9"), price("openai:gpt-5-mini")), (json!(3_000_000), json!(500_000)));

    std::fs::write(place.path("list.json"), "{\"gpt-9\": {}}").unwrap();
    let refused = place.archon("models import", &["list.json"]).await;
    refused.check_refused(2, "the first line is not {\"source\"", "crates/providers/models.jsonl");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), file, "what was kept stays");
    std::fs::write(&kept, "{").unwrap();
    let refused = place.archon("models show", &["openai:gpt-9"]).await;
    refused.check_refused(1, "models.jsonl", "archon models import FILE");
}

#[tokio::test]
async fn settings_of_a_model_that_mean_nothing_are_refused_with_its_name() {
    let place = Place::new();
    for (settings, what) in [
        ("[models.gpt-9]\ncontext_window = 9", "[models.\"gpt-9\"]: the name must have the form of --model"),
        ("[models.\"opnai:gpt-9\"]\ncontext_window = 9", "no such provider; did you mean openai"),
        ("[models.\"openai:gpt-9\"]\ninput = 1", "a price needs both `input` and `output`"),
        ("[models.\"openai:gpt-9\"]\ncache_read = 1", "a price needs both `input` and `output`"),
        ("[models.\"openai:gpt-9\"]\ninput = -1\noutput = 1", "\"openai:gpt-9\" has a price below zero"),
        ("[models.\"openai:gpt-9\"]\ninptu = 1", "unknown field `inptu`"),
        ("[models.\"openai:gpt-9\"]\ninput = DOLLARS", "archon.toml:2: "),
    ] {
        set(&place, settings);
        place.archon("models show", &["openai:gpt-9"]).await.check_refused(2, what, "known settings");
    }
}
