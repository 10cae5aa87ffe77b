//! The outbox: notifications that wait for their time, and what was sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use archon_types::{
    AnswerRuns, BoxFuture, CancellationToken, Clock, Notification, NotificationChannel, NotificationKind,
    TaskChange, TaskStore, TaskStoreError, Timestamp,
};
use futures_util::future::join_all;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::{delivery::DeliveryRules, text};

mod entry;

use entry::{Entry, Step};

/// The pause after a failure of the storage.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest time for a channel: four tries over HTTP with their pauses take five minutes.
const LIMIT: Duration = Duration::from_secs(6 * 60);

/// The most characters of a digest; further results are in the next one.
const DIGEST: usize = 1_500;

/// Keeps notifications until their time, and sends each once. A clone is the same outbox.
///
/// A [`queued`](Self::queued) channel takes a notification as soon as it is stored; [`serve`](Self::serve) sends it by
/// the rules of the channel. The outbox also stores what was sent. So nothing is sent again after a restart, also if a
/// task notifies again. There is one exception: if the process is killed while a channel sends, the notification is
/// sent again. It has the same id, by which a receiver can drop it: the header `webhook-id` of a web hook, and the
/// `Message-ID` of a mail. The console, Slack and Telegram have no id, so there it is seen twice.
///
/// A question that was answered or has expired is not sent any more. A channel that fails, or does not answer within six minutes,
/// is tried again for a day, with pauses of 30 seconds up to an hour.
///
/// Give the outbox a store of its own, such as `SqliteTaskStore::open("data/outbox.db")`: it keeps notifications where
/// the store of the engine keeps tasks. One process serves it. Another process may delete entries, as `archon memory
/// forget` does: they are neither sent nor stored any more.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_notify::{DeliveryError, DeliveryRules, Outbox, QuietHours};
/// use archon_types::{AnswerRuns, Clock, NotificationChannel, TaskStore};
///
/// /// An outbox for Anna's mail. Pass its queued channel to `TriggerParts::channel`, and call `serve` in a task.
/// fn outbox(
///     store: Arc<dyn TaskStore>,
///     runs: Arc<dyn AnswerRuns>,
///     clock: Arc<dyn Clock>,
///     anna: Arc<dyn NotificationChannel>,
/// ) -> Result<Outbox, DeliveryError> {
///     let night = QuietHours::new("22:00", "07:00", "Europe/Berlin")?;
///     Ok(Outbox::new(store, runs, clock).with_channel(anna, DeliveryRules::new().quiet(night)))
/// }
/// ```
#[derive(Clone)]
pub struct Outbox {
    parts: Arc<Parts>,
}

#[derive(Clone)]
struct Parts {
    store: Arc<dyn TaskStore>,
    runs: Arc<dyn AnswerRuns>,
    clock: Arc<dyn Clock>,
    channels: BTreeMap<String, (Arc<dyn NotificationChannel>, DeliveryRules)>,
    entries: Arc<Mutex<Entries>>,
    /// The number of notifications that arrived. A change wakes the channels.
    arrivals: watch::Sender<u64>,
}

/// The entries of the store, by their keys.
#[derive(Default)]
struct Entries {
    by_key: BTreeMap<String, Entry>,
    /// The version of the store that was read; `None` before the first read.
    version: Option<u64>,
}

/// A notification in an outbox.
///
/// ```
/// use archon_notify::Outbox;
/// use archon_types::TaskStoreError;
///
/// /// Prints what could not be sent.
/// async fn print_problems(outbox: &Outbox) -> Result<(), TaskStoreError> {
///     for waiting in outbox.list().await? {
///         if let Some(problem) = waiting.problem {
///             println!("{}: {problem}", waiting.channel);
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueuedNotification {
    /// The notification.
    pub notification: Notification,
    /// The name of the channel that sends the notification.
    pub channel: String,
    /// The time of the arrival in the outbox.
    pub at: Timestamp,
    /// The time at which the channel sent the notification; `None` if it did not yet.
    pub sent_at: Option<Timestamp>,
    /// The reason why the last try of the channel failed; `None` if it did not fail.
    pub problem: Option<String>,
}

/// A channel that puts notifications into an [`Outbox`], for the channel of the outbox with the same name.
///
/// ```
/// use archon_notify::Outbox;
/// use archon_types::NotificationChannel;
///
/// /// The channel of a person, for the tasks that notify this person.
/// fn of_person(outbox: &Outbox, name: &str) -> Option<impl NotificationChannel> {
///     outbox.queued(name)
/// }
/// ```
pub struct QueuedChannel {
    outbox: Outbox,
    name: String,
}

impl Outbox {
    /// Creates an outbox without channels. `runs` says which questions are still open.
    pub fn new(store: Arc<dyn TaskStore>, runs: Arc<dyn AnswerRuns>, clock: Arc<dyn Clock>) -> Self {
        let (arrivals, _) = watch::channel(0);
        let (channels, entries) = (BTreeMap::new(), Arc::default());
        Self { parts: Arc::new(Parts { store, runs, clock, channels, entries, arrivals }) }
    }

    /// Adds a channel with its rules, under the channel's own name. Add all channels before the outbox is cloned: a clone
    /// made before does not have them.
    #[must_use]
    pub fn with_channel(mut self, channel: Arc<dyn NotificationChannel>, rules: DeliveryRules) -> Self {
        let name = channel.name().to_owned();
        Arc::make_mut(&mut self.parts).channels.insert(name, (channel, rules));
        self
    }

    /// Returns a channel that puts notifications into this outbox, for the channel with this name; `None` if the outbox
    /// has no such channel.
    pub fn queued(&self, name: &str) -> Option<QueuedChannel> {
        let is_known = self.parts.channels.contains_key(name);
        is_known.then(|| QueuedChannel { outbox: self.clone(), name: name.to_owned() })
    }

    /// Returns the notifications that wait, and those of the last seven days that were sent or given up, in the order
    /// of their arrival.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn list(&self) -> Result<Vec<QueuedNotification>, TaskStoreError> {
        let entries = self.parts.entries().await?;
        let mut all: Vec<&Entry> = entries.by_key.values().collect();
        all.sort_by_key(|entry| entry.progress.number);
        Ok(all.into_iter().map(to_queued).collect())
    }

    /// Sends notifications when their time has come, until `stop` is cancelled. A channel that is slow delays no other.
    ///
    /// # Errors
    /// The storage failed when the notifications were read.
    pub async fn serve(&self, stop: CancellationToken) -> Result<(), TaskStoreError> {
        drop(self.parts.entries().await?);
        join_all(self.parts.channels.keys().map(|name| self.serve_channel(name, &stop))).await;
        Ok(())
    }

    async fn serve_channel(&self, name: &str, stop: &CancellationToken) {
        let clock = &self.parts.clock;
        let mut arrivals = self.parts.arrivals.subscribe();
        loop {
            arrivals.mark_unchanged();
            let next = self.parts.send_due(name).await.unwrap_or_else(|error| {
                tracing::error!(channel = name, "nothing is sent: {error}");
                Some(clock.now() + PAUSE)
            });
            tokio::select! {
                () = sleep_until(&**clock, next) => {}
                _ = arrivals.changed() => {}
                () = stop.cancelled() => return,
            }
        }
    }
}

async fn sleep_until(clock: &dyn Clock, next: Option<Timestamp>) {
    match next {
        Some(next) => clock.sleep_until(next).await,
        None => std::future::pending().await,
    }
}

fn to_queued(entry: &Entry) -> QueuedNotification {
    let progress = entry.progress.clone();
    QueuedNotification {
        notification: entry.notification.clone(),
        channel: progress.channel,
        at: progress.at,
        sent_at: progress.sent_at,
        problem: progress.problem,
    }
}

impl Parts {
    /// Returns the entries. They are read from the store again when another process has changed it.
    async fn entries(&self) -> Result<MutexGuard<'_, Entries>, TaskStoreError> {
        let mut entries = self.entries.lock().await;
        let version = self.store.version().await?;
        if entries.version != Some(version) {
            let mut read = BTreeMap::new();
            for stored in self.store.list().await?.tasks {
                // What this process knows of an entry may be newer: its last change may have failed.
                let entry = match entries.by_key.remove(stored.id.as_str()) {
                    Some(known) => Ok(known),
                    None => Entry::read(&stored),
                };
                match entry {
                    Ok(entry) => drop(read.insert(entry.key.clone(), entry)),
                    Err(error) => tracing::warn!(id = %stored.id, "a notification cannot be read: {error}"),
                }
            }
            *entries = Entries { by_key: read, version: Some(version) };
        }
        Ok(entries)
    }

    /// Stores a new notification for a channel, unless it is known.
    async fn add(&self, channel: &str, notification: Notification) -> Result<(), TaskStoreError> {
        let mut entries = self.entries().await?;
        let numbers = entries.by_key.values().map(|entry| entry.progress.number);
        let number = numbers.max().unwrap_or_default() + 1;
        let entry = Entry::new(channel, number, notification, self.clock.now());
        if !entries.by_key.contains_key(&entry.key) {
            self.store.change(vec![TaskChange::Define(stored(&entry)?)]).await?;
            entries.by_key.insert(entry.key.clone(), entry);
            self.arrivals.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(())
    }

    /// Stores the progress of entries, all at once. If that fails, this process knows it all the same, and sends nothing again.
    async fn put(&self, changed: Vec<Entry>) -> Result<(), TaskStoreError> {
        // Not read again first: that may fail, and then what was sent would not be known.
        let mut entries = self.entries.lock().await;
        let state = |entry: &Entry| {
            let stored = stored(entry)?;
            Ok(TaskChange::SetState { id: stored.id, state: stored.state })
        };
        let changes = changed.iter().map(state).collect::<Result<_, TaskStoreError>>();
        for entry in changed {
            // An entry that was erased meanwhile does not come back.
            if let Some(known) = entries.by_key.get_mut(&entry.key) {
                *known = entry;
            }
        }
        self.store.change(changes?).await
    }

    /// Leaves out entries that another process has deleted, since the channel may have been busy for minutes.
    async fn present(&self, mut some: Vec<Entry>) -> Result<Vec<Entry>, TaskStoreError> {
        let entries = self.entries().await?;
        some.retain(|entry| entries.by_key.contains_key(&entry.key));
        Ok(some)
    }

    async fn delete(&self, entry: &Entry) -> Result<(), TaskStoreError> {
        let mut entries = self.entries().await?;
        self.store.change(vec![TaskChange::Delete(entry.key.as_str().into())]).await?;
        entries.by_key.remove(&entry.key);
        Ok(())
    }

    /// Does what is due for a channel. Returns the time of the next step.
    async fn send_due(&self, name: &str) -> Result<Option<Timestamp>, TaskStoreError> {
        let Some((channel, rules)) = self.channels.get(name) else { return Ok(None) };
        loop {
            let now = self.clock.now_for_others();
            let due = self.steps(name, rules, now).await?;
            let mut results = Vec::new();
            let (mut next, mut is_idle) = (None, true);
            for (entry, step) in due {
                is_idle &= matches!(step, Step::Wait(_));
                match step {
                    Step::Wait(until) => next = Some(next.map_or(until, |next: Timestamp| next.min(until))),
                    Step::Send => self.send(&**channel, self.present(vec![entry]).await?, None).await?,
                    Step::Collect => results.push(entry),
                    Step::Escalate => self.escalate(entry, rules, now).await?,
                    Step::Close => self.close(entry, now).await?,
                    Step::Delete => self.delete(&entry).await?,
                }
            }
            for part in digests(results) {
                let part = self.present(part).await?;
                let digest = digest_of(&part);
                self.send(&**channel, part, digest).await?;
            }
            // A failure or an escalation has a next step of its own.
            if is_idle {
                return Ok(next);
            }
        }
    }

    async fn steps(
        &self,
        name: &str,
        rules: &DeliveryRules,
        now: Timestamp,
    ) -> Result<Vec<(Entry, Step)>, TaskStoreError> {
        let mut own: Vec<Entry> = {
            let entries = self.entries().await?;
            let all = entries.by_key.values();
            all.filter(|entry| entry.progress.channel == name).cloned().collect()
        };
        own.sort_by_key(|entry| entry.progress.number);
        let asks = |entry: &Entry| {
            let is_due = !matches!(entry.step(rules, now, true), Step::Wait(_) | Step::Delete);
            entry.is_question() && entry.progress.closed_at.is_none() && is_due
        };
        let open = if own.iter().any(asks) { self.open_questions().await } else { None };
        let step = |entry: Entry| {
            let is_open = match (&entry.notification.about, &open) {
                (NotificationKind::Question(question), Some(open)) => {
                    open.contains(&question.request.request_id)
                }
                _ => true,
            };
            let step = entry.step(rules, now, is_open);
            (entry, step)
        };
        Ok(own.into_iter().map(step).collect())
    }

    /// Returns the ids of the open questions; `None` if they cannot be read. Then a question is rather sent in vain.
    async fn open_questions(&self) -> Option<BTreeSet<String>> {
        match self.runs.questions(None).await {
            Ok(open) => Some(open.into_iter().map(|open| open.request.request_id).collect()),
            Err(error) => {
                tracing::warn!("the open questions cannot be read: {error}");
                None
            }
        }
    }

    /// Sends entries as one notification: `digest`, or else that of the first.
    async fn send(
        &self,
        channel: &dyn NotificationChannel,
        entries: Vec<Entry>,
        digest: Option<Notification>,
    ) -> Result<(), TaskStoreError> {
        let Some(notification) = digest.as_ref().or(entries.first().map(|entry| &entry.notification)) else {
            return Ok(());
        };
        let mut sending = channel.send(notification);
        let clock = &*self.clock;
        let in_time = clock.before(clock.now() + LIMIT, |task| sending.as_mut().poll(task)).await;
        let late =
            || format!("it did not answer within {} s; see whether its service works", LIMIT.as_secs());
        let sent = in_time.unwrap_or_else(|| Err(late()));
        drop(sending);
        if let Err(problem) = &sent {
            tracing::warn!(channel = channel.name(), "a notification is sent later: {problem}");
        }
        let (now, mut changed) = (clock.now_for_others(), entries);
        for entry in &mut changed {
            match &sent {
                Ok(()) => entry.note_sent(now),
                Err(problem) => entry.note_failure(problem.clone(), now),
            }
        }
        self.put(changed).await
    }

    async fn escalate(
        &self,
        entry: Entry,
        rules: &DeliveryRules,
        now: Timestamp,
    ) -> Result<(), TaskStoreError> {
        if self.present(vec![entry.clone()]).await?.is_empty() {
            return Ok(());
        }
        if let Some((_, next)) = &rules.escalation {
            match self.channels.contains_key(next) {
                true => self.add(next, entry.notification.clone()).await?,
                false => tracing::warn!(
                    channel = next,
                    "a question is passed on to nobody: there is no such channel"
                ),
            }
        }
        self.close(entry, now).await
    }

    async fn close(&self, mut entry: Entry, now: Timestamp) -> Result<(), TaskStoreError> {
        if let (None, Some(problem)) = (entry.progress.sent_at, &entry.progress.problem) {
            tracing::error!(channel = entry.progress.channel, "a notification was never sent: {problem}");
        }
        entry.progress.closed_at = Some(now);
        self.put(vec![entry]).await
    }
}

fn stored(entry: &Entry) -> Result<archon_types::StoredTask, TaskStoreError> {
    entry.to_stored().map_err(|error| TaskStoreError::new("stored", error.to_string()))
}

/// Divides results into digests: each for one tenant, and not too long.
fn digests(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut all: Vec<(usize, Vec<Entry>)> = Vec::new();
    for entry in entries {
        let length = entry.notification.text.chars().count();
        let fits = |part: &&mut (usize, Vec<Entry>)| {
            let tenant = part.1.first().map(|first| &first.notification.tenant);
            tenant == Some(&entry.notification.tenant) && part.0 + length <= DIGEST
        };
        match all.iter_mut().rev().find(fits) {
            Some(part) => {
                part.0 += length;
                part.1.push(entry);
            }
            None => all.push((length, vec![entry])),
        }
    }
    all.into_iter().map(|(_, part)| part).collect()
}

/// Returns one notification for several results; `None` for a single one, which is sent as it is.
fn digest_of(entries: &[Entry]) -> Option<Notification> {
    let [first, _, ..] = entries else { return None };
    let part = |entry: &Entry| format!("{}\n{}", text::subject(&entry.notification), entry.notification.text);
    let parts: Vec<_> = entries.iter().map(part).collect();
    let tenant = first.notification.tenant.clone();
    Some(Notification::new(tenant, NotificationKind::Result, parts.join("\n\n")))
}

impl NotificationChannel for QueuedChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let added = self.outbox.parts.add(&self.name, notification.clone()).await;
            added.map_err(|error| {
                error.to_string().replacen("the tasks", "the notifications of the outbox", 1)
            })
        })
    }
}
