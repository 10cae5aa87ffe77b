//! The sources of events of the settings, for `archon serve`.

use std::{sync::Arc, time::Duration};

use archon::{
    SystemClock,
    event_sources::{FileSource, Webhook, WebhookDoor},
    triggers::TriggerEngine,
    types::{CancellationToken, Clock as _},
};

use tokio::task::JoinSet;

use super::{LOCAL, delivery::Delivery, place, secret};
use crate::{app::App, config::EventSettings, failure::Failure};

#[cfg(feature = "mail")]
mod mail;

/// The pause before a source that could not begin is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// The sources of the settings.
#[derive(Default)]
pub(crate) struct EventSources {
    webhooks: Vec<Webhook>,
    folders: Vec<(String, FileSource)>,
    #[cfg(feature = "mail")]
    mailboxes: Vec<mail::Mailbox>,
}

/// Returns true if the settings have a mailbox.
#[cfg(feature = "mail")]
pub(super) fn has_mailbox(app: &App) -> bool {
    let mut events = app.config.settings.events.iter().flatten();
    events.any(|(_, events)| matches!(events, EventSettings::Mailbox { .. }))
}

impl EventSources {
    /// Returns the sources of the settings.
    ///
    /// # Errors
    /// [`Failure`] if a secret is missing, or a source cannot be used.
    pub(crate) fn open(app: &App) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for (name, settings) in app.config.settings.events.iter().flatten() {
            // The name stands before the dot of a pattern, and in the address of a web hook.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
                let what = format!("{}: the name of a source cannot be used", place(app, "events", name));
                return Err(Failure::usage(what, "give it a name of 1 to 64 letters, digits, _ or -"));
            }
            sources.add(app, name, settings)?;
        }
        Ok(sources)
    }

    fn add(&mut self, app: &App, name: &str, settings: &EventSettings) -> Result<(), Failure> {
        let place = || place(app, "events", name);
        match settings {
            EventSettings::Webhook { variable, max_bytes, per_minute, tenant } => {
                let secret = secret(app, "events", name, variable)?;
                let hook = Webhook::new(name, &secret).map_err(|error| {
                    Failure::usage(
                        format!("{}: {error}", place()),
                        format!("correct the variable {variable}"),
                    )
                })?;
                let mut hook = hook.tenant(tenant.as_deref().unwrap_or(LOCAL));
                if let Some(bytes) = max_bytes {
                    hook = hook.with_max_bytes(*bytes);
                }
                if let Some(requests) = per_minute {
                    hook = hook.with_requests_per_minute(*requests);
                }
                self.webhooks.push(hook);
            }
            EventSettings::Folder { path, matching, tenant } => {
                if !path.is_dir() {
                    let what = format!("{}: `path` is {}, which is no folder", place(), path.display());
                    return Err(Failure::usage(what, "create the folder, or name another"));
                }
                let source = FileSource::new(name, path).tenant(tenant.as_deref().unwrap_or(LOCAL));
                let source = source.matching(matching.as_deref().unwrap_or("*"));
                self.folders.push((name.to_owned(), source));
            }
            #[cfg(feature = "mail")]
            EventSettings::Mailbox { .. } => self.mailboxes.push(mail::Mailbox::of(app, name, settings)?),
            #[cfg(not(feature = "mail"))]
            EventSettings::Mailbox { .. } => {
                let what = format!("{}: mail is not in this build", place());
                return Err(Failure::usage(what, "build with `--features mail`"));
            }
        }
        Ok(())
    }

    /// Takes the web hooks, as a door to the engine.
    pub(super) fn take_door(&mut self, engine: &TriggerEngine) -> Option<WebhookDoor> {
        let hooks = std::mem::take(&mut self.webhooks);
        let has_some = !hooks.is_empty();
        has_some.then(|| WebhookDoor::new(engine.clone(), Arc::new(SystemClock), hooks))
    }

    /// Publishes events until `end` is cancelled. A source that fails is tried again, and its problem is in the history of the
    /// tasks that take its events.
    pub(super) async fn serve(self, world: World) {
        let mut serving = JoinSet::new();
        for (name, source) in self.folders {
            serving.spawn(serve_folder(name, source, world.clone()));
        }
        #[cfg(feature = "mail")]
        for mailbox in self.mailboxes {
            serving.spawn(mailbox.serve(world.clone()));
        }
        // If the server ends before, the tasks are aborted with the set.
        while serving.join_next().await.is_some() {}
    }
}

/// What a source needs.
#[derive(Clone)]
pub(super) struct World {
    pub(super) app: App,
    pub(super) engine: TriggerEngine,
    #[cfg_attr(not(feature = "mail"), allow(dead_code, reason = "replies come by mail"))]
    pub(super) delivery: Arc<Delivery>,
    pub(super) end: CancellationToken,
}

impl World {
    /// Notes the problem of a source, and waits. Returns false if the server ends.
    async fn wait_after(&self, name: &str, problem: &str) -> bool {
        let text = format!("the source {name} of [events] failed: {problem}; it is tried again each minute");
        super::note(&self.app, &self.engine, &text, |task| task.may_take_from(name)).await;
        tokio::select! {
            () = SystemClock.sleep_until(SystemClock.now() + AGAIN) => true,
            () = self.end.cancelled() => false,
        }
    }
}

async fn serve_folder(name: String, source: FileSource, world: World) {
    loop {
        let served = source.serve(&world.engine, Arc::new(SystemClock), world.end.clone()).await;
        let Err(error) = served else { return };
        if !world.wait_after(&name, &error.to_string()).await {
            return;
        }
    }
}
