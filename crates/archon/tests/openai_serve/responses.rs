//! Responses: events, conversations, background responses, runs without an answer, retries.

use std::{sync::Arc, time::Duration};

use archon::{
    openai_serve::{
        AgentModel, ModelServer, ModelServerOptions,
        axum::body::{Body, Bytes},
    },
    types::{AnswerRuns, CancellationToken, Json, RunFilter, StartRun, StartRuns},
};
use archon_testkit::{Ended, VirtualClock};
use futures_util::stream;
use serde_json::json;

use crate::{
    desk::Desk,
    site::{CHAT, RESPONSES, Sent, Site},
};

fn request(input: &str) -> Json {
    json!({ "model": "desk", "input": input })
}

/// Returns the texts of the messages of a response, with their phases.
fn texts(response: &Json) -> Vec<(&str, &str)> {
    let items = response["output"].as_array().unwrap().iter();
    items
        .map(|item| {
            let text = item["content"][0]["text"].as_str().unwrap();
            (text, item["phase"].as_str().unwrap())
        })
        .collect()
}

/// Returns the types of the events, of repeated ones the first; each has the type as its name, and the next number.
fn types(sent: &[Sent]) -> Vec<&str> {
    for (index, sent) in sent.iter().enumerate() {
        assert_eq!(sent.data["sequence_number"], json!(index), "{sent:?}");
        assert_eq!(sent.event.as_deref(), sent.data["type"].as_str());
    }
    let mut types: Vec<_> = sent.iter().map(|sent| sent.data["type"].as_str().unwrap()).collect();
    types.dedup();
    types
}

const BEGIN: [&str; 2] = ["response.created", "response.in_progress"];
const ITEM: [&str; 6] = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
];

/// Adds up the deltas of each item, and checks that its last events have the same text.
fn item_texts(sent: &[Sent]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for Sent { data, .. } in sent {
        let index = data["output_index"].as_u64().map(|index| usize::try_from(index).unwrap());
        match data["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(index, Some(items.len()));
                items.push(String::new());
            }
            "response.output_text.delta" => items[index.unwrap()].push_str(data["delta"].as_str().unwrap()),
            "response.output_text.done" => assert_eq!(data["text"], json!(items[index.unwrap()])),
            "response.content_part.done" => assert_eq!(data["part"]["text"], json!(items[index.unwrap()])),
            "response.output_item.done" => {
                assert_eq!(data["item"]["content"][0]["text"], json!(items[index.unwrap()]));
            }
            _ => {}
        }
    }
    items
}

#[tokio::test]
async fn response_is_the_same_whole_streamed_and_read_later() {
    let site = Site::new();
    for (prompt, expected) in [
        ("hello you", vec![("You said: hello you", "final_answer")]),
        ("look it", vec![("I look it up.", "commentary"), ("Done: it is 42.", "final_answer")]),
    ] {
        let whole = site.ask(RESPONSES, &request(prompt)).await;
        assert_eq!(texts(&whole.body), expected);
        assert_eq!(whole.body["status"], json!("completed"));
        assert_eq!(whole.body["object"], json!("response"));
        let id = format!("resp_{}", whole.run());
        assert_eq!(whole.body["id"], json!(id));
        assert_eq!(site.get(&format!("{RESPONSES}/{id}")).await.body, whole.body);

        let (_, sent) = site.stream(RESPONSES, &request(prompt)).await;
        let items: Vec<_> = expected.iter().flat_map(|_| ITEM).collect();
        assert_eq!(types(&sent), [&BEGIN[..], &items, &["response.completed"]].concat());
        let spoken: Vec<_> = expected.iter().map(|(text, _)| (*text).to_owned()).collect();
        assert_eq!(item_texts(&sent), spoken);
        assert_eq!(sent[0].data["response"]["status"], json!("in_progress"));
        let last = &sent.last().unwrap().data["response"];
        assert_eq!((texts(last), &last["status"]), (expected, &json!("completed")));
        assert_eq!(last["usage"], whole.body["usage"]);
        let read = site.get(&format!("{RESPONSES}/{}", last["id"].as_str().unwrap())).await.body;
        assert_eq!(read, *last);
    }
}

#[tokio::test]
async fn usage_of_a_response_is_the_bill_of_its_run() {
    let site = Site::new();
    let whole = site.ask(RESPONSES, &request("look it")).await;
    let expected = json!({
        "input_tokens": 200,
        "input_tokens_details": { "cached_tokens": 60 },
        "output_tokens": 40,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 240,
    });
    assert_eq!(whole.body["usage"], expected);
}

#[tokio::test]
async fn previous_response_and_conversation_continue_the_session() {
    let site = Site::new();
    let first = site.ask(RESPONSES, &request("first")).await.body;
    let mut next = request("recall");
    next["previous_response_id"] = first["id"].clone();
    next["instructions"] = json!("Be brief.");
    let second = site.ask(RESPONSES, &next).await.body;
    let expected = "user: first\nassistant: You said: first\nuser: Be brief.\nuser: recall";
    assert_eq!(texts(&second), [(expected, "final_answer")]);
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_eq!(second["conversation"], first["conversation"]);
    let read = site.get(&format!("{RESPONSES}/{}", second["id"].as_str().unwrap())).await.body;
    assert_eq!(read, second);

    let mut third = request("recall");
    third["conversation"] = second["conversation"].clone();
    let third = site.ask(RESPONSES, &third).await.body;
    assert!(texts(&third)[0].0.starts_with(expected), "{third}");
    let read = site.get(&format!("{RESPONSES}/{}", third["id"].as_str().unwrap())).await.body;
    assert_eq!((&read, &read["previous_response_id"]), (&third, &second["id"]));

    next["conversation"] = second["conversation"].clone();
    let both = site.post(RESPONSES, &next).await;
    assert_eq!(both.refusal(), (400, "mutually_exclusive_parameters", Some("previous_response_id")));
    for (previous, code) in [
        (first["id"].clone(), "previous_response_not_last"),
        (json!("resp_nobody"), "previous_response_not_found"),
        (json!("nobody"), "previous_response_not_found"),
    ] {
        let mut body = request("recall");
        body["previous_response_id"] = previous;
        assert_eq!(site.post(RESPONSES, &body).await.refusal(), (400, code, Some("previous_response_id")));
    }
    let mut new = request("first");
    new["conversation"] = json!("conv_1");
    assert_eq!(site.ask(RESPONSES, &new).await.body["conversation"], json!({ "id": "conv_1" }));
}

#[tokio::test]
async fn request_with_a_key_that_continues_a_response_can_be_sent_again() {
    let site = Site::new();
    let first = site.ask(RESPONSES, &request("first")).await.body;
    let send = async |input: &str, key: &str| {
        let mut body = request(input);
        body["previous_response_id"] = first["id"].clone();
        site.send(Site::request("POST", RESPONSES, &body, Some(key))).await
    };
    let (second, again) = (send("recall", "k1").await, send("recall", "k1").await);
    assert!(second.status.is_success(), "{second:?}");
    assert_eq!((again.run(), &again.body), (second.run(), &second.body));
    for part in ["hello", "rec"] {
        let other = send(part, "k2").await;
        assert_eq!(other.refusal(), (400, "previous_response_not_last", Some("previous_response_id")));
    }
}

#[tokio::test]
async fn previous_response_of_a_tenant_continues_its_session_and_one_of_an_agent_not_offered_is_unknown() {
    let site = Site::new();
    let runs = &site.desk.runs;
    let first = runs.start(StartRun::new("first").agent("desk").tenant("anna")).await.unwrap();
    runs.reply(&first.run).await.ended();
    let mut next = request("recall");
    next["previous_response_id"] = json!(format!("resp_{}", first.run));
    let second = site.ask(RESPONSES, &next).await;
    let expected = "user: first\nassistant: You said: first\nuser: recall";
    assert_eq!(texts(&second.body), [(expected, "final_answer")]);
    let head = runs.get(&second.run()).await.unwrap();
    assert_eq!((head.tenant, head.session), (Some("anna".into()), Some(first.session)));

    let hidden = runs.start(StartRun::new("first").agent("clerk")).await.unwrap();
    runs.reply(&hidden.run).await.ended();
    next["previous_response_id"] = json!(format!("resp_{}", hidden.run));
    let refused = site.post(RESPONSES, &next).await;
    assert_eq!(refused.refusal(), (400, "previous_response_not_found", Some("previous_response_id")));
    let mut next = request("recall");
    next["conversation"] = json!(hidden.session);
    let refused = site.post(RESPONSES, &next).await;
    assert_eq!(refused.refusal(), (400, "conversation_not_found", Some("conversation")));
}

#[tokio::test]
async fn method_that_a_path_does_not_have_and_id_that_is_no_text_are_refused_as_errors_of_the_endpoints() {
    let site = Site::new();
    for (method, path, expected) in [
        ("DELETE", "/v1/responses/resp_1", (405, "method_not_allowed", None)),
        ("GET", CHAT, (405, "method_not_allowed", None)),
        ("GET", "/v1/responses/%FF", (400, "invalid_id", None)),
        ("GET", "/v1/models/%FF", (400, "invalid_id", None)),
    ] {
        let refused = site.send(Site::request(method, path, &Json::Null, None)).await;
        assert_eq!(refused.refusal(), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn background_response_is_there_at_once_and_read_when_it_is_complete() {
    let site = Site::new();
    let mut body = request("wait");
    body["background"] = json!(true);
    let begun = site.ask(RESPONSES, &body).await;
    assert_eq!((&begun.body["status"], &begun.body["output"]), (&json!("in_progress"), &json!([])));
    // The log does not tell it.
    assert_eq!(begun.body.get("background"), None);
    site.desk.gate.entered.acquire().await.unwrap().forget();
    let path = format!("{RESPONSES}/{}", begun.body["id"].as_str().unwrap());
    assert_eq!(site.get(&path).await.body["status"], json!("in_progress"));
    site.desk.gate.open.add_permits(1);
    site.desk.runs.reply(&begun.run()).await.ended();
    let read = site.get(&path).await.body;
    assert_eq!(texts(&read), [("Done: went on.", "final_answer")]);
    assert_eq!(read["status"], json!("completed"));
}

#[tokio::test]
async fn cancelled_response_is_cancelled_and_an_ended_one_stays_as_it_is() {
    let site = Site::new();
    let waiting = site.ask(RESPONSES, &request("step Paris")).await.body;
    let id = waiting["id"].as_str().unwrap();
    let cancelled = site.post(&format!("{RESPONSES}/{id}/cancel"), &Json::Null).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.body["status"]), (200, &json!("cancelled")));
    let ended = site.ask(RESPONSES, &request("hello")).await.body;
    let id = ended["id"].as_str().unwrap();
    assert_eq!(site.post(&format!("{RESPONSES}/{id}/cancel"), &Json::Null).await.body, ended);
}

#[tokio::test]
async fn run_that_waits_is_an_incomplete_response_until_its_question_is_answered() {
    let site = Site::new();
    let whole = site.ask(RESPONSES, &request("step Paris")).await;
    assert_eq!(whole.body["status"], json!("incomplete"));
    assert_eq!(whole.body["incomplete_details"], Json::Null);
    let question = site.desk.runs.questions(None).await.unwrap().remove(0).request;
    let (text, phase) = texts(&whole.body)[0];
    assert!(text.contains(whole.run().as_str()) && text.contains(&question.request_id), "{text}");
    assert_eq!(phase, "commentary");
    let path = format!("{RESPONSES}/resp_{}", whole.run());
    assert_eq!(site.get(&path).await.body, whole.body);
    let mut next = request("hello");
    next["previous_response_id"] = whole.body["id"].clone();
    assert_eq!(site.post(RESPONSES, &next).await.refusal(), (409, "session_busy", None));
    site.approve().await;
    assert_eq!(texts(&site.get(&path).await.body), [("Done: stepped to Paris.", "final_answer")]);
    let (_, sent) = site.stream(RESPONSES, &request("step Rome")).await;
    assert_eq!(types(&sent), [&BEGIN[..], &ITEM, &["response.incomplete"]].concat());
}

#[tokio::test]
async fn failed_run_is_a_failed_response() {
    let site = Site::new();
    let whole = site.ask(RESPONSES, &request("fail")).await.body;
    assert_eq!((&whole["status"], &whole["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert!(whole["error"]["message"].as_str().unwrap().contains("this model says no"));
    let (_, sent) = site.stream(RESPONSES, &request("fail")).await;
    assert_eq!(types(&sent), [&BEGIN[..], &["response.failed"]].concat());
}

#[tokio::test]
async fn answer_that_is_cut_is_incomplete_with_its_reason() {
    let site = Site::new();
    let whole = site.ask(RESPONSES, &request("cut")).await.body;
    assert_eq!(whole["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    assert_eq!(texts(&whole), [("It is", "final_answer")]);
}

#[tokio::test]
async fn retry_with_the_same_words_is_one_item() {
    let site = Site::new();
    let (_, sent) = site.stream(RESPONSES, &request("break It is all right.")).await;
    assert_eq!(types(&sent), [&BEGIN[..], &ITEM, &["response.completed"]].concat());
    assert_eq!(item_texts(&sent), ["It is all right."]);
}

#[tokio::test]
async fn retry_with_other_words_ends_the_item_and_begins_another() {
    let site = Site::new();
    let (_, sent) = site.stream(RESPONSES, &request("break All is well.")).await;
    assert_eq!(types(&sent), [&BEGIN[..], &ITEM, &ITEM, &["response.completed"]].concat());
    assert_eq!(item_texts(&sent), ["It is", "All is well."]);
    let done = sent.iter().filter(|sent| sent.data["type"] == "response.output_item.done");
    let statuses: Vec<_> = done.map(|sent| sent.data["item"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["incomplete", "completed"]);
    let last = &sent.last().unwrap().data["response"];
    assert_eq!(texts(last), [("All is well.", "final_answer")]);
}

#[tokio::test]
async fn request_that_cannot_be_honoured_is_refused_by_name() {
    let site = Site::new();
    for (field, value, code) in [
        ("tools", json!([{ "type": "web_search" }]), "unsupported_parameter"),
        ("max_output_tokens", json!(10), "unsupported_parameter"),
        ("prompt", json!({ "id": "p" }), "unsupported_parameter"),
        ("text", json!({ "format": { "type": "json_object" } }), "unsupported_value"),
        ("reasoning", json!({ "effort": "low" }), "unsupported_value"),
    ] {
        let mut body = request("hello");
        body[field] = value;
        assert_eq!(site.post(RESPONSES, &body).await.refusal(), (400, code, Some(field)));
    }
    let item = json!({ "model": "desk", "input": [{ "type": "item_reference", "id": "msg_1" }] });
    let refused = site.post(RESPONSES, &item).await;
    assert_eq!(refused.refusal(), (400, "unsupported_value", Some("input[0].type")));
    let streamed = site.get(&format!("{RESPONSES}/resp_1?stream=true")).await;
    assert_eq!(streamed.refusal(), (400, "unsupported_parameter", Some("stream")));
    assert!(site.desk.runs.list(&RunFilter::all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn response_of_a_run_that_is_unknown_or_not_offered_does_not_exist() {
    let site = Site::new();
    let hidden = site.desk.runs.start(StartRun::new("step Paris").agent("clerk")).await.unwrap().run;
    assert!(!site.desk.runs.reply(&hidden).await.ended().is_finished());
    for id in ["resp_nobody".to_owned(), "nobody".to_owned(), format!("resp_{hidden}")] {
        assert_eq!(site.get(&format!("{RESPONSES}/{id}")).await.refusal(), (404, "response_not_found", None));
        let cancel = site.post(&format!("{RESPONSES}/{id}/cancel"), &Json::Null).await;
        assert_eq!(cancel.refusal(), (404, "response_not_found", None));
    }
    assert_eq!(site.desk.runs.questions(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn body_that_does_not_arrive_is_given_up() {
    let (desk, clock) = (Desk::new(), VirtualClock::new());
    let (runs, options) = (Arc::new(desk.runs.clone()), ModelServerOptions::default());
    let server = ModelServer::new(runs, [AgentModel::new("desk")], Arc::new(clock.clone()), options);
    let site = Site { desk, router: server.router(), end: CancellationToken::new() };
    let mut request = Site::request("POST", RESPONSES, &Json::Null, None);
    *request.body_mut() = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let (answer, ()) = tokio::join!(site.send(request), async {
        clock.until_asleep(1).await;
        clock.advance(Duration::from_secs(30));
    });
    assert_eq!(answer.refusal(), (408, "slow_body", None));
}

#[tokio::test]
async fn body_beyond_the_limit_is_refused_at_both_endpoints_and_starts_no_run() {
    let desk = Desk::new();
    let router = desk.server(ModelServerOptions::default().with_max_body(1_000)).router();
    let site = Site { desk, router, end: CancellationToken::new() };
    for (number, path) in [(1, CHAT), (2, RESPONSES)] {
        let body = |length: usize| {
            let text = "x".repeat(length);
            match path {
                CHAT => json!({ "model": "desk", "messages": [{ "role": "user", "content": text }] }),
                _ => request(&text),
            }
        };
        assert_eq!(site.post(path, &body(1_000)).await.refusal(), (413, "body_size", None), "{path}");
        site.ask(path, &body(800)).await;
        assert_eq!(site.desk.runs.list(&RunFilter::all()).await.unwrap().len(), number, "{path}");
    }
}
