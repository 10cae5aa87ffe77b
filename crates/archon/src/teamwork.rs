//! Teams that this agent leads: members work on a goal, and this agent combines their answers.

use std::sync::Arc;

use archon_orchestrator::{Team, TeamOptions};
use archon_types::{
    Agent, AgentId, AgentMessage, Answer, BoxFuture, CallId, Context, ExecutionLimits, ExtensionMessage,
    Member, MoreLimits, Origin, Outcome, PendingApproval, Planner, Reply, RunAgent, RunError, RunId, RunKind,
    RunSettings,
};

use crate::{Archon, RunHandle, RunOptions, several::runs_of_several};

/// An agent that leads a team of other agents. [`Archon::team`] creates this value. Cloning is cheap.
///
/// The team itself asks people only if its lead has an approver
/// ([`ArchonBuilder::approver`](crate::ArchonBuilder::approver)). Without an approver the team goes on, or
/// stops, as if its question had expired.
///
/// ```
/// # async fn example(team: archon::Teamwork) -> Result<(), archon::RunError> {
/// println!("{}", team.run("Compare the rivers of Paris and London").await?.into_text()?);
/// # Ok(())
/// # }
/// ```
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
        if let Some(schema) = self.output_schema() {
            team = team.with_output_schema(schema.format, schema.check);
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

runs_of_several!(Teamwork, team, RunKind::Team);

impl Teamwork {
    /// Changes the team with the methods of [`Team`], for instance its limits, or the bus for messages between members.
    ///
    /// ```
    /// # fn example(lead: archon::Archon, planner: impl archon::types::Planner + 'static) {
    /// use archon::types::ExecutionLimits;
    /// let limits = ExecutionLimits::default().with_max_total_tokens(500_000); // of all members together
    /// let team = lead.team(planner).with(|team| team.with_limits(limits));
    /// # }
    /// ```
    pub fn with(mut self, change: impl FnOnce(Team) -> Team) -> Self {
        self.team = change(self.team);
        self
    }

    /// Returns the team in the form that a [`Runs`](crate::Runs) service registers. The service finds the team by the
    /// id in the team's options, and starts and resumes its runs.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Makes a plan, lets the members work on its subtasks and combines their answers, until there is an
    /// answer or the run is suspended.
    ///
    /// # Errors
    /// [`RunError::Failed`] if there is no plan, or a required subtask failed. Another error if the task is
    /// empty, the members cannot work, the run could not be started, or the journal failed.
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
        self.run_task(task.into(), options).await
    }

    /// Starts the run in the background and returns at once. The handle also streams the events of the child
    /// runs.
    ///
    /// # Errors
    /// The task is empty, or as [`run_with`](Self::run_with). Other errors of [`run`](Self::run) are in the
    /// reply of the handle.
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError> {
        self.spawn_task(task.into(), options).await
    }

    /// Resumes a run from the end of its log. Completed subtasks are not repeated.
    ///
    /// # Errors
    /// The run is unknown. The reply of the handle is an error if the run is in use, has ended or is of
    /// another kind.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// Resumes a run with larger limits, so that a run that ended at a limit of tokens, time or money goes
    /// on; otherwise the same as [`resume`](Self::resume).
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if the run has reached a limit that
    /// still applies.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        self.spawn_resumed(run, more).await
    }

    /// Answers the question about a call of a suspended run, and resumes the run. After an answer with
    /// [`Archon::answer`], call only [`resume`](Self::resume).
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if there is no such question.
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError> {
        self.spawn_answered(run, call, answer).await
    }

    /// Adds a member to the team. `member` has its name and role; `agent` does its work and may be any agent.
    ///
    /// ```
    /// # use archon::{Archon, Teamwork, types::Member};
    /// fn hire(team: Teamwork, researcher: Archon) -> Teamwork {
    ///     team.member(Member::new("ada", "researcher"), std::sync::Arc::new(researcher))
    /// }
    /// ```
    pub fn member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|team| team.with_member(member, agent))
    }

    /// Returns the team, which is an agent that other agents can call.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Allows the team to ask people if its lead has an approver.
    fn asking(&self, mut context: Context) -> Context {
        context.can_ask |= self.archon.agent.approver().is_some();
        context
    }

    /// Accepts every answer: the questions of a team have no arguments that could be wrong.
    async fn check(&self, _: &PendingApproval, _: &Answer, _: &Context) -> Result<(), RunError> {
        Ok(())
    }
}

archon_types::debug_fields!(Teamwork: archon);
