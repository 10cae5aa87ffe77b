//! Options of one run: its session, its sink, and settings that differ from the agent's other runs.

use std::sync::Arc;

use archon_types::{CancellationToken, ExecutionLimits, RunId, RunSettings, SessionId, Sink, TenantId};

use crate::RunError;

/// Options of a run; the default is a new run in a new session without a sink.
///
/// Limits, system text and tools of one run are in its log, and hold after a resume:
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
    /// Continues this session after its newest run. A session without runs begins with this one.
    pub session: Option<SessionId>,
    /// Continues the session even if its newest run is at work or suspended: as a branch, from its state now.
    /// Neither run sees the messages of the other.
    pub branch: bool,
    /// The tenant; `local` by default.
    pub tenant: Option<TenantId>,
    /// Cancels the run when it is cancelled.
    pub cancel: Option<CancellationToken>,
    /// Gets the events of the run and its child runs, on the run's own task.
    pub sink: Option<Arc<dyn Sink>>,
    /// Limits of this run, instead of the agent's; begin with
    /// [`Archon::limits`](crate::Archon::limits).
    pub limits: Option<ExecutionLimits>,
    /// System text of this run, instead of the agent's.
    pub system: Option<String>,
    /// Names of the agent's tools that this run may use; all by default. A tool that calls others, such as an
    /// agent, is not affected in its own calls.
    pub tools: Option<Vec<String>>,
}

impl RunOptions {
    /// Options for the next prompt of a session, or for its first one. Tenants do not share sessions.
    pub fn in_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// Makes the run a branch beside the session's run at work.
    pub fn branch(mut self) -> Self {
        self.branch = true;
        self
    }

    /// Sets the sink of the run's events.
    pub fn watched_by(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Sets the run's id.
    pub fn with_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Sets the tenant.
    pub fn with_tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets a token that cancels the run.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets the limits of this run.
    pub fn with_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the system text of this run.
    pub fn with_system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Sets the names of the agent's tools that this run may use.
    pub fn with_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Gives the run none of the agent's tools.
    pub fn without_tools(mut self) -> Self {
        self.tools = Some(Vec::new());
        self
    }

    /// Refuses options that name a run, a session or a branch, if `on` already does.
    pub(crate) fn refuse_place(&self, on: &'static str) -> Result<(), RunError> {
        let set = [(self.run.is_some(), "run"), (self.session.is_some(), "session"), (self.branch, "branch")];
        match set.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(RunError::NoEffect { option, on }),
            None => Ok(()),
        }
    }

    /// Takes out the settings that differ from the agent's other runs.
    pub(crate) fn settings(&mut self) -> RunSettings {
        let mut settings = RunSettings::default();
        (settings.limits, settings.system, settings.tools) =
            (self.limits.take(), self.system.take(), self.tools.take());
        settings
    }

    /// Refuses a system text and tools for plans, teams and parallel loops: they are runs of several agents,
    /// for which only limits can be set.
    pub(crate) fn refuse_settings(&self) -> Result<(), RunError> {
        let set = [(self.system.is_some(), "a system text"), (self.tools.is_some(), "tools")];
        match set.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(RunError::NoEffect { option, on: "a run of several agents" }),
            None => Ok(()),
        }
    }
}
