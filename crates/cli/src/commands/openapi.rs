//! `archon openapi`: imports OpenAPI documents, whose operations the agent gets as tools; lists and removes them.

mod auth;
#[cfg(feature = "setup")]
mod import;
mod login;
#[cfg(feature = "setup")]
mod summary;

use clap::Subcommand;
use serde_json::json;

use crate::{app::App, exit::Exit, failure::Failure, openapi, text::one_line};
use auth::AuthFlag;

#[derive(Debug, clap::Args)]
pub(crate) struct OpenapiArgs {
    #[command(subcommand)]
    command: OpenapiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpenapiCommand {
    /// Read a document, show what becomes of it, keep a copy of it, and write the API into your settings
    Import(Box<ImportArgs>),
    /// List the APIs of the settings, with the numbers of their tools
    List,
    /// Remove an API from your settings, with the copy of its document
    Remove {
        /// The API's name
        name: String,
    },
    /// Sign in to an API of your settings, with a browser
    Login {
        /// The API's name
        name: String,
        /// The tenant of `archon assistant` whose sign-in it is [default: you]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Delete the tokens of a sign-in
    Logout {
        /// The API's name
        name: String,
        /// The tenant of `archon assistant` whose sign-in it is [default: you]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "setup"), allow(dead_code, reason = "this build cannot change settings"))]
pub(crate) struct ImportArgs {
    /// The document: a file or an address, in JSON or YAML
    #[arg(value_name = "FILE|URL")]
    document: String,
    /// The API's name: its tools are called NAME__OPERATION [default: made from the document's title]
    #[arg(long)]
    name: Option<String>,
    /// The address that the paths of the operations are appended to [default: the document's servers]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The credentials that calls send: none, bearer, basic, header=NAME, query=NAME, client-credentials, or
    /// authorization-code [default: the first form of the document that is one of these, except the last two]
    #[arg(long, value_name = "FORM", value_parser = auth::parse)]
    auth: Option<AuthFlag>,
    #[command(flatten)]
    oauth: auth::OAuthFlags,
    /// Only operations with one of these tags
    #[arg(long, value_name = "a,b", value_delimiter = ',')]
    tag: Vec<String>,
    /// Name an operation without an `operationId` by its method and its path
    #[arg(long)]
    name_by_path: bool,
    /// Replace the API of your settings that has the name
    #[arg(long)]
    replace: bool,
}

impl OpenapiArgs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self.command {
            #[cfg(feature = "setup")]
            OpenapiCommand::Import(args) => args.run(app).await,
            #[cfg(feature = "setup")]
            OpenapiCommand::Remove { name } => import::remove(app, &name),
            #[cfg(not(feature = "setup"))]
            OpenapiCommand::Import(_) | OpenapiCommand::Remove { .. } => Err(Failure::usage(
                "settings cannot be changed in this build",
                "edit [openapi.NAME] of your settings by hand, or build with `--features setup`",
            )),
            OpenapiCommand::List => Ok(list(app)),
            OpenapiCommand::Login { name, tenant } => login::login(app, &name, tenant).await,
            OpenapiCommand::Logout { name, tenant } => login::logout(app, &name, tenant).await,
        }
    }
}

fn list(app: &App) -> Exit {
    let apis = openapi::all(app);
    app.note_if(apis.is_empty(), "there are no APIs; add one: archon openapi import FILE|URL");
    let settings = app.config.settings.openapi.as_ref();
    for api in apis {
        let settings = settings.and_then(|settings| settings.get(&api.name));
        let document = settings.map(|settings| settings.document.clone()).unwrap_or_default();
        let place = if settings.is_some_and(|settings| settings.is_of_project) { "project" } else { "yours" };
        let (state, found) = match &api.tools {
            None => ("disabled", "not enabled".to_owned()),
            Some(Err(failure)) => ("wrong", failure.line()),
            Some(Ok(tools)) if api.left_out.is_empty() => ("ready", format!("{} tools", tools.len())),
            Some(Ok(tools)) => {
                ("ready", format!("{} tools, {} parts left out", tools.len(), api.left_out.len()))
            }
        };
        let tools = api.tools.as_ref().and_then(|tools| tools.as_ref().ok()).map(Vec::len);
        let item = json!({
            "name": api.name, "from": place, "state": state, "document": document, "tools": tools,
            "left_out": api.left_out, "found": found,
        });
        app.item(&item, || {
            format!("{:<16}  {place:<7}  {}  ({})", api.name, one_line(&found, 500), one_line(&document, 200))
        });
    }
    Exit::Finished
}
