//! Recording and replaying: the same answers, no secrets in the file, and what is missing is said.

use archon_providers::{CatalogueProvider, RecordingProvider, ReplayProvider};
use archon_types::ToolCall;
use serde_json::json;

use super::*;

fn conversation(model: &dyn Provider, text: &str) -> Events {
    model.stream(ask(text), CancellationToken::new())
}

#[tokio::test]
async fn replay_provider_answers_recorded_requests_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let script = [
        Step::thinking("hm", "yes it is"),
        Step::calls(vec![ToolCall::new("c", "add", json!({"a": 1}))]),
        limited(Some(3)),
        Step::text("again"),
    ];
    let (_, inner) = shared(script);
    let recording = RecordingProvider::create(inner, &path).unwrap();
    let mut recorded = Vec::new();
    for text in ["a", "b", "c", "a"] {
        recorded.push(all(conversation(&recording, text)).await);
    }
    recording.finish().unwrap();

    let replay = ReplayProvider::open(&path).unwrap().with_id("scripted");
    assert_eq!((replay.id(), replay.unused_calls()), ("scripted", 4));
    for (text, place) in [("c", 2), ("a", 0), ("a", 3), ("b", 1)] {
        assert_eq!(all(conversation(&replay, text)).await, recorded[place], "{text}");
    }
    assert_eq!(replay.unused_calls(), 0);
    let error = end(conversation(&replay, "a")).await.unwrap_err().to_string();
    assert!(error.contains("calls.jsonl has no answer left: all its 4 calls were replayed; "), "{error}");
}

#[tokio::test]
async fn replay_provider_request_that_was_not_recorded_fails_with_the_difference_and_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let recording = RecordingProvider::create(shared([Step::text("yes")]).1, &path).unwrap();
    end(conversation(&recording, "what is 1+1?")).await.unwrap();
    recording.finish().unwrap();
    let replay = ReplayProvider::open(&path).unwrap();
    let error = end(conversation(&replay, "what is 1+2?")).await.unwrap_err().to_string();
    let expected = "calls.jsonl has no answer to this request; from call 1 it differs at messages[0].content[0].text: \
                    recorded \"what is 1+1?\", asked \"what is 1+2?\"; \
                    if you changed it on purpose, record the cassette again: \
                    with `RecordingProvider` in a program, with `--record FILE` on the command line";
    assert!(error.ends_with(expected), "{error}");
    // The recorded call is still there for whoever asks for it.
    assert_eq!(end(conversation(&replay, "what is 1+1?")).await.unwrap().text(), "yes");
}

// spec: P-05
#[tokio::test]
async fn secrets_are_not_written_and_the_replay_does_not_need_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let key = "sk-canary-0123456789abcdef";
    let script = [
        Step::text("your password is canary hunter two, and the key sk-canary-0123456789abcdef"),
        Step::error(ProviderError::Auth(format!("{key} is wrong").into())),
    ];
    let recording = RecordingProvider::create(shared(script).1, &path).unwrap().hide("canary hunter two");
    for prompt in ["canary hunter two?", key] {
        let _ = all(conversation(&recording, prompt)).await;
    }
    recording.finish().unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(!written.contains("canary"), "{written}");
    assert!(!format!("{recording:?}").contains("canary"));

    let replay = ReplayProvider::open(&path).unwrap().hide("canary hunter two");
    let answer = end(conversation(&replay, "canary hunter two?")).await.unwrap();
    assert_eq!(answer.text(), "your password is ****, and the key ****");
    assert_eq!(end(conversation(&replay, key)).await, Err(ProviderError::Auth("**** is wrong".into())));
}

#[tokio::test]
async fn recording_beside_another_keeps_both_in_one_cassette_without_the_keys_of_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let keyed = |key: &str, says: &str| -> Arc<dyn Provider> {
        Arc::new(Keyed(shared([Step::text(says)]).1, key.to_owned()))
    };
    let first = RecordingProvider::create(keyed("the first key", "say the first key"), &path).unwrap();
    let second = first.also_record(keyed("the second key", "say the second key"));
    end(conversation(&first, "a")).await.unwrap();
    end(conversation(&second, "b")).await.unwrap();
    second.finish().unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(!written.contains("key") && written.contains("say ****"), "{written}");
    let replay = ReplayProvider::open(&path).unwrap();
    assert_eq!((replay.unused_calls(), replay.models().count()), (2, 1));
    let model = replay.models().next().unwrap();
    assert_eq!(replay.capabilities(model).context_window, Some(77));
    assert_eq!(end(conversation(&replay, "b")).await.unwrap().text(), "say ****");
}

// A wrapper that leaves one out would keep a key in the logs of its runs.
#[test]
fn every_wrapper_has_the_id_the_secrets_and_the_window_of_the_provider_inside() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Provider> = Arc::new(Keyed(shared([]).1, "the first key".to_owned()));
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
    let limiter = RateLimiter::per_minute(1, clock.clone());
    let wrappers: [Arc<dyn Provider>; 6] = [
        Arc::new(RecordingProvider::create(inner.clone(), folder.path().join("calls.jsonl")).unwrap()),
        Arc::new(CachingProvider::new(inner.clone())),
        Arc::new(ThinkingTagsProvider::new(inner.clone())),
        Arc::new(RateLimitProvider::new(inner.clone(), limiter)),
        Arc::new(RetryProvider::new(inner.clone(), clock)),
        Arc::new(CatalogueProvider::new(inner, Arc::default())),
    ];
    for (place, wrapper) in wrappers.iter().enumerate() {
        let hidden: Vec<String> =
            wrapper.secrets().iter().map(|redactor| redactor.clean("say the first key".to_owned())).collect();
        assert_eq!((wrapper.id(), hidden), ("scripted", vec!["say ****".to_owned()]), "wrapper {place}");
        assert_eq!(wrapper.capabilities("m").context_window, Some(77), "wrapper {place}");
    }
}

/// A provider that is sent a key, and knows its window.
struct Keyed(Arc<dyn Provider>, String);

impl Provider for Keyed {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn secrets(&self) -> Vec<archon_types::Redactor> {
        let redactor = archon_types::Redactor::default();
        redactor.add(&self.1.as_str().into());
        vec![redactor]
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        self.0.stream(request, cancel)
    }

    fn capabilities(&self, model: &str) -> archon_types::Capabilities {
        let mut can = self.0.capabilities(model);
        can.context_window = Some(77);
        can
    }
}

#[tokio::test]
async fn recording_provider_does_not_store_cancelled_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let recording = RecordingProvider::create(shared([Step::text("yes")]).1, &path).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    end(recording.stream(ask("a"), cancel)).await.unwrap();
    drop(conversation(&recording, "b"));
    recording.finish().unwrap();
    assert_eq!(ReplayProvider::open(&path).unwrap().unused_calls(), 0);
}

#[tokio::test]
async fn recording_provider_without_finish_leaves_the_earlier_cassette() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let record = async |answer: &str| {
        let recording = RecordingProvider::create(shared([Step::text(answer)]).1, &path).unwrap();
        end(conversation(&recording, "a")).await.unwrap();
        recording
    };
    record("good").await.finish().unwrap();
    drop(record("bad").await);
    let replay = ReplayProvider::open(&path).unwrap();
    assert_eq!(end(conversation(&replay, "a")).await.unwrap().text(), "good");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else stays");
}

#[tokio::test]
async fn recording_provider_call_after_finish_fails_and_finish_again_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let recording = RecordingProvider::create(shared([Step::text("late")]).1, &path).unwrap();
    recording.finish().unwrap();
    let error = end(conversation(&recording, "a")).await.unwrap_err().to_string();
    assert!(error.ends_with("the recording was finished before this call ended"), "{error}");
    recording.finish().unwrap();
    assert_eq!(ReplayProvider::open(&path).unwrap().unused_calls(), 0);
}

#[test]
fn replay_provider_of_a_missing_file_prints_a_sentence_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let error = ReplayProvider::open(&path).unwrap_err();
    let expected = format!(
        "cassette {}: the file cannot be read: No such file or directory (os error 2) \
         (check the path, or record the cassette: \
         with `RecordingProvider` in a program, with `--record FILE` on the command line)",
        path.display()
    );
    assert_eq!(format!("{error:?}"), expected);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = RecordingProvider::create(shared([]).1, folder.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("cassette ") && error.contains(&folder.path().display().to_string()),
        "{error}"
    );
    let path = folder.path().join("x.jsonl");
    assert!(ReplayProvider::open(&path).is_err());
    std::fs::write(&path, "hello").unwrap();
    let error = ReplayProvider::open(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("x.jsonl: the file is not a cassette: its first line is not {\"cassette\":1}"),
        "{error}"
    );
}
