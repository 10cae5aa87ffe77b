//! From a file to a team: each member is an agent with its own model, tools and instructions.

use std::{path::Path, sync::Arc};

use archon::{
    Archon, ArchonBuilder, Teamwork,
    orchestrator::Desk,
    planner::{LlmPlannerOptions, ScriptedPlanner},
    types::{DynPlanner, ExecutionLimits, Role},
};

use super::file::{Seated, TeamFile, read};
use crate::{
    app::App,
    ask::Prompt,
    choose,
    commands::{Asking, run},
    failure::Failure,
    permissions, toolset,
};

/// The team of a file.
pub(super) async fn team(app: &App, path: &Path) -> Result<Teamwork, Failure> {
    let file = read(path, &toolset::names(app)?)?;
    // One question at a time, whoever asks.
    let here = (Asking::of(app) == Asking::Here)
        .then(|| Prompt::new(app.output.clone(), Prompt::keyboard(), permissions::kept(app)));
    let lead = agent(app, &file.lead, here.as_ref()).await?.build()?;
    let desk = Desk::new();
    let mut members = Vec::new();
    for (member, seat) in &file.members {
        let agent = agent(app, seat, here.as_ref()).await?.tools(desk.tools());
        members.push((member.clone(), agent.build()?));
    }
    let planner = planner(&lead, &file);
    let mut options = lead.team_options();
    options.limits = limits(&file);
    run::apply_limits(&app.config.settings, &mut options.limits);
    (options.settings, options.roles) = (file.settings, file.roles);
    let work = lead.team_with(planner, options).with(|team| team.with_desk(desk));
    Ok(members.into_iter().fold(work, |work, (member, agent)| work.member(member, Arc::new(agent))))
}

/// Who makes the plan: the file, or the one who leads, who is told of the roles.
fn planner(lead: &Archon, file: &TeamFile) -> Arc<dyn DynPlanner> {
    if !file.steps.is_empty() {
        return Arc::new(ScriptedPlanner::new(file.steps.clone()));
    }
    let is_filled = |role: &&Role| file.members.iter().any(|(member, _)| member.roles.contains(&role.name));
    let mut options = LlmPlannerOptions::default();
    options.roles = file.roles.iter().filter(is_filled).cloned().collect();
    Arc::new(lead.planner().with_options(options))
}

async fn agent(app: &App, seat: &Seated, here: Option<&Prompt>) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    let tools = toolset::recorded(seat.tools.iter().map(String::as_str), app)?;
    let chosen = match &seat.model {
        Some(model) => choose::of_member(app, model, &seat.id).await?,
        None => choose::model(app, None).await?,
    };
    let fallbacks = choose::fallbacks(app, None).await?;
    let mut builder = run::assemble(app, chosen, fallbacks, tools, ExecutionLimits::default())?
        .agent_id(seat.id.as_str())
        .name(seat.id.as_str());
    if let Some(prompt) = here {
        builder = builder.approver(Arc::new(prompt.clone()));
    }
    if let Some(instructions) = &seat.instructions {
        let all = settings.system.iter().chain([instructions]).map(String::as_str);
        builder = builder.system(all.collect::<Vec<_>>().join("\n\n"));
    }
    Ok(builder)
}

fn limits(file: &TeamFile) -> ExecutionLimits {
    let mut limits = ExecutionLimits::default();
    if let Some(tokens) = file.max_tokens {
        limits.max_total_tokens = tokens;
    }
    if let Some(seconds) = file.max_seconds {
        limits.max_duration_ms = seconds.saturating_mul(1_000);
    }
    limits
}
