//! Builds a team from a file: each member is an agent with its own model, tools and instructions.

use std::{path::Path, sync::Arc};

use archon::{
    ArchonBuilder, Teamwork,
    orchestrator::TeamDesk,
    planner::LlmPlannerOptions,
    types::{ExecutionLimits, Member},
};

use super::super::WorkFlags;
use super::file::{TeamAgent, read};
use crate::{
    app::App,
    assemble::{apply_limits, by_settings, with_agents, with_memory},
    choose,
    failure::Failure,
    recorded::filled,
    toolset,
};

pub(super) async fn team(app: &App, path: &Path, work: &WorkFlags) -> Result<Teamwork, Failure> {
    let memory = work.memory.open(app).await;
    let file = read(path, &toolset::names(app).await?)?;
    let lead = work.output.apply(with_memory(app, agent(app, &file.lead).await?, memory).build()?)?;
    let desk = TeamDesk::new();
    let mut options = lead.team_options();
    let limits = &mut options.limits;
    *limits = ExecutionLimits::default();
    limits.max_total_tokens = file.max_tokens.unwrap_or(limits.max_total_tokens);
    limits.max_duration_ms = file.max_seconds.map_or(limits.max_duration_ms, |s| s.saturating_mul(1_000));
    apply_limits(&app.config.settings, limits);
    let members: Vec<Member> = file.members.iter().map(|(member, _)| member.clone()).collect();
    let mut planner = LlmPlannerOptions::default();
    planner.roles = filled(&file.roles, &members);
    options.plan = (!file.steps.is_empty()).then_some(file.steps);
    (options.settings, options.roles) = (file.settings, file.roles);
    let mut work = lead.team_with(Arc::new(lead.planner().with_options(planner)), options);
    for (member, described) in &file.members {
        let agent = agent(app, described).await?.tools(desk.tools());
        work = work.member(member.clone(), Arc::new(agent.build()?));
    }
    Ok(work.with(|team| team.with_desk(desk)))
}

async fn agent(app: &App, described: &TeamAgent) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    let picked = toolset::by_name(described.tools.iter().map(String::as_str), app).await?;
    let chosen = match &described.model {
        Some(model) => choose::of_member(app, model, &described.id).await?,
        None => choose::model(app, None).await?,
    };
    let tools = with_agents(app, picked, &chosen).await?;
    let builder =
        by_settings(app, chosen, tools).await?.agent_id(described.id.as_str()).name(described.id.as_str());
    Ok(match &described.instructions {
        Some(instructions) => {
            let all = settings.system.iter().chain([instructions]).map(String::as_str);
            builder.system(all.collect::<Vec<_>>().join("\n\n"))
        }
        None => builder,
    })
}
