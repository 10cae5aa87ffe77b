//! The agent that is a team: how its run is started, taken up again, and answered.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{
    Agent, AgentId, Answer, BoxFuture, Bus, CallId, Context, Delegation, ExecutionLimits, Journal,
    JournalError, LoopId, Member, Message, OpenMode, Origin, Outcome, OutcomeStatus, Planner, PromptSource,
    Record, RecordBody, Role, RunConfig, RunId, RunStarted, TeamRecord, TeamSettings, TurnTrigger,
};

use crate::{Desk, TeamError, TeamMachine, TeamProblem, check_team, driver::Driver, log::TeamLog};

/// An agent whose work is done by others: a plan is made, each step goes to the member that fits it, what they say
/// is compared, and put together. Every step is in a journal.
#[derive(Clone)]
pub struct Team {
    parts: Arc<Parts>,
}

/// What a [`Team`] works with; everything has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TeamOptions {
    /// For people and for delegation.
    pub name: String,
    /// Stable for the team's whole life; the sender of its messages.
    pub agent_id: AgentId,
    /// How the team works.
    pub settings: TeamSettings,
    /// How far a run may go, that of its members included.
    pub limits: ExecutionLimits,
    /// What the roles are.
    pub roles: Vec<Role>,
}

impl Default for TeamOptions {
    fn default() -> Self {
        Self {
            name: "team".to_owned(),
            agent_id: AgentId::new("team"),
            settings: TeamSettings::default(),
            limits: ExecutionLimits::default(),
            roles: crate::sample_roles(),
        }
    }
}

/// Who does what in a team.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) planner: Arc<dyn Planner>,
    pub(crate) desk: Desk,
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) options: TeamOptions,
    members: Vec<Member>,
    agents: BTreeMap<AgentId, Arc<dyn Agent>>,
    lead: Option<AgentId>,
    journal: Arc<dyn Journal>,
}

impl Team {
    /// A team without members.
    pub fn new(planner: Arc<dyn Planner>, journal: Arc<dyn Journal>, options: TeamOptions) -> Self {
        let parts = Parts {
            planner,
            desk: Desk::new(),
            bus: None,
            options,
            members: Vec::new(),
            agents: BTreeMap::new(),
            lead: None,
            journal,
        };
        Self { parts: Arc::new(parts) }
    }

    /// The same team with one member more. Of two with one id the team says so when it is to begin.
    pub fn with_member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            parts.agents.entry(member.id.clone()).or_insert(agent);
            parts.members.push(member);
        })
    }

    /// The same team with somebody who does what nobody else can, settles what is to be arbitrated, and puts the
    /// answer together.
    pub fn with_lead(self, id: impl Into<AgentId>, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            let id = id.into();
            parts.agents.entry(id.clone()).or_insert(agent);
            parts.lead = Some(id);
        })
    }

    /// The same team, which says on a bus who is given what, and what came of it.
    pub fn with_bus(self, bus: Arc<dyn Bus>) -> Self {
        self.with(|parts| parts.bus = Some(bus))
    }

    /// The same team, whose members find their seats at this desk.
    pub fn with_desk(self, desk: Desk) -> Self {
        self.with(|parts| parts.desk = desk)
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }

    /// What the team works with.
    pub fn options(&self) -> &TeamOptions {
        &self.parts.options
    }

    /// Everything that is wrong with the team itself.
    pub fn problems(&self) -> Vec<TeamProblem> {
        let parts = &self.parts;
        let mut needed: Vec<String> = parts.options.settings.reviewer.iter().cloned().collect();
        needed.dedup();
        check_team(&parts.options.roles, &parts.members, parts.lead.as_ref(), &needed)
    }

    /// Starts the run that `context` names and drives it to its outcome, or until it waits for somebody.
    ///
    /// # Errors
    /// The team cannot work, a limit forbids the run, or the journal failed.
    pub async fn start(&self, goal: &str, context: &Context) -> Result<Outcome, TeamError> {
        self.begin(goal, Origin::Prompt, context).await
    }

    async fn begin(&self, goal: &str, origin: Origin, context: &Context) -> Result<Outcome, TeamError> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(TeamError::Problems { problems });
        }
        let started = self.started(origin, context);
        let max = started.config.limits.max_depth;
        if context.depth >= max {
            return Err(TeamError::TooDeep { depth: context.depth, max });
        }
        let open = self.parts.journal(context).open(&context.run, OpenMode::Create).await?;
        let mut log = TeamLog::new(open.writer, 0, context.clone());
        let records = log.append(vec![RecordBody::RunStarted(Box::new(started.clone()))]).await?;
        let at = records.first().map_or_else(|| context.clock.now(), |record| record.at);
        let machine = TeamMachine::new(&started, at);
        self.open(goal, machine, log, context).await
    }

    /// Writes down what the run begins with, and drives it.
    async fn open(
        &self,
        goal: &str,
        mut machine: TeamMachine,
        mut log: TeamLog,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let options = &self.parts.options;
        let formed = TeamRecord::Formed {
            settings: options.settings.clone(),
            roles: options.roles.clone(),
            members: self.parts.members.clone(),
            lead: self.parts.lead.clone(),
        };
        let message = Message::user(goal, context.clock.now()).into();
        let asked = RecordBody::Prompted { message, source: PromptSource::Prompt };
        log.step(&mut machine, vec![RecordBody::Team(Box::new(formed)), asked]).await?;
        Ok(Driver::new(&self.parts, machine, log, context).drive().await?)
    }

    /// Takes up the run that `context` names where its log ends: after a crash, a cancel, or a question that was
    /// answered elsewhere. The run keeps the members, settings and limits that it was started with.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended or is not a team's, or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, TeamError> {
        self.take_up(None, Vec::new(), context).await
    }

    /// Answers a question of a run that is suspended, and takes it up.
    ///
    /// # Errors
    /// There is no such question, or as for [`resume`](Self::resume).
    pub async fn answer(
        &self,
        call: CallId,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let records = self.parts.journal(context).read(&context.run).await?;
        if !fold(&context.run, &records)?.is_waiting_for(call) {
            return Err(TeamError::NoQuestion { run: context.run.clone(), call });
        }
        self.take_up(None, vec![RecordBody::ToolAnswered { call, answer }], context).await
    }

    async fn take_up(
        &self,
        goal: Option<&str>,
        bodies: Vec<RecordBody>,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let open = self.parts.journal(context).open(&context.run, OpenMode::Existing).await?;
        let mut machine = fold(&context.run, &open.records)?;
        if machine.ended().is_some_and(|outcome| outcome.status != OutcomeStatus::Cancelled) {
            return Err(TeamError::Ended { run: context.run.clone() });
        }
        let mut context = context.clone();
        if let Some(RecordBody::RunStarted(started)) = open.records.first().map(|record| &record.body) {
            context.session = started.session.clone();
        }
        let is_asked = open.records.iter().any(|record| matches!(record.body, RecordBody::Prompted { .. }));
        let mut log = TeamLog::new(open.writer, open.records.len() as u64, context.clone());
        // The answer first: a member that waits and was told no does not go on.
        let first = bodies.into_iter().chain(std::iter::once(RecordBody::Resumed)).collect();
        log.step(&mut machine, first).await?;
        match goal {
            Some(goal) if !is_asked => self.open(goal, machine, log, &context).await,
            _ => Ok(Driver::new(&self.parts, machine, log, &context).drive().await?),
        }
    }

    /// Works on what a call wants done: what ended before is not done again, what was cut off goes on.
    async fn called(&self, task: &str, by: &Delegation, context: &Context) -> Result<Outcome, TeamError> {
        let origin = Origin::CalledBy { run: by.caller.clone(), call: by.call };
        let records = match by.journal.read(&context.run).await {
            Err(JournalError::UnknownRun { .. }) => return self.begin(task, origin, context).await,
            records => records?,
        };
        match records.first().map(|first| &first.body) {
            Some(RecordBody::RunStarted(started)) if started.origin == origin => {}
            _ => {
                return Err(TeamError::NotOfThisCall { run: context.run.clone(), caller: by.caller.clone() });
            }
        }
        match records.last().map(|last| &last.body) {
            Some(RecordBody::RunFinished(outcome)) if outcome.status != OutcomeStatus::Cancelled => {
                Ok(Outcome::clone(outcome))
            }
            _ => self.take_up(Some(task), Vec::new(), context).await,
        }
    }

    fn started(&self, origin: Origin, context: &Context) -> RunStarted {
        let mut config = RunConfig::default();
        config.limits = self.parts.limits(context);
        let loop_id =
            LoopId::new(format!("{}.team.1", context.session.as_str().replace(['.', '/', ':'], "-")));
        let is_called = matches!(origin, Origin::CalledBy { .. });
        let agent = self.parts.options.agent_id.clone();
        let mut started =
            RunStarted::new(context.run.clone(), context.session.clone(), agent, loop_id, config);
        started.tenant = context.tenant.clone();
        started.origin = origin;
        started.first_turn = if is_called { TurnTrigger::SubAgent } else { TurnTrigger::User };
        started
    }
}

impl Parts {
    /// Where a run is kept: beside its caller, or where this team keeps its runs.
    pub(crate) fn journal<'a>(&'a self, context: &'a Context) -> &'a Arc<dyn Journal> {
        context
            .delegation
            .as_ref()
            .filter(|by| by.child == context.run)
            .map_or(&self.journal, |by| &by.journal)
    }

    /// How far a run may go: as this team may, and no further than its caller allows.
    pub(crate) fn limits(&self, context: &Context) -> ExecutionLimits {
        let own = self.options.limits.clone();
        match context.delegation.as_ref().filter(|by| by.child == context.run) {
            Some(by) => by.narrow(own, context.depth),
            None => own,
        }
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
        self.agents.get(id).cloned()
    }
}

impl Agent for Team {
    fn name(&self) -> &str {
        &self.parts.options.name
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let done = match context.delegation.as_ref().filter(|by| by.child == context.run) {
                Some(by) => self.called(task, by, context).await,
                None => self.start(task, context).await,
            };
            done.unwrap_or_else(|error| {
                Outcome::failed(context.run.clone(), format!("{error} ({})", error.advice()))
            })
        })
    }
}

/// The state of a team's run, from its log.
///
/// # Errors
/// [`TeamError::NotATeam`].
pub fn fold(run: &RunId, records: &[Arc<Record>]) -> Result<TeamMachine, TeamError> {
    let not_a_team = || TeamError::NotATeam { run: run.clone() };
    let first = records.first().ok_or_else(not_a_team)?;
    let RecordBody::RunStarted(started) = &first.body else { return Err(not_a_team()) };
    // A process may have died before it wrote more than the first record.
    if records.len() > 1 && !is_team(records) {
        return Err(not_a_team());
    }
    let mut machine = TeamMachine::new(started, first.at);
    records.iter().skip(1).for_each(|record| machine.apply(record));
    Ok(machine)
}

/// Whether a log is the one of a team, which says so near its beginning.
pub fn is_team(records: &[Arc<Record>]) -> bool {
    records.iter().take(4).any(|record| matches!(record.body, RecordBody::Team(_) | RecordBody::Resumed))
        && !records
            .iter()
            .take(4)
            .any(|record| matches!(record.body, RecordBody::Plan(_) | RecordBody::ModelAsked { .. }))
}
