//! Notifications for people about runs that work without them, and the channels that send them.

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    log::PendingApproval,
    values::{ContentHash, RunId, TaskId, TenantId},
};

/// A message to a person about a run or a task of the person's tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notification {
    /// The tenant of the run or the task.
    pub tenant: TenantId,
    /// The task that the message is about, or that started the run; `None` if there is none.
    pub task: Option<TaskId>,
    /// The run, if the message is about one.
    pub run: Option<RunId>,
    /// The subject: a result, a question, a failure and so on.
    pub about: NotificationKind,
    /// The text for the person. It may contain words of a model or of an event, so a channel must escape it.
    pub text: String,
    /// The web address at which the person can answer the question; `None` if there is none.
    pub link: Option<String>,
    /// The secret token that a person's reply must contain to count as an answer; `None` if people cannot reply to the
    /// channel. A mail channel, for instance, puts the token into the mail's id. A channel must not show the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<String>,
}

/// The subject of a notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotificationKind {
    /// A run has its answer.
    Result,
    /// A run asks a person, and waits.
    Question(Box<PendingApproval>),
    /// A question expired before a person answered it.
    Expired,
    /// A run failed, reached a limit, or could not start.
    Failure,
    /// A task was disabled after too many failures.
    Disabled,
}

impl Notification {
    /// Creates a notification without a task, a run and a link.
    pub fn new(tenant: impl Into<TenantId>, about: NotificationKind, text: impl Into<String>) -> Self {
        let (tenant, text) = (tenant.into(), text.into());
        Self { tenant, task: None, run: None, about, text, link: None, reply_token: None }
    }

    /// Returns the id of the notification. A notification that is sent again, for instance after a crash, has
    /// the same id.
    pub fn id(&self) -> String {
        let about = match &self.about {
            NotificationKind::Question(question) => question.request.request_id.as_str(),
            about => about.as_str(),
        };
        format!("{:016x}", ContentHash::of(&(&self.tenant, &self.task, &self.run, about, &self.text)))
    }
}

impl NotificationKind {
    /// Returns the name, as in JSON: `result`, `question`, `expired`, `failure` or `disabled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Question(_) => "question",
            Self::Expired => "expired",
            Self::Failure => "failure",
            Self::Disabled => "disabled",
        }
    }
}

crate::setters! {
impl Notification {
    /// Sets the task that the message is about, or that started the run. Default none.
    pub fn task(self, task: TaskId) -> Self { self.task = Some(task) }

    /// Sets the run that the message is about. Default none.
    pub fn run(self, run: Option<RunId>) -> Self { self.run = run }

    /// Sets the web address at which the person can answer the question. Default none.
    pub fn link(self, link: Option<String>) -> Self { self.link = link }
}
}

/// A way to reach people, such as a mail account or a web hook.
///
/// ```
/// use archon_types::{BoxFuture, Notification, NotificationChannel, visible};
///
/// /// Prints what people should hear.
/// struct Console;
///
/// impl NotificationChannel for Console {
///     fn name(&self) -> &str {
///         "console"
///     }
///
///     fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
///         // Control characters of a model or of an event are shown by their number: they change nothing on the screen.
///         println!("{}", visible(&notification.text));
///         Box::pin(std::future::ready(Ok(())))
///     }
/// }
/// ```
pub trait NotificationChannel: Send + Sync {
    /// Returns the name of the channel, such as `sms`, by which the definitions of tasks refer to it.
    fn name(&self) -> &str;

    /// Sends a notification. If this fails, the run goes on.
    ///
    /// # Errors
    /// The text says what failed and what to do.
    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>>;
}
