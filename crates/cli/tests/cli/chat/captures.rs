//! The captures of a conversation in the book. `ARCHON_CAPTURES=write` writes them anew from the program.

use std::path::PathBuf;

use archon_testkit::MockServer;
use serde_json::json;

use super::{consent::answers, window::Window};
use crate::setup::{Place, answer, asks_for, says_and_asks_for};

/// The heading of the part of the page that has the captures.
const HEADING: &str = "\n## Screens\n";
const BEGIN: &str = "\n```text\n";
const END: &str = "\n```\n";

fn page() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/how-to/chat.md").into()
}

/// A window with a conversation of a model with a common name.
async fn open(server: &MockServer, files: &[(&str, &str)], columns: u16) -> (Place, Window) {
    let place = Place::new();
    for (name, text) in files {
        std::fs::write(place.path(name), text).expect("a file");
    }
    let base = format!("{}/v1", server.url());
    let variables = [("ARCHON_BASE_URL", base.as_str()), ("ARCHON_MODEL", "qwen3")];
    let mut window = Window::with(&place, "chat", columns, 24, &variables);
    window.shows("· qwen3 ·").await;
    (place, window)
}

/// Returns what is in the window. The times of calls differ in each run, so they are replaced.
fn capture(window: &mut Window) -> String {
    let all = window.all();
    let row = |row: &str| match row.rsplit_once("   ") {
        Some((before, took)) if took.ends_with(" ms") || took.ends_with(" s") => format!("{before}   12 ms"),
        _ => row.to_owned(),
    };
    let rows: Vec<String> = all.trim_end().lines().map(row).collect();
    rows.join("\n")
}

/// A question about an edit, in a wide window.
async fn question() -> String {
    let code = "def total(items):\n    sum = 0\n    for i in range(len(items) - 1):\n        sum += items[i].price\n    return sum\n";
    let edit =
        json!({"path": "cart.py", "old_text": "range(len(items) - 1)", "new_text": "range(len(items))"});
    let server = MockServer::start([
        says_and_asks_for("I read the code first.", "read_file", r#"{"path": "cart.py"}"#),
        says_and_asks_for("The loop leaves out the **last** item.", "edit_file", &edit.to_string()),
    ])
    .await;
    let (_place, mut window) = open(&server, &[("cart.py", code)], 100).await;
    window.says("The total of a cart is wrong. Mend it.").await;
    window.shows("[y]es, once").await;
    capture(&mut window)
}

/// A command that failed and an answer, in a narrow window.
async fn narrow() -> String {
    let test = "for n in 1 2 3 4 5 6 7; do echo \"cart test $n: ok\"; done\n\
                echo 'cart test 8: FAILED: the total is 4.50, not 7.50'\nexit 1\n";
    let text = "One of eight tests fails:\n\n\
                1. `total` of two items is **4.50**, and should be 7.50.\n\
                2. The loop in `cart.py` ends one item too early, because its range is one too short.\n\n\
                Shall I mend it?";
    let run = json!({"command": "sh test.sh"}).to_string();
    let server = MockServer::start([asks_for("bash", &run), answer(text)]).await;
    let (_place, mut window) = open(&server, &[("test.sh", test)], 60).await;
    window.says("Run the tests and tell me in a few words what is wrong.").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "Shall I mend it?").await;
    window.hides("Esc stops").await;
    capture(&mut window)
}

/// Characters that are two columns wide.
async fn wide_characters() -> String {
    let table = "| 商品 | 价格 | |\n|---|---:|---|\n| 苹果 | 3.50 € | 🍎 |\n| パン | 2.80 € | 🍞 |\n| 치즈 | 14.20 € | 🧀 |\n\n\
                 合计 **20.50 €**，今天已付款 ✅";
    let server = MockServer::start([answer(table)]).await;
    let (_place, mut window) = open(&server, &[], 60).await;
    window.says("把购物车列成表 🛒").await;
    window.shows("✅").await;
    window.hides("Esc stops").await;
    capture(&mut window)
}

/// The part of a capture that is the same in other versions, and on a machine without a sandbox.
fn common(capture: &str) -> String {
    let version = concat!("archon ", env!("CARGO_PKG_VERSION"));
    let row = |row: &str| match row.strip_prefix("archon ").and_then(|rest| rest.split_once(' ')) {
        Some((_, rest)) => format!("{version} {rest}\n"),
        None => format!("{}\n", row.replace(" · sandbox", "")),
    };
    capture.lines().map(row).collect()
}

#[tokio::test]
async fn captures_of_the_book_are_those_of_the_program() {
    let page = page();
    let text = std::fs::read_to_string(&page).expect("the page of the book");
    let (before, mut rest) = text.split_once(HEADING).expect("the heading");
    let mut written = before.to_owned() + HEADING;
    let captures = [question().await, narrow().await, wide_characters().await];
    let mut differing = Vec::new();
    for capture in &captures {
        let (before, block) = rest.split_once(BEGIN).expect("a capture");
        let (old, after) = block.split_once(END).expect("its end");
        if common(old) != common(capture) {
            differing.push(format!("in the book:\n{old}\n\nof the program:\n{capture}"));
        }
        written.extend([before, BEGIN, capture.as_str(), END]);
        rest = after;
    }
    if std::env::var("ARCHON_CAPTURES").is_ok_and(|value| value == "write") {
        return std::fs::write(&page, written + rest).expect("the page can be written");
    }
    assert!(differing.is_empty(), "write them anew with ARCHON_CAPTURES=write:\n{}", differing.join("\n\n"));
}
