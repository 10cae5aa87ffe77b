//! Tests that cassettes are read as they were written, and that other files are refused with a reason.

use archon_types::{AssistantMessage, Content, Message, ModelPrice, RequestOptions, Timestamp, ToolCall};
use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn all_events() -> Heard {
    let message = AssistantMessage {
        content: vec![Content::text("hi"), Content::from(ToolCall::new("c", "add", json!({"a": 1})))],
        model: "m".into(),
        ..AssistantMessage::default()
    };
    let errors = [
        ProviderError::RateLimited { retry_after: Some(Duration::from_millis(1500)), message: "slow".into() },
        ProviderError::Overloaded { status: 529, retry_after: None, message: "busy".into() },
        ProviderError::Network("n".into()),
        ProviderError::Unreachable("u".into()),
        ProviderError::Timeout("t".into()),
        ProviderError::Auth("a".into()),
        ProviderError::Api { status: 400, kind: ApiErrorKind::Quota, message: "q".into() },
        ProviderError::ContextOverflow("c".into()),
        ProviderError::Protocol("p".into()),
        ProviderError::Cancelled,
        ProviderError::Other("o".into()),
    ];
    let mut all: Heard = vec![
        Ok(ModelEvent::Start),
        Ok(ModelEvent::TextDelta("a".into())),
        Ok(ModelEvent::ThinkingDelta("b".into())),
        Ok(ModelEvent::ToolCallStart { index: 0, id: "c".into(), name: "add".into() }),
        Ok(ModelEvent::ToolCallDelta { index: 0, arguments: "{\"a\": ".into() }),
        Ok(ModelEvent::ToolCallEnd { index: 0 }),
        Ok(ModelEvent::Done(Box::new(message))),
    ];
    all.extend(errors.map(Err));
    all
}

fn all_capabilities() -> Vec<Capabilities> {
    let plain = Capabilities::default();
    let (mut text, mut known) = (plain, plain);
    text.native_tools = false;
    (known.is_small, known.context_window) = (true, Some(9));
    known.price = Some(ModelPrice::new(1, 2));
    vec![plain, text, known]
}

proptest! {
    #[test]
    fn cassette_line_read_after_write_is_equal(
        events in prop::collection::vec(prop::sample::select(all_events()), 0..12),
        prompts in prop::collection::vec(".{0,20}", 0..4),
        can in prop::sample::select(all_capabilities()),
    ) {
        let messages = prompts.iter().map(|text| Message::user(text.as_str(), Timestamp::default()));
        let request = request_json(&Request::new("m", messages.collect()), &Scrubber::default());
        let text = header() + &line(&request, &events, &can, &Scrubber::default());
        prop_assert_eq!(read(&text).unwrap(), vec![Call { request, events, can }]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"(\{"cassette":1\}\n)?[\[\]{}":,a-z0-9 \n]{0,60}"#) {
        let _ = read(&text);
    }
}

#[test]
fn cassette_line_has_the_request_and_no_timestamps() {
    let mut request = Request::new("m", vec![Message::user("hi", Timestamp::from_millis(7))]);
    request.system = Some(std::sync::Arc::new("Be brief.".to_owned().into()));
    let mut options = RequestOptions::default();
    options.seed = Some(1);
    request.options = options.into();
    let request = request_json(&request, &Scrubber::default());
    let heard = vec![Ok(ModelEvent::Start), Err(ProviderError::Network("reset".into()))];
    let expected = expect![[r#"
        {"request":{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"options":{"seed":1,"tool_choice":"auto","thinking":"off"},"system":"Be brief."},"events":[{"start":null},{"error":{"code":"network","message":"reset"}}]}
    "#]];
    expected.assert_eq(&line(&request, &heard, &Capabilities::default(), &Scrubber::default()));
}

#[test]
fn scrubber_finds_a_secret_split_over_events() {
    let mut scrubber = Scrubber::default();
    scrubber.add("hunter2".into());
    let text = |text: &str| Ok(ModelEvent::TextDelta(text.to_owned()));
    let heard =
        vec![text("it is hun"), text("ter2."), Ok(ModelEvent::ThinkingDelta("hun".into())), text("ter2")];
    let written = line(&json!({}), &heard, &Capabilities::default(), &scrubber);
    assert!(written.contains(r#"[{"text":"it is ****."},{"thinking":"hun"},{"text":"ter2"}]"#), "{written}");
}

#[test]
fn cassette_read_of_another_file_is_refused() {
    for (text, what) in [
        ("", "the file is empty"),
        ("hello", "the file is not a cassette: its first line is not {\"cassette\":1}"),
        ("{\"cassette\":2}", "the file has format version 2; this program reads version 1"),
        ("{\"cassette\":1}\n\n{\"request\":{}}", "line 3: the call has no list `events`"),
        ("{\"cassette\":1}\n{\"events\":[]}", "line 2: the call has no `request`"),
        ("{\"cassette\":1}\n{\"request\":{},\"events\":[{\"say\":1}]}", "line 2: invalid event: {\"say\":1}"),
        (
            "{\"cassette\":1}\n{\"request\":{},\"events\":[{\"call\":[]}]}",
            "line 2: invalid event: {\"call\":[]}",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), what, "{text}");
    }
}

#[test]
fn differences_are_named_by_their_path() {
    let recorded = json!({"model": "m", "messages": [{"content": [{"text": "a"}]}], "tools": [1]});
    for (asked, expected) in [
        (json!({"model": "n", "messages": [], "tools": []}), Some("model: recorded \"m\", asked \"n\"")),
        (
            json!({"model": "m", "messages": [{"content": [{"text": "b"}]}], "tools": [1]}),
            Some("messages[0].content[0].text: recorded \"a\", asked \"b\""),
        ),
        (
            json!({"model": "m", "messages": [{"content": [{"text": "a"}]}, 2], "tools": [1]}),
            Some("messages[1]: recorded nothing, asked 2"),
        ),
        (
            json!({"model": "m", "messages": [{"content": [{"text": "a"}]}]}),
            Some("tools: recorded [1], asked nothing"),
        ),
        (recorded.clone(), None),
    ] {
        assert_eq!(difference(&recorded, &asked).as_deref(), expected, "{asked}");
    }
}

#[test]
fn difference_far_inside_a_long_text_shows_the_place() {
    let text = |end: &str| json!({ "system": "a".repeat(200) + end });
    let same = "a".repeat(40);
    let expected = format!("system: recorded …{same}x\", asked …{same}y\"");
    assert_eq!(difference(&text("x"), &text("y")), Some(expected));
}
