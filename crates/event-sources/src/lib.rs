//! Sources of events that start the runs of tasks: signed web hooks, files that change, messages of a bus, and mail.
//!
//! Use this crate with a [`TriggerEngine`](archon_triggers::TriggerEngine) to start runs by what happens elsewhere.
//!
//! | source | publishes |
//! |---|---|
//! | `WebhookDoor`, with the feature `webhooks` | signed POST requests, as Standard Webhooks describes them |
//! | [`FileSource`] | files of a folder that appear, change and go |
//! | [`BusSource`] | messages of a bus between agents |
//! | `ImapMailbox`, with the feature `imap` | mail of a mailbox |
//!
//! *Invariants*
//!
//! - The source and the tenant of an event come from the program, never from what arrived. The data is untrusted: a run gets
//!   it as an attached file.
//! - What arrives twice has the same id, so it starts one run of a task.
//! - What cannot be published is refused, or tried again, and never dropped silently.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_event_sources::FileSource;
//! use archon_triggers::{EventFilter, TriggerEngine, TriggerTask};
//! use archon_types::{CancellationToken, Clock};
//!
//! /// An agent reads each invoice that somebody puts into a folder.
//! async fn watch_invoices(engine: TriggerEngine, clock: Arc<dyn Clock>) -> Result<(), Box<dyn std::error::Error>> {
//!     let filter = EventFilter::new("invoices.file.created");
//!     engine.create_task(TriggerTask::new("invoice", filter, "Enter this invoice into the books.")).await?;
//!     let source = FileSource::new("invoices", "/srv/invoices").matching("*.pdf");
//!     Ok(source.serve(&engine, clock, CancellationToken::new()).await?)
//! }
//! ```

// | concept | file |
// |---|---|
// | signed requests, and the limits of a web hook | `webhook.rs`, `webhook/signature.rs`, `webhook/door.rs` |
// | looks at a folder, and the differences between two | `files.rs` |
// | messages of a bus | `bus.rs` |
// | problems after the first look | `problem.rs` |
// | mail: looks at a mailbox, the session with its server, TLS | `mailbox.rs`, `mailbox/session.rs`, `mailbox/tls.rs` |
// | the event of a mail, without tokens of questions | `mailbox/mail.rs`, `mailbox/tokens.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod bus;
mod files;
#[cfg(feature = "imap")]
mod mailbox;
mod problem;
#[cfg(feature = "webhooks")]
mod webhook;

pub use bus::BusSource;
pub use files::{FileSource, FileSourceError};
#[cfg(feature = "imap")]
#[cfg_attr(docsrs, doc(cfg(feature = "imap")))]
pub use mailbox::{ImapMailbox, MailboxError, ReceivedMail};
#[cfg(feature = "webhooks")]
#[cfg_attr(docsrs, doc(cfg(feature = "webhooks")))]
pub use webhook::{Webhook, WebhookCounts, WebhookDoor, WebhookError};
