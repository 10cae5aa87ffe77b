//! The servers with their states, and the tools that are held back.

use archon::mcp::{ServerState, ServerStatus};
use serde_json::json;

use super::{Standing, survey};
use crate::{app::App, failure::Failure, servers::LeftOut, text::one_line};

/// Lists the servers; a server that fails does not fail the list.
///
/// # Errors
/// The pins of tools cannot be read.
pub(crate) async fn list(app: &App) -> Result<(), Failure> {
    let (standings, unreadable) = survey(app).await;
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
    unreadable.map_or(Ok(()), Err)
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
