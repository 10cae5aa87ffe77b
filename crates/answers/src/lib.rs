//! Answers to the questions of runs from outside of the program: a person opens a link, or replies to a mail.
//!
//! Use this crate with any [`AnswerRuns`](archon_types::AnswerRuns) to let people answer where a notification reaches them.
//!
//! An [`AnswerableChannel`] sends the questions of another channel with a link, or as mail to which the person can reply.
//! [`Answers`] checks what comes back. With the feature `page`, `AnswerPage` is the page to which links lead; with the feature
//! `mail`, `MailReplies` reads replies.
//!
//! The permission is a token: an HMAC over the run, the question with its arguments, the person and the time at which it
//! ends. Nothing is stored for it, so it is valid after a restart with the same [`AnswerKey`], and a new key makes all
//! tokens invalid. Whoever has the link of a person can answer for this person, as with a link to set a new password.
//!
//! *Invariants*
//!
//! - The first answer to a question counts, on whichever way it comes; a further one is refused.
//! - A token is valid for one question as it was shown: not for the same question with other arguments.
//! - A request that only reads answers nothing, so programs that open links in mail answer nothing.
//! - The token of a link is not valid for a reply by mail, and that of a reply by mail not for the page.
//! - Neither way gives lasting permissions: no answer of a link or a mail changes the rules of a session.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_answers::{AnswerError, AnswerKey, AnswerableChannel, Answers};
//! use archon_types::{AnswerRuns, Clock, NotificationChannel, Secret};
//!
//! /// Sends Anna's questions by SMS, with a link.
//! fn channel(
//!     runs: Arc<dyn AnswerRuns>,
//!     clock: Arc<dyn Clock>,
//!     sms: Arc<dyn NotificationChannel>,
//!     key: &Secret,
//! ) -> Result<AnswerableChannel, AnswerError> {
//!     let answers = Answers::new(runs, AnswerKey::new(key)?, clock);
//!     Ok(AnswerableChannel::new(sms, answers, "anna").with_page("https://archon.example.com/answer"))
//! }
//! ```

// | concept | file |
// |---|---|
// | keys and tokens | `key.rs`, `ticket.rs` |
// | checks of a token, and answers | `answers.rs`, `error.rs` |
// | questions that are sent with a link | `channel.rs` |
// | the page of links | `page.rs`, `page/` |
// | replies by mail, and the check of the sender | `mail.rs`, `mail/sender.rs` |
// | the answer in the words of a reply | `words.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answers;
mod channel;
mod error;
mod key;
#[cfg(feature = "mail")]
mod mail;
#[cfg(feature = "page")]
mod page;
mod ticket;
mod words;

pub use answers::Answers;
pub use channel::AnswerableChannel;
pub use error::AnswerError;
pub use key::AnswerKey;
#[cfg(feature = "mail")]
#[cfg_attr(docsrs, doc(cfg(feature = "mail")))]
pub use mail::MailReplies;
#[cfg(feature = "page")]
#[cfg_attr(docsrs, doc(cfg(feature = "page")))]
pub use page::AnswerPage;
