//! A team that this agent leads: a goal becomes work for others, and this agent puts their answers together.

use std::sync::Arc;

use archon_orchestrator::{Team, TeamOptions};
use archon_types::{Agent, Answer, CallId, Context, Member, MoreLimits, Planner, Reply, RunAgent, RunId};

use crate::{Archon, RunError, RunHandle, RunOptions};

/// An agent whose work others do; made by [`Archon::team`]. Cloning one is cheap.
#[derive(Clone)]
pub struct Teamwork {
    archon: Archon,
    team: Team,
}

impl Archon {
    /// A team that this agent leads, without members yet, in this agent's journal. Each part is a trait object: any
    /// planner says what there is to do, any agents do it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use archon::{Archon, providers::ScriptedProvider, types::{Member, Planner}};
    ///
    /// # fn example(planner: impl Planner + 'static) -> Result<(), archon::RunError> {
    /// let says = |text| Arc::new(ScriptedProvider::texts([text]));
    /// let researcher = Archon::builder().provider(says("3.7 mm a year"), "scripted").build()?;
    /// let lead = Archon::builder().provider(says("The sea rises."), "scripted").build()?;
    /// let team = lead.team(planner).member(Member::new("ada", "researcher"), Arc::new(researcher));
    /// assert_eq!(team.team().problems(), []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn team(&self, planner: impl Planner + 'static) -> Teamwork {
        self.team_with(planner, self.team_options())
    }

    /// As [`team`](Self::team), with other options.
    pub fn team_with(&self, planner: impl Planner + 'static, options: TeamOptions) -> Teamwork {
        let lead = self.agent.options().agent_id.clone();
        let team =
            Team::new(planner, self.journal.clone(), options).with_lead(lead, Arc::new(self.agent.clone()));
        Teamwork { archon: self.clone(), team }
    }

    /// What [`team`](Self::team) uses: this agent's limits, for all of the team together, and defaults for the rest.
    pub fn team_options(&self) -> TeamOptions {
        let mut options = TeamOptions::default();
        options.limits = self.agent.options().limits.clone();
        options
    }
}

impl Teamwork {
    /// The same team with one member more, whoever that is.
    pub fn member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|team| team.with_member(member, agent))
    }

    /// The same with other parts: a bus, a desk, somebody else who leads.
    pub fn with(mut self, change: impl FnOnce(Team) -> Team) -> Self {
        self.team = change(self.team);
        self
    }

    /// The team underneath, which others can call: it is an agent.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The team as a [`Runs`](crate::Runs) service has it: starts and resumes its runs by their ids.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.team.clone())
    }

    /// Works on a task until there is an answer, or until the run waits for somebody. The team itself asks people only if
    /// the agent that leads it has an approver ([`ArchonBuilder::approver`](crate::ArchonBuilder::approver)); else it goes
    /// on, or stops, as if nobody had answered.
    ///
    /// # Errors
    /// [`RunError::Failed`]: there is no plan, or what failed is needed. Or the goal is empty, the team cannot work, or the
    /// run could not be started or kept in the journal.
    pub async fn run(&self, task: impl Into<String>) -> Result<Reply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// As [`run`](Self::run). A team continues no conversation: a session in `options` is one of its own.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_with(&self, task: impl Into<String>, options: RunOptions) -> Result<Reply, RunError> {
        let task = task.into();
        let context = self.asking(self.archon.context_for(&task, options)?);
        Reply::of(self.team.start(&task, &context).await?)
    }

    /// Begins in the background and returns at once; the events of the members' runs come with the team's own.
    ///
    /// # Errors
    /// The task is empty. What else [`run`](Self::run) fails with the handle's reply tells.
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError> {
        let task = task.into();
        let context = self.asking(self.archon.context_for(&task, options)?);
        let team = self.team.clone();
        Ok(self.archon.spawn(context, |_, context| async move { Ok(team.start(&task, &context).await?) }))
    }

    /// Takes up a team's run where its log ends. What is done is not done again, and whoever was at work goes on.
    ///
    /// # Errors
    /// The run is unknown; or it is in use, has ended or is no team's, which the handle's reply tells.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// As [`resume`](Self::resume), with larger limits from now on: a run that met its limit of tokens, time or money goes
    /// on with more.
    ///
    /// # Errors
    /// As [`resume`](Self::resume); and the handle's reply tells if a limit still holds that the run has met.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        let context = self.asking(self.archon.context_of(run).await?);
        let team = self.team.clone();
        let work = |_, context| async move { Ok(team.resume_with(&more, &context).await?) };
        Ok(self.archon.spawn(context, work))
    }

    /// Answers a question of a run that is suspended, and takes the run up. [`resume`](Self::resume) does it with answers
    /// that were left with [`Archon::answer`].
    ///
    /// # Errors
    /// As [`resume`](Self::resume); and the handle's reply tells that there is no such question.
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError> {
        let context = self.asking(self.archon.context_of(run).await?);
        let team = self.team.clone();
        Ok(self
            .archon
            .spawn(context, |_, context| async move { Ok(team.answer(call, answer, &context).await?) }))
    }

    /// The team asks people where the agent that leads it may.
    fn asking(&self, mut context: Context) -> Context {
        context.can_ask |= self.archon.agent.approver().is_some();
        context
    }
}

impl std::fmt::Debug for Teamwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Teamwork").field("archon", &self.archon).finish_non_exhaustive()
    }
}
