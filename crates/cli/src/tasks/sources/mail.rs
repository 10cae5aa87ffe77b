//! Mailboxes: replies answer questions, and other mail is an event.

use std::sync::Arc;

use archon::{
    SystemClock,
    answers::{AnswerError, MailReplies},
    event_sources::{ImapMailbox, ReceivedMail},
    types::RunError,
};

use super::{World, place, secret};
use crate::{app::App, config::EventSettings, failure::Failure};

/// A mailbox of the settings.
pub(super) struct Mailbox {
    name: String,
    mailbox: ImapMailbox,
    tenant: String,
    confirmed_by: Option<String>,
}

impl Mailbox {
    /// Returns the mailbox that the settings describe under this name.
    ///
    /// # Errors
    /// [`Failure`] if the secret is missing, or the settings cannot be used.
    pub(super) fn of(app: &App, name: &str, settings: &EventSettings) -> Result<Self, Failure> {
        let EventSettings::Mailbox {
            server,
            port,
            tls,
            account,
            variable,
            folder,
            confirmed_by,
            automatic,
            ..
        } = settings
        else {
            return Err(Failure::usage(
                format!("{} is no mailbox", place(app, "events", name)),
                "correct its kind",
            ));
        };
        let password = secret(app, "events", name, variable)?;
        let mut mailbox = ImapMailbox::new(server, account, password);
        if let Some(port) = port {
            mailbox = mailbox.port(*port);
        }
        if *tls == Some(false) {
            if !archon::types::is_this_machine(server) {
                let what = format!(
                    "{}: `tls` is false, but {server} is not this machine",
                    place(app, "events", name)
                );
                return Err(Failure::usage(what, "remove `tls`: the password would be sent unencrypted"));
            }
            mailbox = mailbox.without_tls();
        }
        if let Some(folder) = folder {
            mailbox = mailbox.folder(folder);
        }
        if *automatic == Some(true) {
            mailbox = mailbox.with_automatic_mail();
        }
        let tenant = settings.tenant().to_owned();
        Ok(Self { name: name.to_owned(), mailbox, tenant, confirmed_by: confirmed_by.clone() })
    }

    /// Takes mail until the server ends: replies as answers, and other mail as events.
    pub(super) async fn serve(self, world: World) {
        let mut replies = MailReplies::new(world.delivery.answers.clone());
        if let Some(server) = &self.confirmed_by {
            replies = replies.trusting(server);
        }
        let taker =
            Arc::new(Taker { name: self.name.clone(), tenant: self.tenant, replies, world: world.clone() });
        let mailbox = self.mailbox.on_problem(world.noting(&self.name));
        loop {
            let take = |mail| taker.clone().take(mail);
            let served = mailbox.serve(Arc::new(SystemClock), world.end.clone(), take).await;
            let Err(error) = served else { return };
            if !world.wait_after(&self.name, &error.to_string()).await {
                return;
            }
        }
    }
}

/// Takes the mail of a mailbox.
struct Taker {
    name: String,
    tenant: String,
    replies: MailReplies,
    world: World,
}

impl Taker {
    /// Takes a mail: a reply answers its question, and any other mail is published as an event.
    ///
    /// # Errors
    /// The storage failed, so the mail must come again.
    async fn take(self: Arc<Self>, mail: ReceivedMail) -> Result<(), String> {
        match self.replies.take(&mail.bytes).await {
            Ok(Some(_)) => Ok(()),
            // This mail was read before, and could not be marked then. Most likely its own answer counted, so there is no note.
            Err(AnswerError::Answered { .. }) if mail.is_repeat => Ok(()),
            // This server can never take it, so it must not come again.
            Err(AnswerError::Runs(error @ RunError::OtherFolder { .. })) => {
                let problem = format!("{error}: {}", error.advice());
                self.refuse(&mail, &problem).await;
                Ok(())
            }
            Err(AnswerError::Runs(error)) => Err(error.to_string()),
            // Whoever forged a reply gets no mail.
            Err(
                refused @ (AnswerError::Token | AnswerError::Sender { .. } | AnswerError::Unconfirmed { .. }),
            ) => {
                self.warn(&refused.to_string());
                Ok(())
            }
            Err(refused) => {
                self.refuse(&mail, &refused.to_string()).await;
                Ok(())
            }
            Ok(None) => {
                let event = mail.to_event(&self.name).tenant(self.tenant.as_str());
                let published = self.world.engine.publish(&event).await;
                published.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    fn warn(&self, problem: &str) {
        let text = format!("a reply to the mailbox {} does not count: {problem}", self.name);
        self.world.app.output.warn_again(text);
    }

    /// Writes to the person why the reply does not count.
    async fn refuse(&self, mail: &ReceivedMail, problem: &str) {
        self.warn(problem);
        let event = mail.to_event(&self.name);
        let Some(from) = event.data["from"][0].as_str().map(str::to_ascii_lowercase) else { return };
        let Some(sender) = self.world.delivery.senders.get(&from) else { return };
        // The warning stands in the output of the server if the mail cannot be sent.
        let _ = sender.send(&from, "Your answer does not count", problem).await;
    }
}
