//! The sources of events of the settings, for `archon serve`.

use std::{sync::Arc, time::Duration};

use archon::{
    SystemClock,
    event_sources::{FileSource, Webhook, WebhookCounts, WebhookDoor},
    triggers::{TriggerEngine, TriggerTask},
    types::{CancellationToken, Clock as _},
};

use tokio::task::JoinSet;

use super::{delivery::Delivery, place, secret};
use crate::{app::App, config::EventSettings, failure::Failure};

#[cfg(feature = "mail")]
mod mail;

/// The pause before a source that could not begin is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// The pause between two looks at the requests that were refused.
const REFUSALS: Duration = Duration::from_secs(30);

/// The sources of events that the settings describe.
#[derive(Default)]
pub(crate) struct EventSources {
    hooks: Vec<(String, Webhook)>,
    /// The names of the web hooks; empty before [`take_door`](Self::take_door).
    webhooks: Vec<String>,
    folders: Vec<(String, FileSource)>,
    #[cfg(feature = "mail")]
    mailboxes: Vec<mail::Mailbox>,
}

impl EventSources {
    /// Returns the sources of events that the settings describe.
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
            EventSettings::Webhook { variable, max_bytes, per_minute, .. } => {
                let secret = secret(app, "events", name, variable)?;
                let hook = Webhook::new(name, &secret).map_err(|error| {
                    Failure::usage(
                        format!("{}: {error}", place()),
                        format!("correct the variable {variable}"),
                    )
                })?;
                let mut hook = hook.tenant(settings.tenant());
                if let Some(bytes) = max_bytes {
                    hook = hook.with_max_bytes(*bytes);
                }
                if let Some(requests) = per_minute {
                    hook = hook.with_requests_per_minute(*requests);
                }
                self.hooks.push((name.to_owned(), hook));
            }
            EventSettings::Folder { path, matching, .. } => {
                if !path.is_dir() {
                    let what = format!("{}: `path` is {}, which is no folder", place(), path.display());
                    return Err(Failure::usage(what, "create the folder, or name another"));
                }
                let source = FileSource::new(name, path).tenant(settings.tenant());
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

    /// Takes the web hooks out of the sources, and returns the endpoint that passes their requests to `engine`; `None`
    /// if there are no web hooks.
    pub(super) fn take_door(&mut self, engine: &TriggerEngine) -> Option<WebhookDoor> {
        let (names, hooks): (Vec<_>, Vec<_>) = std::mem::take(&mut self.hooks).into_iter().unzip();
        let has_some = !hooks.is_empty();
        self.webhooks = names;
        has_some.then(|| WebhookDoor::new(engine.clone(), Arc::new(SystemClock), hooks))
    }

    /// Publishes events until `end` is cancelled. A source that fails is tried again, and its problem is in the history of the
    /// tasks that take its events.
    pub(super) async fn serve(self, door: Option<WebhookDoor>, world: World) {
        let mut serving = JoinSet::new();
        for (name, source) in self.folders {
            let source = source.on_problem(world.noting(&name));
            serving.spawn(serve_folder(name, source, world.clone()));
        }
        #[cfg(feature = "mail")]
        for mailbox in self.mailboxes {
            serving.spawn(mailbox.serve(world.clone()));
        }
        for bot in 0..world.delivery.bots.len() {
            serving.spawn(serve_bot(bot, world.clone()));
        }
        if let Some(door) = door {
            serving.spawn(watch_refusals(door, self.webhooks, world));
        }
        // If the server ends before, the tasks are aborted with the set.
        while serving.join_next().await.is_some() {}
    }
}

/// The parts of the server that a source uses.
#[derive(Clone)]
pub(super) struct World {
    pub(super) app: App,
    pub(super) engine: TriggerEngine,
    pub(super) delivery: Arc<Delivery>,
    pub(super) end: CancellationToken,
}

impl World {
    /// Notes the problem of a source in the history of the tasks that take its events.
    async fn note(&self, name: &str, problem: &str) {
        let text = format!("the source {name} of [events] failed: {problem}; it is tried again");
        super::note(&self.app, &self.engine, &text, |task| takes_from(&self.app, name, task)).await;
    }

    /// Returns a function that notes problems of a source.
    fn noting(&self, name: &str) -> impl Fn(&str) + Send + Sync + 'static {
        let (world, name) = (self.clone(), name.to_owned());
        move |problem| {
            let (world, name, problem) = (world.clone(), name.clone(), problem.to_owned());
            tokio::spawn(async move { world.note(&name, &problem).await });
        }
    }

    /// Notes the problem of a source, and waits. Returns false if the server ends.
    async fn wait_after(&self, name: &str, problem: &str) -> bool {
        self.note(name, problem).await;
        self.wait(AGAIN).await
    }

    /// Returns false if the server ends.
    async fn wait(&self, pause: Duration) -> bool {
        tokio::select! {
            () = SystemClock.sleep_until(SystemClock.now() + pause) => true,
            () = self.end.cancelled() => false,
        }
    }
}

/// Returns true if events of this source start runs of the task. A source has events, and problems, of one tenant.
fn takes_from(app: &App, source: &str, task: &TriggerTask) -> bool {
    let sources = app.config.settings.events.as_ref();
    let tenant = sources.and_then(|sources| sources.get(source)).map(EventSettings::tenant);
    tenant == Some(task.tenant.as_str()) && task.may_take_from(source)
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

/// Serves a bot of a channel.
async fn serve_bot(at: usize, world: World) {
    let Some(bot) = world.delivery.bots.get(at) else { return };
    while let Err(problem) = bot.serve(&world.delivery.answers, &world.end).await {
        let text = format!(
            "replies to the channel {name} cannot be read: {problem}; it is tried again: check [channels.{name}], and \
             that no other program reads the messages of its bot",
            name = bot.name()
        );
        super::note(&world.app, &world.engine, &text, |task| bot.has_one_of(&task.notify)).await;
        if !world.wait(AGAIN).await {
            return;
        }
    }
}

/// Notes requests to web hooks that were refused, in the history of the tasks that take their events.
async fn watch_refusals(door: WebhookDoor, names: Vec<String>, world: World) {
    let mut seen: Vec<_> = names.into_iter().map(|name| (name, WebhookCounts::default())).collect();
    while world.wait(REFUSALS).await {
        for (name, before) in &mut seen {
            let Some(now) = door.counts(name) else { continue };
            for problem in refusals(*before, now) {
                let text = format!("requests to the web hook {name} were refused: {problem}");
                super::note(&world.app, &world.engine, &text, |task| takes_from(&world.app, name, task))
                    .await;
            }
            *before = now;
        }
    }
}

/// Returns the reasons for which requests were refused between two counts, each with what to do.
fn refusals(before: WebhookCounts, now: WebhookCounts) -> impl Iterator<Item = &'static str> {
    [
        (before.wrong_signature, now.wrong_signature, "a signature is missing or wrong: compare the secret"),
        (
            before.replayed,
            now.replayed,
            "they came before, or their time is over 5 minutes from now: compare the clocks",
        ),
        (before.too_large, now.too_large, "they are too large: set `max_bytes`"),
        (before.too_fast, now.too_fast, "they come too fast: set `per_minute`"),
        (before.unreadable, now.unreadable, "their body is not JSON: let the service send JSON"),
        (before.not_stored, now.not_stored, "their events cannot be stored now: see the log of the server"),
    ]
    .into_iter()
    .filter(|(before, now, _)| before < now)
    .map(|(_, _, problem)| problem)
}

#[cfg(test)]
mod tests {
    use archon::triggers::EventFilter;

    use super::*;
    use crate::config::Settings;

    // spec: TR-04
    #[test]
    fn problem_of_a_source_is_for_the_tasks_of_its_tenant() {
        let source = |tenant: Option<&str>| {
            let tenant = tenant.map(str::to_owned);
            EventSettings::Folder { path: "in".into(), matching: None, tenant }
        };
        let sources = [("annas".to_owned(), source(Some("anna"))), ("own".to_owned(), source(None))];
        let app = App::of(Settings { events: Some(sources.into()), ..Settings::default() });
        let task = |tenant: &str| TriggerTask::new("t", EventFilter::new("*"), "Look.").tenant(tenant);
        let takers = |source: &str| {
            ["anna", "ben", "local"]
                .into_iter()
                .filter(|tenant| takes_from(&app, source, &task(tenant)))
                .collect::<Vec<_>>()
        };
        assert_eq!((takers("annas"), takers("own")), (vec!["anna"], vec!["local"]));
        let other = TriggerTask::new("t", EventFilter::new("shop.*"), "Look.");
        assert!(!takes_from(&app, "own", &other));
    }

    #[test]
    fn refusals_have_a_reason_for_each_count_that_grew() {
        let (before, mut now) = (WebhookCounts::default(), WebhookCounts::default());
        (now.taken, now.wrong_signature, now.too_fast) = (7, 1, 2);
        let problems: Vec<_> = refusals(before, now).collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("compare the secret") && problems[1].contains("`per_minute`"));
        assert_eq!(refusals(now, now).count(), 0);
    }
}
