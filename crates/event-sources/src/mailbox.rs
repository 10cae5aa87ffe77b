//! Mail of a mailbox, by IMAP.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_triggers::TriggerEvent;
use archon_types::{CancellationToken, Clock, Json, Secret, Timestamp, is_this_machine};
use mail_parser::{Message, MessageParser, MimeHeaders as _};
use serde_json::json;
use tokio::net::TcpStream;

mod session;
mod tls;

use session::Session;

use crate::problem::OnProblem;

/// The pause between two looks.
const LOOK: Duration = Duration::from_secs(30);

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The longest time for one exchange with the server.
const LIMIT: Duration = Duration::from_secs(60);

/// The age in milliseconds up to which mail is taken.
const AGE: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The most bytes of the text of a mail in an event.
const MOST_TEXT: usize = 20_000;

/// The most characters of a line of the head of a mail in an event.
const MOST_LINE: usize = 500;

/// A mailbox on a server with IMAP.
///
/// ```
/// use archon_event_sources::ImapMailbox;
/// use archon_types::Secret;
///
/// let of_provider = ImapMailbox::new("imap.example.com", "anna", Secret::from("password"));
/// let of_this_machine = ImapMailbox::new("127.0.0.1", "anna", Secret::from("password")).port(143).without_tls();
/// # let _ = (of_provider, of_this_machine);
/// ```
#[derive(Clone, Debug)]
pub struct ImapMailbox {
    host: String,
    port: u16,
    is_plain: bool,
    user: String,
    password: Secret<String>,
    folder: String,
    max_bytes: u32,
    on_problem: OnProblem,
}

/// A mailbox cannot be read. The text has no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The settings cannot be used.
    #[error("the mailbox at {host} cannot be used: {problem}")]
    Settings {
        /// The server.
        host: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// The server cannot be reached, or the connection broke off.
    #[error(
        "the mail server {host} cannot be reached: {problem}; check the name, the port and the certificate"
    )]
    Connection {
        /// The server.
        host: String,
        /// The problem.
        problem: String,
    },
    /// The server refused a command, such as the sign-in.
    #[error("the mail server {host} refused to {action}: {problem}; check the account and its rights")]
    Refused {
        /// The server.
        host: String,
        /// The action, as in "sign in".
        action: &'static str,
        /// The words of the server.
        problem: String,
    },
}

/// A mail of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMail {
    /// The id within the mailbox: it stays the same.
    pub id: String,
    /// The mail as the server has it, or its first bytes.
    pub bytes: Vec<u8>,
}

/// The mail of a look: since a day, and only mail that was not taken before.
#[derive(Clone, Copy)]
struct Look {
    since: Timestamp,
    is_new: bool,
}

impl ImapMailbox {
    /// Creates the mailbox of an account, with TLS at port 993 and the folder `INBOX`.
    pub fn new(host: impl Into<String>, user: impl Into<String>, password: Secret<String>) -> Self {
        let (host, user, folder) = (host.into(), user.into(), "INBOX".to_owned());
        let on_problem = OnProblem::default();
        Self { host, port: 993, is_plain: false, user, password, folder, max_bytes: 1 << 20, on_problem }
    }

    /// Sets the port. The connection begins with TLS at each port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Uses no TLS, for a server of this machine.
    #[must_use]
    pub fn without_tls(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Sets the folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the most bytes of a mail that are read. Default 1 MiB; the rest of a larger one is left out.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: u32) -> Self {
        self.max_bytes = bytes.max(1);
        self
    }

    /// Calls a function with each problem after the first look, such as that of a server which is gone, in words for a
    /// person. The source goes on.
    #[must_use]
    pub fn on_problem(mut self, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_problem = OnProblem::new(note);
        self
    }

    /// Takes each mail of the last seven days once, also mail that came while the program was stopped, until `stop` is
    /// cancelled. It looks every 30 seconds, and marks a mail at the server with the keyword `archon` once `take` succeeded;
    /// if `take` fails, the mail comes again. A mail stays unread.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_event_sources::{ImapMailbox, MailboxError};
    /// use archon_triggers::TriggerEngine;
    /// use archon_types::{CancellationToken, Clock};
    ///
    /// /// Each mail is an event `inbox.mail.received`.
    /// async fn watch(mailbox: ImapMailbox, engine: TriggerEngine, clock: Arc<dyn Clock>) -> Result<(), MailboxError> {
    ///     let take = |mail: archon_event_sources::ReceivedMail| {
    ///         let engine = engine.clone();
    ///         async move {
    ///             let published = engine.publish(&mail.to_event("inbox").tenant("anna")).await;
    ///             published.map(drop).map_err(|error| error.to_string())
    ///         }
    ///     };
    ///     mailbox.serve(clock, CancellationToken::new(), take).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The first look failed, for instance because the account is wrong. Later failures are tried again.
    pub async fn serve<F: Future<Output = Result<(), String>> + Send>(
        &self,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        take: impl Fn(ReceivedMail) -> F + Send + Sync,
    ) -> Result<(), MailboxError> {
        let (mut failures, mut is_first) = (0_u32, true);
        loop {
            let since = Timestamp::from_millis(clock.now().as_millis().saturating_sub(AGE));
            match self.look(&*clock, Look { since, is_new: true }, &take).await {
                Ok(()) => (failures, is_first) = (0, false),
                Err(error) if is_first => return Err(error),
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.on_problem.note(&error.to_string());
                }
            }
            let pause = LOOK.saturating_mul(1 << failures.min(5)).min(LONGEST_PAUSE);
            tokio::select! {
                () = clock.sleep_until(clock.now() + pause) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    /// Returns the mail since a day, the oldest first, at most 50.
    ///
    /// ```
    /// use archon_event_sources::{ImapMailbox, MailboxError};
    /// use archon_types::Clock;
    ///
    /// async fn count(mailbox: &ImapMailbox, clock: &dyn Clock) -> Result<usize, MailboxError> {
    ///     Ok(mailbox.list(clock, clock.now()).await?.len())
    /// }
    /// ```
    ///
    /// # Errors
    /// The server cannot be reached, or refused a command.
    pub async fn list(&self, clock: &dyn Clock, since: Timestamp) -> Result<Vec<ReceivedMail>, MailboxError> {
        let found = Mutex::new(Vec::new());
        let keep = |mail| {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
            std::future::ready(Ok(()))
        };
        self.look(clock, Look { since, is_new: false }, &keep).await?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the mail of a look.
    async fn look<F: Future<Output = Result<(), String>> + Send>(
        &self,
        clock: &dyn Clock,
        look: Look,
        take: &(impl Fn(ReceivedMail) -> F + Sync),
    ) -> Result<(), MailboxError> {
        match self.is_plain {
            true => {
                let mut session = Session::new(self.connect(clock).await?, &self.host, self.max_bytes);
                self.look_in(&mut session, clock, look, take).await
            }
            false => {
                let stream = self.within(clock, tls::connect(&self.host, self.connect(clock).await?)).await?;
                let mut session = Session::new(stream, &self.host, self.max_bytes);
                self.look_in(&mut session, clock, look, take).await
            }
        }
    }

    async fn look_in<S, F>(
        &self,
        session: &mut Session<'_, S>,
        clock: &dyn Clock,
        look: Look,
        take: &(impl Fn(ReceivedMail) -> F + Sync),
    ) -> Result<(), MailboxError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
        F: Future<Output = Result<(), String>> + Send,
    {
        self.within(clock, session.sign_in(&self.user, &self.password)).await?;
        let validity = self.within(clock, session.select(&self.folder)).await?;
        for uid in self.within(clock, session.find(look.since, look.is_new)).await? {
            let Some(bytes) = self.within(clock, session.fetch(uid, self.max_bytes)).await? else { continue };
            let id = format!("{validity}/{uid}");
            match take(ReceivedMail { id, bytes }).await {
                Ok(()) if look.is_new => self.within(clock, session.mark(uid)).await?,
                Ok(()) => {}
                Err(problem) => self.on_problem.note(&format!("a mail is taken later: {problem}")),
            }
        }
        self.within(clock, session.sign_out()).await
    }

    async fn connect(&self, clock: &dyn Clock) -> Result<TcpStream, MailboxError> {
        if self.is_plain && !is_this_machine(&self.host) {
            let problem = "it is not this machine, so it needs TLS: leave out `without_tls`".to_owned();
            return Err(MailboxError::Settings { host: self.host.clone(), problem });
        }
        let connect = async {
            let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
            connected.map_err(|error| self.broken(error.to_string()))
        };
        self.within(clock, connect).await
    }

    /// Waits for an exchange with the server, but not for ever.
    async fn within<T>(
        &self,
        clock: &dyn Clock,
        exchange: impl Future<Output = Result<T, MailboxError>> + Send,
    ) -> Result<T, MailboxError> {
        let mut exchange = pin!(exchange);
        let done = clock.before(clock.now() + LIMIT, |task| exchange.as_mut().poll(task)).await;
        done.unwrap_or_else(|| Err(self.broken(format!("it did not answer within {} s", LIMIT.as_secs()))))
    }

    fn broken(&self, problem: String) -> MailboxError {
        MailboxError::Connection { host: self.host.clone(), problem }
    }
}

impl ReceivedMail {
    /// Returns the event `mail.received` of a source. The data has `from`, `to`, `subject`, `date`, `message_id`, `text` and the
    /// names of `attachments`; each is untrusted, and a long one is cut. A mail that cannot be read has the `text` only.
    pub fn to_event(&self, source: impl Into<String>) -> TriggerEvent {
        let data = match MessageParser::default().parse(&self.bytes) {
            Some(mail) => data_of(&mail),
            None => json!({ "text": cut(&String::from_utf8_lossy(&self.bytes), MOST_TEXT) }),
        };
        TriggerEvent::new(&self.id, source, "mail.received", data)
    }
}

fn data_of(mail: &Message<'_>) -> Json {
    let line = |text: &str| cut(text, MOST_LINE);
    let people = |people: Option<&mail_parser::Address<'_>>| -> Vec<String> {
        let people = people.into_iter().flat_map(|people| people.iter()).take(20);
        people.filter_map(|one| one.address()).map(line).collect()
    };
    let names = mail.attachments().filter_map(|part| part.attachment_name()).take(20).map(line);
    json!({
        "from": people(mail.from()), "to": people(mail.to()), "subject": mail.subject().map(line),
        "date": mail.date().map(ToString::to_string), "message_id": mail.message_id().map(line),
        "text": mail.body_text(0).map(|text| cut(&text, MOST_TEXT)), "attachments": names.collect::<Vec<_>>(),
    })
}

/// Returns the first bytes of a text, without control characters.
fn cut(text: &str, most: usize) -> String {
    let mut kept = String::new();
    for c in text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()) {
        if kept.len() + c.len_utf8() > most {
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TR-04
    #[test]
    fn to_event_has_the_parts_of_the_mail_and_stays_small() {
        let text = "x".repeat(200_000);
        let mail = format!(
            "From: Ben <ben@example.com>\r\nTo: anna@example.com\r\nSubject: =?utf-8?q?Lunch=1b?=\r\n\
             Message-ID: <1@example.com>\r\nDate: Fri, 27 Mar 2026 08:00:00 +0100\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nAt noon?\r\n{text}\r\n--b\r\n\
             Content-Disposition: attachment; filename=menu.pdf\r\n\r\n%PDF\r\n--b--\r\n"
        );
        let event = ReceivedMail { id: "7/1".to_owned(), bytes: mail.into_bytes() }.to_event("inbox");
        assert_eq!(
            (event.id.as_str(), event.source.as_str(), event.kind.as_str()),
            ("7/1", "inbox", "mail.received")
        );
        assert_eq!(
            (&event.data["from"], &event.data["subject"]),
            (&json!(["ben@example.com"]), &json!("Lunch"))
        );
        assert_eq!(
            (&event.data["message_id"], &event.data["attachments"]),
            (&json!("1@example.com"), &json!(["menu.pdf"]))
        );
        assert!(event.data["text"].as_str().unwrap().starts_with("At noon?\n"));
        assert!(event.data.to_string().len() < 64 * 1024);
        let broken = ReceivedMail { id: "7/2".to_owned(), bytes: Vec::new() }.to_event("inbox");
        assert_eq!(broken.data["text"], "");
    }

    #[test]
    fn server_beyond_this_machine_needs_tls() {
        let mailbox = ImapMailbox::new("imap.example.com", "anna", Secret::from("very-secret")).without_tls();
        assert!(!format!("{mailbox:?}").contains("very-secret"));
        let connected =
            futures_util::FutureExt::now_or_never(mailbox.connect(&archon_testkit::VirtualClock::new()));
        let error = connected.unwrap().err().unwrap();
        assert!(error.to_string().contains("leave out `without_tls`"), "{error}");
    }
}
