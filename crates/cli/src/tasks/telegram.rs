//! Bots of Telegram: a reply to a question answers it.

use std::sync::Arc;

use archon::{
    SystemClock,
    answers::{AnswerError, Answers},
    notify::{ChannelError, TelegramReplies, TelegramReply},
    types::{CancellationToken, Secret},
};

/// A bot, with the chats of its channels. One reader takes the replies of all of them.
pub(super) struct Bot {
    token: Secret,
    replies: TelegramReplies,
    /// The channels, each with its chat.
    channels: Vec<(String, String)>,
}

impl Bot {
    /// Creates the bot that takes the replies in the chat of a channel. `server` is by default that of Telegram.
    ///
    /// # Errors
    /// The address of the server cannot be used.
    pub(super) fn new(
        server: Option<&str>,
        token: &Secret,
        channel: &str,
        chat: &str,
    ) -> Result<Self, ChannelError> {
        let clock = Arc::new(SystemClock);
        let replies = match server {
            Some(server) => TelegramReplies::at(server, token, clock)?,
            None => TelegramReplies::new(token, clock)?,
        };
        Ok(Self { token: token.clone(), replies, channels: vec![(channel.to_owned(), chat.to_owned())] })
    }

    /// Adds the bot to `bots`. If the same bot is there already, adds only the chats of this one.
    pub(super) fn add_to(self, bots: &mut Vec<Self>) {
        match bots.iter_mut().find(|bot| bot.token.expose() == self.token.expose()) {
            Some(bot) => bot.channels.extend(self.channels),
            None => bots.push(self),
        }
    }

    /// Returns true if the bot sends to one of these channels.
    pub(super) fn has_one_of(&self, channels: &[String]) -> bool {
        self.channels.iter().any(|(name, _)| channels.contains(name))
    }

    /// Returns the name of the first channel.
    pub(super) fn name(&self) -> &str {
        self.channels.first().map_or("", |(name, _)| name)
    }

    /// Takes replies until `end` is cancelled.
    ///
    /// # Errors
    /// The service cannot be reached, or refused the request.
    pub(super) async fn serve(&self, answers: &Answers, end: &CancellationToken) -> Result<(), String> {
        self.replies.serve(end.clone(), |reply| self.take(reply, answers)).await
    }

    /// Answers a question with a reply. Returns a text for the person; `None` for another message.
    async fn take(&self, reply: TelegramReply, answers: &Answers) -> Option<String> {
        if !self.channels.iter().any(|(_, chat)| reply.is_in(chat)) {
            return None;
        }
        let token = reply.link_token()?;
        Some(match answers.answer_in_words(token, &reply.text).await {
            Ok(_) => "The answer was taken, and the run goes on.".to_owned(),
            Err(AnswerError::Runs(error)) => format!("The answer was not taken: {error}. Reply again later."),
            Err(refused) => refused.to_string(),
        })
    }
}
