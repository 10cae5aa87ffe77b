//! Images and PDF files on the command line.

use archon_testkit::MockServer;
use serde_json::json;

use crate::setup::{Place, Ran, answer};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const PDF: &[u8] = b"%PDF-1.7\n";

/// Runs a task with a model of OpenAI's, which reads images and PDF files.
async fn run(place: &Place, server: &MockServer, more: &[&str]) -> Ran {
    let line = format!("run --tools none --base-url {}/v1 --model openai:gpt-5-mini", server.url());
    place.archon(&line, more).await
}

// spec: EX-16
#[tokio::test]
async fn run_attach_sends_an_image_and_a_pdf_with_the_task() {
    let server = MockServer::start([answer("They differ.")]).await;
    let place = Place::new();
    std::fs::write(place.path("chart.png"), PNG).expect("a file");
    // The content tells the type, and not the name.
    std::fs::write(place.path("report"), PDF).expect("a file");
    let pdf = place.path("report").display().to_string();
    let ran = run(&place, &server, &["--attach", "chart.png", "--attach", &pdf, "Compare them."]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "They differ."), "{ran:?}");
    let request = &server.requests()[0].body;
    let sent = request["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
    assert_eq!(
        sent["content"],
        json!([
            {"type": "text", "text": "Compare them."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {"type": "file", "file": {"filename": "report", "file_data": "data:application/pdf;base64,JVBERi0xLjcK"}},
        ])
    );
}

// spec: EX-16
#[tokio::test]
async fn run_json_names_an_attached_file_by_its_hash_and_the_run_replays() {
    let server = MockServer::start([answer("A chart.")]).await;
    let place = Place::new();
    std::fs::write(place.path("chart.png"), PNG).expect("a file");
    let ran = run(&place, &server, &["--json", "--attach", "chart.png", "What is it?"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = place.archon("runs show last --json", &[]).await;
    for out in [&ran.out, &shown.out] {
        assert!(out.contains("4c4b6a3be1314ab8") && !out.contains("iVBORw0KGgo="), "{out}");
    }
    let replayed = place.archon("replay last", &[]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

// spec: EX-16
#[tokio::test]
async fn run_attach_refuses_what_is_no_image_and_no_pdf_and_sends_nothing() {
    let server = MockServer::start([]).await;
    let place = Place::new();
    std::fs::write(place.path("notes.txt"), "milk").expect("a file");
    std::fs::write(place.path("empty.png"), "").expect("a file");
    std::fs::write(place.path("image.png"), [PNG, &vec![0; 5 << 20]].concat()).expect("a file");
    let long = std::fs::File::create(place.path("long.pdf")).expect("a file");
    long.set_len((20 << 20) + 1).expect("a length");
    for (file, why) in [
        ("notes.txt", "it is neither PNG, JPEG, GIF or WebP nor PDF"),
        ("empty.png", "it is empty"),
        ("image.png", "it has 5242888 bytes, and at most 5242880 are attached"),
        ("long.pdf", "it has 20971521 bytes, and at most 20971520 are attached"),
        (".", "it is no file"),
        ("none.png", "it cannot be read"),
    ] {
        let ran = run(&place, &server, &["--attach", file, "Read it."]).await;
        ran.check_refused(
            2,
            &format!("cannot attach {file}: {why}"),
            "give the path of an image or of a PDF file",
        );
    }
    assert_eq!(server.requests().len(), 0);
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

// spec: EX-16
#[cfg(target_os = "linux")]
#[tokio::test]
async fn run_attach_refuses_a_pipe_without_waiting_for_it() {
    let server = MockServer::start([]).await;
    let place = Place::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("pipe.png"), rustix::fs::Mode::RWXU).expect("a pipe");
    let ran = run(&place, &server, &["--attach", "pipe.png", "Read it."]).await;
    ran.check_refused(2, "cannot attach pipe.png: it is no file", "give the path");
}

// spec: EX-16
#[tokio::test]
async fn run_attach_files_beyond_the_size_or_number_of_a_message_are_refused() {
    let server = MockServer::start([]).await;
    let place = Place::new();
    std::fs::write(place.path("a.pdf"), [PDF, &vec![0; 12 << 20]].concat()).expect("a file");
    let ran = run(&place, &server, &["--attach", "a.pdf", "--attach", "a.pdf", "Read them."]).await;
    ran.check_refused(2, "at most 23068672 are sent", "give the path");
    let many: Vec<&str> = ["--attach", "a.pdf"].repeat(21).into_iter().chain(["Read them."]).collect();
    run(&place, &server, &many).await.check_refused(2, "cannot attach 21 files", "20 files");
}

// spec: EX-16
#[tokio::test]
async fn run_attach_for_a_model_that_cannot_read_it_is_refused_before_the_call() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    // The service of an unknown address is not known to take PDF files.
    let settings = format!("[models.\"openai-compatible@{}/v1:mock\"]\nvision = false\n", server.url());
    std::fs::create_dir_all(place.path(".config/archon")).expect("a folder");
    std::fs::write(place.path(".config/archon/archon.toml"), settings).expect("a file");
    for (file, bytes, kind) in [("chart.png", PNG, "images"), ("report.pdf", PDF, "PDF files")] {
        std::fs::write(place.path(file), bytes).expect("a file");
        let ran = place.archon("run --tools none", &["--attach", file, "Read it."]).await;
        let what = format!("the model mock cannot read {kind}, and the message has one: {file}");
        ran.check_refused(2, &what, "choose a model");
    }
    assert_eq!(server.requests().len(), 0);
    assert_eq!(place.archon("runs list", &[]).await.out, "");
}

#[tokio::test]
async fn run_attach_with_a_plan_is_refused() {
    let ran = Place::new().archon("run --plan --attach a.png", &["hi"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("cannot be used with"), "{ran:?}");
}
