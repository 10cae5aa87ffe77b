//! `archon mcp login` and `archon mcp logout`: a person's sign-in at an MCP server.

use archon::mcp::Login;
use serde_json::json;

use crate::{app::App, browser_answer, exit::Exit, failure::Failure, mcp, output::Look};

/// Shows the address of the sign-in, and waits until the browser has come back from it, or until the person
/// types the address at which the browser ended.
pub(super) async fn login(app: &App, name: &str) -> Result<Exit, Failure> {
    let entry = mcp::find(app, name)?;
    let (server, options) = mcp::sign_in(app, &entry)?;
    let login = Login::begin(name, &server, &options).await.map_err(|e| mcp::failed(app, &e))?;
    let finish = async |line: String| login.finish(&line).await;
    let done = browser_answer::of_sign_in(app, login.url(), login.wait(), finish).await;
    done.map_err(|e| mcp::failed(app, &e))?;
    app.report(&json!({"name": name, "logged_in": true}), format!("logged in to the MCP server '{name}'"));
    Ok(Exit::Finished)
}

/// Deletes the tokens of a server.
pub(super) async fn logout(app: &App, name: &str) -> Result<Exit, Failure> {
    let entry = mcp::find(app, name)?;
    let (server, options) = mcp::sign_in(app, &entry)?;
    let any = match &options.tokens {
        Some(tokens) => tokens.log_out(&server).await?,
        None => false,
    };
    app.item(&json!({"name": name, "logged_out": any}), || match any {
        true => format!("the tokens of the MCP server '{name}' are deleted"),
        false => format!("there are no tokens of the MCP server '{name}'"),
    });
    app.output.note(Look::Dim, "the authorization server may still know the login: end it there, too");
    Ok(Exit::Finished)
}
