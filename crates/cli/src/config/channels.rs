//! Notification channels in settings.

#![cfg_attr(
    not(all(feature = "serve", feature = "triggers")),
    allow(dead_code, reason = "without tasks only the syntax is checked")
)]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{LOCAL, Span};

/// The `tenant` of a channel of all tenants.
const ALL: &str = "*";

/// `[channels.NAME]` of a settings file: a notification channel, which tells a person about the runs of tasks. Its
/// secret is in an environment variable of `archon serve`, or stored with `archon credentials add VARIABLE`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ChannelSettings {
    /// A POST request in JSON to an address of yours, also to a service for SMS or push.
    Webhook {
        /// The address: `https`, or `http` on this machine.
        url: String,
        /// The variable with the secret that signs the requests; by default they are not signed.
        variable: Option<String>,
        /// The rules for the times of notifications; by default each is sent at once.
        rules: Option<RuleSettings>,
        /// The tenant whose tasks may name the channel, or `*` for all tenants; by default `local`, that of this command.
        tenant: Option<String>,
    },
    /// An incoming web hook of Slack.
    Slack {
        /// The variable with the address of the web hook.
        variable: String,
        /// The rules for the times of notifications; by default each is sent at once.
        rules: Option<RuleSettings>,
        /// The tenant whose tasks may name the channel, or `*` for all tenants; by default `local`, that of this command.
        tenant: Option<String>,
    },
    /// A bot of Telegram.
    Telegram {
        /// The id of the chat.
        chat: String,
        /// The variable with the token of the bot.
        variable: String,
        /// The address of a server of yours for bots; by default that of Telegram.
        server: Option<String>,
        /// True if a reply in the chat answers a question: then no other program reads the messages of the bot. By default
        /// false.
        replies: Option<bool>,
        /// The rules for the times of notifications; by default each is sent at once.
        rules: Option<RuleSettings>,
        /// The tenant whose tasks may name the channel, or `*` for all tenants; by default `local`, that of this command.
        tenant: Option<String>,
    },
    /// The programs and pages that listen at `GET /v1/notifications` of the server with a token of the tenant, over a websocket or
    /// as server-sent events. They answer questions at the server, with the right of their token.
    Websocket {
        /// The rules for the times of notifications; by default each is sent at once.
        rules: Option<RuleSettings>,
        /// The tenant whose tasks may name the channel, or `*` for all tenants; by default `local`, that of this command.
        tenant: Option<String>,
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
        /// True if a mailbox under `[events]` gets the mail to the sender: then a reply answers a question. By default false.
        replies: Option<bool>,
        /// The rules for the times of notifications; by default each is sent at once.
        rules: Option<RuleSettings>,
        /// The tenant whose tasks may name the channel, or `*` for all tenants; by default `local`, that of this command.
        tenant: Option<String>,
    },
}

/// `[channels.NAME.rules]` of a settings file: the times at which notifications are sent, and the next channel of a
/// question that stays open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RuleSettings {
    /// The time zone of the hours, as in `Europe/Berlin`; by default that of this machine.
    pub(crate) zone: Option<String>,
    /// The quiet hours of each day, as in `"22:00-07:00"`: a notification waits for their end, unless it is a question that
    /// would expire before; by default none.
    pub(crate) quiet: Option<String>,
    /// The times of each day at which collected results are sent, as in `["08:00"]`; by default each is sent at once.
    pub(crate) digest: Vec<String>,
    /// The time after which a question that is still open goes to `escalate_to`, too, as in `"15m"`.
    pub(crate) escalate_after: Option<Span>,
    /// The channel to which a question goes after the time `escalate_after`.
    pub(crate) escalate_to: Option<String>,
}

impl ChannelSettings {
    /// Returns the rules for the times of notifications.
    pub(crate) fn rules(&self) -> Option<&RuleSettings> {
        match self {
            Self::Webhook { rules, .. }
            | Self::Slack { rules, .. }
            | Self::Telegram { rules, .. }
            | Self::Websocket { rules, .. }
            | Self::Email { rules, .. } => rules.as_ref(),
        }
    }

    /// Returns the tenant whose tasks may name the channel; `None` if those of all tenants may.
    pub(crate) fn tenant(&self) -> Option<&str> {
        let (Self::Webhook { tenant, .. }
        | Self::Slack { tenant, .. }
        | Self::Telegram { tenant, .. }
        | Self::Websocket { tenant, .. }
        | Self::Email { tenant, .. }) = self;
        Some(tenant.as_deref().unwrap_or(LOCAL)).filter(|tenant| *tenant != ALL)
    }
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
            ("kind = 'websocket'\nurl = 'ws://a'", "unknown field `url`"),
            ("kind = 'email'\nserver = 'a'\nfrom = 'b'", "missing field `to`"),
            ("kind = 'slack'\nvariable = 'A'\nrules = { loud = true }", "unknown field `loud`"),
        ] {
            let e = toml::from_str::<ChannelSettings>(text).unwrap_err();
            assert!(e.message().contains(problem), "{text}: {e}");
        }
    }
}
