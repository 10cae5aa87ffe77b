//! Replies by mail.

use archon_answers::{AnswerError, MailReplies};
use archon_types::{Answer, PendingApproval};

use crate::world::{ANNA, World};

/// A reply to the mail with this token, with headers above the usual ones.
fn reply(token: &str, from: &str, above: &str, text: &str) -> String {
    let text =
        format!("{text}\r\n\r\nOn Friday, Archon wrote:\r\n> Question approval_1\r\n> Send a mail\r\n");
    format!(
        "{above}From: Anna <{from}>\r\nTo: archon@example.com\r\nSubject: Re: desk asks you\r\n\
         Message-ID: <1@example.com>\r\nIn-Reply-To: <question.{token}@archon>\r\n\
         References: <question.{token}@archon>\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}"
    )
}

async fn take(world: &World, mail: impl AsRef<[u8]>) -> Result<Option<PendingApproval>, AnswerError> {
    MailReplies::new(world.answers()).take(mail.as_ref()).await
}

async fn token(world: &World) -> String {
    world.notify().await.reply_token.unwrap()
}

// spec: AP-10, TR-10
#[tokio::test]
async fn reply_of_the_person_answers_the_question_once() {
    let world = World::new();
    let mail = reply(&token(&world).await, "Anna@Example.com", "", "Yes.");
    assert_eq!(take(&world, &mail).await.unwrap().unwrap().request.request_id, "approval_1");
    assert!(matches!(take(&world, &mail).await, Err(AnswerError::Answered { .. })));
    assert_eq!(world.taken(), [Answer::Approve]);
}

#[tokio::test]
async fn reply_with_references_only_and_coded_text_is_read() {
    let world = World::new();
    let token = token(&world).await;
    // Mail programs fold long headers, and code text beyond ASCII.
    let mail = format!(
        "From: {ANNA}\r\nReferences: <older@example.com>\r\n <question.{token}@archon>\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n5ZCM5oSP\r\n"
    );
    take(&world, &mail).await.unwrap().unwrap();
    assert_eq!(world.taken(), [Answer::Approve]);
}

// spec: AP-10
#[tokio::test]
async fn reply_of_another_sender_or_with_a_wrong_token_changes_nothing() {
    let world = World::new();
    let sent = world.notify().await;
    let token = sent.reply_token.unwrap();
    let eve = take(&world, &reply(&token, "eve@example.com", "", "yes")).await;
    assert!(matches!(eve, Err(AnswerError::Sender { .. })));
    let two = take(&world, &reply(&token, ANNA, "From: eve@example.com\r\n", "yes")).await;
    assert!(matches!(two, Err(AnswerError::Sender { .. })));
    let of_link = sent.link.unwrap().split_once('#').unwrap().1.to_owned();
    for wrong in [&of_link, &token[1..], "approval_1"] {
        let wrong = take(&world, &reply(wrong, ANNA, "", "yes")).await;
        assert!(matches!(wrong, Err(AnswerError::Token)));
    }
    assert!(world.taken().is_empty());
}

// spec: AP-10
#[tokio::test]
async fn reply_needs_the_confirmation_of_a_server_that_is_trusted() {
    let world = World::new();
    let token = token(&world).await;
    let replies = MailReplies::new(world.answers()).trusting("mx.example.com");
    let forged = "Authentication-Results: mx.example.com; dmarc=fail header.from=example.com\r\n\
                  Authentication-Results: mx.example.com; dmarc=pass\r\n";
    for above in ["", forged] {
        let refused = replies.take(reply(&token, ANNA, above, "yes").as_bytes()).await;
        assert!(matches!(refused, Err(AnswerError::Unconfirmed { .. })));
    }
    let confirmed = "Authentication-Results: mx.example.com;\r\n dmarc=pass header.from=example.com\r\n";
    assert!(replies.take(reply(&token, ANNA, confirmed, "yes").as_bytes()).await.unwrap().is_some());
}

/// Returns a mail in which each `~` is a byte that is no UTF-8.
fn raw(mail: &str) -> Vec<u8> {
    mail.bytes().map(|byte| if byte == b'~' { 0xff } else { byte }).collect()
}

// spec: AP-10
#[tokio::test]
async fn reply_with_headers_that_are_no_text_counts_them_too() {
    let world = World::new();
    let token = token(&world).await;
    let with = |above: &str| raw(&reply(&token, ANNA, above, "yes"));
    let two = take(&world, with("From: E~e <eve@example.com>\r\n")).await;
    assert!(matches!(two, Err(AnswerError::Sender { .. })), "{two:?}");
    assert!(take(&world, with("Auto-Submitted: auto-replied (~)\r\n")).await.unwrap().is_none());
    let forged = "Authentication-Results: mx.example.com; dmarc=fail (~) header.from=example.com\r\n\
                  Authentication-Results: mx.example.com; dmarc=pass\r\n";
    let replies = MailReplies::new(world.answers()).trusting("mx.example.com");
    let refused = replies.take(&with(forged)).await;
    assert!(matches!(refused, Err(AnswerError::Unconfirmed { .. })), "{refused:?}");
    assert!(world.taken().is_empty());
    let only = reply(&token, ANNA, "", "yes").replace("From: Anna", "From: A~na");
    assert!(take(&world, raw(&only)).await.unwrap().is_some());
}

#[tokio::test]
async fn reply_that_is_automatic_or_of_another_conversation_is_no_answer() {
    let world = World::new();
    let token = token(&world).await;
    for above in ["Auto-Submitted: auto-replied\r\n", "Precedence: bulk\r\n", "Return-Path: <>\r\n"] {
        assert!(take(&world, &reply(&token, ANNA, above, "yes")).await.unwrap().is_none(), "{above}");
    }
    assert!(take(&world, "From: anna@example.com\r\n\r\nyes").await.unwrap().is_none());
    assert!(take(&world, "\u{0}").await.unwrap().is_none());
    assert!(world.taken().is_empty());
}

#[tokio::test]
async fn reply_that_is_not_clear_or_late_says_so_and_the_question_stays_as_it_is() {
    let world = World::new();
    let token = token(&world).await;
    let unclear = take(&world, &reply(&token, ANNA, "", "yes, but not today")).await;
    assert!(unclear.unwrap_err().to_string().contains("write only yes or no above the quoted text"));
    world.clock.advance(std::time::Duration::from_secs(1_800));
    let late = take(&world, &reply(&token, ANNA, "", "yes")).await;
    assert!(late.unwrap_err().to_string().contains("has expired"));
    assert!(world.taken().is_empty());
}
