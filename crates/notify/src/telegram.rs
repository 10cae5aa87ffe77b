//! Notifications by a bot of Telegram.

use std::sync::Arc;

use archon_types::{BoxFuture, Clock, Notification, NotificationChannel, Secret};
use serde_json::json;

use crate::{post::Poster, text};

/// The address of Telegram's service.
const SERVICE: &str = "https://api.telegram.org";

/// The most characters of a message.
const MOST_CHARACTERS: usize = 4096;

/// Sends notifications with a bot of Telegram to one chat. Its name is `telegram`, unless [`with_name`](Self::with_name) sets another.
pub struct TelegramChannel {
    name: String,
    poster: Poster,
    chat: String,
}

impl TelegramChannel {
    /// Creates a channel for the token of a bot and the id of a chat.
    ///
    /// # Errors
    /// There is no web client.
    pub fn new(
        token: &Secret<String>,
        chat: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        Self::at(SERVICE, token, chat, clock)
    }

    /// Creates a channel for another address of the service, such as that of a server of your own.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn at(
        service: &str,
        token: &Secret<String>,
        chat: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let url = format!("{}/bot{}/sendMessage", service.trim_end_matches('/'), token.expose());
        let poster = Poster::new(&url, clock);
        let poster = poster.map_err(|problem| format!("the channel telegram cannot be used: {problem}"))?;
        Ok(Self { name: "telegram".to_owned(), poster, chat: chat.into() })
    }

    /// Sets the name, for a program with several such channels.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
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
            self.poster.send(&message, |request| request).await
        })
    }
}
