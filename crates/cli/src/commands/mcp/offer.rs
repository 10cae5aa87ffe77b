//! The tools and agents that `archon mcp serve` and `archon serve` offer to MCP clients.

use std::sync::Arc;

use archon::{
    Archon, RandomIds,
    mcp_serve::{ClientCalls, OfferedAgent, ToolServer},
    types::{AskLater, RunAgent, RunService},
};

use crate::{
    app::App,
    assemble::{self, engine_options},
    failure::Failure,
    servers::Tools,
    toolset,
};

/// The id of the agent that makes the calls of clients.
const CALLS: &str = "mcp-tools";

/// The tools and agents that MCP clients can call.
pub(in crate::commands) struct Offer {
    /// The agent that makes the calls of clients.
    calls: Archon,
    agents: Vec<(OfferedAgent, Archon)>,
}

impl Offer {
    /// Builds the agents behind these tools and these agents of the settings.
    ///
    /// # Errors
    /// [`Failure`] if the settings have no such agent, or it cannot be built.
    pub(in crate::commands) async fn build(
        app: &App,
        tools: Tools,
        agents: &[String],
    ) -> Result<Self, Failure> {
        let mut builder = Archon::builder()
            .engine_options(engine_options(app, &tools)?)
            .agent_id(CALLS)
            .provider(Arc::new(ClientCalls), ClientCalls::MODEL)
            .approver(AskLater)
            // A client gets the definitions of all tools, so there is nothing to search.
            .definition_budget(u64::MAX)
            .tools(tools)
            .journal(app.open_journal()?);
        if let Some(folder) = toolset::folder(app) {
            builder = builder.workspace(folder);
        }
        let calls = builder.build()?;
        let mut offered = Vec::new();
        for name in agents {
            let (builder, description) = assemble::alone(app, name).await?;
            // An id of its own: clients can read the runs of their agents, and no others.
            let id = format!("mcp-{name}");
            let agent = builder.agent_id(id.as_str()).approver(AskLater).build()?;
            offered.push((OfferedAgent::new(name, description, id.as_str()), agent));
        }
        Ok(Self { calls, agents: offered })
    }

    /// Returns the agents that the run service needs for the calls of clients.
    pub(in crate::commands) fn run_agents(&self) -> impl Iterator<Item = Arc<dyn RunAgent>> {
        let agents = self.agents.iter().map(|(_, agent)| agent);
        std::iter::once(&self.calls).chain(agents).map(Archon::run_agent)
    }

    /// Returns a server whose calls are runs of this service.
    pub(in crate::commands) fn server(&self, runs: Arc<dyn RunService>) -> ToolServer {
        let server = ToolServer::new(runs, Arc::new(RandomIds));
        let server = server.with_tools(CALLS, self.calls.toolbox().clone());
        self.agents.iter().fold(server, |server, (offered, _)| server.with_agent(offered.clone()))
    }
}
