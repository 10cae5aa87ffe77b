//! An agent that is ready to work: starts, resumes and forks runs.

use std::sync::Arc;

use archon_react_loop::{ReactAgent, stands_at};
use archon_types::{
    Agent, BoxFuture, Clock, Context, CredentialStore, Event, ExecutionLimits, Fork, Ids, InboxEntry,
    InboxRequest, Journal, Message, MoreLimits, NullSink, Origin, Outcome, Record, RecordBody, Reply,
    ResponseFormat, RunAgent, RunConfig, RunFilter, RunHead, RunId, SessionId, Sink, Spending, TenantId,
    Toolbox,
};

use crate::{
    ArchonBuilder, AutoSave, Conversation, MemoryLimit, RunError, RunHandle, RunOptions, auto_save::Saving,
    claim::Start, watch,
};

/// An agent with all its parts. Cloning is cheap, and clones share everything.
#[derive(Clone)]
pub struct Archon {
    pub(crate) agent: ReactAgent,
    /// The builder that made it; see [`Archon::to_builder`].
    pub(crate) parts: Arc<ArchonBuilder>,
    #[cfg(feature = "planner")]
    pub(crate) questions: crate::planning::Questions,
    pub(crate) toolbox: Arc<dyn Toolbox>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) auto_save: Option<AutoSave>,
    pub(crate) memory_limit: Option<MemoryLimit>,
    pub(crate) credentials: Option<Arc<dyn CredentialStore>>,
}

impl Archon {
    /// Returns a builder without parts.
    pub fn builder() -> ArchonBuilder {
        ArchonBuilder::default()
    }

    /// Returns a builder with all parts of this agent, its journal, clock and ids included, to build an agent
    /// that differs in some.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), archon::RunError> {
    /// use archon::Archon;
    ///
    /// let desk = Archon::builder().model("anthropic:claude-sonnet-4-5").data_dir("runs").build()?;
    /// let cheap = desk.to_builder().model("ollama:qwen3").system("Answer in one sentence.").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_builder(&self) -> ArchonBuilder {
        let mut builder = ArchonBuilder::clone(&self.parts);
        builder.take_over(self);
        builder
    }

    /// The limits of this agent's runs: a base for [`RunOptions::with_limits`].
    pub fn limits(&self) -> &ExecutionLimits {
        &self.agent.options().limits
    }

    /// Works on a task until there is a reply, in a new session.
    ///
    /// # Errors
    /// [`RunError::Failed`]: the run failed; the error has the kind of failure, the run's id and advice. Or
    /// the run could not be started, or the journal failed.
    pub async fn run(&self, task: impl Into<String>) -> Result<Reply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// Works on a task until there is a reply, on the caller's own task.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`RunError::SessionBusy`]: the session's newest run is at work or suspended;
    /// and [`RunError::UnknownTool`].
    pub async fn run_with(
        &self,
        task: impl Into<String>,
        mut options: RunOptions,
    ) -> Result<Reply, RunError> {
        let own = self.for_run(options.settings())?;
        let (context, origin) = own.prepare(options).await?;
        let prompt = Message::user(task, self.clock.now()).into();
        let work = |context| async move { own.agent.start(vec![prompt], origin, &context).await };
        Reply::of(self.work(context, work).await?)
    }

    /// Starts a task in the background and returns at once.
    ///
    /// # Errors
    /// [`RunError::SessionBusy`]: the session's newest run is at work or suspended;
    /// [`RunError::UnknownTool`]; or the journal cannot be listed.
    pub async fn start(
        &self,
        task: impl Into<String>,
        mut options: RunOptions,
    ) -> Result<RunHandle, RunError> {
        let own = self.for_run(options.settings())?;
        let (context, origin) = own.prepare(options).await?;
        let prompt = Message::user(task, self.clock.now()).into();
        Ok(own.spawn(context, |agent, context| async move {
            Ok(agent.start(vec![prompt], origin, &context).await?)
        }))
    }

    /// Resumes a run from the end of its log: after a crash, a cancel or a failure. A run that follows a plan
    /// is resumed by its planning agent. With a memory (`ArchonBuilder::memory`) a run that has ended returns
    /// its outcome, after the memory has stored what was said.
    ///
    /// # Errors
    /// The run is unknown. The handle's reply is an error if the run is in use, follows a plan, or has ended
    /// and there is no memory.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// As [`resume`](Self::resume), with larger limits from now on, so that a run that ended at a limit of
    /// turns, tokens, time or money goes on.
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The handle's reply is an error if the run has reached a limit that still
    /// holds.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        let context = self.context_of(run).await?;
        Ok(self.spawn(
            context,
            move |agent, context| async move { Ok(agent.resume_with(&more, &context).await?) },
        ))
    }

    /// Forks a run after `turns` of its turns, by default at its end: makes a new run of the same session
    /// with all records up to there. Resume it, or go on with a prompt in its session.
    ///
    /// # Errors
    /// The run is unknown or has fewer turns, or the journal failed.
    pub async fn fork(&self, run: &RunId, turns: Option<u32>) -> Result<Fork, RunError> {
        let id = RunId::new(self.ids.fresh("run"));
        let context = self.context(id, SessionId::new(""), RunOptions::default());
        Ok(archon_react_loop::fork(&*self.journal, run, turns, &context).await?)
    }

    /// Begins a conversation: a session that is continued prompt by prompt, and can be steered while it
    /// works.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone(), None, None)
    }

    /// A conversation that continues a session, or begins it if it has no runs yet.
    ///
    /// # Errors
    /// [`RunError::SessionBusy`]: the session's newest run is at work or suspended; or the journal cannot be
    /// listed.
    pub async fn conversation_in(&self, session: SessionId) -> Result<Conversation, RunError> {
        let run = match self.continuation(&RunOptions::in_session(session.clone())).await?.origin {
            Origin::Continues { run, .. } => Some(run),
            // The session is new; or its first prompt went to a parallel loop in which no branch had an
            // answer.
            _ => None,
        };
        Ok(Conversation::new(self.clone(), Some(session), run))
    }

    /// Steers a run, also one in another process: running tools finish, calls that have not started are
    /// skipped, and the model reads the message next. The message waits in the inbox until the run's process,
    /// or the next resume, reads it.
    ///
    /// # Errors
    /// The run is unknown or has ended, or its journal takes no messages.
    pub async fn steer(&self, run: &RunId, text: impl Into<String>) -> Result<(), RunError> {
        let message = Message::user(text, self.clock.now()).into();
        self.post(run, InboxRequest::Steer { message }).await
    }

    /// Sends a follow-up to a run, also one in another process; the model reads it when the run would end.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn follow_up(&self, run: &RunId, text: impl Into<String>) -> Result<(), RunError> {
        let message = Message::user(text, self.clock.now()).into();
        self.post(run, InboxRequest::FollowUp { message }).await
    }

    /// Cancels a run, also one in another process. A run that no process works on ends as cancelled at its
    /// next resume.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn cancel(&self, run: &RunId, reason: impl Into<String>) -> Result<(), RunError> {
        self.post(run, InboxRequest::Cancel { reason: reason.into() }).await
    }

    pub(crate) async fn post(&self, run: &RunId, request: InboxRequest) -> Result<(), RunError> {
        let entry = InboxEntry::new(self.ids.fresh("in"), self.clock.now(), request);
        Ok(archon_react_loop::post(&*self.journal, run, entry).await?)
    }

    /// The newest run of a session, or of all sessions without child runs: the one that was written last.
    /// Runs whose logs cannot be read at all are left out.
    ///
    /// # Errors
    /// The journal cannot be listed, or the log of that run is damaged.
    pub async fn newest_run(&self, session: Option<&SessionId>) -> Result<Option<RunHead>, RunError> {
        self.newest(match session {
            Some(session) => RunFilter::of_session(session.clone()),
            None => RunFilter::all().top_level(),
        })
        .await
    }

    pub(crate) async fn newest(&self, filter: RunFilter) -> Result<Option<RunHead>, RunError> {
        let mut filter = filter.limit(1);
        loop {
            let Some(head) = self.journal.list(&filter).await?.pop() else { return Ok(None) };
            if head.problem.is_none() {
                return Ok(Some(head));
            }
            // Refuses a damaged log: continuing an older run would silently lose what this one has.
            if head.session.is_some() {
                self.journal.read(&head.run_id).await?;
            }
            filter = filter.after(head.place());
        }
    }

    /// The agent for a [`Runs`](crate::Runs) service, which starts and resumes its loops by id.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Returns the agent's tools.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.toolbox
    }

    /// Returns the agent's journal.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Makes a context for work outside of a run, for instance a single tool call. The limits, system text
    /// and tools of `options` are for runs and have no effect here.
    pub fn context(&self, run: RunId, session: SessionId, options: RunOptions) -> Context {
        let mut context = Context::new(run, session, self.clock.clone(), self.ids.clone());
        context.cancel = options.cancel.unwrap_or_default();
        context.sink = options.sink.unwrap_or_else(|| Arc::new(NullSink));
        if let Some(tenant) = options.tenant {
            context.tenant = tenant;
        }
        context.credentials.clone_from(&self.credentials);
        self.agent.secrets().for_each(|secrets| context.redactor.include(&secrets));
        context
    }

    /// Makes the context to resume a run, with the run's own tenant.
    ///
    /// # Errors
    /// The run is unknown, or its log cannot be read; or its session has continued from it.
    pub(crate) async fn context_of(&self, run: RunId) -> Result<Context, RunError> {
        let records = self.journal.read(&run).await?;
        self.check_is_last(&run, &records).await?;
        Ok(self.context_after(run, &records))
    }

    /// As [`context_of`](Self::context_of), for a log that was read before.
    pub(crate) fn context_after(&self, run: RunId, records: &[Arc<Record>]) -> Context {
        let tenant = records.first().and_then(|record| match &record.body {
            RecordBody::RunStarted(started) => Some(started.tenant.clone()),
            _ => None,
        });
        let session = RunHead::of(run.clone(), records).session.unwrap_or_else(|| SessionId::new(""));
        self.context(run, session, RunOptions { tenant, ..RunOptions::default() })
    }

    pub(crate) async fn prepare(&self, options: RunOptions) -> Result<(Context, Origin), RunError> {
        self.admit()?;
        let start = self.continuation(&options).await?;
        let mut context = self.new_context(options);
        let origin = start.hand_over(&mut context);
        Ok((context, origin))
    }

    /// Adds this agent's parts to the context of a run that a service started: the secrets to redact from
    /// logs, and the accounts for tools.
    pub(crate) fn own(&self, context: &Context) -> Context {
        let mut own = context.clone();
        own.credentials = own.credentials.or_else(|| self.credentials.clone());
        self.agent.secrets().for_each(|secrets| own.redactor.include(&secrets));
        own
    }

    fn new_context(&self, options: RunOptions) -> Context {
        let run = options.run.clone().unwrap_or_else(|| RunId::new(self.ids.fresh("run")));
        let session = options.session.clone().unwrap_or_else(|| SessionId::new(self.ids.fresh("session")));
        self.context(run, session, options)
    }

    async fn continuation(&self, options: &RunOptions) -> Result<Start, RunError> {
        let Some(session) = &options.session else { return Ok(Start::unclaimed(Origin::Prompt)) };
        let tenant = options.tenant.clone().unwrap_or_else(local);
        if !options.branch {
            return self.claim_newest(session, &tenant).await;
        }
        match self.newest(RunFilter::of_session(session.clone()).tenant(tenant)).await? {
            Some(head) => Ok(Start::unclaimed(self.continuation_of(head.run_id).await?)),
            None => Ok(Start::unclaimed(Origin::Prompt)),
        }
    }

    pub(crate) async fn continuation_of(&self, run: RunId) -> Result<Origin, RunError> {
        let records = self.journal.read(&run).await?;
        Ok(stands_at(&*self.journal, &run, &records).await?)
    }

    pub(crate) fn spawn<F>(&self, context: Context, work: impl FnOnce(ReactAgent, Context) -> F) -> RunHandle
    where
        F: Future<Output = Result<Outcome, RunError>> + Send + 'static,
    {
        let (sink, events) = watch::channel();
        let (run, session, cancel) = (context.run.clone(), context.session.clone(), context.cancel.clone());
        let agent = self.agent.clone();
        let task = self.launch(context, Arc::new(sink), |context| work(agent, context));
        RunHandle { archon: self.clone(), run, session, cancel, events, task: Some(task) }
    }

    /// Works on a run in a new task, whose events also go to `sink`.
    pub(crate) fn launch<F, T>(
        &self,
        mut context: Context,
        sink: Arc<dyn Sink>,
        work: impl FnOnce(Context) -> F,
    ) -> tokio::task::JoinHandle<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        context.sink = Arc::new(Both(context.sink, sink));
        match self.saving(&mut context) {
            Some(saving) => tokio::spawn(saving.beside(work(context))),
            None => tokio::spawn(work(context)),
        }
    }

    /// Works on a run on the caller's own task.
    pub(crate) async fn work<F: Future>(
        &self,
        mut context: Context,
        work: impl FnOnce(Context) -> F,
    ) -> F::Output {
        match self.saving(&mut context) {
            Some(saving) => saving.beside(work(context)).await,
            None => work(context).await,
        }
    }

    /// Returns the saver of the run's session, if sessions are saved; it gets the run's events.
    fn saving(&self, context: &mut Context) -> Option<Arc<Saving>> {
        let saver = self.auto_save.as_ref()?;
        let saving = saver.of(context.session.clone(), self.journal.clone(), self.clock.clone());
        context.sink = Arc::new(Both(saving.clone(), context.sink.clone()));
        Some(saving)
    }
}

/// Other agents call it this way, with [`SubAgentTool`](crate::SubAgentTool), or a program does.
impl Agent for Archon {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Agent::run(&self.agent, task, context)
    }

    fn config(&self) -> Option<RunConfig> {
        self.agent.config()
    }

    fn in_form(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        self.agent.in_form(form)
    }

    fn used<'a>(&'a self, run: &'a RunId, journal: &'a dyn Journal) -> BoxFuture<'a, Option<Spending>> {
        self.agent.used(run, journal)
    }
}

impl std::fmt::Debug for Archon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archon").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// The default tenant.
pub(crate) fn local() -> TenantId {
    TenantId::new("local")
}

/// Sends events to two sinks, the first one first.
struct Both(Arc<dyn Sink>, Arc<dyn Sink>);

impl Sink for Both {
    fn emit(&self, event: Event) {
        self.0.emit(event.clone());
        self.1.emit(event);
    }
}
