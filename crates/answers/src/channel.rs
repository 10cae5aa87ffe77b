//! A channel whose questions can be answered.

use std::sync::Arc;

use archon_types::{BoxFuture, Notification, NotificationChannel, NotificationKind};

use crate::{answers::Answers, ticket::Way};

/// Sends the notifications of another channel, and adds to each question a link or a token with which the person can
/// answer it. Its name is that of the other channel. If you use an outbox, add this channel to the outbox. In front of
/// the outbox, this channel would make the outbox store the tokens.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_answers::{AnswerableChannel, Answers};
/// use archon_types::NotificationChannel;
///
/// /// Anna answers by the link in the mail, or replies to it.
/// fn of_anna(mail: Arc<dyn NotificationChannel>, answers: Answers) -> AnswerableChannel {
///     AnswerableChannel::new(mail, answers, "anna@example.com")
///         .with_page("https://archon.example.com/answer")
///         .with_replies()
/// }
/// ```
pub struct AnswerableChannel {
    channel: Arc<dyn NotificationChannel>,
    answers: Answers,
    person: String,
    page: Option<String>,
    takes_replies: bool,
}

impl AnswerableChannel {
    /// Creates the channel to one person. `person` is the name in the log of answers. For replies by mail, it must be
    /// the mail address to which `channel` sends.
    pub fn new(channel: Arc<dyn NotificationChannel>, answers: Answers, person: impl Into<String>) -> Self {
        Self { channel, answers, person: person.into(), page: None, takes_replies: false }
    }

    /// Adds a link to questions. `page` is the address by which people reach the page of answers, such as
    /// `https://archon.example.com/answer`. The token is behind `#`, so no server and no log on the way sees it.
    #[must_use]
    pub fn with_page(mut self, page: impl Into<String>) -> Self {
        self.page = Some(page.into());
        self
    }

    /// Sends questions so that a reply to the mail answers them. The channel must be one for mail.
    #[must_use]
    pub fn with_replies(mut self) -> Self {
        self.takes_replies = true;
        self
    }
}

impl NotificationChannel for AnswerableChannel {
    fn name(&self) -> &str {
        self.channel.name()
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        let NotificationKind::Question(question) = &notification.about else {
            return self.channel.send(notification);
        };
        let token = |way| self.answers.token_for(way, question, &self.person);
        let link = self.page.as_ref().map(|page| format!("{page}#{}", token(Way::Link)));
        let mut answerable = notification.clone();
        answerable.link = link.or(answerable.link);
        answerable.reply_token = self.takes_replies.then(|| token(Way::Mail));
        Box::pin(async move { self.channel.send(&answerable).await })
    }
}
