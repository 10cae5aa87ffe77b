//! Notifications as signed POST requests, as the specification Standard Webhooks describes them.

use std::sync::Arc;

use archon_types::{BoxFuture, Clock, Json, Notification, NotificationChannel, NotificationKind, Secret};
use data_encoding::BASE64;
use hmac_sha256::HMAC;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::{error::ChannelError, post::Poster, text};

/// The address, the secret and the headers of a [`WebhookChannel`].
///
/// ```
/// use archon_notify::WebhookOptions;
/// use archon_types::Secret;
///
/// let options = WebhookOptions::new("https://sms.example.com/send")
///     .secret(Secret::from("whsec_a2V5a2V5a2V5a2V5a2V5a2V5"))
///     .header("authorization", Secret::from("Bearer token"));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    url: Secret<String>,
    secret: Option<Secret<String>>,
    headers: Vec<(String, Secret<String>)>,
}

impl WebhookOptions {
    /// Creates the options for requests to `url`: an https address, or an http address of this machine.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Secret::new(url.into()), secret: None, headers: Vec::new() }
    }

    /// Signs each request with a secret: a text in base64, with or without `whsec_` in front.
    #[must_use]
    pub fn secret(mut self, secret: Secret<String>) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Adds a header, such as `authorization`. It replaces a header of the same name that the channel would send.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret<String>) -> Self {
        self.headers.push((name.into(), value));
        self
    }
}

/// Sends notifications as POST requests, for instance to a service for SMS or push.
///
/// The body is `{"type": "archon.result", "timestamp": …, "data": {…}}`. `type` ends with the
/// [name](archon_types::NotificationKind::as_str) of the kind of notification. `data` has `tenant`, `task`, `run`,
/// `subject`, `text`, `link`, and `question` with `id` and `expires_at`. The headers are `webhook-id`, the same for a
/// notification that is sent again, `webhook-timestamp`, and with a secret `webhook-signature`, an HMAC-SHA256 over id,
/// time and body. The times are in seconds: in the body the time at which `send` was called, in the header that of each
/// try. An outbox that tries again calls `send` again.
///
/// An https address needs the feature `tls`.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::{WebhookChannel, WebhookOptions};
/// use archon_types::{Clock, Notification, NotificationChannel, NotificationKind};
///
/// async fn call_gateway(clock: Arc<dyn Clock>) -> Result<(), Box<dyn std::error::Error>> {
///     let gateway = WebhookChannel::new("sms", WebhookOptions::new("http://127.0.0.1:8080/send"), clock)?;
///     Ok(gateway.send(&Notification::new("anna", NotificationKind::Result, "Two mails.")).await?)
/// }
/// ```
pub struct WebhookChannel {
    name: String,
    poster: Poster,
    key: Option<Secret<Vec<u8>>>,
    headers: HeaderMap,
}

impl WebhookChannel {
    /// Creates a channel with a name, such as `sms`.
    ///
    /// # Errors
    /// [`ChannelError::Address`], [`ChannelError::Secret`] or [`ChannelError::Header`]: the address, the secret or a header
    /// cannot be used, or the address needs the feature `tls` in a build without it.
    pub fn new(
        name: impl Into<String>,
        options: WebhookOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChannelError> {
        let name = name.into();
        let poster = Poster::new(&name, options.url.expose(), clock)?;
        let key = match &options.secret {
            None => None,
            Some(secret) => {
                let text = secret.expose().strip_prefix("whsec_").unwrap_or(secret.expose());
                let key = BASE64.decode(text.as_bytes());
                Some(Secret::new(key.map_err(|_| ChannelError::Secret { channel: name.clone() })?))
            }
        };
        let mut headers = HeaderMap::new();
        for (header, value) in options.headers {
            let (key, value) = header_of(&header, &value)
                .ok_or_else(|| ChannelError::Header { channel: name.clone(), header: header.clone() })?;
            headers.append(key, value);
        }
        Ok(Self { name, poster, key, headers })
    }
}

/// Returns a header whose value debug output does not show; `None` if HTTP does not allow its name or its value.
fn header_of(name: &str, value: &Secret<String>) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(value.expose()).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::try_from(name).ok()?, value))
}

impl NotificationChannel for WebhookChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let id = format!("msg_{}", notification.id());
            // Not the arguments of a call that a question is about: they may be private, and the person reads them where the
            // answer is given.
            let question = match &notification.about {
                NotificationKind::Question(question) => {
                    let request = &question.request;
                    json!({ "id": request.request_id, "expires_at": request.expires_at.map(|at| at.to_string()) })
                }
                _ => Json::Null,
            };
            let data = json!({
                "tenant": notification.tenant, "task": notification.task, "run": notification.run,
                "subject": text::subject(notification), "text": notification.text,
                "question": question, "link": notification.link,
            });
            let kind = format!("archon.{}", notification.about.as_str());
            let body = json!({ "type": kind, "timestamp": self.poster.seconds(), "data": data });
            let body = body.to_string();
            self.poster
                .send(&body, |mut request| {
                    let seconds = self.poster.seconds();
                    request = request.header("webhook-id", &id).header("webhook-timestamp", seconds);
                    if let Some(key) = &self.key {
                        request =
                            request.header("webhook-signature", sign(key.expose(), &id, seconds, &body));
                    }
                    request.headers(self.headers.clone())
                })
                .await
        })
    }
}

fn sign(key: &[u8], id: &str, seconds: u64, body: &str) -> String {
    format!("v1,{}", BASE64.encode(&HMAC::mac(format!("{id}.{seconds}.{body}"), key)))
}
