//! The notification channels of the settings, with their secrets and rules, for `archon serve`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use archon::{
    SystemClock,
    notify::{
        ChannelError, DeliveryError, DeliveryRules, DigestTimes, QuietHours, SlackChannel, TelegramChannel,
        WebhookChannel, WebhookOptions,
    },
    server::{LiveChannel, Scope},
    types::{BoxFuture, Notification, NotificationChannel, visible},
};
use jiff::tz::TimeZone;

use super::{CONSOLE, place, secret, telegram::Bot};
use crate::{
    app::App,
    config::{ChannelSettings, LOCAL, RuleSettings},
    failure::Failure,
};

/// A channel of the settings, ready to send. It reaches one person.
pub(crate) struct Opened {
    pub(super) channel: Arc<dyn NotificationChannel>,
    pub(super) rules: DeliveryRules,
    /// The person for whom answers count: the mail address, or the name of the channel.
    pub(super) person: String,
    /// True if a link may be in a notification: not in the output of the server, which may be a log that others read, and not
    /// for listeners, who answer with their tokens.
    pub(super) has_link: bool,
    /// The bot whose replies answer questions; `None` for a channel without replies.
    pub(super) bot: Option<Bot>,
    /// The sender of notes to the person about a reply that does not count; `None` for a channel without replies.
    #[cfg(feature = "mail")]
    pub(super) replies: Option<archon::notify::MailSender>,
}

/// The open connections at `GET /v1/notifications`, which all channels of the kind `websocket` share.
pub(crate) struct Live {
    channel: LiveChannel,
    /// The tenants that have such a channel; `None` stands for all.
    tenants: BTreeSet<Option<String>>,
}

impl Live {
    /// Reads from the settings which tenants have a channel of the kind `websocket`.
    pub(super) fn of(app: &App) -> Self {
        let channels = app.config.settings.channels.iter().flatten().map(|(_, channel)| channel);
        let own = channels.filter(|channel| matches!(channel, ChannelSettings::Websocket { .. }));
        let tenants = own.map(|channel| channel.tenant().map(str::to_owned)).collect();
        Self { channel: LiveChannel::new(Arc::new(SystemClock)), tenants }
    }

    /// Lets a token receive the notifications of its tenant, if the tenant has a channel of the kind `websocket`. A
    /// token without a tenant gets those of the tenant `local`, so that a server's owner does not take the
    /// notifications of a customer.
    pub(super) fn add_to(&self, scope: Scope, tenant: Option<&str>) -> Scope {
        let tenant = tenant.unwrap_or(LOCAL);
        if self.tenants.contains(&None) || self.tenants.contains(&Some(tenant.to_owned())) {
            return scope.with_notifications(&self.channel, tenant);
        }
        scope
    }
}

/// Returns the channels of the settings, and the console.
///
/// # Errors
/// [`Failure`] if a secret is missing, or a channel cannot be used.
pub(crate) fn open(app: &App, live: &Live) -> Result<Vec<Opened>, Failure> {
    let console = Opened { has_link: false, ..Opened::new(Arc::new(Console(app.clone()))) };
    let mut channels = vec![console];
    for (name, settings) in app.config.settings.channels.iter().flatten() {
        if name == CONSOLE {
            let what = format!("{}: the output of the server has this name", place(app, "channels", name));
            return Err(Failure::usage(what, "give the channel another name"));
        }
        let mut opened = channel(app, live, name, settings)?;
        if let Some(rules) = settings.rules() {
            opened.rules = delivery_rules(app, name, rules)?;
        }
        channels.push(opened);
    }
    Ok(channels)
}

impl Opened {
    fn new(channel: Arc<dyn NotificationChannel>) -> Self {
        Self {
            rules: DeliveryRules::new(),
            person: channel.name().to_owned(),
            has_link: true,
            bot: None,
            #[cfg(feature = "mail")]
            replies: None,
            channel,
        }
    }
}

fn channel(app: &App, live: &Live, name: &str, settings: &ChannelSettings) -> Result<Opened, Failure> {
    let clock = Arc::new(SystemClock);
    let secret = |variable: &str| secret(app, "channels", name, variable);
    let unusable = |error| unusable(app, name, &error);
    let channel: Arc<dyn NotificationChannel> = match settings {
        ChannelSettings::Webhook { url, variable, .. } => {
            let mut options = WebhookOptions::new(url.as_str());
            if let Some(variable) = variable {
                options = options.secret(secret(variable)?);
            }
            Arc::new(WebhookChannel::new(name, options, clock).map_err(unusable)?)
        }
        ChannelSettings::Slack { variable, .. } => {
            let address = secret(variable)?;
            Arc::new(SlackChannel::new(&address, clock).map_err(unusable)?.with_name(name))
        }
        ChannelSettings::Telegram { chat, variable, server, replies, .. } => {
            let token = secret(variable)?;
            let channel = match server {
                Some(server) => TelegramChannel::at(server, &token, chat, clock.clone()),
                None => TelegramChannel::new(&token, chat, clock.clone()),
            };
            let channel = channel.map_err(unusable)?.with_name(name);
            let bot = (*replies == Some(true)).then(|| Bot::new(server.as_deref(), &token, name, chat));
            return Ok(Opened { bot: bot.transpose().map_err(unusable)?, ..Opened::new(Arc::new(channel)) });
        }
        // A token that may not answer may listen, so there is no link.
        ChannelSettings::Websocket { .. } => {
            let channel = Arc::new(live.channel.clone().with_name(name));
            return Ok(Opened { has_link: false, ..Opened::new(channel) });
        }
        ChannelSettings::Email { .. } => return email(app, name, settings),
    };
    Ok(Opened::new(channel))
}

/// Returns true if the settings have a mailbox.
#[cfg(feature = "mail")]
fn has_mailbox(app: &App) -> bool {
    let mut events = app.config.settings.events.iter().flatten();
    events.any(|(_, events)| matches!(events, crate::config::EventSettings::Mailbox { .. }))
}

fn unusable(app: &App, name: &str, error: &ChannelError) -> Failure {
    let what = format!("{}: {error}", place(app, "channels", name));
    Failure::usage(what, "correct the settings of the channel")
}

fn delivery_rules(app: &App, name: &str, settings: &RuleSettings) -> Result<DeliveryRules, Failure> {
    let place = format!("{}.rules", place(app, "channels", name).trim_end_matches(']')) + "]";
    let wrong = |error: DeliveryError| Failure::usage(format!("{place}: {error}"), "correct the rules");
    let own = || TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
    let zone = settings.zone.clone().unwrap_or_else(own);
    let mut rules = DeliveryRules::new();
    if let Some(hours) = &settings.quiet {
        let (from, until) = hours.split_once('-').ok_or_else(|| {
            let what = format!("{place}: `quiet` is {hours:?}, which has no `-` between two times");
            Failure::usage(what, "write both ends, as in quiet = \"22:00-07:00\"")
        })?;
        rules = rules.quiet(QuietHours::new(from.trim(), until.trim(), &zone).map_err(wrong)?);
    }
    if !settings.digest.is_empty() {
        let times: Vec<&str> = settings.digest.iter().map(String::as_str).collect();
        rules = rules.digest(DigestTimes::new(&times, &zone).map_err(wrong)?);
    }
    match (&settings.escalate_after, &settings.escalate_to) {
        (None, None) => Ok(rules),
        (Some(after), Some(next)) => {
            let channels = || app.config.settings.channels.iter().flatten();
            let tenant = |name: &str| channels().find(|(one, _)| *one == name).map(|(_, one)| one.tenant());
            // The question of one tenant must not reach the person of another.
            let is_for_all = next == CONSOLE || tenant(next) == Some(None);
            let is_channel = next != name && (is_for_all || tenant(next) == tenant(name));
            if !is_channel {
                let what = format!(
                    "{place}: `escalate_to` is {next:?}, which is no other channel of its tenant or of all"
                );
                return Err(Failure::usage(what, "name a channel of [channels], or `console`"));
            }
            Ok(rules.escalate(Duration::from_millis(after.0), next))
        }
        _ => {
            let what = format!("{place} has only one of `escalate_after` and `escalate_to`");
            Err(Failure::usage(what, "set both, or remove it"))
        }
    }
}

#[cfg(feature = "mail")]
fn email(app: &App, name: &str, settings: &ChannelSettings) -> Result<Opened, Failure> {
    use archon::notify::{EmailChannel, MailSender, SmtpOptions};

    let ChannelSettings::Email { server, port, tls, account, variable, from, to, replies, .. } = settings
    else {
        return Err(Failure::usage(
            format!("{} is no mail", place(app, "channels", name)),
            "correct its kind",
        ));
    };
    let mut options = SmtpOptions::new(server.as_str());
    if let Some(port) = port {
        options = options.port(*port);
    }
    if *tls == Some(false) {
        options = options.without_tls();
    }
    match (account, variable) {
        (Some(account), Some(variable)) => {
            options = options.account(account.as_str(), secret(app, "channels", name, variable)?);
        }
        (None, None) => {}
        _ => {
            let what = format!("{} has only one of `account` and `variable`", place(app, "channels", name));
            return Err(Failure::usage(what, "an account needs both, and a server without one neither"));
        }
    }
    let unusable = |error| unusable(app, name, &error);
    let channel = EmailChannel::new(&options, from, to).map_err(unusable)?.with_name(name);
    let mut opened = Opened { person: address_in(to), ..Opened::new(Arc::new(channel)) };
    if *replies == Some(true) {
        if !has_mailbox(app) {
            let what = format!(
                "{}: `replies` is true, but no mailbox under [events] gets them",
                place(app, "channels", name)
            );
            return Err(Failure::usage(what, "add the mailbox of the sender, or remove `replies`"));
        }
        opened.replies = Some(MailSender::new(&options, from).map_err(unusable)?);
    }
    Ok(opened)
}

/// Returns the address alone, without the name of the person.
#[cfg(feature = "mail")]
fn address_in(receiver: &str) -> String {
    let inner = receiver.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or(receiver, |(address, _)| address).trim().to_owned()
}

#[cfg(not(feature = "mail"))]
fn email(app: &App, name: &str, _: &ChannelSettings) -> Result<Opened, Failure> {
    Err(Failure::usage(
        format!("{}: mail is not in this build", place(app, "channels", name)),
        "build with `--features mail`",
    ))
}

/// Prints notifications: as lines of JSON for programs, or as notes for people.
struct Console(App);

impl NotificationChannel for Console {
    fn name(&self) -> &str {
        CONSOLE
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        let task = notification.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
        let text = format!("{task}{}: {}", notification.about.as_str(), visible(&notification.text));
        self.0.report(&serde_json::json!({ "notification": notification }), text);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, Span};

    // spec: TR-09
    #[test]
    fn question_is_escalated_only_within_its_tenant_or_to_a_channel_of_all() {
        let hook = |name: &str, tenant: Option<&str>| {
            let (url, tenant) = ("http://127.0.0.1:9/hook".to_owned(), tenant.map(str::to_owned));
            (name.to_owned(), ChannelSettings::Webhook { url, variable: None, rules: None, tenant })
        };
        let (anna, all) = (Some("anna"), Some("*"));
        let channels =
            [hook("ops", None), hook("desk", None), hook("mail", anna), hook("sms", anna), hook("team", all)];
        let app = App::of(Settings { channels: Some(channels.into()), ..Settings::default() });
        for (from, to, is_allowed) in [
            ("ops", "desk", true),
            ("mail", "sms", true),
            ("mail", "console", true),
            ("mail", "team", true),
            ("ops", "ops", false),
            ("ops", "pigeon", false),
            ("ops", "mail", false),
            ("mail", "ops", false),
            ("team", "mail", false),
        ] {
            let (escalate_after, escalate_to) = (Some(Span(60_000)), Some(to.to_owned()));
            let rules = RuleSettings { escalate_after, escalate_to, ..RuleSettings::default() };
            assert_eq!(delivery_rules(&app, from, &rules).is_ok(), is_allowed, "{from} to {to}");
        }
    }

    #[cfg(feature = "mail")]
    #[test]
    fn address_in_a_receiver_is_without_the_name() {
        for (receiver, address) in [
            ("anna@example.com", "anna@example.com"),
            ("Anna <anna@example.com>", "anna@example.com"),
            ("\"A <b>\" <anna@example.com>", "anna@example.com"),
        ] {
            assert_eq!(address_in(receiver), address);
        }
    }
}
