//! The state of a server in this command, as a line for people.

use std::time::Duration;

use archon::mcp::{Held, HeldKind, McpError, McpProblem, Pins, ServerState, ServerStatus};

use super::pins::{self, Folders};
use crate::{
    app::App,
    command_line::in_data_dir,
    failure::Failure,
    servers::{Entry, LeftOut},
    text::{one_line, visible_path},
};

/// The maximum time that a command waits for servers whose tools it needs to know.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of characters of a server's error output in a message.
const OUTPUT: usize = 300;

/// The state of a configured server in this command.
#[derive(Debug)]
pub(crate) enum Standing {
    /// The server is not used.
    LeftOut(LeftOut),
    /// The server was started and has this state.
    Connected(ServerStatus),
}

impl Standing {
    /// Returns true if the server can be used with all its tools, and a sentence about it.
    pub(crate) fn line(&self, app: &App, entry: &Entry) -> (bool, String) {
        let status = match self {
            Self::LeftOut(LeftOut::Disabled) => return (true, "not enabled".to_owned()),
            Self::LeftOut(left_out) => return (false, left_out.clone().failure(app, entry).line()),
            Self::Connected(status) => status,
        };
        match &status.state {
            ServerState::Ready => {
                let count = status.tools.len();
                let held = match status.held.len() {
                    0 => String::new(),
                    _ => format!("; {}", held_back(app, entry, &status.held)),
                };
                (held.is_empty(), format!("ready, {count} tools{held}"))
            }
            ServerState::Down(error) => (false, failed(app, error).line()),
            _ => {
                let (late, count) = (late(&entry.name, TIMEOUT), status.tools.len());
                (false, format!("{late}; {count} pinned tools are used; {}", to_measure(app, &entry.name)))
            }
        }
    }
}

/// Returns the text for a server that has not connected within this time.
pub(super) fn late(name: &str, limit: Duration) -> String {
    let seconds = limit.as_secs();
    format!("MCP server '{name}', phase handshake or list of tools: it has not connected within {seconds} s")
}

/// Returns the advice for a server that takes too long to connect.
fn to_measure(app: &App, name: &str) -> String {
    format!("measure the time: {}", in_data_dir(app, &format!("archon mcp test {name}")))
}

/// Returns the warning about a server that cannot be used, or not with all its tools.
pub(super) fn warning(app: &App, entry: &Entry, standing: &Standing) -> Option<String> {
    let status = match standing {
        Standing::LeftOut(LeftOut::Disabled) => return None,
        Standing::LeftOut(left_out) => {
            let e = left_out.clone().failure(app, entry);
            return Some(format!("{}: it is not used; {}", e.what(), e.advice_line()));
        }
        Standing::Connected(status) => status,
    };
    let name = &entry.name;
    match &status.state {
        ServerState::Ready if status.held.is_empty() => None,
        ServerState::Ready => Some(format!("MCP server '{name}': {}", held_back(app, entry, &status.held))),
        ServerState::Down(error) => Some(failed(app, error).line()),
        _ => Some(format!("{}; {}", late(name, TIMEOUT), to_measure(app, name))),
    }
}

/// Returns the error for tools that are held back because the pins of their server cannot be read or stored; `None`
/// if the tools wait for a person's agreement.
pub(crate) fn unreadable_pins(app: &App, entry: &Entry, held: &[Held]) -> Option<Failure> {
    let why = held.iter().find_map(|held| match &held.kind {
        HeldKind::Unreadable(why) => Some(why),
        _ => None,
    })?;
    let advice = match Folders::of(app, std::iter::once(entry)).read(&entry.name) {
        Ok(_) => "check that the data folder can be written: archon doctor".to_owned(),
        Err(_) => {
            let file = visible_path(&pins::file(app, entry));
            format!("delete {file}: the server's tools are then treated as at its first use")
        }
    };
    Some(Failure::failed(why, advice))
}

/// The maximum number of tools in a line.
const NAMED: usize = 5;

fn held_back(app: &App, entry: &Entry, held: &[Held]) -> String {
    let mut names: Vec<_> = held.iter().take(NAMED).map(|held| one_line(&held.tool, 60)).collect();
    if held.len() > NAMED {
        names.push("…".to_owned());
    }
    let then = unreadable_pins(app, entry, held).map_or_else(
        || {
            let command = in_data_dir(app, &format!("archon mcp approve {}", entry.name));
            format!("show the difference and approve: {command}")
        },
        |failure| failure.line(),
    );
    let count = match held.len() {
        1 => "1 tool is".to_owned(),
        count => format!("{count} tools are"),
    };
    format!("{count} held back ({}), {then}", names.join(", "))
}

/// Returns the failure of a server as an error of the command, with advice.
pub(crate) fn failed(app: &App, e: &McpError) -> Failure {
    let output = e.output.as_ref().map(|output| format!("; its error output ended with: {}", end_of(output)));
    let what =
        format!("MCP server '{}', phase {}: {}{}", e.server, e.phase, e.problem, output.unwrap_or_default());
    let advice = match &e.problem {
        McpProblem::LogIn(_) | McpProblem::Scope(_) => {
            format!("log in: {}", in_data_dir(app, &format!("archon mcp login {}", e.server)))
        }
        McpProblem::SignIn => format!(
            "set a header with a valid token in `headers` of [mcp.{0}], or a sign-in in [mcp.{0}.sign_in]",
            e.server
        ),
        _ => e.advice(),
    };
    Failure::failed(what, advice)
}

/// Returns the end of an error output as one line: the last lines have the reason of a failure.
fn end_of(output: &str) -> String {
    let line = one_line(output, usize::MAX);
    match line.char_indices().rev().nth(OUTPUT - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &line[at..]),
        _ => line,
    }
}
