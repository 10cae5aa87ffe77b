//! Notification channels, over real connections to this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{sync::Arc, time::Duration};

use archon_notify::{ChannelError, SlackChannel, TelegramChannel, WebhookChannel, WebhookOptions};
use archon_testkit::{MockResponse, MockServer, RecordedRequest, VirtualClock};
use archon_types::{Clock, Notification, NotificationChannel, NotificationKind, Secret};
use serde_json::json;

#[cfg(feature = "mail")]
mod mail;
mod outbox;

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

/// Sends a notification to a server with these answers, and returns the pauses in milliseconds and the requests.
async fn send_again(answers: Vec<MockResponse>) -> (Vec<u64>, Vec<RecordedRequest>) {
    let retries = answers.len() - 1;
    let server = MockServer::start(answers).await;
    let (virtual_clock, clock) = clock();
    let channel = WebhookChannel::new("push", WebhookOptions::new(server.url()), clock).unwrap();
    let sending = tokio::spawn(async move { channel.send(&mail_result("x")).await });
    let mut pauses = Vec::new();
    while pauses.len() < retries {
        tokio::task::yield_now().await;
        // The limit of a request is a deadline of 30 s; no pause of these tests is as long.
        let Some(deadline) = virtual_clock.next_deadline() else { continue };
        let pause = deadline.since(virtual_clock.now());
        if server.requests().len() > pauses.len() && pause != Duration::from_secs(30) {
            pauses.push(u64::try_from(pause.as_millis()).unwrap());
            virtual_clock.advance(pause);
        }
    }
    sending.await.unwrap().unwrap();
    (pauses, server.requests())
}

#[tokio::test]
async fn send_after_failures_that_pass_repeats_the_id_after_growing_pauses() {
    let failure = |status| MockResponse::json(status, &json!({}));
    let (pauses, requests) = send_again(vec![failure(503), failure(429), failure(408), ok_answer()]).await;
    for (pause, middle) in pauses.iter().zip([1_000, 4_000, 16_000]) {
        assert!((middle * 8 / 10..=middle * 12 / 10).contains(pause), "{pauses:?}");
    }
    // Jitter changes them.
    assert_ne!(pauses, [1_000, 4_000, 16_000]);
    let ids: Vec<_> = requests.iter().map(|request| request.header("webhook-id").unwrap()).collect();
    assert_eq!(ids, [ids[0]; 4]);
    let time =
        |request: &RecordedRequest| request.header("webhook-timestamp").unwrap().parse::<u64>().unwrap();
    assert!(time(&requests[3]) >= time(&requests[0]) + 16, "the time is that of the try");
}

#[tokio::test]
async fn send_after_a_429_waits_as_long_as_retry_after_says_and_at_most_a_minute() {
    let busy = |seconds| MockResponse::json(429, &json!({})).header("retry-after", seconds);
    let (pauses, _) = send_again(vec![busy("17"), busy("86400"), busy("soon"), ok_answer()]).await;
    assert_eq!(pauses[..2], [17_000, 60_000]);
    assert!((12_800..=19_200).contains(&pauses[2]), "{pauses:?}");
}

#[test]
fn new_webhook_with_a_header_that_http_does_not_allow_names_it_without_its_value() {
    let error = |name: &str, value: &str| {
        let options = WebhookOptions::new("http://127.0.0.1:9/").header(name, Secret::from(value));
        WebhookChannel::new("sms", options, clock().1).err()
    };
    for (name, value) in [("a b", "key"), ("", "key"), ("authorization", "ke\ny")] {
        let error = error(name, value).unwrap();
        let expected = ChannelError::Header { channel: "sms".to_owned(), header: name.to_owned() };
        assert_eq!(error, expected);
        assert!(!error.to_string().contains("ke"), "{error}");
    }
    assert_eq!(error("Authorization", "Bearer key"), None);
}

#[test]
fn new_webhook_with_a_secret_that_is_not_base64_is_refused() {
    let options = WebhookOptions::new("http://127.0.0.1:9/").secret(Secret::from("whsec_?"));
    let error = WebhookChannel::new("sms", options, clock().1).err().unwrap();
    assert_eq!(error, ChannelError::Secret { channel: "sms".to_owned() });
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

fn webhook_error(url: &str) -> Option<String> {
    let webhook = WebhookChannel::new("sms", WebhookOptions::new(url), clock().1);
    webhook.err().map(|error| error.to_string())
}

#[test]
fn address_without_tls_is_refused_beyond_this_machine() {
    assert_eq!(
        webhook_error("http://sms.example.com/key").unwrap(),
        "the channel sms cannot be used: its address must begin with https://, or name this machine"
    );
    assert!(webhook_error("no address").unwrap().contains("no URL"));
    assert_eq!(webhook_error("http://127.0.0.1:9/key"), None);
}

#[cfg(not(feature = "tls"))]
#[test]
fn https_address_without_the_feature_tls_is_refused_at_creation() {
    let text = "cannot be used: its address begins with https://, which needs the cargo feature `tls`; it is \
                off in this build";
    assert_eq!(webhook_error("https://sms.example.com/key"), Some(format!("the channel sms {text}")));
    let (secret, clock) = (Secret::from("https://hooks.slack.com/services/key"), clock().1);
    let slack = SlackChannel::new(&secret, clock.clone()).err().unwrap();
    assert_eq!(slack.to_string(), format!("the channel slack {text}"));
    let telegram = TelegramChannel::new(&secret, "42", clock).err().unwrap();
    assert_eq!(telegram.to_string(), format!("the channel telegram {text}"));
}

#[cfg(feature = "tls")]
#[test]
fn https_address_with_the_feature_tls_is_taken() {
    assert_eq!(webhook_error("https://sms.example.com/key"), None);
}
