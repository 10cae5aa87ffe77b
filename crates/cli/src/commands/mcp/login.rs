//! `archon mcp login` and `archon mcp logout`: a person's sign-in at an MCP server.

use std::{io::BufRead, pin::pin};

use archon::mcp::Login;
use futures_util::future::{Either, pending, select};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{app::App, exit::Exit, failure::Failure, mcp, output::Look};

/// Shows the address of the sign-in, and waits until the browser has come back from it, or until the person
/// types the address at which the browser ended.
pub(super) async fn login(app: &App, name: &str) -> Result<Exit, Failure> {
    let entry = mcp::find(app, name)?;
    let (server, options) = mcp::sign_in(app, &entry)?;
    let login = Login::begin(name, &server, &options).await.map_err(|e| mcp::failed(app, &e))?;
    app.item(&json!({"url": login.url()}), || {
        format!("Open this address in a browser:\n\n  {}\n", login.url())
    });
    app.note_if(
        app.can_ask(),
        "If the browser is on another machine, it ends at an address that it cannot open: copy that here.",
    );
    let mut lines = typed_lines(app.can_ask());
    let mut answer = pin!(login.wait());
    let done = loop {
        match select(answer.as_mut(), pin!(next_line(&mut lines))).await {
            Either::Left((done, _)) => break done,
            Either::Right((line, _)) => match login.finish(&line).await {
                // The browser's answer may still come.
                Err(e) if !line.contains("state=") => app.output.warn(e.problem.to_string()),
                done => break done,
            },
        }
    };
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

/// Returns the lines that the person types; none without a terminal.
fn typed_lines(is_terminal: bool) -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    if is_terminal {
        // A thread of its own, because a read of the terminal cannot be stopped.
        std::thread::spawn(move || {
            let lines = std::io::stdin().lock().lines().map_while(Result::ok);
            for line in lines.filter(|line| !line.trim().is_empty()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// Returns the next line; waits for ever if there are no more.
async fn next_line(lines: &mut mpsc::UnboundedReceiver<String>) -> String {
    match lines.recv().await {
        Some(line) => line,
        None => pending().await,
    }
}
