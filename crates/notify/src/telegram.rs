//! Notifications by a bot of Telegram.

use std::sync::Arc;

use archon_types::{BoxFuture, Clock, Notification, NotificationChannel, Secret};
use serde_json::json;

use crate::{error::ChannelError, post::Poster, text};

mod replies;

pub use replies::{TelegramReplies, TelegramReply};

/// The address of Telegram's service.
const SERVICE: &str = "https://api.telegram.org";

/// The most characters of a message.
const MOST_CHARACTERS: usize = 4096;

/// Sends notifications with a bot of Telegram to one chat. Its name is `telegram`, unless [`with_name`](Self::with_name) sets another.
///
/// It needs the feature `tls`, unless the service is on this machine.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::{ChannelError, TelegramChannel};
/// use archon_types::{Clock, Secret};
///
/// fn channel(token: Secret, clock: Arc<dyn Clock>) -> Result<TelegramChannel, ChannelError> {
///     Ok(TelegramChannel::new(&token, "4711", clock)?.with_name("phone"))
/// }
/// ```
pub struct TelegramChannel {
    name: String,
    poster: Poster,
    chat: String,
}

impl TelegramChannel {
    /// Creates a channel that sends to `chat`, the id of a chat, with the bot of this token.
    ///
    /// # Errors
    /// [`ChannelError::Address`] in a build without the feature `tls`.
    pub fn new(
        token: &Secret<String>,
        chat: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChannelError> {
        Self::at(SERVICE, token, chat, clock)
    }

    /// Does the same as [`new`](Self::new), with another address of the service, such as that of a server of your own.
    ///
    /// # Errors
    /// [`ChannelError::Address`] if the address cannot be used, or needs the feature `tls` in a build without it.
    pub fn at(
        service: &str,
        token: &Secret<String>,
        chat: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChannelError> {
        let url = address(service, token, "sendMessage");
        let name = "telegram".to_owned();
        Ok(Self { poster: Poster::new(&name, &url, clock)?, name, chat: chat.into() })
    }

    /// Sets the name by which tasks refer to the channel. Default `telegram`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// Returns the address of a method of a bot.
fn address(service: &str, token: &Secret<String>, method: &str) -> String {
    format!("{}/bot{}/{method}", service.trim_end_matches('/'), token.expose())
}

impl NotificationChannel for TelegramChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            // Without `parse_mode` the text is no markup.
            let text = format!("{}\n{}", text::subject(notification), text::body(notification));
            let text: String = text.chars().take(MOST_CHARACTERS).collect();
            let options = json!({ "is_disabled": true });
            let message = json!({ "chat_id": self.chat, "text": text, "link_preview_options": options });
            self.poster.send(&message.to_string(), |request| request).await
        })
    }
}
