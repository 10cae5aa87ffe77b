//! How one run is started: where it goes on, who watches it, and what differs from the agent's other runs.

use std::sync::Arc;

use archon_types::{
    CancellationToken, ExecutionLimits, RunId, RunSettings, SessionId, Sink, TenantId, nearest,
};

use crate::{Archon, RunError};

/// How a run is started; the default is a new run in a new session that nobody watches.
///
/// Limits, system text and tools of one run stand in its log, and hold for whoever takes it up:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// use std::sync::Arc;
///
/// use archon::{Archon, RunOptions, SessionId, providers::ScriptedProvider, tool};
///
/// /// Says what is on stock.
/// #[tool(read_only)]
/// async fn stock(article: String) -> String {
///     format!("3 of {article}")
/// }
///
/// let model = Arc::new(ScriptedProvider::texts(["There are three."]));
/// let agent = Archon::builder().provider(model, "scripted").tool(stock).build()?;
/// let limits = agent.limits().clone().with_max_turns(5).with_max_total_tokens(20_000);
/// let options = RunOptions::in_session(SessionId::new("anna"))
///     .with_limits(limits)
///     .with_system("You answer customers of the chair shop. This one is called Anna.")
///     .with_tools(["stock"]);
/// let reply = agent.run_with("Are there chairs?", options).await?;
/// assert_eq!(reply.into_text()?, "There are three.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The run's id; a fresh one by default.
    pub run: Option<RunId>,
    /// Goes on in this session: the run continues the session's newest run. A session without runs begins with it.
    pub session: Option<SessionId>,
    /// Goes on even if the session's newest run is at work or waits: beside it, from where it stands now. What is said
    /// in one of the two is not heard in the other.
    pub branch: bool,
    /// On whose behalf; `local` by default.
    pub tenant: Option<TenantId>,
    /// Cancels the run when it fires.
    pub cancel: Option<CancellationToken>,
    /// Receives the run's events, and those of the agents that it calls, on the run's own task.
    pub sink: Option<Arc<dyn Sink>>,
    /// How far this run may go, instead of as far as the agent's others; begin with [`Archon::limits`].
    pub limits: Option<ExecutionLimits>,
    /// Standing instructions of this run, instead of the agent's.
    pub system: Option<String>,
    /// The agent's tools that this run has, by name; all by default. A tool that calls others, such as an agent, calls
    /// what it was made with.
    pub tools: Option<Vec<String>>,
}

impl RunOptions {
    /// The next prompt of a session, or the first one of a session of that name. Tenants do not share sessions.
    pub fn in_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// The same options for a run beside what the session works on.
    pub fn branch(mut self) -> Self {
        self.branch = true;
        self
    }

    /// The same options, watched by `sink`.
    pub fn watched_by(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// The same options for a run with this id.
    pub fn with_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// The same options on behalf of a tenant.
    pub fn with_tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The same options with a token that cancels the run.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// The same options with limits for this run.
    pub fn with_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The same options with standing instructions for this run.
    pub fn with_system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// The same options with the names of the agent's tools that this run has.
    pub fn with_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The same options for a run that has none of the agent's tools.
    pub fn without_tools(mut self) -> Self {
        self.tools = Some(Vec::new());
        self
    }

    /// Refuses to choose a run, where `on` chooses it.
    pub(crate) fn refuse_place(&self, on: &'static str) -> Result<(), RunError> {
        let set = [(self.run.is_some(), "run"), (self.session.is_some(), "session"), (self.branch, "branch")];
        match set.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(RunError::NoEffect { option, on }),
            None => Ok(()),
        }
    }

    /// What differs in this run from the agent's others.
    pub(crate) fn settings(&mut self) -> RunSettings {
        let mut settings = RunSettings::default();
        (settings.limits, settings.system, settings.tools) =
            (self.limits.take(), self.system.take(), self.tools.take());
        settings
    }

    /// Plans, teams and agents side by side are runs of several agents: they have limits, and no system text or tools
    /// of their own.
    pub(crate) fn refuse_settings(&self) -> Result<(), RunError> {
        let set = [(self.system.is_some(), "a system text"), (self.tools.is_some(), "tools")];
        match set.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(RunError::NoEffect { option, on: "a run of several agents" }),
            None => Ok(()),
        }
    }
}

impl Archon {
    /// This agent as one run wants it.
    ///
    /// # Errors
    /// The agent has no tool of a name that was chosen.
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
        match names.iter().find(|name| !known().any(|known| known == name.as_str())) {
            Some(name) => Err(RunError::UnknownTool {
                name: name.clone(),
                meant: nearest(name, known()).map(str::to_owned),
            }),
            None => Ok(()),
        }
    }
}
