//! The notification channels of the settings, with their secrets, for `archon serve`.

use std::sync::Arc;

use archon::{
    SystemClock,
    notify::{ChannelError, SlackChannel, TelegramChannel, WebhookChannel, WebhookOptions},
    types::{BoxFuture, Notification, NotificationChannel, Secret, visible},
};

use super::CONSOLE;
use crate::{app::App, config::ChannelSettings, failure::Failure};

/// Returns the channels of the settings, and the console.
///
/// # Errors
/// [`Failure`] if a secret is missing, or a channel cannot be used.
pub(crate) fn open(app: &App) -> Result<Vec<Arc<dyn NotificationChannel>>, Failure> {
    let mut channels: Vec<Arc<dyn NotificationChannel>> = vec![Arc::new(Console(app.clone()))];
    for (name, settings) in app.config.settings.channels.iter().flatten() {
        if name == CONSOLE {
            let what = format!("[channels.{name}]: the output of the server has this name");
            return Err(Failure::usage(what, "give the channel another name"));
        }
        channels.push(channel(app, name, settings)?);
    }
    Ok(channels)
}

fn channel(
    app: &App,
    name: &str,
    settings: &ChannelSettings,
) -> Result<Arc<dyn NotificationChannel>, Failure> {
    let clock = Arc::new(SystemClock);
    let unusable = |error: ChannelError| {
        Failure::usage(format!("[channels.{name}]: {error}"), "correct the settings of the channel")
    };
    Ok(match settings {
        ChannelSettings::Webhook { url, variable } => {
            let mut options = WebhookOptions::new(url.as_str());
            if let Some(variable) = variable {
                options = options.secret(secret(app, name, variable)?);
            }
            Arc::new(WebhookChannel::new(name, options, clock).map_err(unusable)?)
        }
        ChannelSettings::Slack { variable } => {
            let address = secret(app, name, variable)?;
            Arc::new(SlackChannel::new(&address, clock).map_err(unusable)?.with_name(name))
        }
        ChannelSettings::Telegram { chat, variable } => {
            let token = secret(app, name, variable)?;
            Arc::new(TelegramChannel::new(&token, chat, clock).map_err(unusable)?.with_name(name))
        }
        ChannelSettings::Email { .. } => email(app, name, settings)?,
    })
}

#[cfg(feature = "mail")]
fn email(app: &App, name: &str, settings: &ChannelSettings) -> Result<Arc<dyn NotificationChannel>, Failure> {
    use archon::notify::{EmailChannel, SmtpOptions};

    let ChannelSettings::Email { server, port, tls, account, variable, from, to } = settings else {
        return Err(Failure::usage(format!("[channels.{name}] is no mail"), "correct its kind"));
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
            options = options.account(account.as_str(), secret(app, name, variable)?);
        }
        (None, None) => {}
        _ => {
            let what = format!("[channels.{name}] has only one of `account` and `variable`");
            return Err(Failure::usage(what, "an account needs both, and a server without one neither"));
        }
    }
    let unusable = |error: ChannelError| {
        Failure::usage(format!("[channels.{name}]: {error}"), "correct the settings of the channel")
    };
    Ok(Arc::new(EmailChannel::new(&options, from, to).map_err(unusable)?.with_name(name)))
}

#[cfg(not(feature = "mail"))]
fn email(_: &App, name: &str, _: &ChannelSettings) -> Result<Arc<dyn NotificationChannel>, Failure> {
    Err(Failure::usage(
        format!("[channels.{name}]: mail is not in this build"),
        "build with `--features mail`",
    ))
}

fn secret(app: &App, name: &str, variable: &str) -> Result<Secret, Failure> {
    match app.sources.env.get(variable).map(|secret| secret.trim()) {
        Some(secret) if !secret.is_empty() => Ok(Secret::from(secret)),
        _ => Err(Failure::usage(
            format!("the variable {variable} of the channel {name} is not set"),
            format!("set it before `archon serve`: export {variable}=…"),
        )),
    }
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
