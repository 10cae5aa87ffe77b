//! The model in the process: a real run where one was fetched, and what is said of files and servers that are no
//! help.

use std::path::PathBuf;

use serde_json::Value;

use crate::setup::Place;

/// A model file: `ARCHON_TEST_MODEL`, or the best one that was fetched to the default place.
fn model() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ARCHON_TEST_MODEL") {
        return Some(path.into());
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let data = std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    let path = data.join("archon/models/gemma-3-270m.gguf");
    path.is_file().then_some(path)
}

/// Only what the grammar guarantees: what this model says is its own affair.
#[tokio::test]
async fn a_real_model_calls_tools_that_exist_with_arguments_that_fit() {
    let Some(model) = model() else {
        assert!(std::env::var_os("ARCHON_REQUIRE_MODELS").is_none(), "no model file was fetched");
        eprintln!("SKIP: no model file; set ARCHON_TEST_MODEL or run `archon model pull gemma-3-270m`");
        return;
    };
    let place = Place::new();
    let ran = place
        .archon("run --json --max-turns 3 --model", &[&model.display().to_string(), "What is 15% of 200?"])
        .await;
    let lines = ran.json();
    let of = |kind: &str| lines.iter().filter(|l| l["type"] == kind).cloned().collect::<Vec<Value>>();
    assert!(!of("model_answered").is_empty(), "{ran:?}");
    assert!(of("tool_refused").is_empty(), "{ran:?}");
    let calls: Vec<Value> = of("model_answered")
        .iter()
        .flat_map(|l| l["message"]["content"].as_array().cloned().unwrap_or_default())
        .filter(|content| content["type"] == "toolCall")
        .collect();
    assert_eq!(calls.len(), of("tool_finished").len(), "{ran:?}");
    assert!(matches!(ran.code, Some(0 | 4)), "{ran:?}");
}

#[tokio::test]
async fn a_file_that_is_no_model_is_refused_before_the_run_begins() {
    let place = Place::new();
    std::fs::write(place.path("text.gguf"), "hello").unwrap();
    let mut broken = b"GGUF\x03\x00\x00\x00".to_vec();
    broken.extend([0xff; 200]);
    std::fs::write(place.path("broken.gguf"), broken).unwrap();
    for (file, code, what, remedy) in [
        ("text.gguf", 1, "is not a GGUF file", "give the path of a model"),
        ("broken.gguf", 1, "cut off or damaged", "fetch it again"),
        ("absent.gguf", 2, "no model file at", "archon model pull"),
    ] {
        place.archon("run --model", &[file, "hello"]).await.check_refused(code, what, remedy);
    }
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

#[tokio::test]
async fn a_pull_without_a_network_says_so_and_leaves_no_model() {
    let place = Place::new();
    let pull = |name: &'static str| {
        let mut command = place.command("model pull", &[name]);
        command.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("HF_ENDPOINT", "http://127.0.0.1:9");
        async move { crate::setup::Ran::from(command.output().await.unwrap()) }
    };
    for name in ["smollm2-135m-instruct", "qwen2.5-0.5b-instruct"] {
        let ran = pull(name).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("error: cannot fetch from "), "{ran:?}");
        assert!(ran.err.contains("no connection"), "{ran:?}");
        assert!(ran.err.contains("  check the connection and run the same command again"), "{ran:?}");
    }
    pull("smollm3").await.check_refused(2, "no model called", "did you mean smollm2-135m-instruct?");
    let models = std::fs::read_dir(place.data().join("models")).unwrap().flatten();
    assert_eq!(models.filter(|e| e.path().extension().is_some_and(|e| e == "gguf")).count(), 0);
}
