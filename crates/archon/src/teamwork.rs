//! Teams that this agent leads: members work on a goal, and this agent combines their answers.

use std::sync::Arc;

use archon_orchestrator::{Team, TeamOptions};
use archon_types::{
    Agent, AgentId, AgentMessage, Answer, BoxFuture, CallId, Context, ExecutionLimits, ExtensionMessage,
    Member, MoreLimits, Origin, Outcome, PendingApproval, Planner, Reply, RunAgent, RunError, RunId, RunKind,
    RunSettings,
};

use crate::{Archon, RunHandle, RunOptions, several::runs_of_several};

/// An agent that leads a team, which [`Archon::team`] creates. Cloning is cheap.
///
/// The team itself asks people only if its lead has an approver
/// ([`ArchonBuilder::approver`](crate::ArchonBuilder::approver)). Without an approver the team goes on, or
/// stops, as if its question had expired.
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

runs_of_several! {
impl Teamwork(team, RunKind::Team) {
    pub fn with(self, change: impl FnOnce(Team) -> Team) -> Self;
    pub fn run_agent(&self) -> Arc<dyn RunAgent>;
    pub async fn run(&self, task: impl Into<String>) -> Result<Reply, RunError>;
    pub async fn run_with(&self, task: impl Into<String>, options: RunOptions) -> Result<Reply, RunError>;
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError>;
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError>;
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError>;
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError>;
}
}

impl Teamwork {
    /// Adds a member, which may be any agent.
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
