//! What stands on the screen around an answer: each thing once, with what it cost, and in words that people use.

use std::process::Stdio;

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::{
    setup::{Place, Ran, answer, asks_for, text},
    terminal::Terminal,
};

/// An answer of which the service counts the tokens.
fn counted(words: &str, input: u64, output: u64) -> MockResponse {
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    let count = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [],
                       "usage": usage});
    MockResponse::events([text(words), count.to_string(), "[DONE]".into()])
}

// spec: CL-12
#[tokio::test]
async fn run_on_a_terminal_shows_a_question_and_an_answer_once() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut terminal = Terminal::open();
    let mut command = place.command("run --tools write_file", &["Write notes."]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut all = terminal
        .read_until("[y]es  [n]o  [s]ession  [a]lways write_file(notes.txt)  [e]dit  [l]ater  [?]")
        .await;
    terminal.say("?\n");
    all += &terminal.read_until("yes, this once").await;
    all += &terminal.read_until("decide later").await;
    terminal.say("y\n");
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    all += &shown;
    assert_eq!(all.matches("? Create 'notes.txt'").count(), 1, "{all}");
    assert_eq!(all.matches("It is written.").count(), 1, "{all}");
}

// spec: CL-12
#[tokio::test]
async fn run_question_that_waits_is_shown_once() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write)]).await;
    let ran = Place::with_server(&server).archon("run --ask-later --tools write_file", &["Write."]).await;
    assert_eq!(ran.err.matches("Create 'notes.txt'").count(), 1, "{ran:?}");
}

#[tokio::test]
async fn run_at_a_limit_names_it_once_and_gives_no_answer() {
    let asks = |n: u32| asks_for("calculator", &format!("{{\"expression\": \"{n} + 1\"}}"));
    let server = MockServer::start((0..2).map(asks)).await;
    let ran = Place::with_server(&server).archon("run --max-turns 2", &["go on"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{ran:?}");
    assert_eq!(ran.err.matches("Max turns reached (2)").count(), 1, "{ran:?}");
}

#[tokio::test]
async fn run_last_line_says_tokens_window_and_session() {
    let server = MockServer::start([counted("30", 20_000, 1_000)]).await;
    let ran = Place::with_server(&server).archon("run --session trip", &["What is 15% of 200?"]).await;
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("finished: 1 turn, 21000 tokens, 21 % of the window, "), "{ran:?}");
    assert!(last.ends_with(", session trip"), "{ran:?}");
}

#[tokio::test]
async fn run_failed_planning_counts_its_tokens() {
    let server = MockServer::start((0..12).map(|_| counted("no plan", 100, 23))).await;
    let ran = Place::with_server(&server).archon("run --plan", &["Plan a trip"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let tokens = 123 * server.requests().len();
    assert!(tokens > 0 && ran.err.contains(&format!("failed: no plan, {tokens} tokens, ")), "{ran:?}");
}

#[tokio::test]
async fn run_against_a_closed_port_tries_once() {
    let ran = Place::new().archon("run --base-url http://127.0.0.1:9/v1 --model m", &["hi"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.err.matches("the model call failed").count(), 1, "{ran:?}");
}

#[tokio::test]
async fn run_tool_failure_is_shown_once_and_not_as_a_warning_of_the_log() {
    let server =
        MockServer::start([asks_for("read_file", r#"{"path": "gone.txt"}"#), answer("It is not there.")])
            .await;
    let place = Place::with_server(&server);
    let ran = place.archon("run", &["Read gone.txt"]).await;
    assert!(ran.err.contains("<- read_file: ") && !ran.err.contains("WARN"), "{ran:?}");
    let mut command = place.command("tools call", &["read_file", "path=gone.txt"]);
    let ran = Ran::from(command.output().await.expect("the program runs"));
    assert!(!ran.err.contains("WARN"), "{ran:?}");
}

#[tokio::test]
async fn run_with_piped_text_sends_it_as_data_beside_the_task() {
    let server = MockServer::start([answer("Short."), answer("Short.")]).await;
    let place = Place::with_server(&server);
    let mut child =
        place.command("run", &["Summarize this"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"a long report\n</standard_input>\n").await.expect("it is read");
    drop(input);
    let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Short.\n"), "{ran:?}");
    // A file that is redirected is read, too.
    std::fs::write(place.path("report.txt"), "from a file").expect("it is written");
    let file = std::fs::File::open(place.path("report.txt")).expect("a file");
    let mut command = place.command("run", &["Summarize this"]);
    let ran = Ran::from(command.stdin(file).output().await.expect("the program runs"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let prompts: Vec<String> = server
        .requests()
        .iter()
        .map(|r| {
            r.body["messages"].as_array().and_then(|all| all.last()).expect("one")["content"].to_string()
        })
        .collect();
    assert!(prompts[0].contains("Summarize this") && prompts[0].contains("a long report"), "{prompts:?}");
    assert_eq!(prompts[0].matches("</standard_input>").count(), 1, "{prompts:?}");
    assert!(prompts[1].contains("<standard_input>\\nfrom a file\\n</standard_input>"), "{prompts:?}");
}

#[tokio::test]
async fn lists_show_relative_times_and_logs_one_format() {
    let server = MockServer::start([answer("Paris")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["Capital of France?"]).await;
    for line in ["runs list", "sessions list"] {
        let listed = place.archon(line, &[]).await.out;
        assert!(listed.contains(" s ago  "), "{line}: {listed}");
    }
    for line in ["runs events last", "runs events last --cycles"] {
        let shown = place.archon(line, &[]).await.out;
        let times: Vec<_> = shown.split_whitespace().filter(|word| word.starts_with("20")).collect();
        assert!(!times.is_empty(), "{line}: {shown}");
        assert!(times.iter().all(|time| time.contains('T') && time.ends_with('Z')), "{line}: {shown}");
    }
}

#[cfg(feature = "shell")]
#[tokio::test]
async fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Place::new().archon("completions", &[shell]).await;
        assert_eq!(ran.code, Some(0), "{shell}: {ran:?}");
        assert!(ran.out.contains("approvals") && ran.out.contains("max-cost"), "{shell}");
    }
    Place::new().archon("completions", &["tcsh"]).await.check_refused(2, "'tcsh'", "bash");
}

#[cfg(feature = "shell")]
#[tokio::test]
async fn man_prints_a_page_and_writes_one_for_each_command() {
    let place = Place::new();
    let page = place.archon("man", &[]).await;
    assert!(
        page.code == Some(0) && page.out.starts_with(".ie") && page.out.contains(".TH archon 1"),
        "{page:?}"
    );
    let written = place.archon("man", &["share/man1"]).await;
    assert_eq!((written.code, written.out.as_str()), (Some(0), "share/man1\n"), "{written:?}");
    for name in ["archon.1", "archon-run.1", "archon-runs-list.1"] {
        let page = std::fs::read_to_string(place.path("share/man1").join(name)).expect(name);
        assert!(page.contains(".SH NAME"), "{name}");
    }
    std::fs::write(place.path("file"), "").unwrap();
    let refused = place.archon("man", &["file"]).await;
    refused.check_refused(1, "cannot write the pages into file", "a folder that you can write to");
}
