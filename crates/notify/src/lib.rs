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
//! *Invariants*
//!
//! - A text of a model or of an event is data: its lines are behind `> `, and no channel lets it format a message or mention
//!   people.
//! - No error and no log has an address, because addresses hold keys.
//! - A request over HTTP that fails for a moment is tried again, with the same id. Mail is sent once.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_notify::{ConsoleChannel, WebhookChannel, WebhookOptions};
//! use archon_testkit::VirtualClock;
//! use archon_types::{NotificationChannel, Secret};
//!
//! # fn main() -> Result<(), String> {
//! let options = WebhookOptions::new("https://sms.example.com/send").secret(Secret::from("whsec_a2V5a2V5a2V5a2V5a2V5a2V5"));
//! let sms = WebhookChannel::new("sms", options, Arc::new(VirtualClock::new()))?;
//! assert_eq!((sms.name(), ConsoleChannel::new().name()), ("sms", "console"));
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | requests, and when they are tried again | `post.rs` |
// | the text of a notification | `text.rs` |
// | the channels | `console.rs`, `webhook.rs`, `slack.rs`, `telegram.rs`, `email.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod console;
#[cfg(feature = "mail")]
mod email;
mod post;
mod slack;
mod telegram;
mod text;
mod webhook;

pub use console::ConsoleChannel;
#[cfg(feature = "mail")]
#[cfg_attr(docsrs, doc(cfg(feature = "mail")))]
pub use email::{EmailChannel, SmtpOptions};
pub use slack::SlackChannel;
pub use telegram::TelegramChannel;
pub use webhook::{WebhookChannel, WebhookOptions};
