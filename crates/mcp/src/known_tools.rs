//! The tools and resources that are known of a server: from its connection, or from its pins while it is not
//! connected.

use std::sync::Arc;

use crate::{
    McpTool,
    held::Allowed,
    supervise::{Server, State},
};

/// The known tools of a server.
pub(crate) struct KnownTools {
    /// The tools, with their pinned definitions. They include tools that the server has changed or removed, so
    /// that the tools of a session stay the same; calls of these tools are refused.
    pub(crate) tools: Vec<McpTool>,
    /// True if the server offers resources, or offered them at its last connection.
    pub(crate) has_resources: bool,
}

impl KnownTools {
    /// Returns the tools of a server in this state. Reads the pins at most once.
    pub(crate) fn of(server: &Arc<Server>, state: &State) -> Self {
        let tool = |allowed: &Allowed| McpTool::new(server.clone(), &allowed.definition, &allowed.hash);
        match state {
            State::Ready(ready) => Self {
                tools: ready.judged.allowed.values().chain(&ready.judged.absent).map(tool).collect(),
                has_resources: ready.connection.offers_resources(),
            },
            State::Connecting(_) | State::Down { .. } => {
                let pins = server.options.pins.read(&server.name).ok().flatten().unwrap_or_default();
                let agreed = pins.tools.values().filter_map(|pin| Allowed::of(pin, &server.identity));
                Self {
                    tools: agreed.map(|allowed| tool(&allowed)).collect(),
                    has_resources: pins.identity == server.identity && pins.resources,
                }
            }
            State::Closed => Self { tools: Vec::new(), has_resources: false },
        }
    }
}
