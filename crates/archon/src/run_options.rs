//! The options of one run: its session, its sink, and settings that differ from those of the agent.

use std::sync::Arc;

use archon_types::{CancellationToken, ExecutionLimits, RunId, RunSettings, SessionId, Sink, TenantId};

use crate::RunError;

/// The options of a run. The default is a new run in a new session without a sink.
///
/// The run's log stores its limits, system text and tools, so they also apply after a resume:
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
    /// The id of the run. Default: a new id.
    pub run: Option<RunId>,
    /// The session that the run continues after its newest run. A session without runs begins with this run.
    pub session: Option<SessionId>,
    /// True to continue the session as a branch from its current state, even if its newest run is at work or
    /// suspended. Neither run sees the messages of the other. A change of the session's mode that waits in the inbox
    /// applies to both.
    pub branch: bool,
    /// The tenant (for instance a customer) on whose behalf the run works. Default `local`.
    pub tenant: Option<TenantId>,
    /// The token that cancels the run. Default: a token that only the run has.
    pub cancel: Option<CancellationToken>,
    /// The sink that gets the events of the run and its child runs. The async task that works on the run
    /// calls the sink, so a slow sink delays the run.
    pub sink: Option<Arc<dyn Sink>>,
    /// The limits of this run, instead of those of the agent. Start from
    /// [`Archon::limits`](crate::Archon::limits).
    pub limits: Option<ExecutionLimits>,
    /// The system text of this run, instead of that of the agent.
    pub system: Option<String>,
    /// The names of the agent's tools that this run may use. Default: all. For a tool that calls other tools,
    /// such as an agent, the inner calls are not affected. A tool of a [source](archon_types::ToolSource) must be
    /// known when the run starts.
    pub tools: Option<Vec<String>>,
}

archon_types::setters! {
impl RunOptions {
    /// Sets the sink for the run's events.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use archon::{Event, RunOptions};
    /// let options = RunOptions::default().watched_by(Arc::new(|event: Event| println!("{event:?}")));
    /// ```
    pub fn watched_by(self, sink: Arc<dyn Sink>) -> Self { self.sink = Some(sink) }

    /// Sets the id of the run. Default: a new id.
    ///
    /// ```
    /// let options = archon::RunOptions::default().with_run("run_7".into());
    /// ```
    pub fn with_run(self, run: RunId) -> Self { self.run = Some(run) }

    /// Sets the tenant (for instance a customer) on whose behalf the run works. Default `local`.
    ///
    /// ```
    /// let options = archon::RunOptions::default().with_tenant("anna");
    /// ```
    pub fn with_tenant(self, tenant: impl Into<TenantId>) -> Self { self.tenant = Some(tenant.into()) }

    /// Sets the token that cancels the run.
    ///
    /// ```
    /// use archon::{RunOptions, types::CancellationToken};
    /// let cancel = CancellationToken::new();
    /// let options = RunOptions::default().with_cancel(cancel.clone());
    /// cancel.cancel(); // the run ends as cancelled
    /// ```
    pub fn with_cancel(self, cancel: CancellationToken) -> Self { self.cancel = Some(cancel) }

    /// Sets the limits of this run, in place of the agent's limits.
    ///
    /// ```
    /// use archon::{RunOptions, types::ExecutionLimits};
    /// let options = RunOptions::default().with_limits(ExecutionLimits::default().with_max_turns(3));
    /// ```
    pub fn with_limits(self, limits: ExecutionLimits) -> Self { self.limits = Some(limits) }

    /// Sets the system text of this run, in place of the agent's system text.
    ///
    /// ```
    /// let options = archon::RunOptions::default().with_system("Answer in one sentence.");
    /// ```
    pub fn with_system(self, text: impl Into<String>) -> Self { self.system = Some(text.into()) }
}
}

impl RunOptions {
    /// Creates options for the next prompt of a session, or for its first prompt. Tenants do not share
    /// sessions.
    ///
    /// ```
    /// let options = archon::RunOptions::in_session("anna".into());
    /// ```
    pub fn in_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// Makes the run a branch of the session: it starts even if another run of the session is at work. Neither run
    /// sees the messages of the other.
    ///
    /// ```
    /// let options = archon::RunOptions::in_session("anna".into()).branch();
    /// ```
    pub fn branch(mut self) -> Self {
        self.branch = true;
        self
    }

    /// Sets the names of the agent's tools that this run may use. Default: all.
    ///
    /// ```
    /// let options = archon::RunOptions::default().with_tools(["stock", "prices"]);
    /// ```
    pub fn with_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Gives the run none of the agent's tools.
    ///
    /// ```
    /// let options = archon::RunOptions::default().without_tools();
    /// ```
    pub fn without_tools(mut self) -> Self {
        self.tools = Some(Vec::new());
        self
    }

    /// Returns an error if the options name a run, a session or a branch, because `on`, for instance a
    /// resumed run, already determines them.
    pub(crate) fn refuse_place(&self, on: &'static str) -> Result<(), RunError> {
        let set = [(self.run.is_some(), "run"), (self.session.is_some(), "session"), (self.branch, "branch")];
        refuse(&set, on)
    }

    /// Takes the limits, the system text and the tools of this run out of the options.
    pub(crate) fn settings(&mut self) -> RunSettings {
        let mut settings = RunSettings::default();
        (settings.limits, settings.system, settings.tools) =
            (self.limits.take(), self.system.take(), self.tools.take());
        settings
    }

    /// Returns an error for a system text and for tools. Plans, teams and parallel loops are runs of several
    /// agents, for which only limits can be set.
    pub(crate) fn refuse_settings(&self) -> Result<(), RunError> {
        let set = [(self.system.is_some(), "a system text"), (self.tools.is_some(), "tools")];
        refuse(&set, "a run of several agents")
    }
}

fn refuse(set: &[(bool, &'static str)], on: &'static str) -> Result<(), RunError> {
    match set.iter().find(|(is_set, _)| *is_set) {
        Some((_, option)) => Err(RunError::NoEffect { option, on }),
        None => Ok(()),
    }
}
