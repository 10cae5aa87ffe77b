//! Notifications: each goes to the channels that its task names. The code of a channel may fail, panic, or never answer.

use std::{future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};

use archon_types::{Notification, NotificationKind, RunId};
use futures_util::{FutureExt as _, future::join_all};

use super::{Parts, TriggerEngine};
use crate::task::TriggerTask;

/// The longest time for a channel: four tries over HTTP with their pauses take five minutes.
const LIMIT: Duration = Duration::from_secs(6 * 60);

/// The channels that did not take a notification.
pub(super) struct Untaken {
    pub(super) channels: Vec<String>,
    /// The problem of each, for a person.
    pub(super) problem: String,
}

impl TriggerEngine {
    /// Sends a notification to the channels of a task, and returns the problems of those that failed.
    pub(super) async fn notify(
        &self,
        task: &TriggerTask,
        run: Option<&RunId>,
        about: NotificationKind,
        text: String,
    ) -> Option<String> {
        let notification = notification(task, run, about, text);
        self.send(task, &task.notify, &notification).await.map(|untaken| untaken.problem)
    }

    /// Sends a notification to channels, all at the same time. Returns those that failed, if some did.
    pub(super) async fn send(
        &self,
        task: &TriggerTask,
        channels: &[String],
        notification: &Notification,
    ) -> Option<Untaken> {
        let sent = join_all(channels.iter().map(|name| self.parts.send(name, notification))).await;
        let (mut failed, mut problems) = (Vec::new(), Vec::new());
        for (name, sent) in channels.iter().zip(sent) {
            if let Err(problem) = sent {
                tracing::warn!(task = %task.id, "the channel {name} failed: {problem}");
                problems.push(format!("the channel {name} failed: {problem}"));
                failed.push(name.clone());
            }
        }
        (!failed.is_empty()).then(|| Untaken { channels: failed, problem: problems.join("; ") })
    }
}

/// Returns a notification of a task.
pub(super) fn notification(
    task: &TriggerTask,
    run: Option<&RunId>,
    about: NotificationKind,
    text: String,
) -> Notification {
    Notification::new(task.tenant.clone(), about, text).task(task.id.clone()).run(run.cloned())
}

impl Parts {
    async fn send(&self, name: &str, notification: &Notification) -> Result<(), String> {
        let Some(channel) = self.named.channel_for(&notification.tenant, name) else {
            let tenant = &notification.tenant;
            return Err(format!("this program has no such channel for tenant {tenant}: name another one"));
        };
        let mut sending = pin!(caught("its code", async { channel.send(notification).await }));
        let deadline = self.clock.now() + LIMIT;
        let sent = self.clock.before(deadline, |task| sending.as_mut().poll(task)).await;
        let late =
            || format!("it did not answer within {} s; see whether its service works", LIMIT.as_secs());
        sent.unwrap_or_else(|| Err(late())).and_then(|sent| sent)
    }
}

/// Does work of the program's own code. If it panics, the error says so.
pub(super) async fn caught<T>(what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    // The state of the code is the program's: the engine shares none with it.
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|_| format!("{what} panicked; see the log, and correct it"))
}
