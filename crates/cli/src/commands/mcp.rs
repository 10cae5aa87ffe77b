//! `archon mcp`: adds, lists, tests and removes MCP servers, and agrees to their tools.

mod add;
mod approve;
#[cfg(feature = "mcp-sign-in")]
mod login;
mod look;
#[cfg(feature = "mcp-serve")]
pub(super) mod offer;
#[cfg(feature = "mcp-serve")]
mod serve;
#[cfg(not(feature = "mcp-serve"))]
absent! { mod serve: ServeArgs, "archon mcp serve", "build with `--features mcp-serve`" }

use clap::Subcommand;

use crate::{app::App, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Write a server into your settings, as in `archon mcp add files -- npx -y some-server notes`
    Add(add::AddArgs),
    /// List the servers of your settings and of the project with their states, and the tools that are held back
    List,
    /// Remove a server from your settings, or take back the agreement to a server of the project
    Remove {
        /// The server's name
        name: String,
    },
    /// Sign in to a server at a web address, with a browser
    Login {
        /// The server's name
        name: String,
    },
    /// Delete the tokens of a sign-in
    Logout {
        /// The server's name
        name: String,
    },
    /// Connect to a server, show how long each phase takes, and list its tools
    Test {
        /// The server's name
        name: String,
    },
    /// Show a server of the project, or the tools that are held back, and agree to them
    Approve {
        /// The server's name
        name: String,
        /// The tool, by the server's name [default: all that are held back]
        tool: Option<String>,
        /// Agree without a question, for scripts
        #[arg(long)]
        yes: bool,
    },
    /// Offer tools and agents to MCP clients: each call is a run, under your rules
    Serve(serve::ServeArgs),
}

impl McpArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self.command {
            McpCommand::Add(args) => args.run(app),
            McpCommand::List => {
                crate::mcp::list(app).await?;
                Ok(Exit::Finished)
            }
            McpCommand::Remove { name } => add::remove(app, &name),
            #[cfg(feature = "mcp-sign-in")]
            McpCommand::Login { name } => login::login(app, &name).await,
            #[cfg(feature = "mcp-sign-in")]
            McpCommand::Logout { name } => login::logout(app, &name).await,
            #[cfg(not(feature = "mcp-sign-in"))]
            McpCommand::Login { .. } | McpCommand::Logout { .. } => Err(Failure::usage(
                "a sign-in at MCP servers is not in this build",
                "build with `--features mcp-sign-in`",
            )),
            McpCommand::Test { name } => look::test(app, &name).await,
            McpCommand::Serve(args) => args.run(app).await,
            McpCommand::Approve { name, tool, yes } => {
                approve::approve(app, &name, tool.as_deref(), yes).await
            }
        }
    }
}
