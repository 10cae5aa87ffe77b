//! The outbox of `archon serve`: it keeps notifications until their time, and sends questions so that they can be answered.

use std::sync::{Arc, OnceLock};

use archon::{
    Runs, SystemClock,
    answers::{AnswerKey, AnswerableChannel, Answers},
    notify::Outbox,
    store::{InboxKey, SqliteTaskStore},
    triggers::TriggerEngine,
    types::{
        BoxFuture, CancellationToken, Clock as _, Notification, NotificationChannel, TaskHold, TaskStore,
    },
};

use super::{OUTBOX, PAUSE, channels::Opened, of_store, place, telegram::Bot};
use crate::{app::App, failure::Failure};

/// The path of the web page on which people answer questions.
const PAGE: &str = "/answer";

/// Sends notifications to people, and takes their answers.
pub(crate) struct Delivery {
    outbox: Outbox,
    store: Arc<SqliteTaskStore>,
    names: Vec<String>,
    pub(super) answers: Answers,
    /// The engine that starts the runs of tasks; empty until it is built.
    pub(super) engine: Arc<OnceLock<TriggerEngine>>,
    /// The bots whose replies answer questions.
    pub(super) bots: Vec<Bot>,
    /// The senders of notes about replies that do not count, by the address of the person.
    #[cfg(feature = "mail")]
    pub(super) senders: std::collections::BTreeMap<String, archon::notify::MailSender>,
}

impl Delivery {
    /// Opens the outbox. `url` is the address of the server for links; without one, questions are sent without a link.
    ///
    /// # Errors
    /// [`Failure`] if the file of the outbox or the key of answers cannot be read or created.
    pub(crate) fn open(
        app: &App,
        runs: &Runs,
        url: Option<&str>,
        channels: Vec<Opened>,
    ) -> Result<Self, Failure> {
        let store = SqliteTaskStore::open(app.data_dir.join(OUTBOX)).map_err(|e| of_store(e, OUTBOX))?;
        let store = Arc::new(store);
        let secret = InboxKey::in_file(app.data_dir.join("inbox.key")).secret_for("answers")?;
        let key = AnswerKey::new(&secret)
            .map_err(|e| Failure::failed(format!("the key of answers: {e}"), "remove the file inbox.key"))?;
        let (runs, clock) = (Arc::new(runs.clone()), Arc::new(SystemClock));
        let answers = Answers::new(runs.clone(), key, clock.clone());
        let mut delivery = Self {
            outbox: Outbox::new(store.clone(), runs, clock),
            store,
            names: Vec::new(),
            answers,
            engine: Arc::default(),
            bots: Vec::new(),
            #[cfg(feature = "mail")]
            senders: std::collections::BTreeMap::new(),
        };
        let page = url.map(|url| format!("{url}{PAGE}"));
        for opened in channels {
            delivery = delivery.with(app, opened, page.as_deref())?;
        }
        Ok(delivery)
    }

    fn with(mut self, app: &App, opened: Opened, page: Option<&str>) -> Result<Self, Failure> {
        let name = opened.channel.name().to_owned();
        if let Some(bot) = opened.bot {
            // The token of the link is the permission of a reply.
            if page.is_none() {
                let what =
                    format!("{}: `replies` is true, but no link can be sent", place(app, "channels", &name));
                return Err(Failure::usage(what, "set `url` under [serve], or remove `replies`"));
            }
            bot.add_to(&mut self.bots);
        }
        let mut channel =
            AnswerableChannel::new(opened.channel, self.answers.clone(), opened.person.as_str());
        if let (Some(page), true) = (page, opened.has_link) {
            channel = channel.with_page(page);
        }
        #[cfg(feature = "mail")]
        if let Some(sender) = opened.replies {
            channel = channel.with_replies();
            self.senders.insert(opened.person.to_ascii_lowercase(), sender);
        }
        let noted = Noted { channel, engine: self.engine.clone(), app: app.clone() };
        self.outbox = self.outbox.with_channel(Arc::new(noted), opened.rules);
        self.names.push(name);
        Ok(self)
    }

    /// Returns the channels for the tasks, which put notifications into the outbox.
    pub(crate) fn channels(&self) -> Vec<Arc<dyn NotificationChannel>> {
        let queued = self.names.iter().filter_map(|name| self.outbox.queued(name));
        queued.map(|channel| Arc::new(channel) as Arc<dyn NotificationChannel>).collect()
    }

    /// Waits until no other process sends the notifications of this data folder. Then this process alone sends them,
    /// until the returned value is dropped.
    ///
    /// # Errors
    /// [`Failure`] if the file beside the outbox cannot be locked.
    pub(super) async fn hold(&self, app: &App) -> Result<TaskHold, Failure> {
        loop {
            if let Some(hold) = self.store.hold().await.map_err(|error| of_store(error, OUTBOX))? {
                return Ok(hold);
            }
            app.output.note_once(
                "another server of this data folder starts the runs of tasks, sends notifications and reads mailboxes; this \
                 one takes over when it ends",
            );
            SystemClock.sleep_until(SystemClock.now() + PAUSE).await;
        }
    }

    /// Sends what is due, until `end` is cancelled.
    pub(super) async fn serve(&self, app: &App, end: CancellationToken) {
        if let Err(error) = self.outbox.serve(end).await {
            let failure = of_store(error, OUTBOX);
            app.output.warn_again(format!("no notification is sent any more: {}", failure.line()));
        }
    }
}

/// Notes the problems of a channel in the history of the tasks. The outbox sends again.
struct Noted {
    channel: AnswerableChannel,
    engine: Arc<OnceLock<TriggerEngine>>,
    app: App,
}

impl NotificationChannel for Noted {
    fn name(&self) -> &str {
        self.channel.name()
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let sent = self.channel.send(notification).await;
            if let (Err(problem), Some(engine)) = (&sent, self.engine.get()) {
                let name = self.name();
                let text = format!(
                    "the channel {name} failed: {problem}; it is tried again for a day: check [channels.{name}] of \
                     your settings"
                );
                let is_meant = |task: &archon::triggers::TriggerTask| match &notification.task {
                    Some(id) => task.id == *id,
                    // A digest: its tenant must not show in the history of others.
                    None => {
                        task.tenant == notification.tenant
                            && task.notify.iter().any(|channel| channel == name)
                    }
                };
                super::note(&self.app, engine, &text, is_meant).await;
            }
            sent
        })
    }
}
