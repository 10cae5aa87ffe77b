//! Notification channels, over real connections to this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{sync::Arc, time::Duration};

use archon_notify::{SlackChannel, TelegramChannel, WebhookChannel, WebhookOptions};
use archon_testkit::{MockResponse, MockServer, VirtualClock};
use archon_types::{Clock, Notification, NotificationChannel, NotificationKind, Secret};
use serde_json::json;

#[cfg(feature = "mail")]
mod mail;

fn mail_result(text: &str) -> Notification {
    Notification::new("anna", NotificationKind::Result, text).task("mail".into()).run(Some("run_1".into()))
}

fn ok_answer() -> MockResponse {
    MockResponse::json(200, &json!({ "ok": true }))
}

fn clock() -> (VirtualClock, Arc<dyn Clock>) {
    let clock = VirtualClock::new();
    (clock.clone(), Arc::new(clock))
}

// spec: TR-09, AP-10
#[tokio::test]
async fn webhook_is_signed_over_its_id_time_and_body() {
    let server = MockServer::start([ok_answer()]).await;
    let (_, clock) = clock();
    let options = WebhookOptions::new(server.url())
        .secret(Secret::from("whsec_c2VjcmV0IGtleSBvZiB0aGUgdGVzdA=="))
        .header("authorization", Secret::from("Bearer k"));
    let channel = WebhookChannel::new("sms", options, clock).unwrap();
    let notification = mail_result("Two mails.");
    channel.send(&notification).await.unwrap();

    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.header("authorization")), ("POST", Some("Bearer k")));
    let (id, time) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    assert_eq!((id, time), (format!("msg_{}", notification.id()).as_str(), "1767225600"));
    let mac = hmac_sha256::HMAC::mac(format!("{id}.{time}.{}", request.text), b"secret key of the test");
    let signature = format!("v1,{}", data_encoding::BASE64.encode(&mac));
    assert_eq!(request.header("webhook-signature"), Some(signature.as_str()));
    assert_eq!(request.body["type"], "archon.result");
    let data = &request.body["data"];
    assert_eq!(
        (&data["task"], &data["run"], &data["text"]),
        (&json!("mail"), &json!("run_1"), &json!("Two mails."))
    );
    assert_eq!(data["subject"], "mail done");
}

#[tokio::test]
async fn failure_that_passes_is_tried_again_with_the_same_id() {
    let server = MockServer::start([
        MockResponse::json(503, &json!({})),
        MockResponse::json(429, &json!({})),
        ok_answer(),
    ])
    .await;
    let (virtual_clock, clock) = clock();
    let channel = WebhookChannel::new("push", WebhookOptions::new(server.url()), clock).unwrap();
    let sending = tokio::spawn(async move { channel.send(&mail_result("x")).await });
    for pause in [1, 4] {
        // The pause; the limit of the request is gone by then.
        while virtual_clock.next_deadline() != Some(virtual_clock.now() + Duration::from_secs(pause)) {
            tokio::task::yield_now().await;
        }
        virtual_clock.advance(Duration::from_secs(pause));
    }
    sending.await.unwrap().unwrap();
    let ids: Vec<_> = server.requests().iter().map(|r| r.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test]
async fn refusal_is_not_tried_again_and_its_error_has_no_address() {
    let answer = json!({ "description": "bot123:very-secret is unknown" });
    // A service that echoes the address.
    let server = MockServer::start([MockResponse::json(401, &answer)]).await;
    let (_, clock) = clock();
    let token = Secret::from("123:very-secret");
    let channel = TelegramChannel::at(&server.url(), &token, "42", clock.clone()).unwrap();
    let error = channel.send(&mail_result("x")).await.unwrap_err();
    assert_eq!(error, "the service answered with status 401");
    assert_eq!(server.requests().len(), 1);
}

// spec: TR-09
#[tokio::test]
async fn slack_and_telegram_get_plain_text_that_cannot_format_or_mention() {
    let server = MockServer::start([ok_answer(), ok_answer()]).await;
    let (_, clock) = clock();
    let attack = mail_result("<!channel> *bold* <https://evil.example|click> \u{202e}abc");
    let slack = SlackChannel::new(&Secret::from(server.url()), clock.clone()).unwrap();
    slack.send(&attack).await.unwrap();
    let telegram = TelegramChannel::at(&server.url(), &Secret::from("t"), "42", clock).unwrap();
    telegram.send(&attack).await.unwrap();

    let requests = server.requests();
    let blocks = requests[0].body["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["text"]["type"] == "plain_text"));
    assert!(blocks[1]["text"]["text"].as_str().unwrap().starts_with("> <!channel> *bold*"));
    assert!(!requests[0].text.contains('\u{202e}'));
    assert_eq!(requests[1].path, "/bott/sendMessage");
    assert_eq!(requests[1].body.get("parse_mode"), None);
    assert_eq!(requests[1].body["chat_id"], "42");
    assert!(requests[1].body["text"].as_str().unwrap().starts_with("mail done\n> <!channel>"));
}

#[test]
fn address_without_tls_is_refused_beyond_this_machine() {
    let (_, clock) = clock();
    let error = |url: &str| WebhookChannel::new("sms", WebhookOptions::new(url), clock.clone()).err();
    assert_eq!(
        error("http://sms.example.com/key").unwrap(),
        "the channel sms cannot be used: its address must begin with https://, or name this machine"
    );
    assert!(error("no address").unwrap().contains("no URL"));
    assert_eq!(error("http://127.0.0.1:9/key"), None);
}
