//! Builds the agents of existing runs from their logs and the settings, so that the id of a run is enough to
//! resume it.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    AgentSource, Runs, Teamwork,
    orchestrator::TeamDesk,
    planner::LlmPlannerOptions,
    types::{
        AgentId, BoxFuture, Confirm, Member, Record, RecordBody, RunAgent, RunConfig, RunError, RunKind,
        RunStarted, SubTask, TeamRecord, TeamRole, TeamSettings,
    },
};

use crate::{
    app::App,
    assemble::{from_config, with_surroundings},
    failure::Failure,
    planning::planning,
};

impl App {
    /// Returns the run service, and does not create the journal's folder. Start and resume runs with
    /// [`open_runs`](Self::open_runs) instead.
    ///
    /// # Errors
    /// [`Failure`] if the service cannot be built; never because of the runs themselves.
    pub(crate) fn runs(&self) -> Result<Runs, Failure> {
        Ok(Runs::over(Arc::new(self.journal()))?.with_source(Arc::new(Recorded::new(self))))
    }

    /// Returns the run service for starting and resuming runs.
    ///
    /// # Errors
    /// [`Failure`] if the journal's folder cannot be created.
    pub(crate) fn open_runs(&self) -> Result<Runs, Failure> {
        Ok(Runs::over(self.open_journal()?)?.with_source(Arc::new(Recorded::new(self))))
    }
}

/// Builds the agent of a run from the run's log.
pub(crate) struct Recorded {
    app: App,
}

impl Recorded {
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.clone() }
    }

    async fn agent(&self, records: &[Arc<Record>]) -> Result<Arc<dyn RunAgent>, RunError> {
        let Some(started) = RunStarted::of(records) else {
            let what = "the log does not begin with the start of a run";
            return Err(Failure::failed(what, "start the run again").into());
        };
        let app = &self.app;
        #[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
        if crate::assistant::is_agent(started.agent.as_str()) {
            let what = format!("{} is a run of an assistant, whose folder has its agents", started.run);
            let advice = "`archon assistant` goes on with it within 30 seconds, also after an answer";
            return Err(Failure::failed(what, advice).into());
        }
        match started.kind {
            RunKind::Loop => {
                let agent = from_config(app, &started.config, &[]).await?.agent_id(started.agent.clone());
                Ok(agent.build()?.run_agent())
            }
            RunKind::Plan => {
                let agent = from_config(app, &started.config, &[]).await?.agent_id(started.agent.clone());
                Ok(planning(&agent.build()?, Confirm::Never).run_agent())
            }
            RunKind::Team => Ok(team(app, started, records).await?.run_agent()),
            kind => Err(RunError::Unsupported {
                run: started.run.clone(),
                kind,
                action: "be resumed by this command",
                instead: "the program that started it can: `Runs::with_agent(parallel.run_agent())`, then `resume` or `answer`; the agents of its branches are not in the log",
            }),
        }
    }
}

impl AgentSource for Recorded {
    fn agent_of<'a>(
        &'a self,
        records: &'a [Arc<Record>],
    ) -> BoxFuture<'a, Result<Arc<dyn RunAgent>, RunError>> {
        Box::pin(self.agent(records))
    }
}

/// The parts of a team, from the first records of its run.
#[derive(Default)]
struct Formed {
    settings: TeamSettings,
    roles: Vec<TeamRole>,
    members: Vec<Member>,
    lead: Option<AgentId>,
    agents: BTreeMap<AgentId, RunConfig>,
    plan: Option<Vec<SubTask>>,
}

impl Formed {
    fn of(records: &[Arc<Record>]) -> Self {
        let mut formed = Self::default();
        for record in records {
            let RecordBody::Team(record) = &record.body else { continue };
            match &**record {
                TeamRecord::Formed { settings, roles, members, lead } => {
                    (formed.settings, formed.roles) = (settings.clone(), roles.clone());
                    (formed.members, formed.lead) = (members.clone(), lead.clone());
                }
                TeamRecord::Inputs { agents, plan, .. } => {
                    (formed.agents, formed.plan) = (agents.clone(), plan.clone());
                    break;
                }
                _ => {}
            }
        }
        formed
    }

    /// Returns the configuration of an agent of the team.
    fn config(&self, id: &AgentId) -> Result<&RunConfig, Failure> {
        self.agents.get(id).ok_or_else(|| {
            let what = format!("the model and the tools of {id} are not in the log");
            Failure::usage(what, "start the team again: archon team run TEAM.toml TASK")
        })
    }
}

async fn team(app: &App, started: &RunStarted, records: &[Arc<Record>]) -> Result<Teamwork, Failure> {
    let formed = Formed::of(records);
    let Some(id) = formed.lead.as_ref() else {
        return Err(Failure::usage(
            format!("run {} was interrupted before its task was stored", started.run),
            "start the team again: archon team run TEAM.toml TASK",
        ));
    };
    let desk = TeamDesk::new();
    let desks: Vec<String> = desk.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    let lead = from_config(app, formed.config(id)?, &[]).await?.agent_id(id.clone()).name(id.as_str());
    let lead = with_surroundings(app, lead, &started.config).await?.build()?;
    let mut planner = LlmPlannerOptions::default();
    planner.roles = filled(&formed.roles, &formed.members);
    let mut options = lead.team_options();
    options.agent_id = started.agent.clone();
    options.limits = started.config.limits.clone();
    (options.settings, options.roles) = (formed.settings.clone(), formed.roles.clone());
    options.plan.clone_from(&formed.plan);
    let mut work = lead.team_with(Arc::new(lead.planner().with_options(planner)), options);
    for member in &formed.members {
        let agent = from_config(app, formed.config(&member.id)?, &desks).await?;
        let agent = agent.agent_id(member.id.clone()).name(member.id.as_str()).tools(desk.tools());
        work = work.member(member.clone(), Arc::new(agent.build()?));
    }
    Ok(work.with(|team| team.with_desk(desk)))
}

/// Returns the roles that have a member; the planner does not see the other roles.
pub(crate) fn filled(roles: &[TeamRole], members: &[Member]) -> Vec<TeamRole> {
    let is_filled = |role: &&TeamRole| members.iter().any(|member| member.roles.contains(&role.name));
    roles.iter().filter(is_filled).cloned().collect()
}
