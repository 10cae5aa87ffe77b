//! Pictures and PDF files: of people, in the log, to and from tools, and of models that cannot read them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{fs, path::Path, sync::Arc};

use archon::{
    Archon, RunError, ToolResult,
    providers::{ScriptedProvider, Step},
    react_loop::Fallback,
    schemars::{self, JsonSchema},
    store::InMemoryJournal,
    tool,
    tools::MediaArgument,
    types::{
        AgentMessage, Capabilities, Content, ForkOptions, Journal, JournalError, Media, MediaKind, Message,
        ProviderError, Reads, Record, RecordBody, Request, RetryConfig, RunFilter, Timestamp, ToolContext,
        ToolError, ToolMode, UserMessage,
    },
};
use serde_json::json;

const PDF: &[u8] = b"%PDF-1.7 <</Type/Page>> <</Type/Page>>";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n-a picture";

fn report() -> Media {
    Media::new(PDF, Some("report.pdf")).unwrap()
}

/// A question of a person with a file.
fn question(file: Media) -> Vec<AgentMessage> {
    let mut message = UserMessage::new(vec![Content::text("What is in it?")], Timestamp::default());
    message.attach(file.name().unwrap_or_default().to_owned(), file.into());
    vec![Message::User(message).into()]
}

/// Draws the first page of a PDF file.
#[tool(read_only, input_mime_types = ["application/pdf"], output_mime_types = ["image/png"], max_input_size = 100)]
async fn draw(file: MediaArgument, context: &ToolContext) -> Result<ToolResult, ToolError> {
    let media = file.get(context)?;
    assert_eq!(media.data().as_deref(), Some(PDF));
    let mut result = ToolResult::from(Media::new(PNG, Some("page.png"))?);
    result.content.push(Media::new(b"GIF89a", None)?.into());
    Ok(result)
}

fn media_of(message: &Message) -> Vec<Media> {
    message.content().iter().filter_map(|block| block.as_media()?.media.cloned()).collect()
}

fn last(request: &Request) -> Arc<Message> {
    request.messages.iter().last().unwrap().clone()
}

fn agent(model: ScriptedProvider) -> archon::ArchonBuilder {
    Archon::builder().provider(Arc::new(model), "scripted").retry(RetryConfig::none())
}

fn reading(images: bool, pdfs: bool) -> Capabilities {
    let mut capabilities = Capabilities::default();
    capabilities.reads = Reads { images: Some(images), pdfs: Some(pdfs) };
    capabilities
}

fn text_step(check: impl Fn(&Request) + Send + Sync + 'static) -> Step {
    Step::reply(move |request| {
        check(request);
        Step::text("Seen.")
    })
}

// spec: EX-16
#[tokio::test]
async fn tool_takes_a_medium_of_the_conversation_by_its_name_and_returns_one() {
    let model = ScriptedProvider::new([
        Step::reply(|request| {
            let Message::User(said) = &*last(request) else { panic!("no question") };
            let name = said.written_content().last().unwrap().as_text().unwrap().to_owned();
            assert_eq!(name, format!("[{}]", report().label()));
            assert_eq!(media_of(&last(request)), [report()]);
            Step::call("c", "draw", json!({ "file": report().reference() }))
        }),
        text_step(|request| {
            let result = last(request);
            let page = Media::new(PNG, Some("page.png")).unwrap();
            assert_eq!(media_of(&result), std::slice::from_ref(&page), "the tool declares no image/gif");
            assert_eq!(media_of(&result)[0].data().as_deref(), Some(PNG));
            let text = result.text();
            assert!(
                text.contains("image/gif") && text.contains("the tool does not declare this type"),
                "{text}"
            );
            assert!(text.contains(&page.reference()), "a later call can name it: {text}");
        }),
    ]);
    let chat = agent(model).tool(draw).build().unwrap().conversation();
    assert_eq!(chat.prompt_messages(question(report())).await.unwrap().text().await.unwrap(), "Seen.");
}

// spec: EX-16
#[tokio::test]
async fn calls_with_unknown_large_or_undeclared_media_are_refused_and_say_why() {
    let large = Media::new(&[PDF, &[b' '; 100]].concat(), Some("large.pdf")).unwrap();
    let picture = Media::new(PNG, Some("a.png")).unwrap();
    for (file, reference, problem) in [
        (report(), "media:0000000000000000".to_owned(), format!("It has: {}.", report().label())),
        (large.clone(), large.reference(), "takes media of at most 100 bytes".to_owned()),
        (picture.clone(), picture.reference(), "takes application/pdf".to_owned()),
    ] {
        let model = ScriptedProvider::new([
            Step::call("c", "draw", json!({ "file": reference })),
            text_step(move |request| {
                let text = last(request).text();
                assert!(text.contains(&problem), "{text}");
            }),
        ]);
        let chat = agent(model).tool(draw).build().unwrap().conversation();
        chat.prompt_messages(question(file)).await.unwrap().text().await.unwrap();
    }
}

// spec: EX-16
#[tokio::test]
async fn log_has_the_hash_of_a_medium_and_later_processes_and_forks_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let has_data = |request: &Request| {
        let media = request.messages.iter().flat_map(|message| media_of(message)).next().unwrap();
        assert_eq!(media.data().as_deref(), Some(PDF));
    };
    let process = |steps: usize| {
        let model = ScriptedProvider::new((0..steps).map(|_| text_step(has_data)));
        agent(model).data_dir(folder.path()).build().unwrap()
    };
    let chat = process(1).conversation_in("anna".into()).await.unwrap();
    let first = chat.prompt_messages(question(report())).await.unwrap();
    let run = first.run_id().clone();
    first.text().await.unwrap();
    let stored = fs::read(blob(folder.path(), run.as_str())).unwrap();
    assert_eq!(stored, PDF, "the file as it is");
    let log = fs::read_to_string(folder.path().join(format!("runs/{run}.jsonl"))).unwrap();
    assert!(log.contains(report().sha256()) && !log.contains(report().base64().unwrap()), "{log}");

    let later = process(2);
    let chat = later.conversation_in("anna".into()).await.unwrap();
    chat.prompt("And the second page?").await.unwrap().text().await.unwrap();
    let again = ForkOptions::after(1).with_message("Once more.");
    let fork = later.fork(&run, again).await.unwrap();
    later.resume(fork.run).await.unwrap().text().await.unwrap();
}

// spec: EX-16
#[tokio::test]
async fn lost_or_changed_data_of_a_medium_is_damage_that_names_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let desk = agent(ScriptedProvider::texts(["Seen."])).data_dir(folder.path()).build().unwrap();
    let started = desk.conversation().prompt_messages(question(report())).await.unwrap();
    let run = started.run_id().clone();
    started.text().await.unwrap();
    let file = blob(folder.path(), run.as_str());
    for damaged in [Some(b"%PDF-1.7 <</Type/Page>> <</Type/Pags>>".as_slice()), Some(b"short"), None] {
        match damaged {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let error = desk.journal().read(&run).await.unwrap_err();
        assert!(matches!(error, JournalError::Corrupt { record: 1, .. }), "{error}");
    }
    desk.journal().delete(&run).await.unwrap();
    assert!(!file.parent().unwrap().exists());
}

fn blob(folder: &Path, run: &str) -> std::path::PathBuf {
    folder.join(format!("runs/{run}.blobs/{}", report().sha256()))
}

// spec: EX-16
#[tokio::test]
async fn model_that_cannot_read_a_medium_is_refused_before_anything_is_recorded_or_asked() {
    for (capabilities, file, kind, name) in [
        (reading(true, false), report(), MediaKind::Pdf, "report.pdf"),
        (reading(false, true), Media::new(PNG, None).unwrap(), MediaKind::Image, "image/png"),
    ] {
        let journal = Arc::new(InMemoryJournal::new());
        let model = ScriptedProvider::texts(["Never said."]).with_capabilities(capabilities);
        let desk = agent(model.clone()).journal(journal.clone()).build().unwrap();
        let error = match desk.conversation().prompt_messages(question(file)).await {
            Ok(handle) => handle.text().await.unwrap_err(),
            Err(error) => error,
        };
        let expected = format!("the model scripted cannot read {kind}, and the message has one: {name}");
        assert_eq!((error.to_string(), error.http_status()), (expected, 422));
        assert!(matches!(error, RunError::UnreadableMedia { kind: found, .. } if found == kind));
        assert_eq!(model.call_count(), 0);
        assert!(journal.list(&RunFilter::default()).await.unwrap().is_empty());
    }
}

// spec: EX-16
#[tokio::test]
async fn fork_with_a_medium_that_the_model_cannot_read_is_refused_before_it_is_recorded() {
    let journal = Arc::new(InMemoryJournal::new());
    let model = ScriptedProvider::texts(["Hello."]).with_capabilities(reading(true, false));
    let desk = agent(model).journal(journal.clone()).build().unwrap();
    let run = desk.run("Hello").await.unwrap().outcome().run.clone();
    let options = ForkOptions::after(0).with_message(question(report()).remove(0));
    let error = desk.fork(&run, options).await.unwrap_err();
    assert!(matches!(error, RunError::UnreadableMedia { kind: MediaKind::Pdf, .. }), "{error}");
    assert_eq!(journal.list(&RunFilter::default()).await.unwrap().len(), 1);
}

// spec: EX-16
#[tokio::test]
async fn model_that_cannot_read_a_medium_is_asked_if_a_tool_takes_it_or_the_medium_is_of_an_earlier_run() {
    let check =
        |request: &Request| assert_eq!(request.reads, Reads { images: Some(false), pdfs: Some(false) });
    let model = ScriptedProvider::new([text_step(check)]).with_capabilities(reading(false, false));
    let chat = agent(model).tool(draw).build().unwrap().conversation();
    chat.prompt_messages(question(report())).await.unwrap().text().await.unwrap();

    let journal = Arc::new(InMemoryJournal::new());
    let desk = |model| agent(model).journal(journal.clone()).build().unwrap();
    let reader = desk(ScriptedProvider::texts(["Seen."]));
    let chat = reader.conversation_in("anna".into()).await.unwrap();
    chat.prompt_messages(question(report())).await.unwrap().text().await.unwrap();
    let model = ScriptedProvider::new([text_step(check)]).with_capabilities(reading(false, false));
    let chat = desk(model).conversation_in("anna".into()).await.unwrap();
    chat.prompt("And now?").await.unwrap().text().await.unwrap();
}

// spec: EX-16, ER-09
#[tokio::test]
async fn fallback_models_that_cannot_read_the_prompt_are_skipped() {
    let fails = || {
        let busy = ProviderError::Overloaded { status: 503, retry_after: None, message: "busy".to_owned() };
        ScriptedProvider::new([Step::error(busy)])
    };
    let blind = || ScriptedProvider::texts(["Blind."]).with_capabilities(reading(true, false));
    let reader = ScriptedProvider::texts(["Read."]).with_capabilities(reading(false, true));
    let with = |fallbacks: Vec<ScriptedProvider>| {
        let desk = (1..).zip(fallbacks).fold(agent(fails()), |desk, (n, model)| {
            desk.fallback_provider(Fallback::new(Arc::new(model), format!("fallback-{n}")))
        });
        desk.build().unwrap().conversation()
    };
    let answer = with(vec![blind(), reader]).prompt_messages(question(report())).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "Read.");
    let failed = with(vec![blind()]).prompt_messages(question(report())).await.unwrap();
    assert!(matches!(failed.text().await.unwrap_err(), RunError::Failed { .. }), "nobody else reads it");
    let answer = with(vec![blind()]).prompt("No file.").await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "Blind.");
}

// spec: EX-16
#[tokio::test]
async fn result_of_a_tool_is_recorded_with_its_media() {
    let journal = Arc::new(InMemoryJournal::new());
    let call = Step::call("c", "draw", json!({ "file": report().reference() }));
    let model = ScriptedProvider::new([call, Step::text("Done.")]);
    let desk = agent(model).tool(draw).journal(journal.clone()).build().unwrap();
    let started = desk.conversation().prompt_messages(question(report())).await.unwrap();
    let run = started.run_id().clone();
    started.text().await.unwrap();
    let records = journal.read(&run).await.unwrap();
    let names: Vec<(&str, Option<&str>)> = records.iter().flat_map(|record| media_names(record)).collect();
    assert_eq!(names, [("message_added", Some("report.pdf")), ("tool_call_finished", Some("page.png"))]);
}

fn media_names(record: &Record) -> impl Iterator<Item = (&str, Option<&str>)> {
    let body: &RecordBody = &record.body;
    body.media().map(|media| (body.name(), media.name()))
}

// spec: EX-16, R-23
#[tokio::test]
async fn media_of_a_result_reach_the_model_in_text_mode() {
    let arguments = json!({ "tool": "draw", "arguments": { "file": report().reference() } });
    let model = ScriptedProvider::new([
        Step::text(format!("Thought: draw it\nAction: {arguments}")),
        Step::reply(|request| {
            let observed = last(request);
            assert!(observed.text().starts_with("Observation: Tool draw succeeded: "), "{observed:?}");
            let page = Media::new(PNG, Some("page.png")).unwrap();
            assert_eq!(media_of(&observed), [page]);
            assert_eq!(media_of(&observed)[0].data().as_deref(), Some(PNG));
            Step::text("Thought: done\nFinal Answer: Drawn.")
        }),
    ]);
    let chat = agent(model).tool(draw).tool_mode(ToolMode::Text).build().unwrap().conversation();
    assert_eq!(chat.prompt_messages(question(report())).await.unwrap().text().await.unwrap(), "Drawn.");
}

/// A file, and its title.
#[derive(serde::Deserialize, JsonSchema)]
struct Chapter {
    file: Option<MediaArgument>,
    title: String,
}

/// Binds PDF files to a book.
#[tool(read_only, input_mime_types = ["application/pdf"], max_input_size = 100)]
async fn bind(chapters: Vec<Chapter>) -> String {
    chapters.iter().map(|chapter| format!("{} {};", chapter.title, chapter.file.is_some())).collect()
}

// spec: EX-16
#[tokio::test]
async fn media_deep_in_the_arguments_of_a_call_are_checked() {
    let picture = Media::new(PNG, Some("a.png")).unwrap();
    for (file, expected) in [
        (json!(report().reference()), "One true;"),
        (json!(null), "One false;"),
        (json!(picture.reference()), "takes application/pdf"),
        (json!("media:0000000000000000"), "The tool was not run."),
    ] {
        let arguments = json!({ "chapters": [{ "file": file, "title": "One" }] });
        let model = ScriptedProvider::new([
            Step::call("c", "bind", arguments),
            text_step(move |request| {
                let text = last(request).text();
                assert!(text.contains(expected), "{text}");
            }),
        ]);
        let chat = agent(model).tool(bind).build().unwrap().conversation();
        let files = [report(), picture.clone()].into_iter().flat_map(question).collect();
        chat.prompt_messages(files).await.unwrap().text().await.unwrap();
    }
}
