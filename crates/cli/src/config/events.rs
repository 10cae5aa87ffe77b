//! Sources of events in settings.

#![cfg_attr(
    not(all(feature = "serve", feature = "triggers")),
    allow(dead_code, reason = "without tasks only the syntax is checked")
)]

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::LOCAL;

/// `[events.NAME]` of a settings file: a source of events, which start runs of tasks while `archon serve` works. The events
/// have NAME as their source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum EventSettings {
    /// Signed requests of a service, at `/webhooks/NAME`.
    Webhook {
        /// The variable with the secret that the service shows, `whsec_` and base64.
        variable: String,
        /// The most bytes of a request; by default 65536.
        max_bytes: Option<usize>,
        /// The most requests in a minute; by default 60.
        per_minute: Option<u32>,
        /// The tenant whose tasks get the events; by default `local`, that of this command.
        tenant: Option<String>,
    },
    /// Files of a folder that appear, change and go.
    Folder {
        /// The folder; those below it are left out.
        path: PathBuf,
        /// The names of the files, with `*` for any text and `?` for one character; by default all.
        matching: Option<String>,
        /// The tenant whose tasks get the events; by default `local`, that of this command.
        tenant: Option<String>,
    },
    /// Mail of a mailbox, by IMAP. Replies to the questions of channels answer them, and start no run. Neither does mail that
    /// a program wrote, such as a note of absence.
    Mailbox {
        /// The host of the server.
        server: String,
        /// The port; by default 993.
        port: Option<u16>,
        /// False for a server of this machine without TLS; by default true.
        tls: Option<bool>,
        /// The name of the account.
        account: String,
        /// The variable with the password of the account.
        variable: String,
        /// The folder of the mailbox; by default `INBOX`.
        folder: Option<String>,
        /// The name of the receiving mail server in its header `Authentication-Results`: then a reply counts only if that
        /// server confirmed its sender (DMARC). By default the token in the reply is enough.
        confirmed_by: Option<String>,
        /// True if mail that a program wrote is an event, too: with a header `Auto-Submitted`, or a report of a mail server.
        /// Then a task that sends mail may start itself. By default false.
        automatic: Option<bool>,
        /// The tenant whose tasks get the events; by default `local`, that of this command.
        tenant: Option<String>,
    },
}

impl EventSettings {
    /// Returns the tenant whose tasks get the events.
    pub(crate) fn tenant(&self) -> &str {
        let (Self::Webhook { tenant, .. } | Self::Folder { tenant, .. } | Self::Mailbox { tenant, .. }) =
            self;
        tenant.as_deref().unwrap_or(LOCAL)
    }
}

/// Sources of events by their names.
pub(crate) type Events = BTreeMap<String, EventSettings>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_source_with_another_kind_or_field_are_refused() {
        for (text, problem) in [
            ("kind = 'pigeon'", "unknown variant `pigeon`"),
            ("kind = 'webhook'", "missing field `variable`"),
            ("kind = 'webhook'\nvariable = 'A'\nsecret = 'x'", "unknown field `secret`"),
            ("kind = 'mailbox'\nserver = 'a'\naccount = 'b'", "missing field `variable`"),
        ] {
            let e = toml::from_str::<EventSettings>(text).unwrap_err();
            assert!(e.message().contains(problem), "{text}: {e}");
        }
    }
}
