//! The tools and agents that an agent has.

use serde_json::json;

use crate::{app::App, text::one_line, toolset::Picked};

/// Prints the tools, and behind them the agents. Tools of servers that have not answered are not known.
pub(crate) fn list(app: &App, Picked { tools, agents }: &Picked) {
    for tool in tools.iter().filter(|tool| tool.source().is_none()) {
        let spec = tool.spec();
        app.item(spec, || format!("{:<12}  {}", spec.name, one_line(&spec.description, 100)));
    }
    for name in agents {
        let described = app.config.settings.agents.as_ref().and_then(|agents| agents.get(name));
        let about = described.map(|agent| agent.description.clone()).unwrap_or_default();
        app.item(&json!({"name": name, "description": about, "agent": true}), || {
            format!("{name:<12}  {}", one_line(&about, 100))
        });
    }
}
