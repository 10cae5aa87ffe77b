//! `archon mcp approve`: a person's agreement to a server of a project, and to tools that are held back.

use archon::mcp::{Held, McpServers};
use serde_json::json;

use crate::{
    app::App,
    ask::Prompt,
    config::{Agreements, variables},
    exit::Exit,
    failure::Failure,
    mcp,
    output::Look,
    servers::Entry,
    text::visible,
};

/// Shows the server or the tools, asks for the agreement, and stores it.
pub(super) async fn approve(app: &App, name: &str, tool: Option<&str>, yes: bool) -> Result<Exit, Failure> {
    let entry = mcp::find(app, name)?;
    if !entry.is_agreed(app)? {
        return agree(app, &entry, yes);
    }
    let (servers, status, _) = mcp::alone(app, &entry).await?;
    if let Some(failure) = mcp::unreadable_pins(app, &entry, &status.held) {
        servers.close().await;
        return Err(failure);
    }
    let held: Vec<_> = status.held.iter().filter(|held| tool.is_none_or(|tool| held.tool == tool)).collect();
    let exit = match held.as_slice() {
        [] => {
            let what = tool.map_or_else(|| "nothing".to_owned(), |tool| format!("no tool {tool:?}"));
            app.output.note(Look::Plain, format!("MCP server '{name}': {what} is held back"));
            Ok(if tool.is_none() { Exit::Finished } else { Exit::Failed })
        }
        held => decide(app, &servers, held, yes),
    };
    servers.close().await;
    exit
}

/// Shows an entry of the project's file, and asks for the agreement to it.
fn agree(app: &App, entry: &Entry, yes: bool) -> Result<Exit, Failure> {
    let (name, file) = (&entry.name, entry.display_place(app));
    let Some(place) = &entry.project else { return Ok(Exit::Finished) };
    app.output.note(Look::Plain, format!("{file} starts or asks the MCP server '{name}':"));
    place.text.lines().for_each(|line| app.output.note(Look::Warning, format!("  {}", visible(line))));
    let mut used: Vec<_> = entry.settings.texts().flat_map(|(_, text)| variables::names(text)).collect();
    used.sort_unstable();
    used.dedup();
    if !used.is_empty() {
        app.output.note(Look::Warning, format!("It gets your variables: {}", used.join(", ")));
    }
    let command = format!("archon mcp approve {name} --yes");
    if !may_go_on(app, yes, "Agree to this server as it is? [y/N] ", &command)? {
        app.output.note(Look::Plain, "nothing was changed");
        return Ok(Exit::Failed);
    }
    Agreements::in_folder(&app.data_dir).add_server(&place.file, name, &place.text)?;
    let item = json!({"name": name, "agreed": true});
    app.report(&item, "agreed; after a change to the entry you are asked again");
    Ok(Exit::Finished)
}

/// Asks about each tool that is held back. Fails if a person did not agree to one.
fn decide(app: &App, servers: &McpServers, held: &[&Held], yes: bool) -> Result<Exit, Failure> {
    let mut exit = Exit::Finished;
    for held in held {
        let tool = visible(&held.tool);
        app.output.note(Look::Plain, format!("{tool} is held back: {}", held.reason()));
        for line in held.difference.lines() {
            let look = if line.starts_with(['+', '-']) { Look::Warning } else { Look::Dim };
            app.output.note(look, format!("  {line}"));
        }
        let command = format!("archon mcp approve {} --yes", held.server);
        if !may_go_on(app, yes, &format!("Agree to {tool} as it is now? [y/N] "), &command)? {
            app.output.note(Look::Plain, format!("{tool} stays held back"));
            exit = Exit::Failed;
            continue;
        }
        let is_current = servers.approve(held).map_err(|e| {
            Failure::failed(e.to_string(), "check that the data folder can be written: archon doctor")
        })?;
        if !is_current {
            let what = format!("the definition of {tool} has changed meanwhile");
            return Err(Failure::failed(what, "check it again: archon mcp approve NAME"));
        }
        app.item(&json!({"tool": held.tool, "approved": true}), || format!("{tool} can be used"));
    }
    Ok(exit)
}

/// Returns a person's answer; true if the flag `--yes` was given.
///
/// # Errors
/// [`Failure`] if there is no terminal on which to ask.
fn may_go_on(app: &App, yes: bool, question: &str, command: &str) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !app.can_ask() {
        return Err(Failure::usage(
            "nothing was agreed to: there is no terminal on which to ask",
            format!("read the text above, then agree with: {command}"),
        ));
    }
    Ok(Prompt::asks_yes(app, question))
}
