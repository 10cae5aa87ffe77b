//! A team that this agent leads: a goal becomes work for others, and this agent puts their answers together.

use std::sync::Arc;

use archon_orchestrator::{Team, TeamOptions};
use archon_react_loop::LoopError;
use archon_types::{
    Agent, Answer, CallId, Context, ExecutionLimits, Member, MoreLimits, Origin, Outcome, Planner, Reply,
    RunAgent, RunError, RunId,
};

use crate::{Archon, RunHandle, RunOptions};

/// An agent whose work others do; made by [`Archon::team`]. Cloning one is cheap.
#[derive(Clone)]
pub struct Teamwork {
    archon: Archon,
    team: Team,
}

impl Archon {
    /// A team that this agent leads, without members yet, in this agent's journal. Each part is a trait object: any
    /// planner says what there is to do, any agents do it. If this agent is [`answering`](Self::answering) in a form, that
    /// is the form of the team's answer.
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
        let agent = Arc::new(self.agent.clone().without_form());
        let mut team = Team::new(planner, self.journal.clone(), options).with_lead(lead, agent);
        if let Some(form) = self.form() {
            team = form.of_team(team);
        }
        Teamwork { archon: self.clone(), team }
    }

    /// What [`team`](Self::team) uses: this agent's limits, for all of the team together, and defaults for the rest.
    pub fn team_options(&self) -> TeamOptions {
        let mut options = TeamOptions::default();
        options.limits = self.agent.options().limits.clone();
        options.config = self.lead_config();
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
        Arc::new(self.clone())
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

    /// As [`run`](Self::run). In a session the agents know the conversation before, and the answer is part of it
    /// afterwards. Limits in `options` are those of the whole run.
    ///
    /// # Errors
    /// As [`run`](Self::run); the session is busy; and `options` have a system text or tools, which one run of several
    /// agents cannot have.
    pub async fn run_with(&self, task: impl Into<String>, options: RunOptions) -> Result<Reply, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        Reply::of(own.begin(&task, origin, &context).await?)
    }

    /// Begins in the background and returns at once; the events of the members' runs come with the team's own.
    ///
    /// # Errors
    /// The task is empty, or as [`run_with`](Self::run_with). What else [`run`](Self::run) fails with the handle's
    /// reply tells.
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        let work = |_, context| async move { own.begin(&task, origin, &context).await };
        Ok(self.archon.spawn(context, work))
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
        let (context, own) = (self.archon.context_of(run).await?, self.clone());
        Ok(self.archon.spawn(context, move |_, context| async move { own.take_up(&more, &context).await }))
    }

    /// This team, with the limits of one run, if that has its own.
    pub(crate) fn limited(&self, limits: Option<ExecutionLimits>) -> Self {
        let own = self.clone();
        match limits {
            Some(limits) => own.with(|team| team.with_limits(limits)),
            None => own,
        }
    }

    async fn prepare(
        &self,
        goal: &str,
        mut options: RunOptions,
    ) -> Result<(Self, Context, Origin), RunError> {
        if goal.trim().is_empty() {
            return Err(LoopError::EmptyPrompt.into());
        }
        options.refuse_settings()?;
        let own = self.limited(options.settings().limits);
        let (context, origin) = self.archon.prepare(options).await?;
        Ok((own, context, origin))
    }

    pub(crate) async fn begin(
        &self,
        goal: &str,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, RunError> {
        let context = &self.asking(self.archon.own(context));
        let place = self.archon.place(origin, goal, context).await?;
        let outcome = self.team.start_in(place, goal, context).await?;
        self.archon.remember(&outcome, context).await?;
        Ok(outcome)
    }

    pub(crate) async fn take_up(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, RunError> {
        let context = &self.asking(self.archon.own(context));
        let resumed = self.team.resume_with(more, context).await.map_err(RunError::from);
        self.archon.remember_ended(resumed, context).await
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
