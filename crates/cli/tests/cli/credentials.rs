//! Keys that are kept: typed unseen or piped in, used where the environment holds none, and never shown.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::{
    setup::{Place, answer},
    terminal::Terminal,
};

const KEY: &str = "sk-canary-7f3a91";

/// All bytes below the folder of the data.
fn kept(place: &Place) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(place.data()).into_iter().flatten().flatten() {
        if entry.path().is_file() {
            all.extend(std::fs::read(entry.path()).expect("it is read"));
        }
    }
    all
}

// spec: CR-03, CR-05
#[tokio::test]
async fn credentials_add_keeps_a_piped_key_sealed_and_list_and_remove_never_show_it() {
    let place = Place::new();
    let empty = place.archon("credentials list", &[]).await;
    assert_eq!((empty.code, empty.out.as_str()), (Some(0), ""), "{empty:?}");
    let added = place.pipe("credentials add", &["openai"], &format!("{KEY}\n")).await;
    assert_eq!(
        (added.code, added.err.as_str()),
        (Some(0), "the key of openai (primary) is stored\n"),
        "{added:?}"
    );
    let again = place.pipe("credentials add", &["openai-responses", "--json"], "sk-other").await.json();
    assert_eq!(again, [json!({"service": "openai", "account": "primary", "replaced": true})]);
    place.pipe("credentials add", &["openai", "--account", "work"], KEY).await;
    let listed = place.archon("credentials list", &[]).await;
    let services: Vec<Vec<_>> =
        listed.out.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(services, [["openai", "primary"], ["openai", "work"]], "{listed:?}");
    let whole = place.archon("credentials list --json", &[]).await;
    assert_eq!(whole.json()[0]["service"], "openai");
    let doctor = place.archon("doctor", &[]).await;
    assert!(doctor.out.contains("OPENAI_API_KEY (stored), OPENAI_API_KEY_2 (stored)"), "{doctor:?}");
    let shown = format!("{listed:?} {whole:?} {added:?} {doctor:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!kept(&place).windows(6).any(|bytes| bytes == b"canary"), "it is sealed");
    #[cfg(unix)]
    for file in ["credentials.db", "credentials.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.data().join(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let removed = place.archon("credentials remove", &["openai", "--account", "work"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let none = place.archon("credentials remove", &["openai", "--account", "work"]).await;
    none.check_refused(2, "no key of openai (work) is stored", "archon credentials list");
}

// spec: CR-05
#[tokio::test]
async fn credentials_add_takes_no_key_as_an_argument_and_no_wrong_service() {
    let place = Place::new();
    let ran = place.archon("credentials add", &["openai", KEY]).await;
    ran.check_refused(2, "a key cannot be an argument", "archon credentials add openai");
    assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    let ran = place.archon("credentials add", &["opnai"]).await;
    ran.check_refused(2, "there is no service", "did you mean openai?");
    place.archon("credentials add", &["openai"]).await.check_refused(
        2,
        "no key on standard input",
        "pipe it",
    );
    assert!(!place.data().exists(), "nothing is made for nothing");
}

// spec: CR-05
#[tokio::test]
async fn credentials_add_on_a_terminal_shows_nothing_of_the_key() {
    let place = Place::new();
    let mut terminal = Terminal::open();
    let mut command = place.command("credentials add", &["anthropic"]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut shown = terminal.read_until("key of anthropic: ").await;
    terminal.say(&format!("{KEY}\n"));
    let status = child.wait().await.expect("it ends");
    shown += &terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("the key of anthropic (primary) is stored") && !shown.contains("canary"),
        "{shown}"
    );
}

fn responses() -> MockResponse {
    let done = json!({"type": "response.completed", "response": {
        "id": "r", "status": "completed", "output": [
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Paris"}]},
        ], "usage": {"input_tokens": 1, "output_tokens": 1},
    }});
    MockResponse::events([done.to_string()])
}

// spec: CR-04
#[tokio::test]
async fn run_uses_the_stored_key_if_the_environment_has_none() {
    let server = MockServer::start([responses(), responses(), answer("never")]).await;
    let place = Place::new();
    place.pipe("credentials add", &["openai"], KEY).await;
    let line = format!("run --model openai-responses@{}/v1:m", server.url());
    let ran = place.archon(&line, &["hi"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = place.command(&line, &["hi"]).env("OPENAI_API_KEY", "sk-env").output().await.expect("it runs");
    assert!(ran.status.success(), "{ran:?}");
    let keys: Vec<_> =
        server.requests().iter().map(|r| r.header("authorization").unwrap_or_default().to_owned()).collect();
    assert_eq!(keys, [format!("Bearer {KEY}"), "Bearer sk-env".to_owned()]);
    let shown = format!("{ran:?} {:?}", place.archon("runs events last --json", &[]).await);
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn run_goes_on_with_a_warning_where_the_sealing_key_is_lost() {
    let server = MockServer::start([answer("Paris")]).await;
    let place = Place::with_server(&server);
    place.pipe("credentials add", &["openai"], KEY).await;
    std::fs::remove_file(place.data().join("credentials.key")).expect("it was made");
    let ran = place.archon("run", &["Capital of France?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Paris\n"), "{ran:?}");
    assert!(
        ran.err.contains("warning: the credentials cannot be decrypted")
            && ran.err.contains("restore the key"),
        "{ran:?}"
    );
}
