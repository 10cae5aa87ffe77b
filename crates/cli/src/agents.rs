//! Agents from the settings as tools of the main agent: each call is a child run under the same rules, limits
//! and questions.

use std::{sync::Arc, time::Duration};

use archon::{SubAgentTool, types::Tool};

use crate::{
    app::App,
    assemble,
    choose::{self, Chosen},
    failure::Failure,
    toolset::{self, Picked, Tools},
};

/// Adds the agents to the tools. An agent has the model of `caller` unless the settings give it another.
pub(crate) async fn with_agents(app: &App, picked: Picked, caller: &Chosen) -> Result<Tools, Failure> {
    let Picked { mut tools, agents } = picked;
    for name in &agents {
        tools.push(agent(app, name, caller).await?);
    }
    Ok(tools)
}

async fn agent(app: &App, name: &str, caller: &Chosen) -> Result<Arc<dyn Tool>, Failure> {
    let agents = app.config.settings.agents.as_ref();
    let described = agents.and_then(|agents| agents.get(name)).cloned().unwrap_or_default();
    let at =
        |e: Failure| Failure::new(e.exit(), format!("[agents.{name}]: {}", e.what()), e.advice().join(" "));
    let tools = toolset::of_agent(described.tools.as_ref(), app).await.map_err(at)?;
    let chosen = match &described.model {
        Some(model) => choose::of_member(app, model, &format!("[agents.{name}]")).await?,
        None => caller.clone(),
    };
    let mut builder = assemble::by_settings(app, chosen, tools).await?.agent_id(name).name(name);
    if let Some(system) = &described.system {
        builder = builder.system(system);
    }
    let mut tool = SubAgentTool::new(name, builder.build()?);
    if !described.description.is_empty() {
        tool = tool.with_description(&described.description);
    }
    if let Some(turns) = described.max_turns {
        tool = tool.with_max_turns(turns);
    }
    if let Some(span) = described.max_duration {
        tool = tool.with_time_limit(Duration::from_millis(span.0));
    }
    Ok(Arc::new(tool))
}
