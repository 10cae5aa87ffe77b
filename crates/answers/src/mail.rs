//! Replies by mail to the mail of a question.

use std::borrow::Cow;

use archon_types::PendingApproval;
use mail_parser::{Message, MessageParser};

use crate::{
    answers::Answers,
    error::AnswerError,
    ticket::{Ticket, Way},
    words,
};

mod sender;

/// The beginning and the end of the `Message-ID` of a question, as the mail channel writes it.
const QUESTION: (&str, &str) = ("question.", "@archon");

/// Reads replies to the mail of questions.
///
/// A reply counts if it refers to the mail of the question (`In-Reply-To` or `References` with its token), comes from the person
/// who was asked, is not automatic, and consists of a clear answer above the quoted text: only `yes` or `no`, after a `no` also
/// a reason, or the person's own words if the question asks for words.
///
/// The sender in a mail can be forged, but the token is known only from the mail that the person got. If the mailbox belongs to
/// a server that checks senders, name it with [`trusting`](Self::trusting): then a reply also needs its confirmation.
///
/// ```
/// use archon_answers::{AnswerError, Answers, MailReplies};
///
/// /// Takes a mail of the mailbox. Returns a text to send back to the person, if one is needed.
/// async fn take(answers: Answers, mail: &[u8]) -> Option<String> {
///     let replies = MailReplies::new(answers).trusting("mx.example.com");
///     match replies.take(mail).await {
///         Ok(Some(question)) => Some(format!("Done: {}", question.request.action_summary)),
///         // Another mail: for an assistant that reads the mailbox.
///         Ok(None) => None,
///         // A forged reply gets no answer.
///         Err(AnswerError::Token | AnswerError::Sender { .. } | AnswerError::Unconfirmed { .. }) => None,
///         Err(refused) => Some(refused.to_string()),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MailReplies {
    answers: Answers,
    trusted: Option<String>,
}

impl MailReplies {
    /// Creates a reader that passes replies on to `answers`. Senders are not confirmed until
    /// [`trusting`](Self::trusting) names a server.
    pub fn new(answers: Answers) -> Self {
        Self { answers, trusted: None }
    }

    /// Demands that this server has confirmed the sender of a reply: its first header `Authentication-Results` says
    /// `dmarc=pass`. `server` is the name in that header, `authserv-id`. The server must remove headers with its own name from
    /// mail that it receives, as RFC 8601 says.
    #[must_use]
    pub fn trusting(mut self, server: impl Into<String>) -> Self {
        self.trusted = Some(server.into());
        self
    }

    /// Takes a mail, as the mail server has it. If it is a reply that counts, the question is answered and its run goes on.
    /// Returns the question; `None` for a mail that replies to no question, and for one that a program sent by itself, such
    /// as a note of absence.
    ///
    /// # Errors
    /// The mail is a reply to a question, and does not count.
    pub async fn take(&self, mail: &[u8]) -> Result<Option<PendingApproval>, AnswerError> {
        let Some(reply) = Reply::read(mail) else { return Ok(None) };
        let ticket = self.answers.ticket(&reply.token, Way::Mail)?;
        self.check_sender(&reply, &ticket)?;
        let answered =
            self.answers.answer_with(&ticket, |question| words::answer_in(&reply.text, question)).await?;
        Ok(Some(answered))
    }

    fn check_sender(&self, reply: &Reply, ticket: &Ticket) -> Result<(), AnswerError> {
        let question = || ticket.question.clone();
        let from = reply.from.as_ref().filter(|from| from.eq_ignore_ascii_case(&ticket.person));
        let Some(from) = from else { return Err(AnswerError::Sender { question: question() }) };
        let is_confirmed = |server: &String| sender::is_confirmed(&reply.results, server, domain_of(from));
        match self.trusted.as_ref().is_none_or(is_confirmed) {
            true => Ok(()),
            false => Err(AnswerError::Unconfirmed { question: question() }),
        }
    }
}

/// The parts of a reply to a question that decide.
struct Reply {
    token: String,
    /// The only sender; `None` if there are several.
    from: Option<String>,
    /// The values of `Authentication-Results`, the newest first.
    results: Vec<String>,
    text: String,
}

impl Reply {
    /// Reads a reply of a person to a question; `None` for any other mail.
    fn read(mail: &[u8]) -> Option<Self> {
        let mail = MessageParser::default().parse(mail)?;
        let token = token_of(&mail)?;
        if is_automatic(&mail) {
            return None;
        }
        let results = values(&mail, "Authentication-Results").map(Cow::into_owned).collect();
        let text = mail.body_text(0).unwrap_or_default().into_owned();
        Some(Self { token, from: sender_of(&mail), results, text })
    }
}

/// Returns the values of a header, from the top. One with bytes that are no text is there too: it may be the one that decides.
fn values<'a>(mail: &'a Message<'_>, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    let headers = mail.headers().iter().filter(move |header| header.name.as_str().eq_ignore_ascii_case(name));
    headers.map(|header| {
        let bytes = mail.raw_message.get(header.offset_start as usize..header.offset_end as usize);
        String::from_utf8_lossy(bytes.unwrap_or_default())
    })
}

/// Returns the token in the id of the mail to which this one replies.
fn token_of(mail: &Message<'_>) -> Option<String> {
    let token = |id: &str| id.strip_prefix(QUESTION.0)?.strip_suffix(QUESTION.1).map(str::to_owned);
    let first = |value: Cow<'_, str>| value.split(['<', '>', ' ', '\t', '\r', '\n']).find_map(token);
    ["In-Reply-To", "References"].into_iter().flat_map(|name| values(mail, name)).find_map(first)
}

/// Returns true for a mail that a program sent by itself, such as a note of absence or a report about delivery.
fn is_automatic(mail: &Message<'_>) -> bool {
    let has = |name, is: fn(&str) -> bool| values(mail, name).any(|value| is(value.trim()));
    has("Auto-Submitted", |value| !value.eq_ignore_ascii_case("no"))
        || has("Precedence", |value| {
            matches!(&*value.to_ascii_lowercase(), "bulk" | "junk" | "list" | "auto_reply")
        })
        || has("Return-Path", |value| value == "<>")
        || has("X-Auto-Response-Suppress", |_| true)
            && has("X-MS-Exchange-Generated-Message-Source", |_| true)
        || has("X-Autoreply", |_| true)
}

fn sender_of(mail: &Message<'_>) -> Option<String> {
    let mut senders = mail.from()?.iter();
    let sender = senders.next()?.address()?.to_owned();
    let is_only = senders.next().is_none() && values(mail, "From").count() == 1;
    is_only.then_some(sender)
}

fn domain_of(address: &str) -> &str {
    address.rsplit_once('@').map_or("", |(_, domain)| domain)
}
