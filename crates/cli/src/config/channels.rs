//! Notification channels in settings.

#![cfg_attr(
    not(all(feature = "serve", feature = "triggers")),
    allow(dead_code, reason = "without tasks only the syntax is checked")
)]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// `[channels.NAME]` of a settings file: a way on which people hear about the runs of tasks. Its secret is in an environment
/// variable of `archon serve`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ChannelSettings {
    /// A POST request in JSON to an address of yours, also to a service for SMS or push.
    Webhook {
        /// The address: `https`, or `http` on this machine.
        url: String,
        /// The variable with the secret that signs the requests; by default they are not signed.
        variable: Option<String>,
    },
    /// An incoming web hook of Slack.
    Slack {
        /// The variable with the address of the web hook.
        variable: String,
    },
    /// A bot of Telegram.
    Telegram {
        /// The id of the chat.
        chat: String,
        /// The variable with the token of the bot.
        variable: String,
    },
    /// Mail over SMTP.
    Email {
        /// The host of the server.
        server: String,
        /// The port; by default 465.
        port: Option<u16>,
        /// False for a server of this machine without TLS; by default true.
        tls: Option<bool>,
        /// The name of the account; by default none.
        account: Option<String>,
        /// The variable with the password of the account.
        variable: Option<String>,
        /// The sender, as in `Archon <archon@example.com>`.
        from: String,
        /// The receiver.
        to: String,
    },
}

/// Channels by their names.
pub(crate) type Channels = BTreeMap<String, ChannelSettings>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_channel_with_another_kind_or_field_are_refused() {
        for (text, problem) in [
            ("kind = 'pigeon'", "unknown variant `pigeon`"),
            ("kind = 'slack'", "missing field `variable`"),
            ("kind = 'slack'\nvariable = 'A'\nsecret = 'x'", "unknown field `secret`"),
            ("kind = 'email'\nserver = 'a'\nfrom = 'b'", "missing field `to`"),
        ] {
            let e = toml::from_str::<ChannelSettings>(text).unwrap_err();
            assert!(e.message().contains(problem), "{text}: {e}");
        }
    }
}
