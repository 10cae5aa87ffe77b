//! Messages of the person: to the run at work, or as the beginning of the next run.

use archon::{
    Runs,
    types::{
        AgentMessage, AnswerRuns, Content, Event, Message, RunError, RunHead, RunStatus, SessionId,
        SessionMode, StartRun, StartRuns, Started, StartedRun, Timestamp, UserMessage, WhenBusy,
    },
};
use archon_terminal::AttachedFile;

use super::Conversation;
use crate::{
    app::{AGENT, App},
    chat::{
        attachments::{self, PersonMessage},
        events::Update,
        history_of_session::newest,
    },
    failure::Failure,
    skills::Skills,
};

/// Returns the request for a message with the files that it names and the skill that it activates.
///
/// # Errors
/// [`Failure`] if an image or a PDF file cannot be attached, or the skill cannot be activated.
pub(crate) async fn request_of(
    app: &App,
    skills: &Skills,
    message: &PersonMessage,
) -> Result<StartRun, Failure> {
    let mut user = UserMessage::new(vec![Content::text(message.text.as_str())], Timestamp::default());
    for (path, block) in attachments::of(app, message).await? {
        user.attach(path, block);
    }
    let message = match &message.skill {
        None => AgentMessage::from(Message::User(user)),
        Some(call) => {
            let skill = skills.activate(call)?;
            user.attach(format!("the skill {}", call.name), AttachedFile::skill(&skill.text));
            AgentMessage::from(Message::User(user)).with_mark(skill.mark)
        }
    };
    Ok(StartRun::with_messages(vec![message]).agent(AGENT))
}

/// Sends a request to a session: to its run at work, or as a new run. Without a session, a new session begins. An
/// interrupted run is cancelled first, so that none of its steps is repeated: the model reads how far the run came, and
/// goes on with the message.
///
/// # Errors
/// The message is empty, the run takes no messages, or the journal failed.
pub(crate) async fn start(
    runs: &Runs,
    session: Option<&SessionId>,
    request: StartRun,
) -> Result<StartedRun, RunError> {
    let Some(session) = session else { return runs.start(request).await };
    let cut_off = newest(runs, session).await?.filter(|head| head.status == RunStatus::Interrupted);
    if let Some(RunHead { run_id: run, .. }) = cut_off {
        runs.cancel(&run, "its process was killed").await?;
        // Its outcome is in its log.
        let _ = runs.reply(&run).await;
    }
    runs.start(request.session(session.clone())).await
}

impl Conversation {
    pub(super) async fn send(&mut self, message: &PersonMessage, when_busy: WhenBusy) -> Result<(), Failure> {
        let mut request = request_of(&self.app, &self.skills, message).await?.when_busy(when_busy);
        // A session without a run has no mode yet.
        request.settings.mode =
            Some(self.mode).filter(|mode| self.run.is_none() && *mode != SessionMode::default());
        let started = start(&self.runs, self.session.as_ref(), request).await?;
        Ok(self.follow(started).await?)
    }

    /// Follows a run that a message of the person has started or joined.
    pub(super) async fn follow(&mut self, started: StartedRun) -> Result<(), RunError> {
        if self.events.is_none() && self.run.as_ref() != Some(&started.run) {
            self.pass_rest().await?;
        }
        if self.session.is_none() {
            self.update(Update::Session(started.session.clone()));
            self.session = Some(started.session);
        }
        let is_watched = self.events.is_some() && self.run.as_ref() == Some(&started.run);
        let is_queued = started.how == Started::Queued;
        // A message that steers a suspended run resumes it, and is read then.
        self.waiting += usize::from(is_queued || started.how == Started::Resumed);
        match is_queued && (is_watched || self.is_suspended()) {
            true => Ok(()),
            false => self.watch(&started.run).await,
        }
    }

    /// Passes the new records of the last run to the screen, such as its end if the run was interrupted and then
    /// cancelled.
    async fn pass_rest(&mut self) -> Result<(), RunError> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        for record in self.runs.records(&run, self.after).await?.records {
            self.update(Update::Event(Event::Record { run: run.clone(), record }));
        }
        Ok(())
    }
}
