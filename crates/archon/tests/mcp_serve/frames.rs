//! Messages that are none: the server drops or refuses them, and serves the next one.

use archon::mcp_serve::MAX_MESSAGE;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::world::{Client, World, text};

/// More than any client sends: a quarter of a gibibyte.
const HUGE: u64 = 1 << 28;

#[tokio::test]
async fn malformed_frames_are_dropped_or_refused_and_the_next_call_is_answered() {
    for (frame, is_answered) in [
        ("not json\n", false),
        ("{\"jsonrpc\":\"2.0\",\"id\":1\n", false),
        ("\n\n", false),
        ("[]\n", true),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":[]}\n", true),
        ("\u{0}\u{1}\n", false),
    ] {
        let mut client = World::new().client();
        client.call("add", json!({ "a": 1, "b": 1 })).await;
        client.write(frame.as_bytes()).await;
        let answer = client.call("add", json!({ "a": 1, "b": 2 })).await;
        assert_eq!(text(&answer), "3", "{frame:?}");
        let refused = client.received.iter().filter(|message| message.get("error").is_some()).count();
        assert_eq!(refused, usize::from(is_answered), "{frame:?}: {:?}", client.received);
        client.close().await;
    }
}

#[tokio::test]
async fn line_without_an_end_is_dropped_and_the_next_call_is_answered() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (rest, output) = tokio::io::split(far);
    let input = tokio::io::repeat(b'x').take(HUGE).chain(&b"\n"[..]).chain(rest);
    let mut client = Client::over(near, World::new().runs().1, input, output);
    let answer = client.call("add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(text(&answer), "3");
    client.close().await;
}

#[tokio::test]
async fn message_up_to_the_limit_is_answered() {
    let mut client = World::new().client();
    let long = "x".repeat(MAX_MESSAGE - 4_096);
    let answer = client.call("subtract", json!({ "long": long })).await;
    assert_eq!(answer["error"]["code"], -32602);
    client.close().await;
}

#[tokio::test]
async fn first_message_that_opens_no_connection_ends_the_server_with_an_error() {
    let mut client = World::new().client();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let error = client.served.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no MCP connection was opened"), "{error}");
}
