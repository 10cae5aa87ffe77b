//! Builds a team from a file: each member is an agent with its own model, tools and instructions.

use std::{path::Path, sync::Arc};

use archon::{
    ArchonBuilder, Teamwork,
    memory::Memory,
    orchestrator::TeamDesk,
    planner::LlmPlannerOptions,
    types::{ExecutionLimits, Member},
};

use super::super::structured_output::OutputFlags;
use super::file::{Seated, TeamFile, read};
use crate::{
    app::App,
    assemble::{apply_limits, by_settings, remembering, with_agents},
    choose,
    failure::Failure,
    recorded::filled,
    toolset,
};

/// Builds the team of a file, with a memory if `memory` is set.
pub(super) async fn team(
    app: &App,
    path: &Path,
    memory: Option<Memory>,
    form: &OutputFlags,
) -> Result<Teamwork, Failure> {
    let file = read(path, &toolset::names(app).await?)?;
    let lead = form.apply(remembering(agent(app, &file.lead).await?, memory).build()?)?;
    let desk = TeamDesk::new();
    let mut options = lead.team_options();
    options.limits = limits(&file);
    apply_limits(&app.config.settings, &mut options.limits);
    let members: Vec<Member> = file.members.iter().map(|(member, _)| member.clone()).collect();
    let mut planner = LlmPlannerOptions::default();
    planner.roles = filled(&file.roles, &members);
    options.plan = (!file.steps.is_empty()).then_some(file.steps);
    (options.settings, options.roles) = (file.settings, file.roles);
    let mut work = lead.team_with(Arc::new(lead.planner().with_options(planner)), options);
    for (member, seat) in &file.members {
        let agent = agent(app, seat).await?.tools(desk.tools());
        work = work.member(member.clone(), Arc::new(agent.build()?));
    }
    Ok(work.with(|team| team.with_desk(desk)))
}

async fn agent(app: &App, seat: &Seated) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    let picked = toolset::recorded(seat.tools.iter().map(String::as_str), app).await?;
    let chosen = match &seat.model {
        Some(model) => choose::of_member(app, model, &seat.id).await?,
        None => choose::model(app, None).await?,
    };
    let tools = with_agents(app, picked, &chosen).await?;
    let builder = by_settings(app, chosen, tools).await?.agent_id(seat.id.as_str()).name(seat.id.as_str());
    Ok(match &seat.instructions {
        Some(instructions) => {
            let all = settings.system.iter().chain([instructions]).map(String::as_str);
            builder.system(all.collect::<Vec<_>>().join("\n\n"))
        }
        None => builder,
    })
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
