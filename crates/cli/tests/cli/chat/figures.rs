//! Figures of the program in a terminal: the time to the first frame, from a key to its character, the processor time,
//! the bytes and the memory. Times are checked with `ARCHON_ACCEPT=full` only, on a machine that has nothing else to do.

use std::time::{Duration, Instant};

use archon_testkit::{Gate, MockResponse, MockServer, RecordedRequest, cases};
use serde_json::json;

use super::{jobs::asks_for_all, window::Window};
use crate::setup::{Place, answer, chunk, text};

/// The time to the first frame that is promised.
const FIRST_FRAME: Duration = Duration::from_millis(50);
/// The time from a key to its character that is promised for 99 of 100 keys.
const KEY: Duration = Duration::from_millis(16);
/// The time between two tokens: 200 of them in a second.
const TOKEN: Duration = Duration::from_millis(5);
/// The processor time of a tick in `/proc/PID/stat`, on Linux.
const TICK: Duration = Duration::from_millis(10);
/// Begins each frame: the terminal shows it at once when it is whole.
const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";

fn is_full() -> bool {
    cases(0, 1) == 1
}

/// A conversation whose process is known by its id.
async fn open(place: &Place) -> (Window, String) {
    let mut window = Window::shell(place, &["sh", "-c", "echo $$ > pid; exec \"$0\" \"$@\""], "chat");
    window.shows("· mock ·").await;
    let id = std::fs::read_to_string(place.path("pid")).expect("an id");
    (window, id.trim().to_owned())
}

/// The processor time that a process has used.
fn processor_time(id: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    // The name of the program, in brackets, may have spaces.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u32>().expect("a number");
    TICK * (ticks(11) + ticks(12))
}

/// The memory of a process in megabytes: all of it, and without the pages of its file.
fn memory(id: &str) -> [f64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    ["VmRSS:", "RssAnon:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
    })
}

/// An answer of so many tokens, each behind the gate, and its length in bytes.
fn tokens(count: u64, gate: &Gate) -> (MockResponse, usize) {
    let (mut response, mut bytes) = (MockResponse::events::<&str>([]), 0);
    for number in 1..=count {
        let token = match number {
            _ if number == count => "\n\nthe end",
            _ if number % 60 == 0 => ".\n\n",
            _ if number % 7 == 0 => " **word**",
            _ => " word",
        };
        bytes += token.len();
        response = response.wait(gate).event(&text(token));
    }
    (response.event(&chunk(&json!({}), Some("stop"))).event("[DONE]"), bytes)
}

/// Opens the gate for each token, 200 times a second.
async fn pace(gate: Gate, count: u64) {
    let mut ticks = tokio::time::interval(TOKEN);
    for _ in 0..count {
        ticks.tick().await;
        gate.open();
    }
}

fn frames(bytes: &[u8]) -> u32 {
    let begins = bytes.windows(BEGIN_FRAME.len()).filter(|window| *window == BEGIN_FRAME);
    u32::try_from(begins.count()).expect("a number")
}

#[tokio::test]
async fn first_frame_comes_soon_after_the_start() {
    let server = MockServer::start([]).await;
    let mut times = Vec::new();
    for _ in 0..cases(1, 11) {
        let place = Place::with_server(&server);
        let begun = Instant::now();
        let mut window = Window::open(&place, "chat");
        window.until("the first frame", |window| window.screen().contains('›')).await;
        times.push(begun.elapsed());
        window.shows("· mock ·").await;
        window.types("\x04");
        assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    eprintln!("first frame: {median:?} of {FIRST_FRAME:?}, the median of {} starts: {times:?}", times.len());
    assert!(!is_full() || median <= FIRST_FRAME, "{median:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_of_tokens_costs_few_frames_bytes_and_little_processor_time() {
    let count = cases(200, 4_000);
    let gate = Gate::new();
    let (response, streamed) = tokens(count, &gate);
    let server = MockServer::start([response]).await;
    let place = Place::with_server(&server);
    let (mut window, id) = open(&place).await;
    window.says("Speak.").await;
    window.shows("the model works").await;
    let (before, used, begun) = (window.bytes.len(), processor_time(&id), Instant::now());
    tokio::spawn(pace(gate, count));
    window.until("the end", |window| window.screen().contains("the end")).await;
    let (used, took) = (processor_time(&id) - used, begun.elapsed());
    let written = &window.bytes[before..];
    let frames = frames(written);
    let share = used.as_secs_f64() / took.as_secs_f64() * 100.0;
    eprintln!(
        "{count} tokens in {took:.1?}: {share:.1} % of a core (goal: 5 %), {:.1} bytes written for each streamed one \
         (goal: 12), {frames} frames",
        written.len() as f64 / streamed as f64
    );
    // At most one frame in 33 ms.
    let most = 31.0 * took.as_secs_f64() + 50.0;
    assert!(f64::from(frames) <= most, "{frames} frames in {took:.1?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_shows_its_character_at_once_while_tokens_stream() {
    let (count, keys) = (cases(200, 4_000), usize::try_from(cases(20, 1_000)).expect("a number"));
    let gate = Gate::new();
    let (response, _) = tokens(count, &gate);
    let server = MockServer::start([response]).await;
    let place = Place::with_server(&server);
    let (mut window, _) = open(&place).await;
    window.says("Speak.").await;
    window.shows("the model works").await;
    tokio::spawn(pace(gate, count));
    let (mut times, mut draft) = (Vec::new(), String::from("› "));
    for number in 0..keys {
        if draft.chars().count() > 40 {
            window.types("\x15");
            window.until("an empty draft", |window| window.screen().lines().any(|row| row == "›")).await;
            draft.truncate("› ".len());
        }
        let key = char::from(b'a' + u8::try_from(number % 26).expect("a letter"));
        draft.push(key);
        let begun = Instant::now();
        window.types(&key.to_string());
        window.until(&draft, |window| window.screen().contains(&draft)).await;
        times.push(begun.elapsed());
    }
    let is_over = window.screen().contains("the end");
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() * permille / 1_000).min(times.len() - 1)];
    let (median, late) = (at(500), at(990));
    eprintln!("from a key to its character: {median:?}, p99 {late:?} of {KEY:?}, {keys} keys");
    assert!(!is_full() || late <= KEY && !is_over, "{late:?}, the stream is over: {is_over}");
    window.until("the end", |window| window.screen().contains("the end")).await;
}

/// The number of calls of an answer.
const CALLS: u64 = 40;

/// Asks for the files once after each message, and then answers the message. Summaries and hints, which have the role of
/// the person as well, are no messages of this conversation.
fn reply(request: &RecordedRequest) -> MockResponse {
    let messages = request.body["messages"].as_array().expect("messages");
    let text = |message: &serde_json::Value| message["content"].as_str().unwrap_or_default().to_owned();
    let asked =
        messages.iter().rposition(|message| message["role"] == "user" && text(message).starts_with("round "));
    let done = messages.iter().rposition(|message| message["role"] == "tool");
    match asked {
        Some(asked) if done.is_some_and(|done| done > asked) => {
            answer(&format!("done with {}", text(&messages[asked])))
        }
        Some(asked) if asked + 1 == messages.len() => {
            let call = |n| ("read_file", json!({"path": format!("file{n}.txt")}));
            asks_for_all("I read them.", &(0..CALLS).map(call).collect::<Vec<_>>())
        }
        _ => answer("The files were read."),
    }
}

#[tokio::test]
async fn conversation_of_many_cells_keeps_its_memory() {
    // A message, an answer before the calls and one behind them, and a head for the calls.
    let rounds = cases(2, 10_000 / (CALLS + 4));
    let server = MockServer::answering(reply).await;
    let place = Place::with_server(&server);
    for n in 0..CALLS {
        std::fs::write(place.path(&format!("file{n}.txt")), format!("a line of {n}\n").repeat(4))
            .expect("a file");
    }
    let (mut window, id) = open(&place).await;
    let before = memory(&id);
    for round in 1..=rounds {
        let message = format!("round {round}.");
        window.says(&message).await;
        let end = format!("done with {message}");
        // What scrolled away is not read: that would take longer than the conversation.
        window.until(&end, |window| window.screen().contains(&end)).await;
        window.hides("Esc stops").await;
    }
    let ([all_before, own_before], [all, own]) = (before, memory(&id));
    eprintln!(
        "memory after {} cells: {all:.1} MB (goal: 40 MB after 10,000), {own:.1} MB of them its own; at the beginning \
         {all_before:.1} and {own_before:.1} MB",
        rounds * (CALLS + 4)
    );
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.screen());
    server.assert_paired();
}
