//! Notifications: what people hear about the runs of tasks.

use archon_types::{BoxFuture, PendingApproval, RunId, TaskId, TenantId};

/// A message to the person of a tenant about a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Notification {
    /// The tenant.
    pub tenant: TenantId,
    /// The task.
    pub task: TaskId,
    /// The run, if the message is about one.
    pub run: Option<RunId>,
    /// The subject.
    pub about: NotificationKind,
    /// The text for the person. It may have words of a model or of an event: a channel escapes it.
    pub text: String,
}

/// The subject of a notification.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NotificationKind {
    /// A run has its answer.
    Result,
    /// A run asks a person, and waits.
    Question(Box<PendingApproval>),
    /// A question expired.
    Expired,
    /// A run failed, reached a limit, or could not start.
    Failure,
    /// The task was disabled after too many failures.
    Disabled,
}

/// A way to reach people, such as a mail account or a web hook.
pub trait NotificationChannel: Send + Sync {
    /// Returns the name, as tasks write it, such as `sms`.
    fn name(&self) -> &str;

    /// Sends a notification. A failed one is shown in the state of its task, and the run goes on.
    ///
    /// # Errors
    /// The text says what failed and what to do.
    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>>;
}
