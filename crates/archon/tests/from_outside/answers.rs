//! Questions of tasks that are answered by a link, by a reply to mail, and by command.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use archon::{
    answers::{AnswerError, AnswerPage, MailReplies},
    server::{
        AllowedHosts, Server, ServerOptions,
        axum::{body::Body, http::Request},
    },
    triggers::TriggerEvent,
    types::{Answer, AnswerRuns, Notification, NotificationKind},
};
use serde_json::json;
use tower::ServiceExt as _;

use crate::world::{ANNA, Process, World};

/// Starts a run that asks, and returns the notification of its question.
async fn ask(world: &World, process: &mut Process) -> Notification {
    process.create("desk", "shop.*", "refund what the customer sent back").await;
    let event = TriggerEvent::new("o-1", "shop", "returned", json!({ "order": 7 })).tenant("anna");
    process.engine.publish(&event).await.unwrap();
    let sent = process.next_notification().await;
    assert!(matches!(sent.about, NotificationKind::Question(_)), "{sent:?}");
    assert_eq!(world.refunds.load(Ordering::SeqCst), 0);
    sent
}

fn id_of(sent: &Notification) -> String {
    let NotificationKind::Question(question) = &sent.about else { panic!("{sent:?}") };
    question.request.request_id.clone()
}

fn link_token(sent: &Notification) -> String {
    sent.link.as_ref().unwrap().split_once('#').unwrap().1.to_owned()
}

fn yes_by_mail(sent: &Notification) -> String {
    let token = sent.reply_token.as_ref().unwrap();
    format!("From: {ANNA}\r\nIn-Reply-To: <question.{token}@archon>\r\n\r\nyes\r\n")
}

/// Checks that a further answer is refused, on each way.
async fn must_refuse_all(process: &Process, sent: &Notification) {
    let again = process.answers.answer(&link_token(sent), Answer::Approve).await;
    assert!(matches!(again, Err(AnswerError::Answered { .. })), "{again:?}");
    let again = MailReplies::new(process.answers.clone()).take(yes_by_mail(sent).as_bytes()).await;
    assert!(matches!(again, Err(AnswerError::Answered { .. })), "{again:?}");
    assert!(!process.runs.answer(&id_of(sent), Answer::Approve).await.unwrap());
}

// spec: AP-10, TR-10, A-40
#[tokio::test]
async fn question_of_a_task_is_answered_by_link_by_mail_or_by_command_after_a_restart_and_once() {
    for way in ["link", "mail", "command"] {
        let world = World::new();
        let mut process = world.start();
        let sent = ask(&world, &mut process).await;
        process.kill().await;

        let mut process = world.start();
        match way {
            "link" => drop(process.answers.answer(&link_token(&sent), Answer::Approve).await.unwrap()),
            "mail" => {
                let replies = MailReplies::new(process.answers.clone());
                assert!(replies.take(yes_by_mail(&sent).as_bytes()).await.unwrap().is_some());
            }
            _ => assert!(process.runs.answer(&id_of(&sent), Answer::Approve).await.unwrap()),
        }
        must_refuse_all(&process, &sent).await;
        let mut result = process.next_after_looks(&world.clock).await;
        if matches!(result.about, NotificationKind::Question(_)) {
            // The new process notified it again before it was answered.
            result = process.next_after_looks(&world.clock).await;
        }
        assert_eq!((result.about, result.run), (NotificationKind::Result, sent.run), "{way}");
        assert_eq!(world.refunds.load(Ordering::SeqCst), 1, "{way}");
    }
}

// spec: AP-10, TR-10
#[tokio::test]
async fn answer_to_a_question_that_expired_says_so_on_each_way() {
    let world = World::new();
    let mut process = world.start();
    let sent = ask(&world, &mut process).await;
    world.clock.advance(Duration::from_secs(31 * 60));
    let late = process.answers.answer(&link_token(&sent), Answer::Approve).await;
    assert!(matches!(late, Err(AnswerError::Expired { .. })), "{late:?}");
    let late = MailReplies::new(process.answers.clone()).take(yes_by_mail(&sent).as_bytes()).await;
    assert!(matches!(late, Err(AnswerError::Expired { .. })), "{late:?}");
    assert!(!process.runs.answer(&id_of(&sent), Answer::Approve).await.unwrap());
    assert_eq!(process.next_after_looks(&world.clock).await.about, NotificationKind::Expired);
    assert_eq!(world.refunds.load(Ordering::SeqCst), 0);
}

// spec: TR-10, TR-11, A-40
#[tokio::test]
async fn question_that_expires_while_no_process_runs_is_notified_as_expired_after_the_restart_and_once() {
    let world = World::new();
    let mut process = world.start();
    let sent = ask(&world, &mut process).await;
    process.kill().await;
    world.clock.advance(Duration::from_secs(31 * 60));

    let mut process = world.start();
    let expired = process.next_after_looks(&world.clock).await;
    assert_eq!((&expired.about, &expired.run), (&NotificationKind::Expired, &sent.run), "{expired:?}");
    assert!(expired.text.contains("no answer came in time to: "), "{expired:?}");
    let result = process.next_after_looks(&world.clock).await;
    assert_eq!(result.about, NotificationKind::Result, "{result:?}");
    assert_eq!(world.refunds.load(Ordering::SeqCst), 0);
}

// spec: TR-10
#[tokio::test]
async fn question_that_is_answered_in_time_is_not_notified_as_expired_when_its_end_passes_before_the_next_look()
 {
    let world = World::new();
    let mut process = world.start();
    let sent = ask(&world, &mut process).await;
    process.answers.answer(&link_token(&sent), Answer::Approve).await.unwrap();
    world.clock.advance(Duration::from_secs(31 * 60));
    let result = process.next_after_looks(&world.clock).await;
    assert_eq!(result.about, NotificationKind::Result, "{result:?}");
    assert!(!process.has_notification());
}

// spec: AP-10
#[tokio::test]
async fn page_beside_the_routes_of_a_server_takes_an_answer_without_an_access_token() {
    let world = World::new();
    let mut process = world.start();
    let sent = ask(&world, &mut process).await;
    let hosts = || AllowedHosts::new(["archon.example.com"]);
    let clock = Arc::new(world.clock.clone());
    let server = Server::new(hosts(), [], clock, ServerOptions::default().with_dashboard());
    let router = server.router().merge(AnswerPage::new(process.answers.clone(), hosts()).router());
    let send =
        async |request: Request<Body>| router.clone().oneshot(request).await.unwrap().status().as_u16();
    let get =
        |path: &str| Request::get(path).header("host", "archon.example.com").body(Body::empty()).unwrap();
    assert_eq!((send(get("/answer")).await, send(get("/v1/runs")).await), (200, 401));
    let yes = json!({ "token": link_token(&sent), "answer": { "answer": "approve" } }).to_string();
    let post = Request::post("/answer")
        .header("host", "archon.example.com")
        .header("content-type", "application/json");
    assert_eq!(send(post.body(Body::from(yes)).unwrap()).await, 200);
    assert_eq!(process.next_after_looks(&world.clock).await.about, NotificationKind::Result);
    assert_eq!(world.refunds.load(Ordering::SeqCst), 1);
}

// spec: AP-10, TR-06
#[cfg(feature = "event-sources-imap")]
#[tokio::test]
async fn event_of_the_mail_of_a_question_has_neither_of_its_tokens() {
    let world = World::new();
    let mut process = world.start();
    let sent = ask(&world, &mut process).await;
    let (link, reply) = (sent.link.as_ref().unwrap(), sent.reply_token.as_ref().unwrap());
    let mail = format!(
        "From: archon@example.com\r\nSubject: {link}\r\nMessage-ID: <question.{reply}@archon>\r\n\r\nOpen {link}\r\n\
         > {reply}\r\n"
    );
    let event = archon::event_sources::ReceivedMail::new("1/1", mail).to_event("inbox");
    let text = event.data.to_string();
    for token in [reply.as_str(), &link_token(&sent)] {
        let (first, second) = token.split_once('.').unwrap();
        assert!(!text.contains(&first[..40]) && !text.contains(second), "{text}");
    }
    assert_eq!(event.data["text"], "Open https://archon.example.com/answer#[token]\n> [token]\n");
}
