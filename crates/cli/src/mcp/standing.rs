//! The state of a server in this command, as a line for people.

use std::time::Duration;

use archon::mcp::{Held, ServerState, ServerStatus};

use crate::{
    app::App,
    command_line::in_data_dir,
    servers::{Entry, LeftOut},
    text::one_line,
};

/// The maximum time that a command waits for servers whose tools it needs to know.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

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
                    _ => format!("; {}", held_back(app, &entry.name, &status.held)),
                };
                (held.is_empty(), format!("ready, {count} tools{held}"))
            }
            ServerState::Down(error) => (false, one_line(&error.to_string(), usize::MAX)),
            _ => (false, format!("{}; {} pinned tools are used", late(), status.tools.len())),
        }
    }
}

/// Returns the text for a server that did not connect in time.
pub(super) fn late() -> String {
    format!("has not connected within {} s", TIMEOUT.as_secs())
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
        ServerState::Ready => Some(format!("MCP server '{name}': {}", held_back(app, name, &status.held))),
        ServerState::Down(error) => Some(one_line(&error.to_string(), usize::MAX)),
        _ => {
            let command = in_data_dir(app, &format!("archon mcp test {name}"));
            Some(format!("MCP server '{name}' has not answered. Measure the time with: {command}"))
        }
    }
}

/// The maximum number of tools in a line.
const NAMED: usize = 5;

fn held_back(app: &App, name: &str, held: &[Held]) -> String {
    let mut names: Vec<_> = held.iter().take(NAMED).map(|held| one_line(&held.tool, 60)).collect();
    if held.len() > NAMED {
        names.push("…".to_owned());
    }
    let command = in_data_dir(app, &format!("archon mcp approve {name}"));
    format!(
        "{} held back ({}), show the difference and approve: {command}",
        match held.len() {
            1 => "1 tool is".to_owned(),
            count => format!("{count} tools are"),
        },
        names.join(", ")
    )
}
