//! `archon mcp test`: one server and its tools.

use std::time::Duration;

use serde_json::json;

use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    mcp::{self, Standing},
    text::one_line,
};

/// The maximum number of characters of a description in a list.
const SHORT: usize = 100;

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
