//! The agent that is a team: starts its run, resumes the run, and takes answers to the run's questions.

mod builder;

use std::{collections::BTreeMap, sync::Arc};

use archon_run::{Machine as _, RunLog, cancelled_alone};
use archon_types::{
    Agent, Answer, BoxFuture, CallId, Context, FailureKind, Journal, JournalError, Message, MoreLimits,
    OpenMode, Origin, Outcome, Planner, PromptSource, Record, RecordBody, ResponseFormat, RunId, RunKind,
    RunRefused, RunStarted, SessionPlace, Spending, TeamRecord, answer_below, check_called, may_resume,
    open_questions,
};

use crate::{
    TeamDesk, TeamError, TeamMachine, TeamOptions, TeamProblem, check_team, driver::drive, parts::Parts,
};

/// An agent whose work is done by its members. The team asks a planner for a plan, gives each step to a
/// suitable member, compares the answers and combines them. Every step is recorded in a journal.
#[derive(Clone)]
pub struct Team {
    parts: Arc<Parts>,
}

impl Team {
    /// Creates a team without members.
    pub fn new(planner: impl Planner + 'static, journal: Arc<dyn Journal>, options: TeamOptions) -> Self {
        let parts = Parts {
            planner: Arc::new(planner),
            desk: TeamDesk::new(),
            bus: None,
            options,
            members: Vec::new(),
            agents: BTreeMap::new(),
            lead: None,
            journal,
        };
        Self { parts: Arc::new(parts) }
    }

    /// Returns the options.
    pub fn options(&self) -> &TeamOptions {
        &self.parts.options
    }

    /// Returns all problems of the team's configuration.
    pub fn problems(&self) -> Vec<TeamProblem> {
        let (parts, options) = (&self.parts, &self.parts.options);
        let reviewer = options.settings.reviewer.as_slice();
        check_team(&options.roles, &parts.members, parts.lead.as_ref(), reviewer)
    }

    /// Starts the run that `context` names, and drives the run until it ends or is suspended.
    ///
    /// # Errors
    /// The team has problems, the answer's schema is invalid, a limit forbids the run, or the journal failed.
    pub async fn start(&self, goal: &str, context: &Context) -> Result<Outcome, TeamError> {
        self.start_in(SessionPlace::new(Origin::Prompt), goal, context).await
    }

    /// Does the same as [`start`](Self::start), for a run that continues a session or that a call of a run starts.
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    pub async fn start_in(
        &self,
        place: SessionPlace,
        goal: &str,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(TeamError::Problems { problems });
        }
        let started = self.started(&place, context);
        context.may_delegate(started.config.limits.max_depth)?;
        if let Some(problem) = started.config.output_format().and_then(ResponseFormat::schema_problem) {
            return Err(TeamError::InvalidSchema { problem });
        }
        let journal = context.journal(&self.parts.journal);
        let mut opening = self.opening(goal, place.background.clone(), context);
        opening.extend(place.extension_records());
        let (log, records) = RunLog::begin(&**journal, started, opening, context).await?;
        let machine = fold(&context.run, &records)?;
        Ok(drive(&self.parts, machine, log).await?)
    }

    /// Returns the first records of the run.
    fn opening(&self, goal: &str, background: String, context: &Context) -> Vec<RecordBody> {
        let options = &self.parts.options;
        let formed = TeamRecord::Formed {
            settings: options.settings.clone(),
            roles: options.roles.clone(),
            members: self.parts.members.clone(),
            lead: self.parts.lead.clone(),
        };
        let configs = self.parts.agents.iter().filter_map(|(id, agent)| Some((id.clone(), agent.config()?)));
        let agents: BTreeMap<_, _> = configs.collect();
        let plan = options.plan.clone();
        let has_inputs = !agents.is_empty() || plan.is_some() || !background.is_empty();
        let inputs = has_inputs.then_some(TeamRecord::Inputs { agents, plan, background });
        let message = Message::user(goal, context.clock.now()).into();
        let prompt = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
        let team = [formed].into_iter().chain(inputs).map(|record| RecordBody::Team(Box::new(record)));
        team.chain([prompt]).collect()
    }

    /// Resumes the run that `context` names from the end of its log: after a crash, a cancel, or an answer
    /// through the inbox. The run keeps its members, settings and limits.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended or is not a team's run, or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, TeamError> {
        self.resume_with(&MoreLimits::default(), context).await
    }

    /// Does the same as [`resume`](Self::resume) after raising the limits, so that a run that ended at a
    /// limit continues. More turns change nothing, because a team has no turns of its own.
    ///
    /// # Errors
    /// The errors of [`resume`](Self::resume), or a limit is still reached after the raise.
    pub async fn resume_with(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, TeamError> {
        self.resume_run(None, Vec::new(), more, context).await
    }

    /// Answers the question of the team about `call`, or the question of the member that works on `call`, and resumes
    /// the run. If the member has several open questions, the answer is for the oldest one.
    ///
    /// # Errors
    /// There is no such open question, or the errors of [`resume`](Self::resume).
    pub async fn answer(
        &self,
        call: CallId,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let journal = context.journal(&self.parts.journal);
        let records = journal.read(&context.run).await?;
        let machine = fold(&context.run, &records)?;
        if !machine.is_waiting_for(call) || machine.is_expired(call, context.clock.now()) {
            return Err(RunRefused::NoQuestion { run: context.run.clone(), call }.into());
        }
        let asked = open_questions(&records).into_iter().find(|(asked, _)| *asked == call);
        let is_forwarded = match asked.filter(|(_, request)| request.asker().is_some()) {
            Some((_, below)) => match answer_below(&**journal, below, answer.clone(), context).await {
                // The team answers for a member that has no log.
                Err(JournalError::UnknownRun { .. }) => false,
                forwarded => forwarded.map(|()| true)?,
            },
            None => false,
        };
        let answered = (!is_forwarded).then_some(RecordBody::ApprovalAnswered { call, answer });
        self.resume_run(None, answered.into_iter().collect(), &MoreLimits::default(), context).await
    }

    async fn resume_run(
        &self,
        goal: Option<&str>,
        bodies: Vec<RecordBody>,
        more: &MoreLimits,
        context: &Context,
    ) -> Result<Outcome, TeamError> {
        let journal = context.journal(&self.parts.journal);
        let open = journal.open(&context.run, OpenMode::Existing).await?;
        let mut machine = fold(&context.run, &open.records)?;
        may_resume(&context.run, machine.ended(), machine.ended_at(more), || machine.may_try_again())?;
        check_called(&**journal, &open.records).await?;
        let context = open.context(&cancelled_alone(context));
        let goal = goal.filter(|_| !open.is_asked());
        let mut log = RunLog::resume(&**journal, open, context.clone());
        // The answer comes before `Resumed`, so that a member that was refused does not continue.
        let opening = goal.map(|goal| self.opening(goal, String::new(), &context)).unwrap_or_default();
        let raised = (!more.is_empty()).then_some(RecordBody::LimitsRaised(*more));
        let first = bodies.into_iter().chain(raised).chain([RecordBody::Resumed]).chain(opening).collect();
        log.step(first, |record| machine.apply(record)).await?;
        Ok(drive(&self.parts, machine, log).await?)
    }

    fn started(&self, place: &SessionPlace, context: &Context) -> RunStarted {
        let options = &self.parts.options;
        let mut config = options.config.clone();
        config.limits = context.limits(options.limits.clone());
        RunStarted::of_lead(context, place, options.agent_id.clone(), RunKind::Team, config)
    }
}

impl Agent for Team {
    fn name(&self) -> &str {
        &self.parts.options.name
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let done = match context.called_by() {
                Some(by) => {
                    let begin = self.start_in(SessionPlace::new(by.origin()), task, context);
                    let more = MoreLimits::default();
                    by.attach(begin, self.resume_run(Some(task), Vec::new(), &more, context)).await
                }
                None => self.start(task, context).await,
            };
            done.unwrap_or_else(|error| {
                let said = format!("{error} ({})", error.advice());
                Outcome::failed(context.run.clone(), FailureKind::Refused, said)
            })
        })
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        Box::pin(async move { Some(fold(run, &journal.read(run).await.ok()?).ok()?.charged()) })
    }
}

/// Folds the records of a team's run into its state.
///
/// # Errors
/// [`TeamError::NotATeam`] if the records are not those of a team's run.
pub fn fold(run: &RunId, records: &[Arc<Record>]) -> Result<TeamMachine, TeamError> {
    archon_run::fold(records, TeamMachine::new).ok_or_else(|| TeamError::NotATeam { run: run.clone() })
}
