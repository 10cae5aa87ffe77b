//! Notifications as signed POST requests, as the specification Standard Webhooks describes them.

use std::sync::Arc;

use archon_types::{BoxFuture, Clock, Json, Notification, NotificationChannel, NotificationKind, Secret};
use data_encoding::BASE64;
use hmac_sha256::HMAC;
use serde_json::json;

use crate::{post::Poster, text};

/// The address, the secret and the headers of a [`WebhookChannel`].
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    url: Secret<String>,
    secret: Option<Secret<String>>,
    headers: Vec<(String, Secret<String>)>,
}

impl WebhookOptions {
    /// Creates the options of an https address, or an http address of this machine.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Secret::new(url.into()), secret: None, headers: Vec::new() }
    }

    /// Signs each request with a secret: a text in base64, with or without `whsec_` in front.
    #[must_use]
    pub fn secret(mut self, secret: Secret<String>) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Adds a header, such as `authorization`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret<String>) -> Self {
        self.headers.push((name.into(), value));
        self
    }
}

/// Sends notifications as POST requests. A service for SMS or push is such a channel under that name.
///
/// The body is `{"type": "archon.result", "timestamp": …, "data": {…}}`; `type` ends with the
/// [name](archon_types::NotificationKind::as_str) of the subject, and `data` has `tenant`, `task`, `run`, `subject`, `text`, `link`, and `question` with `id` and `expires_at`. The
/// headers are `webhook-id`, the same for a notification that is sent again, `webhook-timestamp`, and with a secret
/// `webhook-signature`, an HMAC-SHA256 over id, time and body.
pub struct WebhookChannel {
    name: String,
    poster: Poster,
    key: Option<Secret<Vec<u8>>>,
    headers: Vec<(String, Secret<String>)>,
}

impl WebhookChannel {
    /// Creates a channel with a name, such as `sms`.
    ///
    /// # Errors
    /// The address or the secret cannot be used. The text says what to do, and has neither.
    pub fn new(
        name: impl Into<String>,
        options: WebhookOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let name = name.into();
        let failed = |problem: String| format!("the channel {name} cannot be used: {problem}");
        let poster = Poster::new(options.url.expose(), clock).map_err(failed)?;
        let key = match &options.secret {
            None => None,
            Some(secret) => {
                let text = secret.expose().strip_prefix("whsec_").unwrap_or(secret.expose());
                let key = BASE64.decode(text.as_bytes());
                Some(Secret::new(key.map_err(|_| failed("its secret is not base64".to_owned()))?))
            }
        };
        Ok(Self { name, poster, key, headers: options.headers })
    }
}

impl NotificationChannel for WebhookChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (id, seconds) = (format!("msg_{}", notification.id()), self.poster.seconds());
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
            let body = json!({ "type": kind, "timestamp": seconds, "data": data });
            let signature = self.key.as_ref().map(|key| sign(key.expose(), &id, seconds, &body.to_string()));
            self.poster
                .send(&body, |mut request| {
                    request = request.header("webhook-id", &id).header("webhook-timestamp", seconds);
                    if let Some(signature) = &signature {
                        request = request.header("webhook-signature", signature);
                    }
                    self.headers
                        .iter()
                        .fold(request, |request, (name, value)| request.header(name, value.expose()))
                })
                .await
        })
    }
}

fn sign(key: &[u8], id: &str, seconds: u64, body: &str) -> String {
    format!("v1,{}", BASE64.encode(&HMAC::mac(format!("{id}.{seconds}.{body}"), key)))
}
