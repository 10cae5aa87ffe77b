//! Images and files of runs, as clients send and read them.

use std::sync::Arc;

use archon::{
    Runs,
    providers::{ScriptedProvider, Step},
    server::{ServerOptions, TokenLimits, axum::http::StatusCode},
    tool,
    types::{
        Capabilities, Content, Json, Media, Message, Reads, RecordBody, RunId, StartRuns, ToolContext,
        ToolResult, Trust, UserMessage,
    },
};
use archon_testkit::Ended as _;
use serde_json::json;

use crate::world::{Ask, Site, World};

/// A picture in base64.
const PNG: &str = "iVBORw0KGgo=";
const PDF: &str = "0716f9264c9fe19f5d7455276107f3ddcc1d3497f63d60689a73558ae8a1bf5e";

/// Returns a text and a PDF file.
fn content() -> Json {
    let pdf =
        json!({ "type": "media", "mime_type": "application/pdf", "name": "a.pdf", "data": "JVBERi0xLjcK" });
    json!([{ "type": "text", "text": "hello" }, pdf])
}

/// Starts a run, and waits for its end.
async fn run_with(site: &Site, content: Json) -> RunId {
    let started = site.post("/v1/runs", json!({ "content": content })).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.body);
    let run = RunId::new(started.body["run"].as_str().unwrap());
    drop(site.runs.reply(&run).await);
    run
}

/// Starts a run with a PDF file, and waits for its end.
async fn run_with_pdf(site: &Site) -> RunId {
    run_with(site, content()).await
}

/// Returns the message of a person that a run began with.
async fn prompt(site: &Site, run: &RunId) -> UserMessage {
    let log = site.world.log(run).await;
    let prompts = log.iter().filter_map(|record| match &record.body {
        RecordBody::MessageAdded { message, .. } => message.as_llm(),
        _ => None,
    });
    match prompts.into_iter().next() {
        Some(Message::User(user)) => user.clone(),
        other => panic!("{other:?}"),
    }
}

// spec: EX-16
#[tokio::test]
async fn pdf_of_a_run_is_in_its_records_by_hash_and_downloaded_by_hash() {
    let site = World::new().site();
    let run = run_with_pdf(&site).await;
    let records = site.get(&format!("/v1/runs/{run}/records")).await.body.to_string();
    assert!(records.contains(PDF) && !records.contains("JVBERi0xLjcK"), "{records}");
    let pdf = site.get(&format!("/v1/runs/{run}/media/{PDF}")).await;
    assert_eq!((pdf.status, pdf.bytes.as_slice()), (StatusCode::OK, &b"%PDF-1.7\n"[..]));
    let header = |name: &str| pdf.headers[name].to_str().unwrap();
    assert_eq!(
        ["content-type", "content-disposition", "content-security-policy", "x-content-type-options"]
            .map(header),
        ["application/pdf", "attachment", "sandbox", "nosniff"]
    );
}

// spec: EX-16
#[tokio::test]
async fn media_need_the_right_and_the_run_that_has_them() {
    let site = World::new().site();
    let run = run_with_pdf(&site).await;
    let path = format!("/v1/runs/{run}/media/{PDF}");
    assert_eq!(site.send(Ask::get(&path).by("viewer")).await.refusal(), (403, "role"));
    let other = site.run("hello").await;
    let path = format!("/v1/runs/{other}/media/{PDF}");
    assert_eq!(site.get(&path).await.refusal(), (404, "unknown-media"));
}

// spec: EX-16
#[tokio::test]
async fn media_of_a_run_are_unknown_to_the_token_of_another_tenant() {
    let site = World::new().site();
    let run = run_with_pdf(&site).await;
    let path = format!("/v1/runs/{run}/media/{PDF}");
    assert_eq!(site.get(&path).await.status, StatusCode::OK, "the run has it");
    assert_eq!(site.send(Ask::get(&path).by("anna")).await.refusal(), (404, "unknown-run"));
}

// spec: EX-16
#[tokio::test]
async fn files_of_a_client_are_data_and_its_text_is_the_word_of_the_person() {
    let site = World::new().site();
    let run = run_with_pdf(&site).await;
    let prompt = prompt(&site, &run).await;
    assert_eq!(prompt.written_content(), [Content::text("hello")]);
    assert_eq!(
        (prompt.attached.as_slice(), prompt.added_trust()),
        (&["a.pdf".to_owned()][..], Trust::Untrusted)
    );
}

// spec: EX-16
#[tokio::test]
async fn block_with_the_data_of_an_image_is_recorded_by_hash() {
    let site = World::new().site();
    let image = |data: &str| json!([{ "type": "image", "mime_type": "image/png", "data": data }]);
    let run = run_with(&site, image(PNG)).await;
    let records = site.get(&format!("/v1/runs/{run}/records")).await.body.to_string();
    assert!(records.contains("\"sha256\"") && !records.contains(PNG), "{records}");
    let refused = site.post("/v1/runs", json!({ "content": image("aGk=") })).await;
    assert_eq!(refused.refusal(), (422, "body"));
    assert!(
        refused.body["detail"].as_str().unwrap().contains("does not match the stated type"),
        "{}",
        refused.body
    );
}

/// Returns a site with a model that waits, then answers with the data of the file that it gets, and reads PDF files or
/// not.
fn busy_site(reads_pdfs: bool) -> Site {
    let world = World::new();
    let mut capabilities = Capabilities::default();
    capabilities.reads = Reads { images: Some(false), pdfs: Some(reads_pdfs) };
    let answer = Step::reply(|request| {
        let last = request.messages.iter().last().unwrap();
        let data = last.content().iter().find_map(|block| block.as_media()?.base64);
        Step::text(data.unwrap_or("no file"))
    });
    let model = ScriptedProvider::new([Step::call("c", "wait", json!({})), answer]);
    let model = Arc::new(model.with_capabilities(capabilities));
    let agent = world.builder("walker").provider(model, "scripted").build().unwrap();
    world.site_of(Runs::new(agent), ServerOptions::default(), TokenLimits::default())
}

// spec: EX-16
#[tokio::test]
async fn steering_message_brings_a_file_to_a_model_that_reads_it() {
    let site = busy_site(true);
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let sent = site.post(&format!("/v1/runs/{run}/steer"), json!({ "content": content() })).await;
    assert_eq!(sent.status, StatusCode::ACCEPTED);
    site.world.gate.open();
    assert_eq!(site.runs.reply(&run).await.ended().last_text(), Some("JVBERi0xLjcK"));
}

// spec: EX-16
#[tokio::test]
async fn message_to_a_busy_run_with_a_file_that_its_model_cannot_read_is_refused_by_name() {
    let site = busy_site(false);
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    for route in ["steer", "follow-up"] {
        let refused = site.post(&format!("/v1/runs/{run}/{route}"), json!({ "content": content() })).await;
        assert_eq!(refused.refusal(), (422, "refused"), "{route}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("cannot read PDF files") && detail.ends_with("a.pdf"), "{detail}");
    }
    site.world.gate.open();
    assert_eq!(site.runs.reply(&run).await.ended().last_text(), Some("no file"));
}

// spec: EX-16
#[cfg(all(feature = "planner", feature = "orchestrator"))]
#[tokio::test]
async fn plan_and_team_with_a_file_are_refused_before_anything_is_recorded() {
    use archon::types::{FnPlanner, Journal, RunFilter, Task};

    let world = World::new();
    let agent = world.builder("walker").build().unwrap();
    let planner = || FnPlanner::new(|goal, _| async move { Ok(Task::new("task", goal)) });
    let (planning, team) = (agent.planning(planner()), agent.team(planner()));
    let runs = Runs::new(agent).with_agent(planning.run_agent()).with_agent(team.run_agent());
    let site = world.site_of(runs, ServerOptions::default(), TokenLimits::default());
    for kind in ["plan", "team"] {
        let refused = site.post("/v1/runs", json!({ "kind": kind, "content": content() })).await;
        assert_eq!(refused.refusal(), (422, "refused"), "{kind}: {}", refused.body);
        let advice = refused.body["advice"].as_str().unwrap();
        assert!(advice.contains("start a loop with it"), "{advice}");
    }
    assert!(world.journal.list(&RunFilter::all()).await.unwrap().is_empty());
}

/// Draws a picture, first a part of it.
#[tool(read_only)]
async fn draw(context: &ToolContext) -> ToolResult {
    context.on_update(Media::from_base64(PNG, "image/png", Some("half.png")).unwrap().into());
    ToolResult::success(Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() })
}

// spec: EX-16
#[tokio::test]
async fn pictures_of_a_tool_are_sent_to_watchers_by_hash() {
    let world = World::new();
    let model = Arc::new(ScriptedProvider::new([Step::call("c", "draw", json!({})), Step::text("Drawn.")]));
    let agent = world.builder("walker").provider(model, "scripted").tool(draw).build().unwrap();
    let site = world.site_of(Runs::new(agent), ServerOptions::default(), TokenLimits::default());
    let run = site.start("draw").await;
    let sent = site.watch(&run, None).await.rest().await;
    let text = format!("{sent:?}");
    assert!(
        sent.iter().any(|sent| sent.name == "delta" && sent.data.to_string().contains("half.png")),
        "{text}"
    );
    assert_eq!(site.runs.reply(&run).await.ended().last_text(), Some("Drawn."));
    assert!(!text.contains(PNG), "{text}");
}
