//! Notifications on standard output.

use archon_types::{BoxFuture, Notification, NotificationChannel};

use crate::text;

/// Prints notifications on standard output, for a program that a person watches. Its name is `console`.
///
/// ```
/// use archon_notify::ConsoleChannel;
/// use archon_types::{Notification, NotificationChannel, NotificationKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), String> {
/// // Prints "mail done", and "> Two mails." below it.
/// let result = Notification::new("anna", NotificationKind::Result, "Two mails.").task("mail".into());
/// ConsoleChannel::new().send(&result).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsoleChannel;

impl ConsoleChannel {
    /// Creates the channel.
    pub fn new() -> Self {
        Self
    }
}

impl NotificationChannel for ConsoleChannel {
    fn name(&self) -> &str {
        "console"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        use std::io::Write;
        let lines = format!("{}\n{}\n", text::subject(notification), text::body(notification));
        let printed = std::io::stdout().lock().write_all(lines.as_bytes());
        Box::pin(std::future::ready(printed.map_err(|error| format!("standard output is closed: {error}"))))
    }
}
