//! Teams that this agent leads: members work on a goal, and this agent combines their answers.

use std::sync::Arc;

use archon_orchestrator::{Team, TeamOptions};
use archon_react_loop::LoopError;
use archon_types::{
    Agent, Answer, CallId, Context, ExecutionLimits, ExtensionMessage, Member, MoreLimits, Origin, Outcome,
    Planner, Reply, RunAgent, RunError, RunId,
};

use crate::{Archon, RunHandle, RunOptions};

/// An agent that leads a team, which [`Archon::team`] creates. Cloning is cheap.
#[derive(Clone)]
pub struct Teamwork {
    archon: Archon,
    team: Team,
}

impl Archon {
    /// Creates a team without members that this agent leads, in this agent's journal. Any planner can make
    /// the plan, and any agents can be members. If this agent has structured output
    /// ([`answering`](Self::answering)), its schema is for the answer of the team.
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

    /// Does the same as [`team`](Self::team), with other options.
    pub fn team_with(&self, planner: impl Planner + 'static, options: TeamOptions) -> Teamwork {
        let lead = self.agent.options().agent_id.clone();
        let agent = Arc::new(self.agent.clone().without_output_schema());
        let mut team = Team::new(planner, self.journal.clone(), options).with_lead(lead, agent);
        if let Some(form) = self.output_schema() {
            team = form.of_team(team);
        }
        Teamwork { archon: self.clone(), team }
    }

    /// Returns the options that [`team`](Self::team) uses: this agent's limits, for the whole team together,
    /// and defaults for the rest.
    pub fn team_options(&self) -> TeamOptions {
        let mut options = TeamOptions::default();
        options.limits = self.agent.options().limits.clone();
        options.config = self.lead_config();
        options
    }
}

impl Teamwork {
    /// Adds a member, which may be any agent.
    pub fn member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|team| team.with_member(member, agent))
    }

    /// Changes the team, for instance its bus, its desk or its lead.
    pub fn with(mut self, change: impl FnOnce(Team) -> Team) -> Self {
        self.team = change(self.team);
        self
    }

    /// Returns the team, which is an agent that other agents can call.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the team for a [`Runs`](crate::Runs) service, which starts and resumes its runs by id.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Works on a task until there is an answer, or until the run is suspended. The team itself asks people
    /// only if its lead has an approver ([`ArchonBuilder::approver`](crate::ArchonBuilder::approver)).
    /// Without an approver the team goes on, or stops, as if its question had expired.
    ///
    /// # Errors
    /// [`RunError::Failed`] if there is no plan, or a required subtask failed. Another error if the goal is
    /// empty, the team cannot work, the run could not be started, or the journal failed.
    pub async fn run(&self, task: impl Into<String>) -> Result<Reply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// Does the same as [`run`](Self::run), with options. In a session the agents read the conversation so
    /// far, and the answer becomes a part of it. Limits in `options` are for the whole run.
    ///
    /// # Errors
    /// As [`run`](Self::run), or the session is busy, or `options` have a system text or tools, which a run
    /// of several agents cannot have.
    pub async fn run_with(&self, task: impl Into<String>, options: RunOptions) -> Result<Reply, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        let work = |context| async move { own.begin(&task, origin, &context).await };
        Reply::of(self.archon.work(context, work).await?)
    }

    /// Starts the run in the background and returns at once. The handle also streams the events of the
    /// members' runs.
    ///
    /// # Errors
    /// The task is empty, or as [`run_with`](Self::run_with). Other errors of [`run`](Self::run) are in the
    /// reply of the handle.
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        let work = |_, context| async move { own.begin(&task, origin, &context).await };
        Ok(self.archon.spawn(context, work))
    }

    /// Resumes the run of a team from the end of its log. Completed work is not repeated, and working members
    /// go on.
    ///
    /// # Errors
    /// The run is unknown. The reply of the handle is an error if the run is in use, has ended or is not the
    /// run of a team.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// Resumes the run of a team with larger limits, so that a run that ended at a limit of tokens, time or
    /// money goes on; otherwise the same as [`resume`](Self::resume).
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if the run has reached a limit that
    /// still applies.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        let (context, own) = (self.archon.context_of(run).await?, self.clone());
        Ok(self.archon.spawn(context, move |_, context| async move { own.resume_run(&more, &context).await }))
    }

    /// Returns this team with the limits of one run; without `limits` with its own.
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
        self.begin_with(goal, Vec::new(), origin, context).await
    }

    /// Does the same as [`begin`](Self::begin), with extension messages of the application for the log.
    pub(crate) async fn begin_with(
        &self,
        goal: &str,
        extensions: Vec<ExtensionMessage>,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, RunError> {
        let context = &self.asking(self.archon.own(context));
        let mut place = self.archon.place(origin, goal, context).await?;
        place.extensions = extensions;
        let outcome = self.team.start_in(place, goal, context).await?;
        self.archon.remember(&outcome, context).await?;
        Ok(outcome)
    }

    pub(crate) async fn resume_run(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, RunError> {
        let context = &self.asking(self.archon.own(context));
        let resumed = self.team.resume_with(more, context).await.map_err(RunError::from);
        self.archon.remember_ended(resumed, context).await
    }

    /// Answers a question of a suspended run, and resumes the run. After an answer with [`Archon::answer`],
    /// call only [`resume`](Self::resume).
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if there is no such question.
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError> {
        let context = self.asking(self.archon.context_of(run).await?);
        let team = self.team.clone();
        Ok(self
            .archon
            .spawn(context, |_, context| async move { Ok(team.answer(call, answer, &context).await?) }))
    }

    /// Allows the team to ask people if its lead has an approver.
    fn asking(&self, mut context: Context) -> Context {
        context.can_ask |= self.archon.agent.approver().is_some();
        context
    }
}

archon_types::debug_fields!(Teamwork: archon);
