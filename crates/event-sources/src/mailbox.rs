//! Mail of a mailbox, by IMAP.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::{CancellationToken, Clock, Secret, Timestamp, is_this_machine};
use tokio::net::TcpStream;

mod mail;
mod session;
mod tls;
mod tokens;

pub use mail::ReceivedMail;
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
    takes_automatic: bool,
    on_problem: OnProblem,
}

/// A mailbox cannot be read. The text has no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The settings cannot be used.
    #[error("the mailbox at {host} cannot be used: {problem}")]
    Settings {
        /// The name of the mail server.
        host: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// The server cannot be reached, or the connection broke off.
    #[error(
        "the connection to the mail server {host} failed: {problem}; check the name, the port and the certificate"
    )]
    Connection {
        /// The name of the mail server.
        host: String,
        /// The problem.
        problem: String,
    },
    /// The server refused a command, such as the sign-in.
    #[error("the mail server {host} refused to {action}: {problem}; check the account and its rights")]
    Refused {
        /// The name of the mail server.
        host: String,
        /// The action, as in "sign in".
        action: &'static str,
        /// The words of the server.
        problem: String,
    },
}

/// The mail of a look.
struct Look<'a> {
    /// The day at which it begins.
    since: Timestamp,
    /// True for only the mail that was not taken before.
    is_new: bool,
    /// The number of the last mail that was looked at. The next look begins behind it, so mail that is refused again and again
    /// blocks no other.
    last: &'a mut u32,
}

impl ImapMailbox {
    /// Creates the mailbox of an account, with TLS at port 993 and the folder `INBOX`.
    pub fn new(host: impl Into<String>, user: impl Into<String>, password: Secret<String>) -> Self {
        Self {
            host: host.into(),
            port: 993,
            is_plain: false,
            user: user.into(),
            password,
            folder: "INBOX".to_owned(),
            max_bytes: 1 << 20,
            takes_automatic: false,
            on_problem: OnProblem::default(),
        }
    }

    /// Sets the port. Default 993. The connection begins with TLS at every port, unless
    /// [`without_tls`](Self::without_tls) is set.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Connects without TLS. Only a server on this machine can be used in this way.
    #[must_use]
    pub fn without_tls(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Sets the mail folder on the server that is read. Default `INBOX`.
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

    /// Takes mail that a program wrote, too ([`ReceivedMail::is_automatic`]). By default [`serve`](Self::serve) leaves
    /// such mail out. Otherwise an answer that cannot be delivered could begin an endless loop: the report about it is
    /// mail, which starts a run, which sends one more mail.
    #[must_use]
    pub fn with_automatic_mail(mut self) -> Self {
        self.takes_automatic = true;
        self
    }

    /// Calls `note` with each problem that does not end [`serve`](Self::serve), such as a server that is gone; the text
    /// is for a person. Default: problems are only logged.
    #[must_use]
    pub fn on_problem(mut self, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_problem = OnProblem::new(note);
        self
    }

    /// Calls `take` once with each mail of the last seven days, also with mail that came while the program was stopped,
    /// until `stop` is cancelled. It looks every 30 seconds, at up to 50 mails. Once `take` succeeded, it marks the
    /// mail at the server with the keyword `archon`. If `take` fails, the mail comes again, after the mails behind it.
    /// A mail stays unread.
    ///
    /// A mail that comes again has [`ReceivedMail::is_repeat`]: it may have had its effect before the program could mark it.
    /// Mail that a program wrote is marked without `take`, unless [`with_automatic_mail`](Self::with_automatic_mail) is set.
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
    /// The first look failed, for instance because the account is wrong, or because the server keeps no keywords. Later failures
    /// are tried again.
    pub async fn serve<F: Future<Output = Result<(), String>> + Send>(
        &self,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        take: impl Fn(ReceivedMail) -> F + Send + Sync,
    ) -> Result<(), MailboxError> {
        let (mut failures, mut is_first, mut last) = (0_u32, true, 0_u32);
        loop {
            let since = Timestamp::from_millis(clock.now().as_millis().saturating_sub(AGE));
            match self.look(&*clock, Look { since, is_new: true, last: &mut last }, &take).await {
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

    /// Returns the mail that arrived on the day (UTC) of `since` or later, the oldest first, at most 50; also mail that
    /// a program wrote, and mail that was taken before.
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
        self.look(clock, Look { since, is_new: false, last: &mut 0 }, &keep).await?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the mail of a look.
    async fn look<F: Future<Output = Result<(), String>> + Send>(
        &self,
        clock: &dyn Clock,
        look: Look<'_>,
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
        look: Look<'_>,
        take: &(impl Fn(ReceivedMail) -> F + Sync),
    ) -> Result<(), MailboxError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
        F: Future<Output = Result<(), String>> + Send,
    {
        self.within(clock, session.sign_in(&self.user, &self.password)).await?;
        let validity = self.within(clock, session.select(&self.folder, look.is_new)).await?;
        let found = self.within(clock, session.find(look.since, look.is_new, *look.last)).await?;
        for uid in found {
            *look.last = uid.get();
            let Some(fetched) = self.within(clock, session.fetch(uid, self.max_bytes)).await? else {
                continue;
            };
            let mut mail = ReceivedMail::new(format!("{validity}/{uid}"), fetched.bytes);
            mail.is_repeat = fetched.is_begun;
            if look.is_new && !self.takes_automatic && mail.is_automatic() {
                tracing::info!(mail = mail.id, "a mail that a program wrote is left out");
                self.within(clock, session.mark_taken(uid)).await?;
                continue;
            }
            if look.is_new && !mail.is_repeat {
                self.within(clock, session.mark_begun(uid)).await?;
            }
            match take(mail).await {
                Ok(()) if look.is_new => self.within(clock, session.mark_taken(uid)).await?,
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

#[cfg(test)]
mod tests;
