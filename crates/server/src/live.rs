//! The channel whose notifications reach the clients that listen, and its listeners.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use archon_types::{BoxFuture, Clock, Notification, NotificationChannel, NotificationKind, TenantId};
use serde_json::json;
use tokio::sync::mpsc;

/// The most notifications that wait for one listener. A listener that falls behind further is cut off.
const QUEUE: usize = 64;

/// The longest time until a listener confirms a notification.
pub(crate) const CONFIRM: Duration = Duration::from_secs(10);

/// Sends notifications to the programs and pages that listen at `GET /v1/notifications`, as server-sent events or over a
/// websocket. Its name is `websocket`. Clones share the listeners.
///
/// A token listens to the notifications of one tenant: [`Scope::with_notifications`](crate::Scope::with_notifications). All
/// listeners of the tenant get a notification. It is sent once one of them has confirmed it: a websocket client answers a
/// ping, and the connection of an event stream has taken the event. If nobody listens, or nobody confirms within 10 seconds,
/// [`send`](NotificationChannel::send) fails, so that an outbox sends the notification again, with the same id.
///
/// A notification is JSON: `id`, `channel`, `type` (the [name](NotificationKind::as_str) of the subject), `tenant`, `task`,
/// `run`, `text`, and `question`, as in `GET /v1/approvals`, or null. It has no link to answer: a listener answers with its
/// own token, by `POST /v1/approvals/{request}/answer`, which needs the right to operate.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_server::{LiveChannel, Scope};
/// use archon_types::{Clock, RunService};
///
/// /// The scope of a customer, whose page hears about the customer's runs. Pass the channel to the tasks, too.
/// fn scope(runs: Arc<dyn RunService>, channel: &LiveChannel) -> Scope {
///     Scope::new(runs).with_notifications(channel, "anna")
/// }
///
/// fn channel(clock: Arc<dyn Clock>) -> LiveChannel {
///     LiveChannel::new(clock).with_name("page")
/// }
/// ```
#[derive(Clone)]
pub struct LiveChannel {
    name: String,
    clock: Arc<dyn Clock>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

/// A client that listens.
struct Listener {
    tenant: TenantId,
    queue: mpsc::Sender<Item>,
}

/// A notification for a listener.
#[derive(Clone)]
pub(crate) struct Item {
    /// The notification as JSON, on one line.
    pub(crate) text: Arc<str>,
    confirmed: mpsc::Sender<()>,
}

impl Item {
    /// Tells the channel that the client has the notification. Without it, a dropped item counts as lost.
    pub(crate) fn confirm(self) {
        // It is full if another listener was faster.
        let _ = self.confirmed.try_send(());
    }
}

impl LiveChannel {
    /// Creates the channel, without listeners.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { name: "websocket".to_owned(), clock, listeners: Arc::default() }
    }

    /// Sets the name by which tasks refer to the channel. Default `websocket`. The channel still shares its
    /// listeners with the clones that have another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a listener to the notifications of a tenant. It stays until the receiver is dropped.
    pub(crate) fn listen(&self, tenant: &TenantId) -> mpsc::Receiver<Item> {
        let (queue, items) = mpsc::channel(QUEUE);
        let mut listeners = self.lock();
        listeners.retain(|listener| !listener.queue.is_closed());
        listeners.push(Listener { tenant: tenant.clone(), queue });
        items
    }

    /// Queues a notification for each listener of its tenant. Returns a receiver that gets a message when one of them has
    /// confirmed it, and ends when none can any more.
    fn offer(&self, notification: &Notification) -> mpsc::Receiver<()> {
        let (confirmed, confirmation) = mpsc::channel(1);
        let item = Item { text: self.text_of(notification).into(), confirmed };
        self.lock().retain(|listener| {
            let is_kept =
                listener.tenant != notification.tenant || listener.queue.try_send(item.clone()).is_ok();
            if !is_kept {
                tracing::debug!(tenant = %listener.tenant, "a listener is gone, or too slow and cut off");
            }
            is_kept
        });
        confirmation
    }

    fn text_of(&self, notification: &Notification) -> String {
        let question = match &notification.about {
            NotificationKind::Question(question) => Some(question),
            _ => None,
        };
        json!({
            "id": notification.id(), "channel": self.name, "type": notification.about.as_str(),
            "tenant": notification.tenant, "task": notification.task, "run": notification.run,
            "text": notification.text, "question": question,
        })
        .to_string()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        // A panic cannot leave the listeners half-changed: every change is one call.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotificationChannel for LiveChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut confirmation = self.offer(notification);
            let deadline = self.clock.now() + CONFIRM;
            let in_time = self.clock.before(deadline, |task| confirmation.poll_recv(task)).await;
            match in_time {
                Some(Some(())) => Ok(()),
                _ => Err(
                    "nobody who listens at GET /v1/notifications has confirmed it; keep a page or a program \
                          connected there, with a token of the tenant"
                        .to_owned(),
                ),
            }
        })
    }
}
