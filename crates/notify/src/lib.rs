//! Notification channels: the ways in which people hear about runs that work without them.
//!
//! Use this crate with anything that sends a [`Notification`](archon_types::Notification), such as `archon-triggers`.
//!
//! | channel | reaches people by |
//! |---|---|
//! | [`ConsoleChannel`] | lines on standard output |
//! | [`WebhookChannel`] | a signed POST request, also to a service for SMS or push |
//! | [`SlackChannel`] | an incoming web hook of Slack |
//! | [`TelegramChannel`] | a bot of Telegram |
//! | `EmailChannel`, with the feature `mail` | mail over SMTP |
//!
//! `LiveChannel` of `archon-server` sends to the clients that listen at a server, over a websocket or as events.
//!
//! An https address needs the cargo feature `tls`: without it only services on this machine can be used, and the creation of
//! another channel fails with a [`ChannelError`]. Mail has TLS of its own.
//!
//! An [`Outbox`] around them keeps notifications until their time: quiet hours, digests, and escalation to the next person
//! ([`DeliveryRules`]).
//!
//! *Invariants*
//!
//! - A text of a model or of an event is data: its lines are behind `> `, and no channel lets it format a message or mention
//!   people.
//! - No error and no log has an address, because addresses hold keys.
//! - A request over HTTP that fails for a moment is tried again, with the same id, after the pause that the service asks for, at
//!   most a minute. Mail is sent once.
//! - An outbox sends nothing twice, also after a restart.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_notify::{ChannelError, ConsoleChannel, WebhookChannel, WebhookOptions};
//! use archon_types::{Clock, Notification, NotificationChannel, NotificationKind, Secret};
//!
//! /// Creates a channel to a service for SMS. `clock` is `archon::SystemClock`, or a clock of your own.
//! fn sms(secret: Secret, clock: Arc<dyn Clock>) -> Result<WebhookChannel, ChannelError> {
//!     WebhookChannel::new("sms", WebhookOptions::new("https://sms.example.com/send").secret(secret), clock)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), String> {
//! let result = Notification::new("anna", NotificationKind::Result, "Two mails.").task("mail".into());
//! ConsoleChannel::new().send(&result).await?;
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | requests, and when they are tried again | `post.rs` |
// | the text of a notification | `text.rs` |
// | a channel that cannot be created | `error.rs` |
// | quiet hours, digests, escalation; what waits and what was sent | `delivery.rs`; `outbox.rs`, `outbox/entry.rs` |
// | the channels | `console.rs`, `webhook.rs`, `slack.rs`, `telegram.rs`, `email.rs` |
// | replies to the messages of a bot | `telegram/replies.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod console;
mod delivery;
#[cfg(feature = "mail")]
mod email;
mod error;
mod outbox;
mod post;
mod slack;
mod telegram;
mod text;
mod webhook;

pub use console::ConsoleChannel;
pub use delivery::{DeliveryError, DeliveryRules, DigestTimes, QuietHours};
#[cfg(feature = "mail")]
#[cfg_attr(docsrs, doc(cfg(feature = "mail")))]
pub use email::{EmailChannel, MailSender, SmtpOptions};
pub use error::ChannelError;
pub use outbox::{Outbox, QueuedChannel, QueuedNotification};
pub use slack::SlackChannel;
pub use telegram::{TelegramChannel, TelegramReplies, TelegramReply};
pub use webhook::{WebhookChannel, WebhookOptions};
