//! A conversation on a terminal without colors, and in a window that is too small for a while.

use archon_testkit::{Gate, MockServer};
use serde_json::json;

use super::{basics::halves, consent, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Returns the codes of the sequences that choose how letters look.
fn styles(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let parameters = |part: &str| {
        let end = part.find(|c: char| c.is_ascii_alphabetic())?;
        part[end..].starts_with('m').then(|| part[..end].to_owned())
    };
    let all: Vec<String> = text.split("\x1b[").skip(1).filter_map(parameters).collect();
    all.iter().flat_map(|codes| codes.split([';', ':'])).filter_map(|code| code.parse().ok()).collect()
}

// spec: CL-09
#[tokio::test]
async fn difference_has_colors_only_without_no_color() {
    for (variables, has_colors) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let write = json!({"path": "notes.txt", "content": "hello\n"}).to_string();
        let server = MockServer::start([asks_for("write_file", &write), answer("It is `written`.")]).await;
        let place = Place::with_server(&server);
        let mut window = Window::with(&place, "chat", 80, 24, variables);
        window.says("Write notes.").await;
        window.shows("| 1 +hello").await;
        window.shows("[y]es, once").await;
        consent::answers(&mut window, "y", "It is written.").await;
        let codes = styles(&window.bytes);
        let is_color = |code: &u16| matches!(*code, 30..=48 | 90..=107);
        assert!(!codes.is_empty(), "{}", window.all());
        assert_eq!(codes.iter().any(is_color), has_colors, "{variables:?}: {codes:?}");
    }
}

#[tokio::test]
async fn window_of_few_columns_goes_on_when_it_grows_again() {
    let gate = Gate::new();
    let server = MockServer::start([halves("One ", &gate, "two."), answer("Better.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Count.").await;
    window.shows("One").await;
    window.resize(12, 24);
    window.types("abc");
    window.shows("› abc").await;
    gate.open();
    window.shows("two.").await;
    window.resize(80, 24);
    window.types("d");
    window.shows("› abcd").await;
    window.hides("Esc stops").await;
    window.types("\r");
    window.answers("Better.").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}
