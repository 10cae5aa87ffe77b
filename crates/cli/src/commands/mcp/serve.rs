//! `archon mcp serve`: offers tools and agents of this command to clients of the Model Context Protocol.

use std::{net::SocketAddr, sync::Arc};

use archon::{
    Archon, RandomIds,
    mcp_serve::{ClientCalls, HttpServerOptions, OfferedAgent, ServeError, Server},
    types::{AskLater, CancellationToken, Secret},
};

use crate::{
    app::App,
    assemble::{self, engine_options},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Look,
    toolset,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Listen at this address, as 127.0.0.1:8080, instead of serving one client on standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A tool to offer; may be given again [default without --agent: those that change nothing]
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// An agent of the settings to offer; may be given again
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
}

/// The variable with the token of HTTP clients.
const TOKEN: &str = "ARCHON_MCP_TOKEN";

/// The id of the agent that makes the calls of clients.
const CALLS: &str = "mcp-tools";

impl ServeArgs {
    pub(super) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let server = self.server(app).await?;
        let end = CancellationToken::new();
        let listener = interrupt::listen(end.clone(), app.output.clone());
        let served = match self.http {
            None => server.serve_stdio(end).await,
            Some(address) => over_http(app, &server, address, end).await,
        };
        listener.abort();
        served.map(|()| Exit::Finished).map_err(|e| failure(&e))
    }

    async fn server(&self, app: &App) -> Result<Server, Failure> {
        let tools = match self.tools.is_empty() {
            true if self.agents.is_empty() => toolset::of_agent(None, app).await?,
            true => Vec::new(),
            false => toolset::by_name(self.tools.iter().map(String::as_str), app).await?.tools,
        };
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
        let mut runs = app.open_runs()?.with_agent(calls.run_agent());
        let mut offered = Vec::new();
        for name in &self.agents {
            let (builder, description) = assemble::alone(app, name).await?;
            // An id of its own: clients can read the runs of their agents, and no others.
            let id = format!("mcp-{name}");
            let agent = builder.agent_id(id.as_str()).approver(AskLater).build()?;
            runs = runs.with_agent(agent.run_agent());
            offered.push(OfferedAgent::new(name, description, id.as_str()));
        }
        let server = Server::new(Arc::new(runs), Arc::new(RandomIds));
        let server = server.with_tools(CALLS, calls.toolbox().clone());
        Ok(offered.into_iter().fold(server, Server::with_agent))
    }
}

async fn over_http(
    app: &App,
    server: &Server,
    address: SocketAddr,
    end: CancellationToken,
) -> Result<(), ServeError> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut options = HttpServerOptions::default();
    if let Some(token) = app.env(TOKEN) {
        options = options.with_token(Secret::from(token.to_owned()));
    }
    let at = listener.local_addr().unwrap_or(address);
    app.output.note(Look::Plain, format!("MCP clients are served at http://{at}/mcp until Ctrl-C"));
    server.serve_http(listener, &options, end).await
}

fn failure(e: &ServeError) -> Failure {
    match e {
        ServeError::NoToken(_) => Failure::usage(e.to_string(), format!("set a token: export {TOKEN}=…")),
        ServeError::NoHosts(_) => Failure::usage(e.to_string(), "listen at one address: --http ADDRESS"),
        ServeError::Listen(_) => Failure::usage(e.to_string(), "as in --http 127.0.0.1:8080"),
        _ => Failure::usage(e.to_string(), "set this command in the settings of a client: archon mcp serve"),
    }
}
