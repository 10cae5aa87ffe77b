//! An agent that is ready to work, which starts, resumes and forks runs.

use std::sync::Arc;

use archon_react_loop::{ReactAgent, continuation_point};
use archon_types::{
    Agent, BoxFuture, Clock, Context, CredentialStore, Event, ExecutionLimits, Fork, ForkOptions, Ids,
    InboxEntry, InboxRequest, Journal, Message, NullSink, Origin, Outcome, Record, Reply, ResponseFormat,
    RunAgent, RunConfig, RunFilter, RunHead, RunId, RunKind, RunSettings, RunStarted, SessionId, Sink,
    Spending, TenantId, Tool, Toolbox, nearest,
};

use crate::{ArchonBuilder, AutoSave, ProcessMemoryLimit, RunError, RunOptions, auto_save::Saving};

/// An agent that is ready to work: it starts, resumes, forks, steers and cancels runs. [`Archon::builder`] creates it.
/// Cloning is cheap, and clones share the model, the tools and the journal.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, providers::ScriptedProvider};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// // A program names a model instead: `.model("ollama:qwen3")`.
/// let model = Arc::new(ScriptedProvider::texts(["42"]));
/// let agent = Archon::builder().provider(model, "scripted").build()?;
/// assert_eq!(agent.run("What is 6 * 7?").await?.into_text()?, "42");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Archon {
    pub(crate) agent: ReactAgent,
    /// The builder that built the agent; see [`Archon::to_builder`].
    pub(crate) parts: Arc<ArchonBuilder>,
    #[cfg(feature = "planner")]
    pub(crate) models: crate::models::Models,
    pub(crate) toolbox: Arc<dyn Toolbox>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) auto_save: Option<AutoSave>,
    pub(crate) memory_limit: Option<ProcessMemoryLimit>,
    pub(crate) credentials: Option<Arc<dyn CredentialStore>>,
    #[cfg(feature = "skills")]
    pub(crate) skills: Option<Arc<archon_skills::SkillConversations>>,
}

impl Archon {
    /// Returns the limits of this agent's runs, as a base for [`RunOptions::with_limits`].
    pub fn limits(&self) -> &ExecutionLimits {
        &self.agent.options().limits
    }

    /// Returns the skills of this agent and their state in each conversation; `None` without
    /// [`ArchonBuilder::skills`]. Use this value, for example, to build a message with which a person activates a
    /// skill:
    ///
    /// ```
    /// use archon::{Archon, skills::{SkillActivationRequest, SkillActivator}, types::{AgentMessage, Message, Timestamp}};
    ///
    /// fn with_skill(agent: &Archon, name: &str, words: &str) -> Option<AgentMessage> {
    ///     let request = SkillActivationRequest::new(name).with_activator(SkillActivator::Person);
    ///     let activation = agent.skills()?.for_message(&request.with_user_request(words));
    ///     let message = Message::user(activation.text_for_model(), Timestamp::default());
    ///     Some(AgentMessage::from(message).with_mark(activation.mark?))
    /// }
    /// ```
    #[cfg(feature = "skills")]
    pub fn skills(&self) -> Option<&Arc<archon_skills::SkillConversations>> {
        self.skills.as_ref()
    }

    /// Works on a task until there is a reply, in a new session.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// let reply = agent.run("Recommend a book about the sea.").await?;
    /// println!("{}", reply.into_text()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Failed`] if the run failed, with the kind of failure, the id of the run and advice.
    /// Another error if the run could not be started, or the journal failed.
    pub async fn run(&self, task: impl Into<String>) -> Result<Reply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// Works on a task until there is a reply, with these options. The returned future does the work itself;
    /// no async task is spawned. If the options name a session, the run also takes over what the last run of the
    /// session left unread in its inbox: messages, a change of the mode, and a request to compact. A branch of the
    /// session takes over only the mode.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// use archon::{RunOptions, SessionId};
    ///
    /// let options = RunOptions::in_session(SessionId::new("anna")).with_system("Answer in one sentence.");
    /// println!("{}", agent.run_with("And a book about ships?", options).await?.into_text()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run); [`RunError::SessionBusy`] if the newest run of the session is at work or
    /// suspended; [`RunError::UnknownTool`] or [`RunError::ToolNotKnownYet`] if `options` name a tool that the agent
    /// does not have, or does not have yet.
    pub async fn run_with(
        &self,
        task: impl Into<String>,
        mut options: RunOptions,
    ) -> Result<Reply, RunError> {
        let own = self.for_run(options.settings())?;
        let (context, origin, opening, unread) = own.prepare_task(task, options).await?;
        let work = |context| async move { own.begin_with(opening, origin, unread, &context).await };
        Reply::of(self.work(context, work).await?)
    }

    /// Forks a run, by default at its end. The new run belongs to the same session, and begins with the records of
    /// the forked run up to the place of the fork. If [`Fork::wants_answer`] is true, resume the new run; otherwise
    /// send a prompt to its session. If [`ForkOptions::agent`] is the id of this agent, the new run has the current
    /// configuration of this agent. Without it, the new run has the configuration of the forked run. To fork for
    /// another agent, use [`Runs`](crate::Runs).
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, run: &archon::RunId) -> Result<(), archon::RunError> {
    /// use archon::types::ForkOptions;
    ///
    /// let fork = agent.fork(run, ForkOptions::after(2).with_message("Ask the other bank.")).await?;
    /// if fork.wants_answer {
    ///     println!("{}", agent.resume(fork.run).await?.text().await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run is unknown or has no such place; the message is empty; `options` name another agent; this agent cannot
    /// start a run; or the journal failed.
    pub async fn fork(&self, run: &RunId, options: ForkOptions) -> Result<Fork, RunError> {
        let own = &self.agent.options().agent_id;
        if let Some(agent) = options.agent.clone().filter(|agent| agent != own) {
            let known = vec![format!("{} {own}", RunKind::Loop)];
            return Err(RunError::NoAgent { agent, kind: RunKind::Loop, known });
        }
        let id = RunId::new(self.ids.fresh("run"));
        let context = self.context(id, SessionId::new(""), RunOptions::default());
        Ok(self.agent.fork(run, options, &context).await?)
    }

    /// Steers a run, also in another process: running tools finish, calls that have not started are skipped,
    /// and the model reads the message next. The message waits in the inbox until the process of the run, or
    /// the next resume, reads it.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, id: &str) -> Result<(), archon::RunError> {
    /// agent.steer(&id.into(), "In French, please.").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run is unknown, has ended, or is a plan, a team or a parallel loop; or its journal has no inbox or failed.
    pub async fn steer(&self, run: &RunId, text: impl Into<String>) -> Result<(), RunError> {
        let message = Message::user(text, self.clock.now()).into();
        self.post(run, InboxRequest::Steer { message }).await
    }

    /// Sends a follow-up message to a run, also in another process. The model reads the message when the run would
    /// otherwise end.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, id: &str) -> Result<(), archon::RunError> {
    /// agent.follow_up(&id.into(), "Then translate it.").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn follow_up(&self, run: &RunId, text: impl Into<String>) -> Result<(), RunError> {
        let message = Message::user(text, self.clock.now()).into();
        self.post(run, InboxRequest::FollowUp { message }).await
    }

    /// Cancels a run, also in another process. A run on which no process works ends as cancelled at its next
    /// resume.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, run: &archon::RunId) -> Result<(), archon::RunError> {
    /// agent.cancel(run, "the customer left").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run is unknown or has ended; or its journal has no inbox or failed.
    pub async fn cancel(&self, run: &RunId, reason: impl Into<String>) -> Result<(), RunError> {
        self.post(run, InboxRequest::Cancel { reason: reason.into() }).await
    }

    pub(crate) async fn post(&self, run: &RunId, request: InboxRequest) -> Result<(), RunError> {
        self.post_entry(run, self.inbox_entry(request)).await
    }

    pub(crate) async fn post_entry(&self, run: &RunId, entry: InboxEntry) -> Result<(), RunError> {
        Ok(archon_react_loop::post(&*self.journal, run, entry).await?)
    }

    /// Returns a request to a run, with a new id.
    pub(crate) fn inbox_entry(&self, request: InboxRequest) -> InboxEntry {
        InboxEntry::new(self.ids.fresh("in"), self.clock.now(), request)
    }

    /// Returns the newest run of `session`, which is the run whose log was written last. With `None`, returns the
    /// newest run of all sessions that is not a child run. Runs whose logs cannot be read at all are left out.
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

    /// Returns the agent in the form that [`Runs::with_agent`](crate::Runs::with_agent) takes. The service finds the
    /// agent by its id, and starts and resumes its loops (runs of one agent).
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Returns the toolbox, which checks and runs the agent's tool calls.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.toolbox
    }

    /// Returns the journal, which stores the logs of the agent's runs.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Creates a context for work outside of a run, for instance a single tool call. The limits, system text
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

    /// Creates the context to resume a run, with the tenant of the run.
    ///
    /// # Errors
    /// The run is unknown, its log cannot be read, or a later run already continues its session.
    pub(crate) async fn context_of(&self, run: RunId) -> Result<Context, RunError> {
        let records = self.journal.read(&run).await?;
        self.check_is_last(&run, &records).await?;
        Ok(self.context_after(run, &records))
    }

    /// Creates the same context as [`context_of`](Self::context_of), for a log that was already read.
    pub(crate) fn context_after(&self, run: RunId, records: &[Arc<Record>]) -> Context {
        let started = RunStarted::of(records);
        let tenant = started.map(|started| started.tenant.clone());
        let session = started.map_or_else(|| SessionId::new(""), |started| started.session.clone());
        self.context(run, session, RunOptions { tenant, ..RunOptions::default() })
    }

    /// Returns an error if no new run may start, because the process uses too much memory.
    pub(crate) fn admit(&self) -> Result<(), RunError> {
        let Some(limit) = &self.memory_limit else { return Ok(()) };
        match (limit.gauge)() {
            Some(used) if used > limit.max => Err(RunError::MemoryPressure { used, max: limit.max }),
            _ => Ok(()),
        }
    }

    /// Returns this agent with the settings of one run.
    ///
    /// # Errors
    /// The agent has no tool with one of the selected names, or does not know it yet.
    pub(crate) fn for_run(&self, settings: RunSettings) -> Result<Self, RunError> {
        let mut own = self.clone();
        if let Some(limits) = settings.limits {
            own.agent = own.agent.with_limits(limits);
        }
        if let Some(system) = settings.system {
            own.agent = own.agent.with_system(system);
        }
        if let Some(names) = settings.tools {
            self.check_tools(&names)?;
            own.agent = own.agent.with_tools_named(names);
        }
        Ok(own)
    }

    fn check_tools(&self, names: &[String]) -> Result<(), RunError> {
        let specs = self.toolbox.specs();
        let known = || specs.iter().map(|spec| spec.name.as_str());
        let is_known =
            |name: &str| known().any(|known| known == name) || self.toolbox.sourced_spec(name).is_some();
        let Some(name) = names.iter().find(|name| !is_known(name)) else { return Ok(()) };
        if let Some(reason) = self.problem_of_source(name) {
            return Err(RunError::ToolNotKnownYet { name: name.clone(), reason });
        }
        let meant = nearest(name, known()).map(str::to_owned);
        Err(RunError::UnknownTool { name: name.clone(), meant })
    }

    /// Returns the reason why the tool `name` may be missing: its tool source, such as an MCP server, cannot list its
    /// tools now. `None` if the source knows its tools, or if no source has tools with such names.
    fn problem_of_source(&self, name: &str) -> Option<String> {
        let is_of_name = |tool: &&Arc<dyn Tool>| {
            tool.spec().name.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
        };
        let source = self.parts.tools.iter().find(is_of_name)?.source()?;
        let why = source.tools().err()?;
        Some(format!("{}: {why}", source.name()))
    }

    /// Adds this agent's parts to the context of a run that a service started: the secrets to redact from
    /// logs, and the credentials for tools.
    pub(crate) fn own(&self, context: &Context) -> Context {
        let mut own = context.clone();
        own.credentials = own.credentials.or_else(|| self.credentials.clone());
        self.agent.secrets().for_each(|secrets| own.redactor.include(&secrets));
        own
    }

    pub(crate) async fn continuation_of(&self, run: RunId) -> Result<Origin, RunError> {
        let records = self.journal.read(&run).await?;
        Ok(continuation_point(&*self.journal, &run, &records).await?)
    }

    /// Works on a run in a new async task. The events of the run also go to `sink`.
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
            Some(saving) => tokio::spawn(saving.save_while(work(context))),
            None => tokio::spawn(work(context)),
        }
    }

    /// Works on a run in the returned future, without a new async task.
    pub(crate) async fn work<F: Future>(
        &self,
        mut context: Context,
        work: impl FnOnce(Context) -> F,
    ) -> F::Output {
        match self.saving(&mut context) {
            Some(saving) => saving.save_while(work(context)).await,
            None => work(context).await,
        }
    }

    /// Returns the saver of the run's session, and sends the events of the run to the saver; `None` if
    /// sessions are not saved.
    fn saving(&self, context: &mut Context) -> Option<Arc<Saving>> {
        let saver = self.auto_save.as_ref()?;
        let saving = saver.of(context.session.clone(), self.journal.clone(), self.clock.clone());
        context.sink = Arc::new(Both(saving.clone(), context.sink.clone()));
        Some(saving)
    }
}

/// Other agents call this agent through this implementation, with [`SubAgentTool`](crate::SubAgentTool).
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

    fn with_output_format(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        self.agent.with_output_format(form)
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        self.agent.spending_of(run, journal)
    }
}

archon_types::debug_fields!(Archon: agent);

/// Returns the default tenant.
pub(crate) fn local() -> TenantId {
    TenantId::new("local")
}

/// A sink that sends events to two sinks, to the first one first.
struct Both(Arc<dyn Sink>, Arc<dyn Sink>);

impl Sink for Both {
    fn emit(&self, event: Event) {
        self.0.emit(event.clone());
        self.1.emit(event);
    }
}
