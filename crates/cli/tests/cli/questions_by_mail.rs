//! The questions of tasks by mail, the replies to them, and mail as events.

use archon_testkit::MockServer;
use rustix::process::Signal;
use serde_json::json;

use crate::{
    mail_servers::{MailServers, PASSWORD},
    questions::{until, writer},
    serve::client::{Served, settle},
    setup::{Place, answer},
};

/// Settings with a channel for Anna's mail, and with the mailbox that gets her replies.
fn settings(mail: &MailServers) -> String {
    format!(
        "tools = ['write_file']\n[channels.anna]\nkind = 'email'\nserver = '127.0.0.1'\nport = {}\ntls = false\n\
         from = 'Archon <archon@example.com>'\nto = 'Anna <anna@example.com>'\nreplies = true\n\
         [events.inbox]\nkind = 'mailbox'\nserver = '127.0.0.1'\nport = {}\ntls = false\naccount = 'archon'\n\
         variable = 'IMAP_PASSWORD'\n",
        mail.smtp, mail.imap
    )
}

async fn serve(place: &Place, password: &str) -> Served {
    serve_in(place, ".", password).await
}

/// Starts a server in a folder of a place.
async fn serve_in(place: &Place, folder: &str, password: &str) -> Served {
    let mut command = place.command("serve --json --listen 127.0.0.1:0", &[]);
    command.env("IMAP_PASSWORD", password).current_dir(place.path(folder));
    Served::of(command, 1).await
}

/// Lets the task `desk` ask Anna by mail, and ends the server. Returns the mail of the question.
async fn ask(place: &Place, mail: &MailServers) -> String {
    place.archon("triggers add desk --notify anna", &["--cron", "0 8 1 1 *", "Write it."]).await;
    let served = serve(place, PASSWORD).await;
    place.archon("triggers run desk", &[]).await;
    let question = until(async || mail.sent().first().cloned()).await;
    assert!(question.contains("Subject: desk asks you"), "{question}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
    question
}

/// Returns a reply to the mail of a question.
fn reply(question: &str, from: &str, text: &str) -> String {
    let id = question.split_once("<question.").unwrap().1.split_once("@archon>").unwrap().0;
    format!("From: {from}\nTo: archon@example.com\nIn-Reply-To: <question.{id}@archon>\n\n{text}\n")
}

/// The report of a mail server about a mail of the command.
const UNDELIVERED: &str = "Return-Path: <>\nFrom: mailer-daemon@example.com\nTo: archon@example.com\n\
                           Auto-Submitted: auto-replied\nContent-Type: multipart/report; boundary=b\n\n--b\n\n\
                           There is no anna.\n--b--\n";

// spec: AP-10, TR-04, TR-09, TR-10
#[tokio::test]
async fn reply_to_the_mail_of_a_question_counts_once_and_other_mail_is_an_event() {
    let (model, mail, place) = (writer().await, MailServers::start().await, Place::new());
    model.push(answer("Noted."));
    settle(&place, &model, &settings(&mail));
    place.archon("triggers add read", &["--on", "inbox.mail.received", "Note it."]).await;
    let question = ask(&place, &mail).await;
    assert!(question.contains("write only yes or no above"), "{question}");

    mail.deliver(&reply(&question, "eve@example.com", "yes"));
    mail.deliver(&reply(&question, "anna@example.com", "Yes, but only on Monday."));
    mail.deliver(&reply(&question, "anna@example.com", "yes"));
    // As if the server had been killed before it marked the mail above.
    mail.deliver_begun(&reply(&question, "anna@example.com", "yes"));
    mail.deliver(&reply(&question, "anna@example.com", "yes"));
    mail.deliver(UNDELIVERED);
    mail.deliver("From: ben@example.com\nTo: archon@example.com\nSubject: Lunch\n\nAt noon?\n");
    let next = serve(&place, PASSWORD).await;
    until(async || mail.are_all_taken().then_some(())).await;
    until(async || place.path("a.txt").exists().then_some(())).await;
    // The question comes again, with the same id, if the first server ended before it noted that it was sent.
    let notes = || mail.sent().into_iter().filter(|mail| !mail.contains("Subject: desk asks you"));
    let mails = until(async || Some(notes().collect::<Vec<_>>()).filter(|sent| sent.len() == 3)).await;
    assert!(mails[0].contains("is not clear: write only yes or no"), "{mails:?}");
    assert!(mails[1].contains("was answered before"), "{mails:?}");
    assert!(mails[..2].iter().all(|mail| mail.contains("To: anna@example.com")), "{mails:?}");
    assert!(mails[2].contains("Subject: desk done"), "{mails:?}");
    let history = until(async || {
        let history = place.archon("triggers history read --json", &[]).await.json();
        Some(history).filter(|history| history.first().is_some_and(|run| run["status"] == "finished"))
    })
    .await;
    assert_eq!(history.len(), 1, "the report of a mail server starts no run: {history:?}");
    assert!(model.requests().iter().any(|request| request.text.contains("At noon?")));
    assert_eq!(next.end(Signal::TERM).await, Some(0));
}

// spec: TR-04
#[tokio::test]
async fn mail_of_a_program_is_an_event_where_the_settings_say_so() {
    let (model, mail, place) =
        (MockServer::start([answer("Noted.")]).await, MailServers::start().await, Place::new());
    settle(&place, &model, &format!("{}automatic = true\n", settings(&mail)));
    place.archon("triggers add read", &["--on", "inbox.mail.received", "Note it."]).await;
    mail.deliver(UNDELIVERED);
    let served = serve(&place, PASSWORD).await;
    until(async || model.requests().iter().any(|it| it.text.contains("There is no anna.")).then_some(()))
        .await;
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

// spec: AP-10
#[tokio::test]
async fn reply_to_a_question_of_another_folder_gets_one_note_and_the_question_stays_open() {
    let (model, mail, place) = (writer().await, MailServers::start().await, Place::new());
    settle(&place, &model, &settings(&mail));
    let question = ask(&place, &mail).await;
    mail.deliver(&reply(&question, "anna@example.com", "yes"));
    std::fs::create_dir(place.path("other")).unwrap();
    let other = serve_in(&place, "other", PASSWORD).await;
    until(async || mail.are_all_taken().then_some(())).await;
    let sent = mail.sent();
    let note = sent.iter().find(|mail| mail.contains("Your answer does not count")).unwrap();
    assert!(note.contains("belongs to the folder") && note.contains("archon approvals"), "{note}");
    assert_eq!(other.end(Signal::TERM).await, Some(0));
    assert!(!place.path("a.txt").exists());

    mail.deliver(&reply(&question, "anna@example.com", "yes"));
    let own = serve(&place, PASSWORD).await;
    until(async || place.path("a.txt").exists().then_some(())).await;
    assert_eq!(own.end(Signal::TERM).await, Some(0));
}

// spec: TR-04
#[tokio::test]
async fn mailbox_that_refuses_is_in_the_history_of_its_tasks_and_other_tasks_go_on() {
    let (model, mail, place) =
        (MockServer::start([answer("Done.")]).await, MailServers::start().await, Place::new());
    settle(&place, &model, &settings(&mail));
    place.archon("triggers add read", &["--on", "inbox.mail.*", "Note it."]).await;
    place.archon("triggers add other", &["--cron", "0 8 1 1 *", "Do it."]).await;
    let served = serve(&place, "another").await;
    let problem = until(async || {
        let history = place.archon("triggers history read --json", &[]).await.json();
        history.first().and_then(|item| item["problem"].as_str().map(str::to_owned))
    })
    .await;
    assert!(problem.contains("the source inbox of [events] failed"), "{problem}");
    assert!(problem.contains("refused to sign in: the password is wrong; check the account"), "{problem}");
    place.archon("triggers run other", &[]).await;
    let history = until(async || {
        let history = place.archon("triggers history other --json", &[]).await.json();
        Some(history).filter(|history| history.first().is_some_and(|run| run["status"] == "finished"))
    })
    .await;
    assert_eq!((history.len(), &history[0]["problem"]), (1, &json!(null)), "{history:?}");
    assert_eq!(served.end(Signal::TERM).await, Some(0));
}

#[tokio::test]
async fn serve_with_replies_but_no_mailbox_is_refused() {
    let (model, mail, place) = (MockServer::start([]).await, MailServers::start().await, Place::new());
    let settings = settings(&mail);
    settle(&place, &model, settings.split_once("[events").unwrap().0);
    let refused = place.archon("serve --listen 127.0.0.1:0", &[]).await;
    refused.check_refused(
        2,
        "[channels.anna]: `replies` is true, but no mailbox",
        "add the mailbox of the sender",
    );
}
