//! `archon mcp list` and `archon mcp test`: the servers and their tools.

use std::time::Duration;

use archon::mcp::{ServerState, ServerStatus};
use serde_json::json;

use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    mcp::{self, Standing},
    servers::LeftOut,
    text::one_line,
};

/// The maximum number of characters of a description in a list.
const SHORT: usize = 100;

/// Lists the servers; a server that fails does not fail the list.
pub(super) async fn list(app: &App) -> Result<Exit, Failure> {
    let (standings, unreadable) = mcp::survey(app).await;
    let is_empty = standings.is_empty() && unreadable.is_none();
    app.note_if(is_empty, "there are no MCP servers; add one: archon mcp add NAME -- COMMAND");
    for (entry, standing) in &standings {
        let (_, line) = standing.line(app, entry);
        let place = if entry.project.is_some() { "project" } else { "yours" };
        let item = json!({
            "name": entry.name, "from": place, "state": state(standing), "found": line,
            "tools": status(standing).map(|status| &status.tools),
            "held": status(standing).map(|status| status.held.iter().map(|held| &held.tool).collect::<Vec<_>>()),
        });
        app.item(&item, || format!("{:<16}  {place:<7}  {}", entry.name, one_line(&line, usize::MAX)));
    }
    unreadable.map_or(Ok(Exit::Finished), Err)
}

/// Returns the word for a server's state, for programs.
fn state(standing: &Standing) -> &'static str {
    match standing {
        Standing::LeftOut(LeftOut::Disabled) => "disabled",
        Standing::LeftOut(LeftOut::NotAgreed) => "not_agreed",
        Standing::LeftOut(LeftOut::Wrong(_)) => "wrong",
        Standing::Connected(status) => match status.state {
            ServerState::Ready => "ready",
            ServerState::Down(_) => "failed",
            _ => "connecting",
        },
    }
}

fn status(standing: &Standing) -> Option<&ServerStatus> {
    match standing {
        Standing::Connected(status) => Some(status),
        Standing::LeftOut(_) => None,
    }
}

pub(super) async fn test(app: &App, name: &str) -> Result<Exit, Failure> {
    let entry = mcp::find(app, name)?;
    let (servers, status, tools) = mcp::alone(app, &entry).await?;
    if let Some(took) = status.took {
        for (phase, time) in [("handshake", took.initialize), ("list of tools", took.list)] {
            let ms = milliseconds(time);
            app.item(&json!({"phase": phase, "ms": ms}), || format!("ok  {phase:<13}  {ms} ms"));
        }
    }
    for tool in tools {
        let spec = tool.spec();
        let about = spec.description.trim_start_matches(&format!("[MCP server {name}] "));
        let about = one_line(about, SHORT);
        app.item(&json!({"tool": spec.name, "description": spec.description}), || {
            format!("    {}  {about}", spec.name)
        });
    }
    for held in &status.held {
        let reason = held.reason();
        app.item(&json!({"tool": held.tool, "held": reason}), || {
            format!("--  {} is held back: {}", held.tool, one_line(&reason, usize::MAX))
        });
    }
    for (tool, why) in &status.unusable {
        app.item(&json!({"tool": tool, "unusable": why}), || format!("--  {tool} cannot be used: {why}"));
    }
    servers.close().await;
    let is_held = !status.held.is_empty();
    app.note_if(is_held, Standing::Connected(status).line(app, &entry).1);
    Ok(Exit::Finished)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
