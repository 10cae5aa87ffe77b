//! `archon mcp serve`: offers tools and agents of this command to clients of the Model Context Protocol.

use std::{net::SocketAddr, sync::Arc};

use archon::{
    Runs,
    mcp_serve::{HttpServerOptions, ToolServer, ToolServerError},
    types::{CancellationToken, Secret},
};

use super::offer::Offer;
use crate::{app::App, exit::Exit, failure::Failure, interrupt, output::Look, toolset};

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Listen at this address, as 127.0.0.1:8080, instead of serving one client on standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A proxy with TLS is before the server, so that other machines may reach the address
    #[arg(long, requires = "http")]
    behind_proxy: bool,
    /// A tool to offer; may be given again [default without --agent: those that change nothing]
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// An agent of the settings to offer; may be given again
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
}

/// The variable with the token of HTTP clients.
const TOKEN: &str = "ARCHON_MCP_TOKEN";

impl ServeArgs {
    pub(super) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let server = self.server(app).await?;
        let end = CancellationToken::new();
        let listener = interrupt::listen(end.clone(), app.output.clone());
        let served = match self.http {
            None => server.serve_stdio(end).await,
            Some(address) => over_http(app, &server, address, self.behind_proxy, end).await,
        };
        listener.abort();
        served.map(|()| Exit::Finished).map_err(|e| failure(&e))
    }

    async fn server(&self, app: &App) -> Result<ToolServer, Failure> {
        let tools = match self.tools.is_empty() {
            true if self.agents.is_empty() => toolset::of_agent(None, app).await?,
            true => Vec::new(),
            false => toolset::by_name(self.tools.iter().map(String::as_str), app).await?.tools,
        };
        let offer = Offer::build(app, tools, &self.agents).await?;
        let runs = offer.run_agents().fold(app.open_runs()?, Runs::with_agent);
        Ok(offer.server(Arc::new(runs)))
    }
}

async fn over_http(
    app: &App,
    server: &ToolServer,
    address: SocketAddr,
    behind_proxy: bool,
    end: CancellationToken,
) -> Result<(), ToolServerError> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut options = HttpServerOptions::default();
    if let Some(token) = app.env(TOKEN) {
        options = options.with_token(Secret::from(token.to_owned()));
    }
    options.behind_proxy = behind_proxy;
    let at = listener.local_addr().unwrap_or(address);
    app.output.note(Look::Plain, format!("MCP clients are served at http://{at}/mcp until Ctrl-C"));
    server.serve_http(listener, &options, end).await
}

fn failure(e: &ToolServerError) -> Failure {
    match e {
        ToolServerError::NoToken(_) => {
            Failure::usage(e.to_string(), format!("set a token: export {TOKEN}=…"))
        }
        ToolServerError::NotEncrypted(_) => Failure::usage(
            e.to_string(),
            "use --behind-proxy behind a proxy with TLS, or `archon serve --mcp`",
        ),
        ToolServerError::NoHosts(_) => Failure::usage(e.to_string(), "listen at one address: --http ADDRESS"),
        ToolServerError::Listen(_) => Failure::usage(e.to_string(), "as in --http 127.0.0.1:8080"),
        _ => Failure::usage(e.to_string(), "set this command in the settings of a client: archon mcp serve"),
    }
}
