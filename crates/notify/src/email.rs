//! Notifications as mail over SMTP.

use std::time::Duration;

use archon_types::{BoxFuture, Notification, NotificationChannel, NotificationKind, Secret};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
    transport::smtp::authentication::Credentials,
};

use crate::text;

/// The longest time for one mail.
const LIMIT: Duration = Duration::from_secs(60);

/// The server and the account of an [`EmailChannel`].
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    host: String,
    port: u16,
    is_plain: bool,
    account: Option<(String, Secret<String>)>,
}

impl SmtpOptions {
    /// Creates the options of a server, with TLS at port 465.
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), port: 465, is_plain: false, account: None }
    }

    /// Sets the port. At port 587 the connection begins without TLS and changes to it; at any other port it begins with TLS.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the name and the password of the account.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>, password: Secret<String>) -> Self {
        self.account = Some((name.into(), password));
        self
    }

    /// Uses no TLS, for a server of this machine.
    #[must_use]
    pub fn without_tls(mut self) -> Self {
        self.is_plain = true;
        self
    }
}

/// Sends notifications as plain text mail to one person. Its name is `email`, unless [`with_name`](Self::with_name) sets another.
///
/// The `Message-ID` of a question is `<question.ID@archon>`, so a reply names the question in `In-Reply-To`.
pub struct EmailChannel {
    name: String,
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Mailbox,
}

impl EmailChannel {
    /// Creates a channel from an address, such as `Archon <archon@example.com>`, to another one.
    ///
    /// # Errors
    /// An address or the server cannot be used.
    pub fn new(options: &SmtpOptions, from: &str, to: &str) -> Result<Self, String> {
        let mailbox = |address: &str| {
            address.parse::<Mailbox>().map_err(|error| {
                format!("the channel email cannot be used: the address {address:?} is wrong: {error}")
            })
        };
        let host = options.host.as_str();
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "::1");
        let builder = match options {
            SmtpOptions { is_plain: true, .. } if is_here => {
                Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host))
            }
            SmtpOptions { is_plain: true, .. } => {
                return Err(format!(
                    "the channel email cannot be used: {host} is not this machine, so it needs TLS"
                ));
            }
            SmtpOptions { port: 587, .. } => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host),
            _ => AsyncSmtpTransport::<Tokio1Executor>::relay(host),
        };
        let builder = builder.map_err(|error| format!("the channel email cannot be used: {error}"))?;
        let builder = builder.port(options.port).timeout(Some(LIMIT));
        let builder = match &options.account {
            Some((name, password)) => {
                builder.credentials(Credentials::new(name.clone(), password.expose().clone()))
            }
            None => builder,
        };
        Ok(Self {
            name: "email".to_owned(),
            transport: builder.build(),
            from: mailbox(from)?,
            to: mailbox(to)?,
        })
    }

    /// Sets the name, for a program with several such channels.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn message(&self, notification: &Notification) -> Result<Message, String> {
        let id = match &notification.about {
            NotificationKind::Question(question) => format!("question.{}", question.request.request_id),
            _ => format!("note.{}", notification.id()),
        };
        Message::builder()
            .from(self.from.clone())
            .to(self.to.clone())
            .subject(text::subject(notification))
            .message_id(Some(format!("<{id}@archon>")))
            .header(ContentType::TEXT_PLAIN)
            .body(text::body(notification))
            .map_err(|error| format!("the mail cannot be written: {error}"))
    }
}

impl NotificationChannel for EmailChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let sent = self.transport.send(self.message(notification)?).await;
            sent.map(drop).map_err(|error| format!("the mail server did not take the mail: {error}"))
        })
    }
}
