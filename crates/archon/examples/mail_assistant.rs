//! An assistant that reads a mailbox, proposes answers, asks by mail, sends after the yes, and summarises each morning.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{error::Error, sync::Arc};

use archon::{
    Archon, Runs, ToolError,
    answers::{AnswerError, AnswerKey, AnswerableChannel, Answers, MailReplies},
    event_sources::{ImapMailbox, ReceivedMail},
    notify::{EmailChannel, MailSender, SmtpOptions},
    tool,
    triggers::{EventFilter, Schedule, TriggerEngine, TriggerError, TriggerParts, TriggerTask},
    types::{CancellationToken, Clock, NotificationChannel, RunService, Secret, TaskStore, Timestamp},
};

type Failure = Box<dyn Error + Send + Sync>;

/// The places and accounts of the assistant.
pub(crate) struct Office {
    /// The server for outgoing mail.
    pub(crate) smtp: SmtpOptions,
    /// Anna's mailbox, and her address.
    pub(crate) anna: (ImapMailbox, String),
    /// The mailbox to which Anna replies, and its address.
    pub(crate) archon: (ImapMailbox, String),
    /// The secret for the tokens of replies.
    pub(crate) secret: Secret,
    /// The server that received the replies and checked their senders, as it names itself in `Authentication-Results`.
    pub(crate) receiver: String,
}

/// Sends a mail in Anna's name.
#[tool(requires_confirmation)]
async fn send_mail(
    #[state] sender: &Arc<MailSender>,
    to: String,
    subject: String,
    text: String,
) -> Result<String, ToolError> {
    sender.send(&to, &subject, &text).await.map_err(ToolError::new)?;
    Ok(format!("The mail to {to} was sent."))
}

/// Returns the mail that Anna got since yesterday.
#[tool(read_only)]
async fn recent_mail(#[state] inbox: &Arc<Inbox>) -> Result<String, ToolError> {
    // The server knows days only; those of Anna begin at another time.
    let day = 36 * 60 * 60 * 1_000;
    let since = Timestamp::from_millis(inbox.clock.now().as_millis().saturating_sub(day));
    let mail = inbox.mailbox.list(&*inbox.clock, since).await;
    let mail = mail.map_err(|error| ToolError::new(error.to_string()))?;
    Ok(mail.iter().map(|mail| format!("{}\n", mail.to_event("inbox").data)).collect())
}

/// A mailbox, and the time.
struct Inbox {
    mailbox: ImapMailbox,
    clock: Arc<dyn Clock>,
}

/// Serves Anna until `stop` is cancelled. `builder` has the model, the journal and the clock of the agent.
pub(crate) async fn serve(
    office: Office,
    builder: archon::ArchonBuilder,
    tasks: Arc<dyn TaskStore>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Office { smtp, anna: (mailbox, anna), archon: (reply_box, archon), secret, receiver } = office;
    let inbox = Arc::new(Inbox { mailbox: mailbox.clone(), clock: clock.clone() });
    let agent = builder
        .tool(send_mail(Arc::new(MailSender::new(&smtp, &anna)?)))
        .tool(recent_mail(inbox))
        .approver(archon::types::AskLater)
        .build()?;
    let runs: Arc<dyn RunService> = Arc::new(Runs::new(agent));

    // Questions go to Anna by mail, and her reply answers them.
    let answers = Answers::new(runs.clone(), AnswerKey::new(&secret)?, clock.clone());
    let channel: Arc<dyn NotificationChannel> =
        Arc::new(EmailChannel::new(&smtp, &archon, &anna)?.with_name("anna"));
    let channel = AnswerableChannel::new(channel, answers.clone(), anna).with_replies();
    let parts = TriggerParts::new().channel(Arc::new(channel));
    let engine = TriggerEngine::new(runs, tasks, clock.clone(), parts);
    create_tasks(&engine).await?;

    // Whoever knows the token of a question cannot answer it in Anna's name: the mail server confirms the sender.
    let replies = MailReplies::new(answers).trusting(receiver);
    let publish = |mail: ReceivedMail| {
        let engine = engine.clone();
        async move { engine.publish(&mail.to_event("inbox")).await.map(drop).map_err(|error| error.to_string()) }
    };
    let answer = |mail: ReceivedMail| {
        let replies = replies.clone();
        async move {
            match replies.take(&mail.bytes).await {
                // The storage failed: the mail comes again.
                Err(AnswerError::Runs(error)) => Err(error.to_string()),
                Err(refused) => {
                    println!("a reply does not count: {refused}");
                    Ok(())
                }
                Ok(_) => Ok(()),
            }
        }
    };
    // A mailbox that refuses ends all three.
    let mails = async { mailbox.serve(clock.clone(), stop.clone(), publish).await.map_err(Failure::from) };
    let answers = async { reply_box.serve(clock.clone(), stop.clone(), answer).await.map_err(Failure::from) };
    let tasks = async { engine.serve(stop.clone()).await.map_err(Failure::from) };
    let (_, _, served) = tokio::try_join!(mails, answers, tasks)?;
    Ok(served)
}

/// Creates Anna's tasks, at the first start of the program.
async fn create_tasks(engine: &TriggerEngine) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Questions and results come by mail too. They are mail of a program, so they are no events.
    let reply = TriggerTask::new(
        "reply",
        EventFilter::new("inbox.mail.received"),
        "Propose an answer to this mail, and send it with send_mail if it needs one.",
    );
    let morning = Schedule::cron("0 8 * * *", "Asia/Shanghai")?;
    let summary =
        TriggerTask::new("morning", morning, "Summarize the mail since yesterday, with recent_mail.");
    for task in [reply, summary] {
        match engine.create_task(task.notify("anna")).await {
            Err(TriggerError::Exists(_)) => {}
            created => created?,
        }
    }
    Ok(())
}

#[allow(dead_code, reason = "the test serves another office")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let secret = |name: &str| std::env::var(name).map(Secret::from);
    let office = Office {
        smtp: SmtpOptions::new("smtp.example.com").account("anna", secret("MAIL_PASSWORD")?),
        anna: (
            ImapMailbox::new("imap.example.com", "anna", secret("MAIL_PASSWORD")?),
            "anna@example.com".to_owned(),
        ),
        archon: (
            ImapMailbox::new("imap.example.com", "archon", secret("ARCHON_PASSWORD")?),
            "archon@example.com".to_owned(),
        ),
        secret: secret("ANSWER_SECRET")?,
        receiver: "mx.example.com".to_owned(),
    };
    let builder = Archon::builder().model("anthropic:claude-sonnet-4-5").data_dir("data");
    let tasks = Arc::new(archon::store::InMemoryTaskStore::new());
    let clock = Arc::new(archon::SystemClock);
    serve(office, builder, tasks, clock, CancellationToken::new()).await
}
