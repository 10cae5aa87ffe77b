//! Replies to the messages of a bot, by its updates.

use std::sync::Arc;

use archon_types::{CancellationToken, Clock, Json, Secret};
use serde_json::json;

use super::{SERVICE, address};
use crate::{error::ChannelError, post::Poster, text};

/// The seconds for which the service waits for an update. It must be less than the time limit of a request.
const WAIT: u64 = 20;

/// The most updates of one answer.
const MOST: u64 = 20;

/// Reads the replies that people write to the messages of a bot. Nothing is stored: with each reply, Telegram sends the
/// message that it answers, and says whether the bot wrote that message.
///
/// Only one process may read the updates of a bot, and the bot must have no web hook.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::{ChannelError, TelegramReplies, TelegramReply};
/// use archon_types::{CancellationToken, Clock, Secret};
///
/// /// Prints the answers to questions until `stop` is cancelled.
/// async fn read(token: &Secret, clock: Arc<dyn Clock>, stop: CancellationToken) -> Result<(), String> {
///     let replies = TelegramReplies::new(token, clock).map_err(|error: ChannelError| error.to_string())?;
///     let take = |reply: TelegramReply| async move {
///         reply.link_token().map(|token| format!("{} with {token}", reply.text))
///     };
///     replies.serve(stop, take).await
/// }
/// ```
pub struct TelegramReplies {
    updates: Poster,
    sender: Poster,
    /// The id of the bot, with which its token begins.
    bot: String,
}

/// A reply to a message of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TelegramReply {
    /// The id of the chat, and its name as `@name` if it has one.
    pub chat: (String, Option<String>),
    /// The text of the reply.
    pub text: String,
    /// The text of the bot's message to which the person replied.
    pub to: String,
    /// The id of the reply in its chat.
    id: i64,
}

impl TelegramReply {
    /// Returns true if the reply is in this chat. `chat` is an id, or `@name`.
    pub fn is_in(&self, chat: &str) -> bool {
        let (id, name) = &self.chat;
        id == chat || name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(chat))
    }

    /// Returns the token of the link in the question to which the person replies; `None` if the message has no link.
    pub fn link_token(&self) -> Option<&str> {
        let link = text::link_in(&self.to)?;
        link.split_once('#').map(|(_, token)| token)
    }
}

impl TelegramReplies {
    /// Creates a reader of the replies to the bot of this token.
    ///
    /// # Errors
    /// [`ChannelError::Address`] in a build without the feature `tls`.
    pub fn new(token: &Secret<String>, clock: Arc<dyn Clock>) -> Result<Self, ChannelError> {
        Self::at(SERVICE, token, clock)
    }

    /// Does the same as [`new`](Self::new), with another address of the service, such as that of a server of your own.
    ///
    /// # Errors
    /// As [`TelegramChannel::at`](super::TelegramChannel::at).
    pub fn at(service: &str, token: &Secret<String>, clock: Arc<dyn Clock>) -> Result<Self, ChannelError> {
        let poster = |method| Poster::new("telegram", &address(service, token, method), clock.clone());
        let bot = token.expose().split(':').next().unwrap_or_default().to_owned();
        Ok(Self { updates: poster("getUpdates")?, sender: poster("sendMessage")?, bot })
    }

    /// Calls `take` with each reply until `stop` is cancelled. If `take` returns a text, it is sent back to the person.
    /// If the process is killed, a reply may come again after the next start.
    ///
    /// # Errors
    /// The service cannot be reached, or refused the request. Call `serve` again after a while.
    pub async fn serve<F: Future<Output = Option<String>> + Send>(
        &self,
        stop: CancellationToken,
        take: impl Fn(TelegramReply) -> F + Send + Sync,
    ) -> Result<(), String> {
        let mut next = 0;
        loop {
            let asked =
                json!({ "offset": next, "timeout": WAIT, "limit": MOST, "allowed_updates": ["message"] });
            let asked = asked.to_string();
            let answer = tokio::select! {
                answer = self.updates.fetch(&asked) => answer?,
                () = stop.cancelled() => return Ok(()),
            };
            for update in answer["result"].as_array().into_iter().flatten() {
                if let Some(reply) = self.reply_in(&update["message"]) {
                    let (chat, id) = (reply.chat.0.clone(), reply.id);
                    if let Some(text) = take(reply).await {
                        self.send_back(&chat, id, &text).await;
                    }
                }
                // With the next request Telegram forgets it.
                next = update["update_id"].as_i64().unwrap_or_default() + 1;
            }
        }
    }

    /// Returns the reply of a message; `None` for another message.
    fn reply_in(&self, message: &Json) -> Option<TelegramReply> {
        let to = &message["reply_to_message"];
        let is_of_bot = to["from"]["id"].as_i64().is_some_and(|id| id.to_string() == self.bot);
        let is_of_person = message["from"]["is_bot"] != true;
        let text = |message: &Json| message["text"].as_str().map(str::to_owned);
        let chat = &message["chat"];
        let name = chat["username"].as_str().map(|name| format!("@{name}"));
        (is_of_bot && is_of_person).then_some(TelegramReply {
            chat: (chat["id"].as_i64()?.to_string(), name),
            text: text(message)?,
            to: text(to)?,
            id: message["message_id"].as_i64()?,
        })
    }

    async fn send_back(&self, chat: &str, id: i64, text: &str) {
        let body = json!({ "chat_id": chat, "text": text, "reply_parameters": { "message_id": id } });
        if let Err(problem) = self.sender.send(&body.to_string(), |request| request).await {
            tracing::warn!("the note about an answer is not sent: {problem}");
        }
    }
}

impl std::fmt::Debug for TelegramReplies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelegramReplies").field("bot", &self.bot).finish_non_exhaustive()
    }
}
