//! Answers with the token of a link.

use std::time::Duration;

use archon_answers::AnswerError;
use archon_testkit::RecordingChannel;
use archon_types::{Answer, Notification, NotificationChannel, NotificationKind};

use crate::world::World;

fn refused(result: Result<impl Sized, AnswerError>) -> String {
    result.err().unwrap().to_string()
}

// spec: AP-10
#[tokio::test]
async fn answer_of_a_link_is_taken_once_also_by_a_process_that_was_started_later() {
    let world = World::new();
    let token = world.link_token().await;
    let later = world.answers();
    assert_eq!(later.question(&token).await.unwrap().request.request_id, "approval_1");
    assert!(world.taken().is_empty(), "to read a question answers nothing");
    later.answer(&token, Answer::Approve).await.unwrap();
    assert_eq!(
        refused(later.answer(&token, Answer::Approve).await),
        "question approval_1 was answered before, or its run has ended: this answer changes nothing"
    );
    assert_eq!(world.taken(), [Answer::Approve]);
}

// spec: AP-10, TR-10
#[tokio::test]
async fn answer_after_the_time_of_the_question_is_refused_as_expired() {
    let world = World::new();
    let token = world.link_token().await;
    world.clock.advance(Duration::from_secs(1_800));
    let expired = "question approval_1 has expired, which counts as a no: this answer changes nothing";
    assert_eq!(refused(world.answers().answer(&token, Answer::Approve).await), expired);
    assert_eq!(refused(world.answers().question(&token).await), expired);
    assert!(world.taken().is_empty());
}

#[tokio::test]
async fn token_of_a_question_without_a_deadline_ends_after_a_week() {
    let world = World::new();
    world.change(|question| question.request.expires_at = None);
    let token = world.link_token().await;
    world.clock.advance(Duration::from_secs(7 * 24 * 3_600 - 1));
    assert!(world.answers().question(&token).await.is_ok());
    world.clock.advance(Duration::from_secs(1));
    assert!(matches!(world.answers().question(&token).await, Err(AnswerError::Expired { .. })));
}

// spec: AP-10
#[tokio::test]
async fn token_of_other_arguments_another_key_or_another_way_is_refused() {
    let world = World::new();
    let sent = world.notify().await;
    let link = sent.link.unwrap();
    let token = link.split_once('#').unwrap().1;
    let answers = world.answers();
    for wrong in ["", "a.b", &sent.reply_token.unwrap(), &token[1..]] {
        assert!(matches!(answers.question(wrong).await, Err(AnswerError::Token)), "{wrong}");
    }
    let other = world.answers_of("another secret of the test");
    assert!(matches!(other.answer(token, Answer::Approve).await, Err(AnswerError::Token)));
    world.change(|question| question.request.details["arguments"]["to"] = "eve@example.com".into());
    assert!(matches!(answers.answer(token, Answer::Approve).await, Err(AnswerError::Changed { .. })));
    assert!(world.taken().is_empty());
}

#[tokio::test]
async fn answer_that_the_question_does_not_offer_or_that_lasts_is_refused() {
    let world = World::new();
    let token = world.link_token().await;
    let trust = Answer::Trust { rules: vec!["send_mail".to_owned()] };
    assert_eq!(
        refused(world.answers().answer(&token, trust).await),
        "question approval_1 cannot be answered with \"trust\" here; it offers: approve, edit, cancel"
    );
    let words = Answer::Reply { text: "later".to_owned() };
    assert!(matches!(world.answers().answer(&token, words).await, Err(AnswerError::NotOffered { .. })));
    let no = Answer::Cancel { reason: "not now".to_owned() };
    world.answers().answer(&token, no.clone()).await.unwrap();
    assert_eq!(world.taken(), [no]);
}

#[tokio::test]
async fn channel_sends_what_is_no_question_unchanged() {
    let (world, sent) = (World::new(), RecordingChannel::new());
    let channel =
        archon_answers::AnswerableChannel::new(std::sync::Arc::new(sent.clone()), world.answers(), "anna")
            .with_page("https://archon.example.com/answer");
    assert_eq!(channel.name(), "test");
    let result = Notification::new("anna", NotificationKind::Result, "Two mails.");
    channel.send(&result).await.unwrap();
    assert_eq!(sent.notifications(), [result]);
}
