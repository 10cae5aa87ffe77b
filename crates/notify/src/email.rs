//! Notifications as mail over SMTP.

use std::time::Duration;

use archon_types::{BoxFuture, Notification, NotificationChannel, NotificationKind, Secret};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    address::AddressError,
    message::{
        Mailbox,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{AsyncSmtpTransportBuilder, authentication::Credentials},
};

use crate::{error::ChannelError, text};

/// The name of the channel, unless the program sets another.
const NAME: &str = "email";

/// The longest time for one mail.
const LIMIT: Duration = Duration::from_secs(60);

/// The server and the account of an [`EmailChannel`].
///
/// ```
/// use archon_notify::SmtpOptions;
/// use archon_types::Secret;
///
/// let of_provider = SmtpOptions::new("smtp.example.com").port(587).account("archon", Secret::from("password"));
/// let of_this_machine = SmtpOptions::new("127.0.0.1").port(25).without_tls();
/// # let _ = (of_provider, of_this_machine);
/// ```
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    host: String,
    port: u16,
    is_plain: bool,
    account: Option<(String, Secret<String>)>,
}

impl SmtpOptions {
    /// Creates the options for a mail server, with TLS at port 465 and without an account.
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), port: 465, is_plain: false, account: None }
    }

    /// Sets the port. At port 587 the connection begins without TLS and changes to it (STARTTLS); at any other port it
    /// begins with TLS. Default 465.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Signs in at the server with this name and password. Default: no sign-in.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>, password: Secret<String>) -> Self {
        self.account = Some((name.into(), password));
        self
    }

    /// Connects without TLS. Only a server on this machine can be used in this way.
    #[must_use]
    pub fn without_tls(mut self) -> Self {
        self.is_plain = true;
        self
    }
}

/// Sends plain text mail, for instance for a tool with which an agent answers mail. Let such a tool ask a person before
/// each call.
///
/// ```
/// use archon_notify::{ChannelError, MailSender, SmtpOptions};
///
/// async fn thank(server: &SmtpOptions) -> Result<(), Box<dyn std::error::Error>> {
///     let sender = MailSender::new(server, "Anna <anna@example.com>")?;
///     Ok(sender.send("ben@example.com", "Thank you", "The invoice has come.").await?)
/// }
/// ```
pub struct MailSender {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl MailSender {
    /// Creates a sender whose mail comes from the address `from`, such as `Anna <anna@example.com>`.
    ///
    /// # Errors
    /// As [`EmailChannel::new`].
    pub fn new(options: &SmtpOptions, from: &str) -> Result<Self, ChannelError> {
        let mut builder = server(options)?.port(options.port).timeout(Some(LIMIT));
        if let Some((name, password)) = &options.account {
            builder = builder.credentials(Credentials::new(name.clone(), password.expose().clone()));
        }
        Ok(Self { transport: builder.build(), from: mailbox(from)? })
    }

    /// Sends a mail.
    ///
    /// # Errors
    /// The address cannot be read, or the server did not take the mail. The text says what to do.
    pub async fn send(&self, to: &str, subject: &str, text: &str) -> Result<(), String> {
        let to = mailbox(to).map_err(|error| error.to_string())?;
        self.send_as(&to, None, subject, text.to_owned()).await
    }

    async fn send_as(
        &self,
        to: &Mailbox,
        id: Option<String>,
        subject: &str,
        text: String,
    ) -> Result<(), String> {
        let mail = Message::builder()
            .from(self.from.clone())
            .to(to.clone())
            .subject(subject)
            .message_id(id)
            .header(ContentType::TEXT_PLAIN)
            .raw_header(by_a_program())
            .body(text)
            .map_err(|error| format!("the mail cannot be written: {error}"))?;
        let sent = self.transport.send(mail).await;
        sent.map(drop).map_err(|error| format!("the mail cannot be sent: {error}"))
    }
}

/// Returns the header that keeps programs from answers, such as notes of absence (RFC 3834).
fn by_a_program() -> HeaderValue {
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    HeaderValue::new(name, "auto-generated".to_owned())
}

/// Sends notifications as plain text mail to one person. Its name is `email`, unless [`with_name`](Self::with_name)
/// sets another.
///
/// The `Message-ID` of a question is `<question.ID@archon>`, so a reply names the question in `In-Reply-To`. If the
/// notification has a [token for replies](archon_types::Notification::reply_token), the token stands in place of `ID`.
///
/// TLS comes with the feature `mail`; the feature `tls` is not needed.
///
/// ```
/// use archon_notify::{ChannelError, EmailChannel, SmtpOptions};
/// use archon_types::NotificationChannel;
///
/// # fn main() -> Result<(), ChannelError> {
/// let server = SmtpOptions::new("127.0.0.1").port(25).without_tls();
/// let mail = EmailChannel::new(&server, "Archon <archon@example.com>", "anna@example.com")?.with_name("anna");
/// assert_eq!(mail.name(), "anna");
/// let error = EmailChannel::new(&server, "archon@example.com", "anna at example.com").err();
/// assert!(matches!(error, Some(ChannelError::Mailbox { address, .. }) if address == "anna at example.com"));
/// # Ok(())
/// # }
/// ```
pub struct EmailChannel {
    name: String,
    sender: MailSender,
    to: Mailbox,
}

impl EmailChannel {
    /// Creates a channel that sends from the address `from`, such as `Archon <archon@example.com>`, to the address
    /// `to`.
    ///
    /// # Errors
    /// [`ChannelError::Mailbox`] for an address that cannot be read, and [`ChannelError::Address`] or
    /// [`ChannelError::Client`] for a server that cannot be used.
    pub fn new(options: &SmtpOptions, from: &str, to: &str) -> Result<Self, ChannelError> {
        Ok(Self { name: NAME.to_owned(), sender: MailSender::new(options, from)?, to: mailbox(to)? })
    }

    /// Sets the name by which tasks refer to the channel. Default `email`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// Returns the connection to a server, with TLS beyond this machine.
fn server(options: &SmtpOptions) -> Result<AsyncSmtpTransportBuilder, ChannelError> {
    let host = options.host.as_str();
    let is_here = archon_types::is_this_machine(host);
    let builder = match options {
        SmtpOptions { is_plain: true, .. } if is_here => {
            return Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host));
        }
        SmtpOptions { is_plain: true, .. } => {
            let problem = format!("{host} is not this machine, so it needs TLS: leave out `without_tls`");
            return Err(ChannelError::Address { channel: NAME.to_owned(), problem });
        }
        SmtpOptions { port: 587, .. } => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host),
        _ => AsyncSmtpTransport::<Tokio1Executor>::relay(host),
    };
    builder.map_err(|error| ChannelError::Client { channel: NAME.to_owned(), problem: error.to_string() })
}

fn mailbox(address: &str) -> Result<Mailbox, ChannelError> {
    address.parse().map_err(|error: AddressError| ChannelError::Mailbox {
        channel: NAME.to_owned(),
        address: address.to_owned(),
        problem: error.to_string(),
    })
}

impl NotificationChannel for EmailChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        let id = match &notification.about {
            NotificationKind::Question(question) => {
                let id = notification.reply_token.as_ref().unwrap_or(&question.request.request_id);
                format!("question.{id}")
            }
            _ => format!("note.{}", notification.id()),
        };
        let (subject, text) = (text::subject(notification), text::body(notification));
        Box::pin(async move {
            self.sender.send_as(&self.to, Some(format!("<{id}@archon>")), &subject, text).await
        })
    }
}
