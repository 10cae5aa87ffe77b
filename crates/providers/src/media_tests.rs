//! Compares the images and PDF files of requests with the bodies that the services document. The bodies in the folder
//! `media_bodies` were written by hand, after these pages and types, read in November 2026:
//!
//! | file | source |
//! |---|---|
//! | `anthropic.json` | <https://platform.claude.com/docs/en/build-with-claude/vision>, <https://platform.claude.com/docs/en/build-with-claude/pdf-support>; results: `ToolResultBlockParam` of the package `anthropic` |
//! | `openai_chat.json`, `other_chat.json` | <https://developers.openai.com/api/docs/guides/file-inputs>; results have only text: `ChatCompletionToolMessageParam` of the package `openai` |
//! | `openai_responses.json` | the same page; results: `ResponseFunctionCallOutputItemListParam` of the package `openai` |
//! | `gemini_2.json`, `gemini_3.json` | <https://ai.google.dev/gemini-api/docs/file-input-methods>, <https://ai.google.dev/gemini-api/docs/function-calling#multimodal> |
//! | `bedrock_claude.json`, `bedrock_nova.json` | <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html>, <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html> |
//!
//! `cargo xtask conformance providers` checks that the types of the services' own clients accept the same requests.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use archon_types::{
    AssistantMessage, CacheConfig, Content, Json, Media, Message, Provider, Reads, Request, RequestOptions,
    ResponseFormat, Secret, Timestamp, ToolCall, ToolResult, UserMessage,
};
use serde_json::json;

use crate::{
    Anthropic, AnthropicOptions, AzureApi, AzureOpenAi, AzureOptions, Bedrock, BedrockOptions, Gemini,
    GeminiOptions, OpenAiCompatible, OpenAiOptions, OpenAiResponses, Profile, ResponsesOptions, TokenSource,
    Vertex, VertexOptions, VertexPlace,
    wire_fixture::{BASE_URL, sent},
};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const NOVA: &str = "us.amazon.nova-pro-v1:0";

fn png() -> Content {
    Media::new(b"\x89PNG\r\n\x1a\n", Some("chart.png")).unwrap().into()
}

fn pdf() -> Content {
    Media::new(b"%PDF-1.7\n", Some("report.pdf")).unwrap().into()
}

/// Returns a call of a tool with its result.
fn called(id: &str, tool: &str, arguments: Json, content: Vec<Content>) -> (ToolCall, ToolResult) {
    let mut result = ToolResult::success("");
    result.content = content;
    (ToolCall::new(id, tool, arguments), result)
}

/// Returns a question with an image and a PDF file, three calls in one turn, two of which return media, and a word
/// after them.
fn conversation(model: &str) -> Request {
    let at = Timestamp::default();
    let question = UserMessage::new(vec![Content::text("Compare them."), png(), pdf()], at);
    let calls = [
        called("c1", "read_file", json!({"path": "chart.png"}), vec![Content::text("the chart"), png()]),
        called("c2", "read_file", json!({"path": "report.pdf"}), vec![pdf()]),
        called("c3", "now", json!({}), vec![Content::text("12:00")]),
    ];
    let content = calls.iter().map(|(call, _)| call.clone().into()).collect();
    let mut messages = vec![
        Message::User(question),
        Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }),
    ];
    messages.extend(calls.iter().map(|(call, result)| Message::tool_result(call, result, at)));
    messages.push(Message::user("Go on.", at));
    let mut options = RequestOptions::default();
    options.cache = CacheConfig::off();
    let mut request = Request::new(model, messages);
    request.options = Arc::new(options);
    request
}

fn body(provider: &impl Provider, request: &Request) -> Json {
    serde_json::from_str(&sent(provider, request).body).unwrap()
}

#[track_caller]
fn check(provider: &impl Provider, model: &str, field: &str, expected: &str) {
    let expected: Json = serde_json::from_str(expected).unwrap();
    let body = body(provider, &conversation(model));
    assert_eq!(body[field], expected, "{:#}", body[field]);
}

fn service(name: &str) -> OpenAiCompatible {
    OpenAiCompatible::new(BASE_URL, OpenAiOptions::of(Profile::named(name).unwrap())).unwrap()
}

fn vertex() -> Vertex {
    let token: TokenSource = Arc::new(|| Box::pin(std::future::ready(Ok(Secret::new("ya29".to_owned())))));
    let options = VertexOptions::default().with_base_url(BASE_URL);
    Vertex::new(&VertexPlace::new("my-project", "europe-west4"), token, options).unwrap()
}

fn anthropic() -> Anthropic {
    Anthropic::new(BASE_URL, AnthropicOptions::default()).unwrap()
}

fn gemini() -> Gemini {
    Gemini::new(BASE_URL, GeminiOptions::default()).unwrap()
}

fn bedrock() -> Bedrock {
    Bedrock::new(BASE_URL, BedrockOptions::default()).unwrap()
}

fn responses() -> OpenAiResponses {
    OpenAiResponses::new(BASE_URL, ResponsesOptions::default()).unwrap()
}

fn azure(api: AzureApi) -> AzureOpenAi {
    AzureOpenAi::new(BASE_URL, AzureOptions::default().with_api_key("key").with_api(api)).unwrap()
}

// spec: EX-16
#[test]
fn anthropic_media_equal_the_documented_body() {
    check(&anthropic(), "claude-sonnet-4-5", "messages", include_str!("media_bodies/anthropic.json"));
}

// spec: EX-16
#[test]
fn openai_media_equal_the_documented_bodies_also_on_azure() {
    let chat = include_str!("media_bodies/openai_chat.json");
    check(&service("openai"), "gpt-5-mini", "messages", chat);
    check(&service("openrouter"), "openai/gpt-5-mini", "messages", chat);
    check(&azure(AzureApi::ChatCompletions), "gpt-5-mini", "messages", chat);
    let items = include_str!("media_bodies/openai_responses.json");
    check(&responses(), "gpt-5-mini", "input", items);
    check(&azure(AzureApi::Responses), "gpt-5-mini", "input", items);
}

// spec: EX-16
#[test]
fn chat_service_without_files_gets_images_and_notes() {
    check(&service("groq"), "m", "messages", include_str!("media_bodies/other_chat.json"));
}

// spec: EX-16
#[test]
fn chat_service_without_files_reads_no_pdf_unless_the_request_says_so() {
    let groq = service("groq");
    assert_eq!(groq.capabilities("m").reads.pdfs, Some(false));
    assert_ne!(service("openai").capabilities("gpt-5-mini").reads.pdfs, Some(false));
    let mut request = conversation("m");
    request.reads.pdfs = Some(true);
    assert_eq!(body(&groq, &request)["messages"][0]["content"][2]["type"], "file");
}

// https://docs.mistral.ai/capabilities/document_ai/document_qna
// spec: EX-16
#[test]
fn mistral_pdf_is_a_document_url() {
    let body = body(&service("mistral"), &conversation("mistral-small-latest"));
    let url = "data:application/pdf;base64,JVBERi0xLjcK";
    assert_eq!(
        body["messages"][0]["content"][2],
        json!({"type": "document_url", "document_url": url, "document_name": "report.pdf"})
    );
    let roles = body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap());
    assert_eq!(roles.collect::<Vec<_>>(), ["user", "assistant", "tool", "tool", "tool", "user"]);
}

// spec: EX-16
#[test]
fn gemini_media_equal_the_documented_body_also_on_vertex() {
    let third = include_str!("media_bodies/gemini_3.json");
    check(&gemini(), "gemini-3-pro-preview", "contents", third);
    // Before the third generation, responses have no media, and no part may stand between them.
    let second = include_str!("media_bodies/gemini_2.json");
    check(&gemini(), "gemini-2.5-flash", "contents", second);
    // Vertex AI gets no ids of other services.
    for (model, expected) in [("gemini-3-pro-preview", third), ("gemini-2.5-flash", second)] {
        let mut expected: Json = serde_json::from_str(expected).unwrap();
        for part in
            expected.as_array_mut().unwrap().iter_mut().flat_map(|c| c["parts"].as_array_mut().unwrap())
        {
            for kind in ["functionCall", "functionResponse"] {
                part.get_mut(kind).and_then(Json::as_object_mut).map(|named| named.remove("id"));
            }
        }
        check(&vertex(), model, "contents", &expected.to_string());
    }
}

// spec: EX-16
#[test]
fn bedrock_media_equal_the_documented_body() {
    check(&bedrock(), CLAUDE, "messages", include_str!("media_bodies/bedrock_claude.json"));
    check(&bedrock(), NOVA, "messages", include_str!("media_bodies/bedrock_nova.json"));
}

// spec: EX-16
#[test]
fn bedrock_response_format_turns_citations_off() {
    let mut request = conversation(CLAUDE);
    let mut options = RequestOptions::default();
    options.response_format =
        Some(ResponseFormat { name: "answer".into(), schema: json!({"type": "object"}) });
    request.options = Arc::new(options);
    assert!(!body(&bedrock(), &request).to_string().contains("citations"));
}

// spec: EX-16
#[test]
fn bedrock_keeps_the_newest_five_documents_and_the_oldest_is_a_note() {
    let at = Timestamp::default();
    let user = |content| Message::User(UserMessage::new(content, at));
    let file = |n: u8| {
        Content::from(
            Media::new(&[b"%PDF-1.7\n".as_slice(), &[n]].concat(), Some(&format!("{n}.pdf"))).unwrap(),
        )
    };
    let call = ToolCall::new("c", "read_file", json!({}));
    let mut result = ToolResult::success("");
    result.content = vec![file(3), file(4)];
    let calls = AssistantMessage { content: vec![call.clone().into()], ..AssistantMessage::default() };
    let mut request = Request::new(
        NOVA,
        vec![
            user(vec![file(1), file(2)]),
            Message::Assistant(calls),
            Message::tool_result(&call, &result, at),
            user(vec![file(5)]),
        ],
    );
    let provider = bedrock();
    let texts = |request: &Request| {
        let body = sent(&provider, request).body;
        let texts = body.split("{\"text\":\"").skip(1).map(|text| text.split('"').next().unwrap().to_owned());
        (body.matches("\"document\":").count(), texts.collect::<Vec<_>>())
    };
    let named = |n: usize| format!("document {n}: {n}.pdf");
    assert_eq!(texts(&request), (5, (1..6).map(named).collect()));
    // The encoded text is kept with the conversation, so a later request shows that it is encoded again.
    Arc::make_mut(&mut request.messages).push(user(vec![file(6)]));
    let note = "[1.pdf: left out, as a request can have 5 documents]".to_owned();
    assert_eq!(texts(&request), (5, [note].into_iter().chain((2..7).map(named)).collect()));
}

/// Returns the number of notes about media in a body, and true if the body has their data.
fn notes(provider: &impl Provider, request: &Request) -> (usize, bool) {
    let body = sent(provider, request).body;
    (
        body.matches("cannot be shown here]").count(),
        body.contains("iVBORw0KGgo=") || body.contains("JVBERi0xLjcK"),
    )
}

// spec: EX-16
#[test]
fn media_that_the_model_cannot_read_are_notes_in_every_protocol() {
    let mut request = conversation("m");
    let everything = request.clone();
    request.reads = Reads { images: Some(false), pdfs: Some(false) };
    let check = |provider: &dyn Fn(&Request) -> (usize, bool), name: &str| {
        // The encoded text is kept with the conversation, so the order shows that its name has the abilities.
        assert!(provider(&everything).1, "{name}");
        assert_eq!(provider(&request), (4, false), "{name}");
        assert!(provider(&everything).1, "{name}");
    };
    check(&|request| notes(&anthropic(), request), "anthropic");
    check(&|request| notes(&service("openai"), request), "openai");
    check(&|request| notes(&responses(), request), "responses");
    check(&|request| notes(&azure(AzureApi::Responses), request), "azure");
    check(&|request| notes(&gemini(), request), "gemini");
    check(&|request| notes(&vertex(), request), "vertex");
    check(&|request| notes(&bedrock(), request), "bedrock");
}

// spec: EX-16
#[test]
fn failed_result_of_anthropic_and_bedrock_has_only_text() {
    let at = Timestamp::default();
    let call = ToolCall::new("c1", "shoot", json!({}));
    let mut result = ToolResult::error("it broke");
    result.content.push(png());
    let content = vec![Content::from(call.clone())];
    let messages = vec![
        Message::user("hi", at),
        Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }),
        Message::tool_result(&call, &result, at),
    ];
    assert_eq!(notes(&anthropic(), &Request::new("claude-sonnet-4-5", messages.clone())), (1, false));
    assert_eq!(notes(&bedrock(), &Request::new(CLAUDE, messages)), (1, false));
}

// spec: EX-16
#[test]
fn gemini_gets_a_note_instead_of_a_gif() {
    let gif = Media::new(b"GIF89a", None).unwrap();
    let message = Message::User(UserMessage::new(vec![gif.into()], Timestamp::default()));
    let body = body(&gemini(), &Request::new("gemini-3-pro-preview", vec![message]));
    let text = body["contents"][0]["parts"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[image/gif, media:"), "{text}");
}
