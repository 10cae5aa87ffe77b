//! A server that behaves well: its tools are listed, called, cancelled, and their answers become results.

use std::{sync::PoisonError, time::Duration};

use archon_types::{Content, Effect, ToolError, ToolResultStatus, metadata};

use crate::support::{call, context, failure, messages_until, options, server, start, text_of, tool, within};

// spec: MC-01, MC-03, MC-04, A-57
#[tokio::test]
async fn tools_of_a_server_are_listed_over_all_pages_and_called() {
    let servers = start([("fake", server("well"))]);
    let echo = tool(&servers, "fake__echo").await;
    let names: Vec<_> =
        servers.tools(Duration::ZERO).await.iter().map(|tool| tool.spec().name.clone()).collect();
    let expected = ["change", "count", "echo", "fail", "picture", "progress", "wait"];
    assert_eq!(names, expected.map(|name| format!("fake__{name}")));
    assert_eq!(echo.spec().description, "[MCP server fake] Returns its text.");
    let result = call(&*echo, "grüße").await;
    assert_eq!((result.status, result.text()), (ToolResultStatus::Success, "grüße".to_owned()));
    assert_eq!(result.metadata[metadata::SOURCE_URL], "mcp://fake/echo");
    servers.close().await;
}

#[tokio::test]
async fn tool_effect_is_side_effect_despite_a_read_only_hint() {
    let servers = start([("fake", server("well")), ("vouched", server("well").with_read_only(["echo"]))]);
    let annotations = &tool(&servers, "fake__echo").await.spec().annotations.clone();
    assert!(annotations.effect == Effect::SideEffect && annotations.destructive);
    assert_eq!(tool(&servers, "vouched__echo").await.spec().annotations.effect, Effect::ReadOnly);
    servers.close().await;
}

// spec: MC-04, MC-07
#[tokio::test]
async fn answers_with_pictures_errors_and_progress_become_results() {
    let servers = start([("fake", server("well"))]);
    let picture = call(&*tool(&servers, "fake__picture").await, "").await;
    assert!(matches!(&picture.content[..], [Content::Media(picture)] if picture.mime_type() == "image/png"));
    let failed = call(&*tool(&servers, "fake__fail").await, "no such file").await;
    assert_eq!((failed.status, failed.text()), (ToolResultStatus::Error, "Error: no such file".to_owned()));
    let progress = tool(&servers, "fake__progress").await;
    let (context, shown) = context(&*progress);
    progress.call(text_of("half\u{200b}way"), &context).await.unwrap();
    assert_eq!(*shown.lock().unwrap_or_else(PoisonError::into_inner), ["halfway: 1 of 2"]);
    servers.close().await;
}

// spec: MC-02
#[tokio::test]
async fn simultaneous_calls_get_their_own_answers() {
    let servers = start([("fake", server("late")), ("other", server("foreign-id"))]);
    for name in ["fake__echo", "other__echo"] {
        let echo = tool(&servers, name).await;
        let calls = (0..50).map(|n| {
            let echo = echo.clone();
            async move {
                let text = n.to_string();
                // The last answer of a late server never comes.
                let answer = tokio::time::timeout(Duration::from_secs(5), call(&*echo, &text)).await;
                answer.is_ok_and(|result| {
                    assert_eq!(result.text(), text);
                    true
                })
            }
        });
        let answered = futures_util::future::join_all(calls).await.into_iter().filter(|is| *is).count();
        assert!(answered >= 49, "{name}: {answered}");
    }
    servers.close().await;
}

// spec: MC-07
#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_goes_on() {
    let servers = start([("fake", server("well"))]);
    let wait = tool(&servers, "fake__wait").await;
    let (context, _) = context(&*wait);
    context.cancel.cancel();
    assert_eq!(wait.call(text_of(""), &context).await, Err(ToolError::Cancelled));
    assert_eq!(call(&*tool(&servers, "fake__echo").await, "still there").await.text(), "still there");
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_under_way_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let servers = start([("fake", server("well").with_secret("FAKE_LOG", log.display().to_string()))]);
    let wait = tool(&servers, "fake__wait").await;
    let (context, _) = context(&*wait);
    let cancel = async {
        messages_until(&log, "\"tools/call\"").await;
        context.cancel.cancel();
    };
    let (result, ()) = futures_util::future::join(wait.call(text_of(""), &context), cancel).await;
    assert_eq!(result, Err(ToolError::Cancelled));
    let messages = messages_until(&log, "notifications/cancelled").await;
    let message = |method: &str| messages.iter().find(|message| message["method"] == method).unwrap();
    let (call, cancelled) = (message("tools/call"), message("notifications/cancelled"));
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    servers.close().await;
}

#[tokio::test]
async fn call_without_an_answer_times_out_and_notes_a_possible_effect() {
    let mut slow = server("well");
    slow.timeouts.call = Duration::from_millis(50);
    let servers = start([("fake", slow)]);
    let result = call(&*tool(&servers, "fake__wait").await, "").await;
    assert_eq!(result.status, ToolResultStatus::Timeout);
    let text = result.text();
    assert!(
        text.contains("MCP server 'fake', phase call: the server did not answer within 0.05 s"),
        "{text}"
    );
    assert!(text.contains("raise its time limit `call`") && text.contains("may have taken effect"), "{text}");
    servers.close().await;
}

// spec: MC-08
#[tokio::test]
async fn connection_failure_names_server_phase_and_advice() {
    let unknown = archon_mcp::McpServer::stdio("no-such-program-here", [""; 0]);
    let silent = within(server("silent"), Duration::from_millis(50));
    let endless = server("endless-list");
    let servers =
        start([("exits", server("exits")), ("unknown", unknown), ("silent", silent), ("endless", endless)]);
    for (name, parts) in [
        ("exits", &["'exits', phase handshake: the server ended with exit code 3", "the key is missing"][..]),
        ("unknown", &["ended with exit code 127", "not found: install it"]),
        ("silent", &["'silent', phase handshake: the server did not answer within 0.05 s", "`initialize`"]),
        ("endless", &["'endless', phase list of tools: the server's list of tools has more than 100 pages"]),
    ] {
        let text = failure(&servers, name).await;
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    servers.close().await;
}

#[tokio::test]
async fn values_of_a_servers_variables_are_not_in_its_answers() {
    let secretive = server("well").with_secret("KEY", "sk-very-secret-key").with_hidden("sk-of-an-argument");
    let servers = start([("fake", secretive)]);
    let text = "it is sk-very-secret-key, or sk-of-an-argument";
    let result = call(&*tool(&servers, "fake__echo").await, text).await;
    assert_eq!(result.text(), "it is ****, or ****");
    servers.close().await;
}

#[test]
fn a_server_with_a_name_that_blurs_borders_is_refused() {
    let refused = archon_mcp::McpServers::start([("a__b".to_owned(), server("well"))], &options());
    assert!(refused.unwrap_err().to_string().contains("phase settings: the name is invalid"));
}

#[tokio::test]
async fn a_server_at_an_address_that_cannot_be_used_is_refused_before_anything_is_sent() {
    let servers = start([("web", archon_mcp::McpServer::http("http://example.com/mcp"))]);
    let text = failure(&servers, "web").await;
    let expected = if cfg!(feature = "http") { "is not encrypted; use https" } else { "built without HTTP" };
    assert!(text.contains(expected) && text.contains("Correct the settings"), "{text}");
    servers.close().await;
}

#[tokio::test]
async fn a_sign_in_that_cannot_be_used_is_a_fault_of_the_settings() {
    let sign_in = archon_mcp::SignIn::person();
    let servers = start([
        ("command", server("well").with_sign_in(sign_in.clone())),
        ("web", archon_mcp::McpServer::http("https://127.0.0.1:1").with_sign_in(sign_in)),
    ]);
    let text = failure(&servers, "command").await;
    assert!(text.contains("phase sign-in: the server is started with a command"), "{text}");
    let text = failure(&servers, "web").await;
    let expected = if cfg!(feature = "sign-in") { "phase sign-in" } else { "built without sign-in" };
    assert!(text.contains(expected), "{text}");
    servers.close().await;
}
