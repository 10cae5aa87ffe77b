//! Open questions whose answers are kept, and a channel that keeps what it sends, for tests of questions to people.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon_types::{
    AgentMessage, Answer, AnswerRuns, BoxFuture, Notification, NotificationChannel, PendingApproval,
    ResumedRuns, RunError, RunId, TenantId,
};

/// A run service that has open questions and nothing else. The first answer to a question closes it, and is kept. Clones
/// share everything.
///
/// ```
/// use archon_testkit::RecordingQuestions;
/// use archon_types::{Answer, AnswerRuns};
///
/// # archon_testkit::drive(&archon_testkit::VirtualClock::new(), async {
/// let questions = RecordingQuestions::new();
/// assert!(!questions.answer("approval_1", Answer::Approve).await.unwrap());
/// assert!(questions.answers().is_empty());
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecordingQuestions {
    open: Arc<Mutex<Vec<PendingApproval>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl RecordingQuestions {
    /// Creates a service without questions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the open questions, to read or to change them.
    pub fn open(&self) -> MutexGuard<'_, Vec<PendingApproval>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answers so far.
    pub fn answers(&self) -> Vec<Answer> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self, request_id: &str, answer: Answer) -> bool {
        let mut open = self.open();
        let before = open.len();
        open.retain(|open| open.request.request_id != request_id);
        let is_open = open.len() < before;
        if is_open {
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        }
        is_open
    }
}

/// It has no runs: except for its questions, each request fails with [`RunError::NothingToContinue`].
impl AnswerRuns for RecordingQuestions {
    fn steer<'a>(&'a self, _: &'a RunId, _: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async { Err(RunError::NothingToContinue) })
    }

    fn follow_up<'a>(&'a self, _: &'a RunId, _: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async { Err(RunError::NothingToContinue) })
    }

    fn cancel<'a>(&'a self, _: &'a RunId, _: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async { Err(RunError::NothingToContinue) })
    }

    fn questions<'a>(
        &'a self,
        _: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>> {
        Box::pin(async { Ok(self.open().clone()) })
    }

    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        Box::pin(async move { Ok(self.take(request_id, answer)) })
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        Box::pin(async { Ok(ResumedRuns::default()) })
    }
}

/// A channel with the name `test` that keeps what it sends. Clones share one list.
///
/// ```
/// use archon_testkit::RecordingChannel;
/// use archon_types::{Notification, NotificationChannel, NotificationKind};
///
/// # archon_testkit::drive(&archon_testkit::VirtualClock::new(), async {
/// let channel = RecordingChannel::new();
/// channel.send(&Notification::new("anna", NotificationKind::Result, "Two mails.")).await.unwrap();
/// assert_eq!(channel.notifications()[0].text, "Two mails.");
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecordingChannel(Arc<Mutex<Vec<Notification>>>);

impl RecordingChannel {
    /// Creates a channel that has sent nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the notifications so far.
    pub fn notifications(&self) -> Vec<Notification> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl NotificationChannel for RecordingChannel {
    fn name(&self) -> &str {
        "test"
    }

    fn send<'a>(&'a self, notification: &'a Notification) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notification.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}
