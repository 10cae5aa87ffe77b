//! A conversation: one session that is continued prompt by prompt, and can be steered while it works.

use std::sync::{Mutex, MutexGuard, PoisonError};

use archon_react_loop::{LoopError, Opening, conversation, is_paired};
use archon_types::{
    AgentMessage, CancellationToken, InboxRequest, JournalError, Message, Origin, RunId, RunRefused,
    RunStatus, SessionId, TenantId, Timestamp,
};

use crate::{Archon, RunError, RunHandle, RunOptions, archon::local, claim::Start, unread::Unread};

/// A session with one run at a time. Each run continues the previous run, and takes over the messages and the
/// requests of a person that the previous run did not read.
///
/// Dropping the handle of a run cancels it; dropping the conversation does not.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, providers::ScriptedProvider};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// let model = Arc::new(ScriptedProvider::texts(["Hello, Anna.", "Anna."]));
/// let chat = Archon::builder().provider(model, "scripted").build()?.conversation();
/// chat.prompt("I am Anna.").await?.text().await?;
/// assert_eq!(chat.prompt("What is my name?").await?.text().await?, "Anna.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Conversation {
    archon: Archon,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    session: Option<SessionId>,
    /// The run under way, or the last run.
    current: Option<Current>,
    /// The point from which the run in `current` continued.
    base: Base,
    /// The messages that came while no run was under way, for the next run.
    steers: Vec<AgentMessage>,
    follow_ups: Vec<AgentMessage>,
    last_used: Timestamp,
}

/// The point at which a run continues.
#[derive(Clone, Debug, Default)]
enum Base {
    #[default]
    Nowhere,
    /// A named session without runs.
    First,
    Run(RunId),
    /// The messages of another conversation, which are not yet in a log.
    Restored(Vec<Message>),
}

#[derive(Debug)]
struct Current {
    run: RunId,
    cancel: CancellationToken,
    /// A token that is cancelled when the task of the run ends, in any way.
    ended: CancellationToken,
}

impl Archon {
    /// Begins a conversation: a session that is continued prompt by prompt, and can be steered.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// let chat = agent.conversation();
    /// println!("{}", chat.prompt("Hello").await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone(), None, None)
    }

    /// Returns a conversation that continues a session, or begins it if it has no runs yet.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// let chat = agent.conversation_in("anna".into()).await?;
    /// println!("{}", chat.prompt("Where were we?").await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if the newest run of the session is at work or suspended; or the journal
    /// cannot be listed.
    pub async fn conversation_in(&self, session: SessionId) -> Result<Conversation, RunError> {
        let run = match self.continuation(&RunOptions::in_session(session.clone())).await?.origin {
            Origin::Continues { run, .. } => Some(run),
            // The session is new, or has only a parallel loop without an answer.
            _ => None,
        };
        Ok(Conversation::new(self.clone(), Some(session), run))
    }
}

impl Conversation {
    pub(crate) fn new(archon: Archon, session: Option<SessionId>, continues: Option<RunId>) -> Self {
        let last_used = archon.clock.now();
        let base = match continues {
            Some(run) => Base::Run(run),
            None if session.is_some() => Base::First,
            None => Base::Nowhere,
        };
        let state = State { session, base, last_used, ..State::default() };
        Self { archon, state: Mutex::new(state) }
    }

    /// Returns the id of the session. A session without an id gets a new one here or at the first prompt.
    ///
    /// ```
    /// # fn example(chat: archon::Conversation) {
    /// println!("continue later with `conversation_in(\"{}\".into())`", chat.session_id());
    /// # }
    /// ```
    pub fn session_id(&self) -> SessionId {
        self.session(&mut self.state())
    }

    /// Returns the id of the run under way; `None` if no run is under way.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// if let Some(run) = chat.running() {
    ///     println!("{run} is at work");
    ///     chat.steer("Shorter, please.").await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn running(&self) -> Option<RunId> {
        self.state().running()
    }

    /// Sends a prompt to the agent and starts a run.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let handle = chat.prompt("I am Anna.").await?;
    /// println!("{}", handle.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if a run is under way: use [`steer`](Self::steer) or
    /// [`follow_up`](Self::follow_up). The reply of the handle is an error if the run cannot be started.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<RunHandle, RunError> {
        self.prompt_messages(vec![self.prompt_message(text)]).await
    }

    /// Sends messages of any content to the agent and starts a run; otherwise the same as
    /// [`prompt`](Self::prompt).
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), Box<dyn std::error::Error>> {
    /// use archon::{SystemClock, types::{Clock, Content, Media, Message, UserMessage}};
    ///
    /// let picture = Media::new(&std::fs::read("chair.png")?, Some("chair.png"))?;
    /// let question = vec![Content::text("What is wrong with this chair?"), picture.into()];
    /// let message = Message::User(UserMessage::new(question, SystemClock.now()));
    /// println!("{}", chat.prompt_messages(vec![message.into()]).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt); or there is no message.
    pub async fn prompt_messages(&self, messages: Vec<AgentMessage>) -> Result<RunHandle, RunError> {
        self.prompt_with(messages, RunOptions::default()).await
    }

    /// Does the same as [`prompt_messages`](Self::prompt_messages), with options for this prompt only: a sink, a
    /// tenant, a cancellation token, limits, a system text or tools. The conversation itself sets the run and the
    /// session.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// use archon::{RunOptions, SystemClock, types::{Clock, Message}};
    ///
    /// let message = Message::user("Are there chairs?", SystemClock.now());
    /// let options = RunOptions::default().with_tools(["stock"]);
    /// println!("{}", chat.prompt_with(vec![message.into()], options).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`prompt_messages`](Self::prompt_messages); or `options` name a run, a session or a branch.
    pub async fn prompt_with(
        &self,
        messages: Vec<AgentMessage>,
        options: RunOptions,
    ) -> Result<RunHandle, RunError> {
        match messages.is_empty() {
            true => Err(LoopError::EmptyPrompt.into()),
            false => self.begin(messages, options).await,
        }
    }

    /// Lets the agent answer the last message of the conversation: after a failure, or after restored
    /// messages that end with a question. A waiting request to compact the conversation goes to the inbox of this
    /// run. The run compacts before its next request to the model; if it makes none, the next run compacts.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// if let Err(error) = chat.prompt("Are there chairs?").await?.text().await {
    ///     eprintln!("{error}: {}", error.advice());
    ///     println!("{}", chat.continue_loop().await?.text().await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if a run is under way. If the conversation ends with an answer, the reply of
    /// the handle is an error with the [cause](RunError::cause) [`LoopError::NothingToAnswer`].
    pub async fn continue_loop(&self) -> Result<RunHandle, RunError> {
        self.begin(Vec::new(), RunOptions::default()).await
    }

    /// Does the same as [`continue_loop`](Self::continue_loop), with options as for
    /// [`prompt_with`](Self::prompt_with).
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation, saved: String) -> Result<(), archon::RunError> {
    /// use archon::RunOptions;
    ///
    /// chat.restore_messages(&saved)?; // they end with a question
    /// let options = RunOptions::default().with_tools(["stock"]);
    /// println!("{}", chat.continue_with(options).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`continue_loop`](Self::continue_loop).
    pub async fn continue_with(&self, options: RunOptions) -> Result<RunHandle, RunError> {
        self.begin(Vec::new(), options).await
    }

    /// Steers the run under way: running tools finish, calls that have not started are skipped, and the model
    /// reads the message next. Without a run under way the message waits for the next run.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let run = chat.prompt("Write the report.").await?;
    /// chat.steer("In French, please.").await?;
    /// println!("{}", run.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal failed or has no inbox.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), RunError> {
        self.send(InboxRequest::Steer { message: self.prompt_message(text) }).await
    }

    /// Sends a follow-up, which the model reads when the run would otherwise end. Without a run under way the
    /// message waits for the next run.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let run = chat.prompt("Write the report.").await?;
    /// chat.follow_up("Then translate it.").await?;
    /// println!("{}", run.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal failed or has no inbox.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), RunError> {
        self.send(InboxRequest::FollowUp { message: self.prompt_message(text) }).await
    }

    /// Cancels the run under way: the model's stream and the tools end, and the conversation stays valid.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let run = chat.prompt("Write the report.").await?;
    /// chat.abort();
    /// assert!(run.text().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn abort(&self) {
        if let Some(current) = &self.state().current {
            current.cancel.cancel();
        }
    }

    /// Cancels the run under way, and drops the messages that wait. The next prompt begins with an empty conversation
    /// under the same session id. The logs of the earlier runs stay.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let session = chat.session_id();
    /// chat.reset();
    /// assert!(chat.messages().await?.is_empty());
    /// assert_eq!(chat.session_id(), session);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset(&self) {
        self.abort();
        let mut state = self.state();
        let session = state.session.take();
        *state = State { session, last_used: self.archon.clock.now(), ..State::default() };
    }

    /// Returns the messages so far, as JSON for [`restore_messages`](Self::restore_messages).
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation, other: archon::Conversation) -> Result<(), archon::RunError> {
    /// let saved = chat.save_messages().await?;
    /// other.restore_messages(&saved)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn save_messages(&self) -> Result<String, RunError> {
        let messages = self.messages().await?;
        serde_json::to_string(&messages).map_err(|error| not_messages(&error))
    }

    /// Returns the messages so far, as the next run reads them.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// for message in chat.messages().await? {
    ///     println!("{}", message.text());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn messages(&self) -> Result<Vec<Message>, RunError> {
        let (last, base) = {
            let state = self.state();
            (state.current.as_ref().map(|current| current.run.clone()), state.base.clone())
        };
        match self.newest(last, base).await? {
            Base::Nowhere | Base::First => Ok(Vec::new()),
            Base::Restored(messages) => Ok(messages),
            Base::Run(run) => {
                let messages = conversation(&**self.archon.journal(), &run).await?;
                Ok(messages.iter().map(|message| Message::clone(message)).collect())
            }
        }
    }

    /// Replaces the conversation by messages from [`save_messages`](Self::save_messages). The next run begins
    /// with them, and its log contains them.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation, saved: &str) -> Result<(), archon::RunError> {
    /// chat.restore_messages(saved)?;
    /// println!("{}", chat.prompt("Where were we?").await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if a run is under way; the text is not a list of messages; or a tool call in
    /// it has no result.
    pub fn restore_messages(&self, json: &str) -> Result<(), RunError> {
        let messages: Vec<Message> = serde_json::from_str(json).map_err(|error| not_messages(&error))?;
        if !is_paired(&messages) {
            return Err(LoopError::Unpaired.into());
        }
        let mut state = self.state();
        state.check_idle()?;
        (state.current, state.base) = (None, Base::Restored(messages));
        Ok(())
    }

    /// Begins a new session with an empty conversation, and returns its id.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let before = chat.session_id();
    /// assert_ne!(chat.new_session()?, before);
    /// assert!(chat.messages().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if a run is under way.
    pub fn new_session(&self) -> Result<SessionId, RunError> {
        let mut state = self.state();
        state.check_idle()?;
        *state = State { last_used: self.archon.clock.now(), ..State::default() };
        Ok(self.session(&mut state))
    }

    /// Begins a new session if the last prompt (or, before the first prompt, the creation of this conversation) is
    /// older than `idle`, and no run is under way. Returns the id of the new session; `None` if none was begun.
    ///
    /// ```
    /// # async fn example(chat: archon::Conversation) -> Result<(), archon::RunError> {
    /// let day = std::time::Duration::from_secs(24 * 60 * 60);
    /// if let Some(session) = chat.check_and_rotate(day) {
    ///     println!("a new session: {session}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_and_rotate(&self, idle: std::time::Duration) -> Option<SessionId> {
        let last_used = self.state().last_used;
        let is_idle = self.archon.clock.now().since(last_used) > idle;
        is_idle.then(|| self.new_session().ok()).flatten()
    }

    async fn begin(
        &self,
        prompts: Vec<AgentMessage>,
        mut options: RunOptions,
    ) -> Result<RunHandle, RunError> {
        options.refuse_place("a prompt of a conversation")?;
        self.archon.admit()?;
        let own = self.archon.for_run(options.settings())?;
        let run = RunId::new(self.archon.ids.fresh("run"));
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        // One lock for all of this, so that one of two simultaneous prompts is refused.
        let (mut opening, is_new, session, last, base, cancel) = {
            let mut state = self.state();
            state.check_idle()?;
            let is_new = state.session.is_none();
            let mut opening = Opening::new(prompts);
            opening.steers = std::mem::take(&mut state.steers);
            opening.follow_ups = std::mem::take(&mut state.follow_ups);
            let cancel = options.cancel.clone().unwrap_or_default();
            let current = Current { run: run.clone(), cancel: cancel.clone(), ended };
            let last = state.current.replace(current).map(|last| last.run);
            state.last_used = self.archon.clock.now();
            (opening, is_new, self.session(&mut state), last, state.base.clone(), cancel)
        };
        let tenant = options.tenant.clone().unwrap_or_else(local);
        let placed = self.place(last, base, &mut opening, &session, &tenant).await;
        let unread = match (&placed, is_new) {
            (Ok(start), false) => self.archon.add_unread(&mut opening, start, &session, &tenant).await,
            _ => Ok(Unread::default()),
        };
        let placed = placed.and_then(|start| Ok((start, unread?)));
        let (start, unread) = placed.inspect_err(|_| self.put_back(&mut opening))?;
        let options = RunOptions { cancel: Some(cancel), ..options };
        let mut context = self.archon.context(run, session, options);
        let origin = start.release_at_first_record(&mut context);
        let archon = own.clone();
        Ok(own.spawn(context, |_, context| async move {
            let _guard = guard;
            archon.begin_with(opening, origin, unread, &context).await
        }))
    }

    /// Claims the point at which the next run continues. Restored messages become a part of its opening.
    async fn place(
        &self,
        last: Option<RunId>,
        base: Base,
        opening: &mut Opening,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Start, RunError> {
        let base = self.newest(last, base).await?;
        self.state().base = base.clone();
        match base {
            Base::Nowhere => Ok(Start::unclaimed(Origin::Prompt)),
            Base::First => self.archon.claim_in(None, session, tenant).await,
            Base::Run(run) => self.archon.claim_in(Some(run), session, tenant).await,
            Base::Restored(messages) => {
                opening.restored = messages;
                Ok(Start::unclaimed(Origin::Prompt))
            }
        }
    }

    /// Puts the messages of an opening back, after its run could not be started. They come before the other messages
    /// for the next run.
    fn put_back(&self, opening: &mut Opening) {
        let mut state = self.state();
        state.steers.splice(0..0, opening.steers.drain(..));
        state.follow_ups.splice(0..0, opening.follow_ups.drain(..));
    }

    /// Returns the point at which the next run continues: the end of the last run, or `base` if there is no
    /// last run or it has no log.
    async fn newest(&self, last: Option<RunId>, base: Base) -> Result<Base, RunError> {
        let Some(last) = last else { return Ok(base) };
        match self.archon.journal().read(&last).await {
            Ok(_) => Ok(Base::Run(last)),
            Err(JournalError::UnknownRun { .. }) => Ok(base),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a message to the run under way; without one, the message waits for the next run.
    async fn send(&self, request: InboxRequest) -> Result<(), RunError> {
        if let Some(run) = self.running() {
            match self.archon.post(&run, request.clone()).await {
                // The run has not begun yet, or has just ended.
                Err(
                    RunError::Refused(RunRefused::Ended { .. })
                    | RunError::Journal(JournalError::UnknownRun { .. }),
                ) => {}
                posted => return posted,
            }
        }
        let mut state = self.state();
        match request {
            InboxRequest::Steer { message } => state.steers.push(message),
            InboxRequest::FollowUp { message } => state.follow_ups.push(message),
            _ => {}
        }
        Ok(())
    }

    fn prompt_message(&self, text: impl Into<String>) -> AgentMessage {
        Message::user(text, self.archon.clock.now()).into()
    }

    fn session(&self, state: &mut State) -> SessionId {
        state.session.get_or_insert_with(|| SessionId::new(self.archon.ids.fresh("session"))).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_messages(error: &serde_json::Error) -> RunError {
    RunError::Messages { problem: error.to_string() }
}

impl State {
    fn running(&self) -> Option<RunId> {
        self.current
            .as_ref()
            .filter(|current| !current.ended.is_cancelled())
            .map(|current| current.run.clone())
    }

    fn check_idle(&self) -> Result<(), RunError> {
        match self.running() {
            Some(run) => Err(RunError::SessionBusy { run, status: RunStatus::Running }),
            None => Ok(()),
        }
    }
}
