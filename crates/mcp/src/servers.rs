//! The servers of a program: started in the background, watched, and closed together.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use archon_types::{BoxFuture, CancellationToken, Tool};
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use crate::{
    Held, McpError, McpOptions, McpProblem, McpServer, McpTool, Phase, Took, connection,
    known_tools::KnownTools,
    names::{model_name, server_name_problem},
    resource_tools,
    supervise::{Server, State, supervise},
    unknown_tools::UnknownTools,
};

/// The servers of a program.
///
/// Each server is connected in the background by a task of its own, so a slow server delays no other server
/// and no prompt. Dropping the value ends all servers; [`close`](Self::close) also waits for their
/// processes.
///
/// ```
/// use std::time::Duration;
///
/// use archon_mcp::{McpError, McpOptions, McpServer, McpServers};
///
/// async fn start(options: &McpOptions) -> Result<McpServers, McpError> {
///     let time = McpServer::stdio("uvx", ["mcp-server-time"]);
///     let servers = McpServers::start([("time".to_owned(), time)], options)?;
///     println!("{} tools", servers.tools(Duration::from_secs(10)).await.len());
///     Ok(servers)
/// }
/// ```
pub struct McpServers {
    pub(crate) servers: Vec<Arc<Server>>,
    tasks: Vec<JoinHandle<()>>,
    end: CancellationToken,
}

/// The state of a server, for people and programs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The configured name.
    pub name: String,
    /// The state of the server's connection.
    pub state: ServerState,
    /// The names of the tools that can be called, as models call them.
    pub tools: Vec<String>,
    /// The tools that are held back until a person agrees to them.
    pub held: Vec<Held>,
    /// The tools that no model can use, as pairs of name and reason, for instance because a definition is too large.
    pub unusable: Vec<(String, String)>,
    /// The times that the start and the first list of tools took; `None` if the server is not connected.
    pub took: Option<Took>,
}

/// The state of a server's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// The first attempt to connect has not ended.
    Connecting,
    /// The server is connected.
    Ready,
    /// The last attempt failed, or the connection broke, for this reason. Another attempt follows after a pause, or is
    /// under way.
    Down(McpError),
    /// The server was closed.
    Closed,
}

impl McpServers {
    /// Starts the servers in the background, and returns at once. Each server has a name; of two servers with the
    /// same name, the last one counts. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// A name is invalid.
    pub fn start(
        servers: impl IntoIterator<Item = (String, McpServer)>,
        options: &McpOptions,
    ) -> Result<Self, McpError> {
        // A name stands for one server: of two settings the last one counts.
        let servers: BTreeMap<String, McpServer> = servers.into_iter().collect();
        for name in servers.keys() {
            if let Some(why) = server_name_problem(name) {
                let problem = McpProblem::Invalid(format!("the name is invalid: {why}"));
                return Err(McpError::new(name, Phase::Settings, problem));
            }
        }
        let servers =
            servers.into_iter().map(|(name, settings)| Server::new(name, settings, options.clone()));
        let servers: Vec<_> = servers.map(Arc::new).collect();
        let end = CancellationToken::new();
        let tasks =
            servers.iter().map(|server| tokio::spawn(supervise(server.clone(), end.clone()))).collect();
        Ok(Self { servers, tasks, end })
    }

    /// Returns the [current tools](Self::current_tools). Waits until every server is connected or has failed, at most
    /// `limit`.
    pub async fn tools(&self, limit: Duration) -> Vec<Arc<dyn Tool>> {
        let all: Vec<&str> = self.servers.iter().map(|server| &*server.name).collect();
        self.settled(&all, limit).await;
        self.current_tools()
    }

    /// Returns the tools that are known now, ordered by name. If a server offers resources,
    /// `list_mcp_resources` and `read_mcp_resource` are among them.
    ///
    /// A server that is not connected offers its pinned tools: a call waits for the connection, and is refused
    /// if the definition has changed by then. For a server without pinned tools there is a tool `SERVER__*` with
    /// a [source](Tool::source), so that an agent with a tool search finds the tools once the server has
    /// answered.
    ///
    /// A server cannot change these tools: one that it changes or removes stays with its pinned definition, and its
    /// calls are refused. Only [`approve`](Self::approve) changes them. The two tools for resources come and go with
    /// the servers that offer resources.
    pub fn current_tools(&self) -> Vec<Arc<dyn Tool>> {
        let (mut tools, mut has_resources) = (Vec::new(), false);
        for server in &self.servers {
            let state = server.state();
            let known = KnownTools::of(server, &state);
            has_resources |= known.has_resources;
            tools.extend(listed_tools(server, &state, known.tools));
        }
        if has_resources {
            tools.extend(resource_tools::tools(&self.servers));
        }
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools
    }

    /// Waits until the servers with these names are connected or have failed, at most `limit`. Unknown names are
    /// ignored. The future does not borrow `self`.
    pub fn settled(&self, names: &[&str], limit: Duration) -> BoxFuture<'static, ()> {
        let is_named = |server: &&Arc<Server>| names.contains(&server.name.as_str());
        let named: Vec<Arc<Server>> = self.servers.iter().filter(is_named).cloned().collect();
        Box::pin(async move {
            let Some(first) = named.first() else { return };
            let all = join_all(named.iter().map(|server| server.settled()));
            connection::within(&*first.options.clock, limit, Box::pin(all)).await;
        })
    }

    /// Returns the states of the servers, ordered by name.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(status_of).collect()
    }

    /// Agrees to the definition of a tool that is held back, in the name of a person who saw the difference. Returns
    /// `false`, and changes nothing, if the server is not connected or does not offer this definition now.
    ///
    /// # Errors
    /// The pins cannot be read or stored.
    pub fn approve(&self, held: &Held) -> Result<bool, crate::PinError> {
        match self.servers.iter().find(|server| server.name == held.server) {
            Some(server) => server.approve(&held.tool, &held.hash),
            None => Ok(false),
        }
    }

    /// Closes all connections and waits for the end of the servers' processes.
    pub async fn close(mut self) {
        self.end.cancel();
        join_all(std::mem::take(&mut self.tasks)).await;
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.servers.iter().map(|server| &server.name)).finish()
    }
}

/// Returns the known tools of a server. If the server is not connected and no tools are known, returns one tool
/// that stands for all of its tools.
fn listed_tools(server: &Arc<Server>, state: &State, tools: Vec<McpTool>) -> Vec<Arc<dyn Tool>> {
    match state {
        State::Connecting(_) | State::Down { .. } if tools.is_empty() => {
            vec![Arc::new(UnknownTools::new(server))]
        }
        _ => tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect(),
    }
}

fn status_of(server: &Arc<Server>) -> ServerStatus {
    let current = server.state();
    let tools = match &current {
        State::Ready(ready) => {
            ready.judged.allowed.keys().map(|tool| model_name(&server.name, tool)).collect()
        }
        _ => KnownTools::of(server, &current).tools.iter().map(|tool| tool.spec().name.clone()).collect(),
    };
    let of = |state| ServerStatus {
        name: server.name.clone(),
        state,
        tools,
        held: Vec::new(),
        unusable: Vec::new(),
        took: None,
    };
    match current {
        State::Connecting(None) => of(ServerState::Connecting),
        State::Connecting(Some(error)) => of(ServerState::Down(error)),
        State::Ready(ready) => ServerStatus {
            held: ready.judged.held.clone(),
            unusable: ready.unusable.clone(),
            took: Some(ready.took),
            ..of(ServerState::Ready)
        },
        State::Down { error, .. } => of(ServerState::Down(error)),
        State::Closed => of(ServerState::Closed),
    }
}
