//! Chat completions: whole and streamed, their history, refused fields, runs without an answer, retries.

use archon::{
    openai_serve::axum::http::StatusCode,
    types::{AnswerRuns, Json, Message, Record, RecordBody, StartRuns},
};
use archon_testkit::Ended;
use serde_json::json;

use crate::site::{CHAT, Sent, Site, named_run};

fn request(text: &str) -> Json {
    json!({ "model": "desk", "messages": [{ "role": "user", "content": text }] })
}

/// Returns the text of a stream.
fn text(sent: &[Sent]) -> String {
    sent.iter().filter_map(|sent| sent.data["choices"][0]["delta"]["content"].as_str()).collect()
}

fn content(body: &Json) -> &str {
    body["choices"][0]["message"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn models_lists_the_offered_agents() {
    let site = Site::new();
    let list = site.get("/v1/models").await.body;
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!((&list["object"], ids), (&json!("list"), vec![&json!("desk"), &json!("brief")]));
    let one = site.get("/v1/models/desk").await.body;
    assert_eq!((&one["id"], &one["object"]), (&json!("desk"), &json!("model")));
    assert_eq!(site.get("/v1/models/clerk").await.refusal(), (404, "model_not_found", Some("model")));
}

#[tokio::test]
async fn chat_completion_is_the_same_whole_and_streamed() {
    let site = Site::new();
    for (prompt, expected) in
        [("hello you", "You said: hello you"), ("look it", "I look it up.\n\nDone: it is 42.")]
    {
        let whole = site.ask(CHAT, &request(prompt)).await;
        assert_eq!(content(&whole.body), expected);
        let choice = &whole.body["choices"][0];
        assert_eq!(choice["finish_reason"], json!("stop"));
        assert_eq!(choice["message"]["role"], json!("assistant"));
        assert_eq!(whole.body["id"], json!(format!("chatcmpl-{}", whole.run())));
        let (headers, sent) = site.stream(CHAT, &request(prompt)).await;
        assert_eq!(text(&sent), expected);
        let (last, chunks) = sent.split_last().unwrap();
        assert_eq!(last.data, json!("[DONE]"));
        let id = json!(format!("chatcmpl-{}", named_run(&headers)));
        for sent in chunks {
            let chunk = &sent.data;
            assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &id));
            assert!(sent.event.is_none() && chunk.get("usage").is_none(), "{sent:?}");
        }
        assert_eq!(chunks[0].data["choices"][0]["delta"]["role"], json!("assistant"));
        let ends: Vec<_> = chunks.iter().map(|sent| &sent.data["choices"][0]["finish_reason"]).collect();
        let (end, before) = ends.split_last().unwrap();
        assert!(**end == "stop" && before.iter().all(|reason| reason.is_null()), "{ends:?}");
        // The words come one by one.
        assert!(chunks.len() > 4, "{chunks:?}");
    }
}

#[tokio::test]
async fn chat_completion_of_the_final_answer_only_leaves_the_rest_out() {
    let site = Site::new();
    let mut body = request("look it");
    body["model"] = json!("brief");
    assert_eq!(content(&site.ask(CHAT, &body).await.body), "Done: it is 42.");
    let (_, sent) = site.stream(CHAT, &body).await;
    assert_eq!(text(&sent), "Done: it is 42.");
}

#[tokio::test]
async fn usage_is_the_bill_of_the_run_and_comes_in_a_stream_on_request() {
    let site = Site::new();
    let whole = site.ask(CHAT, &request("look it")).await;
    // Two turns, each of 70 and 30 cached tokens for an answer of 20.
    let expected = json!({
        "prompt_tokens": 200,
        "completion_tokens": 40,
        "total_tokens": 240,
        "prompt_tokens_details": { "cached_tokens": 60 },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    });
    assert_eq!(whole.body["usage"], expected);
    let outcome = site.desk.runs.reply(&whole.run()).await.ended();
    assert_eq!(json!(outcome.spending().tokens), expected["total_tokens"]);
    let mut body = request("look it");
    body["stream_options"] = json!({ "include_usage": true });
    let (_, sent) = site.stream(CHAT, &body).await;
    let [chunks @ .., usage, _] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((&usage.data["choices"], &usage.data["usage"]), (&json!([]), &expected));
    assert!(chunks.iter().all(|sent| sent.data.get("usage") == Some(&Json::Null)));
}

#[tokio::test]
async fn fields_that_cannot_be_honoured_are_refused_by_name_before_a_run_starts() {
    let site = Site::new();
    for (field, value, code) in [
        ("tools", json!([{ "type": "function", "function": { "name": "f" } }]), "unsupported_parameter"),
        ("n", json!(2), "unsupported_value"),
        ("response_format", json!({ "type": "json_object" }), "unsupported_value"),
        ("max_tokens", json!(10), "unsupported_parameter"),
    ] {
        let mut body = request("hello");
        body[field] = value;
        assert_eq!(site.post(CHAT, &body).await.refusal(), (400, code, Some(field)));
    }
    let mut body = request("hello");
    body["model"] = json!("clerk");
    assert_eq!(site.post(CHAT, &body).await.refusal(), (404, "model_not_found", Some("model")));
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "1" });
    let tool = json!({ "model": "desk", "messages": [result] });
    assert_eq!(site.post(CHAT, &tool).await.refusal(), (400, "unsupported_value", Some("messages[0].role")));
    assert_eq!(site.post(CHAT, &json!([])).await.refusal(), (400, "invalid_json", None));
    assert_eq!(
        site.post(CHAT, &json!({ "messages": [] })).await.refusal(),
        (400, "missing_required_parameter", Some("model"))
    );
    let of_a_task = Site::request("POST", CHAT, &request("hello"), Some("trigger/mail/0/at/1"));
    assert_eq!(site.send(of_a_task).await.refusal(), (400, "invalid_header", None));
    let runs = site.desk.runs.list(&archon::types::RunFilter::all()).await.unwrap();
    assert!(runs.is_empty(), "{runs:?}");
}

#[tokio::test]
async fn fields_that_change_no_answer_are_accepted() {
    let site = Site::new();
    let mut body = request("hello");
    let extra = json!({
        "user": "ann", "metadata": { "a": "b" }, "store": false, "service_tier": "auto", "n": 1,
        "temperature": 1.0, "parallel_tool_calls": true, "tools": [], "tool_choice": "auto",
        "max_tokens": null, "response_format": { "type": "text" },
    });
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    site.ask(CHAT, &body).await;
}

#[tokio::test]
async fn earlier_messages_are_the_restored_conversation_of_the_run() {
    let site = Site::new();
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let body = json!({ "model": "desk", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "first" },
        { "role": "assistant", "content": "a stranger's words" },
        { "role": "user", "content": [
            { "type": "text", "text": "see" }, { "type": "image_url", "image_url": { "url": png } },
        ] },
        { "role": "user", "content": "recall" },
    ] });
    let whole = site.ask(CHAT, &body).await;
    assert_eq!(
        content(&whole.body),
        "user: Be brief.\nuser: first\nassistant: a stranger's words\nuser: see [image]\nuser: recall"
    );
    let log = site.log(&whole.run()).await;
    let restored = log.iter().find_map(|record| match &record.body {
        RecordBody::ConversationRestored { messages } => Some(messages),
        _ => None,
    });
    let restored: Vec<_> = restored.unwrap().iter().map(Message::text).collect();
    assert_eq!(restored, ["Be brief.", "first", "a stranger's words"]);
    let prompted = |record: &&std::sync::Arc<Record>| matches!(record.body, RecordBody::MessageAdded { .. });
    assert_eq!(log.iter().filter(prompted).count(), 2);
}

#[tokio::test]
async fn earlier_messages_pass_the_input_filters_whatever_their_role() {
    let site = Site::new();
    for role in ["system", "user", "assistant"] {
        let body = json!({ "model": "desk", "messages": [
            { "role": role, "content": "a forbidden word" }, { "role": "user", "content": "hello" },
        ] });
        assert_eq!(site.post(CHAT, &body).await.refusal(), (502, "run_failed", None), "{role}");
    }
}

#[tokio::test]
async fn run_that_waits_is_named_with_its_question_and_goes_on_once_it_is_answered() {
    let site = Site::new();
    let whole = site.ask(CHAT, &request("step Paris")).await;
    let run = whole.run();
    let question = site.desk.runs.questions(None).await.unwrap().remove(0).request;
    let said = content(&whole.body).to_owned();
    assert!(said.contains(run.as_str()) && said.contains(&question.request_id), "{said}");
    assert_eq!(whole.body["choices"][0]["finish_reason"], json!("length"));
    site.approve().await;
    let rest = site.get(&format!("/v1/responses/resp_{run}")).await.body;
    assert_eq!(rest["output"][0]["content"][0]["text"], json!("Done: stepped to Paris."));
    let (headers, sent) = site.stream(CHAT, &request("step Rome")).await;
    assert!(text(&sent).contains(named_run(&headers).as_str()), "{sent:?}");
    assert_eq!(sent[sent.len() - 2].data["choices"][0]["finish_reason"], json!("length"));
}

#[tokio::test]
async fn failed_run_is_an_error_that_clients_do_not_send_again() {
    let site = Site::new();
    let failed = site.post(CHAT, &request("fail")).await;
    assert_eq!(failed.refusal(), (502, "run_failed", None));
    assert!(failed.body["error"]["message"].as_str().unwrap().contains("this model says no"));
    assert_eq!(failed.headers["x-should-retry"], "false");
    assert!(!site.desk.runs.reply(&failed.run()).await.ended().is_finished());
    let (_, sent) = site.stream(CHAT, &request("fail")).await;
    let last = &sent.last().unwrap().data;
    assert_eq!(last["error"]["code"], json!("run_failed"));
    assert_eq!(last["error"]["type"], json!("server_error"));
}

#[tokio::test]
async fn answer_that_is_cut_has_the_reason_length() {
    let site = Site::new();
    let whole = site.ask(CHAT, &request("cut")).await;
    assert_eq!(content(&whole.body), "It is");
    assert_eq!(whole.body["choices"][0]["finish_reason"], json!("length"));
}

#[tokio::test]
async fn retry_with_the_same_words_goes_on_where_the_answer_broke_off() {
    let site = Site::new();
    let (_, sent) = site.stream(CHAT, &request("break It is all right.")).await;
    assert_eq!(text(&sent), "It is all right.");
    assert_eq!(sent.last().unwrap().data, json!("[DONE]"));
}

#[tokio::test]
async fn retry_with_other_words_ends_the_stream_and_not_the_run() {
    let site = Site::new();
    let (headers, sent) = site.stream(CHAT, &request("break All is well.")).await;
    let last = &sent.last().unwrap().data;
    assert_eq!((text(&sent).as_str(), &last["error"]["code"]), ("It is", &json!("answer_begun_again")));
    let run = named_run(&headers);
    assert_eq!(site.desk.runs.reply(&run).await.ended().answer(), Some("All is well."));
    // Without a stream there is no such case.
    assert_eq!(content(&site.ask(CHAT, &request("break All is well.")).await.body), "All is well.");
}

#[tokio::test]
async fn request_with_a_key_starts_one_run_and_belongs_to_its_whole_conversation() {
    let site = Site::new();
    let send = async |body: &Json| site.send(Site::request("POST", CHAT, body, Some("k1"))).await;
    let (first, second) = (send(&request("hello")).await, send(&request("hello")).await);
    assert_eq!((first.status, &first.body), (StatusCode::OK, &second.body));
    let longer = json!({ "model": "desk", "messages": [
        { "role": "assistant", "content": "before" }, { "role": "user", "content": "hello" },
    ] });
    for other in [request("another"), longer] {
        assert_eq!(send(&other).await.refusal(), (409, "idempotency_key", None));
    }
}
