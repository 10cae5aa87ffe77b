//! The themes of a conversation: the colors of what comes later, and the settings that keep the choice.

use archon_testkit::MockServer;

use super::{rows::set, window::Window};
use crate::setup::{Place, answer};

/// Code in a sentence, in cyan of the terminal's palette and in that of the theme `light`.
const AUTO: &str = "\x1b[0;36mcargo";
const LIGHT: &str = "\x1b[0;38;5;24mcargo";

fn has(window: &Window, code: &str) -> bool {
    String::from_utf8_lossy(&window.bytes).contains(code)
}

/// Sends a message whose answer has code in these colors.
async fn says(window: &mut Window, text: &str, code: &str) {
    window.says(text).await;
    window.until(code, |window| has(window, code)).await;
    window.hides("Esc stops").await;
}

// spec: CL-02
#[tokio::test]
async fn theme_colors_what_comes_later_and_is_kept_in_the_settings() {
    let server = MockServer::start([(); 3].map(|()| answer("Use `cargo`."))).await;
    let place = Place::with_server(&server);
    set(&place, "# Mine.\n[chat]\nnotify = \"off\"\n");
    let mut window = Window::open(&place, "chat");
    says(&mut window, "How?", AUTO).await;
    window.says("/theme").await;
    window.shows("the theme is auto").await;
    assert!(!has(&window, LIGHT), "{}", window.all());
    window.says("/theme light").await;
    window.shows("the theme light is stored in").await;
    says(&mut window, "Again?", LIGHT).await;
    assert_eq!(window.all().matches("Use cargo.").count(), 2, "{}", window.all());
    window.types("\x04");
    window.ends().await;
    let settings = std::fs::read_to_string(place.path(".config/archon/archon.toml")).expect("settings");
    assert_eq!(settings, "# Mine.\n[chat]\nnotify = \"off\"\ntheme = \"light\"\n");
    let mut window = Window::open(&place, "chat");
    says(&mut window, "Once more?", LIGHT).await;
    assert!(!has(&window, AUTO), "{}", window.all());
}
