//! Notifications in a channel of Slack.

use std::sync::Arc;

use archon_types::{BoxFuture, Clock, Notification, NotificationChannel, Secret};
use serde_json::json;

use crate::{error::ChannelError, post::Poster, text};

/// Sends notifications to an incoming web hook of Slack. Its name is `slack`, unless [`with_name`](Self::with_name) sets another.
///
/// It needs the feature `tls`.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::SlackChannel;
/// use archon_types::{Clock, Notification, NotificationChannel, NotificationKind, Secret};
///
/// async fn report(webhook: Secret, clock: Arc<dyn Clock>) -> Result<(), Box<dyn std::error::Error>> {
///     let slack = SlackChannel::new(&webhook, clock)?.with_name("team");
///     Ok(slack.send(&Notification::new("anna", NotificationKind::Result, "The build works.")).await?)
/// }
/// ```
pub struct SlackChannel {
    name: String,
    poster: Poster,
}

impl SlackChannel {
    /// Creates a channel for the address of an incoming web hook, `https://hooks.slack.com/services/…`.
    ///
    /// # Errors
    /// [`ChannelError::Address`] if the address cannot be used, or needs the feature `tls` in a build without it.
    pub fn new(webhook: &Secret<String>, clock: Arc<dyn Clock>) -> Result<Self, ChannelError> {
        let name = "slack".to_owned();
        Ok(Self { poster: Poster::new(&name, webhook.expose(), clock)?, name })
    }

    /// Sets the name by which tasks refer to the channel. Default `slack`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl NotificationChannel for SlackChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (subject, body) = (text::subject(notification), text::body(notification));
            // Blocks of plain text: nothing in them is markup, a mention or a link. `text` is what a phone shows.
            let blocks = json!([
                { "type": "header", "text": { "type": "plain_text", "text": shorten(&subject, 150), "emoji": false } },
                { "type": "section", "text": { "type": "plain_text", "text": shorten(&body, 3000), "emoji": false } },
            ]);
            let message = json!({ "text": escape(&subject), "blocks": blocks, "unfurl_links": false });
            self.poster.send(&message.to_string(), |request| request).await
        })
    }
}

/// Returns the text with the three characters escaped that Slack reads as markup.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn shorten(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
