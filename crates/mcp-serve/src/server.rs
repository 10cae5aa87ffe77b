//! The server: the tools and agents that it offers, over the run service of a program.

use std::{sync::Arc, time::Duration};

use archon_types::{AgentId, CancellationToken, Ids, RunKind, RunService, Toolbox};
use tokio_util::task::TaskTracker;

use crate::{
    error::ToolServerError,
    offer::{self, OfferedAgent},
    read_files::ReadFiles,
    stream,
};

/// Offers tools and agents to clients of the Model Context Protocol. Cloning is cheap, and clones are the same
/// server.
///
/// The server is an [`rmcp::ServerHandler`]. A program that also offers resources or prompts passes the
/// requests for tools and tasks on to the server from a handler of its own.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_mcp_serve::{OfferedAgent, Questions, ToolServer};
/// use archon_types::{Ids, RunService, Toolbox};
///
/// fn server(runs: Arc<dyn RunService>, tools: Arc<dyn Toolbox>, ids: Arc<dyn Ids>) -> ToolServer {
///     ToolServer::new(runs, ids)
///         .with_tools("mcp-tools", tools)
///         .with_agent(OfferedAgent::new("reviewer", "Reviews a change.", "mcp-reviewer"))
///         .with_questions(Questions::Here)
/// }
/// ```
#[derive(Clone)]
pub struct ToolServer {
    pub(crate) runs: Arc<dyn RunService>,
    pub(crate) ids: Arc<dyn Ids>,
    tools: Option<Tools>,
    agents: Arc<Vec<OfferedAgent>>,
    pub(crate) questions: Questions,
    pub(crate) seen: Arc<ReadFiles>,
    /// The calls under way.
    pub(crate) calls: TaskTracker,
}

/// The offered tools, and the id of the agent that runs their calls.
#[derive(Clone)]
struct Tools {
    agent: AgentId,
    toolbox: Arc<dyn Toolbox>,
}

/// The person who is asked when a call needs approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Questions {
    /// The person at the client, by elicitation. If the client does not support elicitation, the call is
    /// refused, and its result names the rule that would allow it.
    #[default]
    AtClient,
    /// A person who uses this program, not the client. The run waits for the answer, and the result of the
    /// call names the run. Clients cannot answer.
    Here,
}

/// A tool or an agent with the name that a client called.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) agent: AgentId,
    pub(crate) kind: RunKind,
    pub(crate) what: What,
}

#[derive(Clone)]
pub(crate) enum What {
    /// A tool; `reads_only` is true if its calls change nothing.
    Tool {
        toolbox: Arc<dyn Toolbox>,
        reads_only: bool,
    },
    Agent,
}

impl ToolServer {
    /// Creates a server that offers nothing yet. `ids` makes the ids of sessions.
    pub fn new(runs: Arc<dyn RunService>, ids: Arc<dyn Ids>) -> Self {
        Self {
            runs,
            ids,
            tools: None,
            agents: Arc::default(),
            questions: Questions::default(),
            seen: Arc::default(),
            calls: TaskTracker::new(),
        }
    }

    /// Offers the tools of `toolbox`. `agent` is the id of the agent that runs the calls. It must be registered in
    /// the run service with the same tools and with the provider [`ClientCalls`](crate::ClientCalls).
    pub fn with_tools(mut self, agent: impl Into<AgentId>, toolbox: Arc<dyn Toolbox>) -> Self {
        self.tools = Some(Tools { agent: agent.into(), toolbox });
        self
    }

    /// Offers an agent. The agent hides a tool with the same name.
    pub fn with_agent(mut self, agent: OfferedAgent) -> Self {
        Arc::make_mut(&mut self.agents).push(agent);
        self
    }

    /// Sets the person who is asked when a call needs approval. Default [`Questions::AtClient`].
    pub fn with_questions(mut self, questions: Questions) -> Self {
        self.questions = questions;
        self
    }

    /// Serves one client on standard input and output, until the input is closed or `end` is cancelled. Calls under way
    /// then get a few seconds; after that they are cancelled, except for tasks.
    ///
    /// # Errors
    /// No connection was opened with the client.
    pub async fn serve_stdio(&self, end: CancellationToken) -> Result<(), ToolServerError> {
        let (input, output) = rmcp::transport::io::stdio_pipes();
        let served = stream::serve_stream(self.clone(), input, output, end).await;
        self.settle().await;
        served
    }

    /// Serves clients over HTTP until `end` is cancelled; see [`serve_http`](crate::serve_http).
    ///
    /// # Errors
    /// As [`serve_http`](crate::serve_http).
    #[cfg(feature = "http")]
    pub async fn serve_http(
        &self,
        listener: tokio::net::TcpListener,
        options: &crate::HttpServerOptions,
        end: CancellationToken,
    ) -> Result<(), ToolServerError> {
        let served = crate::serve_http(self.clone(), listener, options, end).await;
        self.settle().await;
        served
    }

    /// Returns a service that speaks the protocol over HTTP, for the router of a program that checks requests itself.
    /// The program gives it the requests for one path, such as `/mcp`. Only the maximum body size and the maximum
    /// number of sessions in `options` have an effect. When `end` is cancelled, sessions end, and calls under way are
    /// cancelled.
    ///
    /// ```no_run
    /// use archon_mcp_serve::{HttpServerOptions, HttpService, ToolServer};
    /// use archon_types::CancellationToken;
    ///
    /// fn service(server: &ToolServer, end: CancellationToken) -> HttpService<ToolServer> {
    ///     server.http_service(&HttpServerOptions::default(), end)
    /// }
    /// ```
    #[cfg(feature = "http")]
    pub fn http_service(
        &self,
        options: &crate::HttpServerOptions,
        end: CancellationToken,
    ) -> crate::HttpService<Self> {
        crate::HttpService::unchecked(self.clone(), options, end)
    }

    /// Waits until the runs of cancelled calls have ended, at most 5 s.
    async fn settle(&self) {
        self.calls.close();
        let _ = tokio::time::timeout(SETTLE, self.calls.wait()).await;
    }

    pub(crate) fn offers_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Returns the descriptions of everything that is offered.
    pub(crate) fn listed(&self) -> Vec<rmcp::model::Tool> {
        let specs = self.tools.as_ref().map(|tools| tools.toolbox.specs());
        let tools = specs.iter().flat_map(|specs| specs.iter());
        let is_hidden = |name: &str| self.agents.iter().any(|agent| agent.name == name);
        let tools = tools.filter(|spec| !is_hidden(&spec.name)).map(offer::tool);
        tools.chain(self.agents.iter().map(offer::agent)).collect()
    }

    /// Returns the tool or agent of this name.
    pub(crate) fn offer(&self, name: &str) -> Option<Offer> {
        if let Some(agent) = self.agents.iter().find(|agent| agent.name == name) {
            return Some(Offer { agent: agent.agent.clone(), kind: agent.kind, what: What::Agent });
        }
        let tools = self.tools.as_ref()?;
        let specs = tools.toolbox.specs();
        let spec = specs.iter().find(|spec| spec.name == name)?;
        let reads_only = spec.annotations.effect == archon_types::Effect::ReadOnly;
        let what = What::Tool { toolbox: tools.toolbox.clone(), reads_only };
        Some(Offer { agent: tools.agent.clone(), kind: RunKind::Loop, what })
    }

    /// Returns `true` if the server offers this agent with runs of this kind.
    pub(crate) fn is_of_offered_agent(&self, agent: &AgentId, kind: RunKind) -> bool {
        self.agents.iter().any(|offered| offered.agent == *agent && offered.kind == kind)
    }
}

/// The maximum wait for the runs of cancelled calls.
const SETTLE: Duration = Duration::from_secs(5);

archon_types::debug_fields!(ToolServer: agents);
