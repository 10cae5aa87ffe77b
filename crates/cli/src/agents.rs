//! Agents from the settings as tools of the main agent: each call is a child run under the same rules, limits
//! and questions.

use std::{sync::Arc, time::Duration};

use archon::{ArchonBuilder, SubAgentTool, types::Tool};

use crate::{
    app::App,
    assemble,
    choose::{self, Chosen},
    config::AgentSettings,
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

/// Returns an agent of the settings that a person or a program calls, and its description. It has the model of the
/// settings unless it has one of its own.
///
/// # Errors
/// There is no such agent.
#[cfg(all(unix, feature = "mcp-serve"))]
pub(crate) async fn alone(app: &App, name: &str) -> Result<(ArchonBuilder, String), Failure> {
    let agents = app.config.settings.agents.clone().unwrap_or_default();
    let Some(described) = agents.get(name) else {
        let names = agents.keys().cloned().collect::<Vec<_>>().join(", ");
        let advice = match names.is_empty() {
            true => format!("describe it in your settings, under [agents.{name}]"),
            false => format!("the agents are: {names}"),
        };
        return Err(Failure::usage(format!("the settings have no agent {name:?}"), advice));
    };
    let mut app = app.clone();
    let settings = &mut app.config.settings;
    settings.max_turns = described.max_turns.or(settings.max_turns);
    settings.max_duration = described.max_duration.or(settings.max_duration);
    let builder = builder(&app, name, described, None).await?;
    Ok((builder, described.description.clone()))
}

/// Builds an agent of the settings; without a caller it has the model of the settings.
async fn builder(
    app: &App,
    name: &str,
    described: &AgentSettings,
    caller: Option<&Chosen>,
) -> Result<ArchonBuilder, Failure> {
    let at =
        |e: Failure| Failure::new(e.exit(), format!("[agents.{name}]: {}", e.what()), e.advice().join(" "));
    let tools = toolset::of_agent(described.tools.as_ref(), app).await.map_err(at)?;
    let chosen = match (&described.model, caller) {
        (Some(model), _) => choose::of_member(app, model, &format!("[agents.{name}]")).await?,
        (None, Some(caller)) => caller.clone(),
        (None, None) => choose::model(app, None).await?,
    };
    let builder = assemble::by_settings(app, chosen, tools).await?.agent_id(name).name(name);
    Ok(match &described.system {
        Some(system) => builder.system(system),
        None => builder,
    })
}

async fn agent(app: &App, name: &str, caller: &Chosen) -> Result<Arc<dyn Tool>, Failure> {
    let agents = app.config.settings.agents.as_ref();
    let described = agents.and_then(|agents| agents.get(name)).cloned().unwrap_or_default();
    let builder = builder(app, name, &described, Some(caller)).await?;
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
