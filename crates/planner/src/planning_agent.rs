//! The agent that plans: how its run is started, taken up again, and answered.

use std::sync::Arc;

use archon_types::{
    Agent, Answer, ApprovalRequest, Approver, BoxFuture, CallId, Context, ExecutionLimits, FailureKind,
    FormCheck, InboxEntry, Journal, LogAppender, LongTerm, Message, MoreLimits, OpenMode, Origin, Outcome,
    OutcomeStatus, PendingApproval, PlanRecord, Planner, PromptSource, Record, RecordBody, ResponseFormat,
    RunId, RunKind, RunRefused, RunStarted, SessionPlace, Spending, Task, Toolbox, check_called,
    received_messages,
};

use crate::{
    Conclude, LastResults, OneWorker, PlanControl, PlanMachine, PlanNode, PlanProblem, PlanRunError,
    PlanningAgentOptions, Workers, check, driver,
    following::{Following, Said},
    open_questions,
    parts::Parts,
    problem::ProblemKind,
    processes::left_behind,
};

/// A plan that nobody follows yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanDraft {
    /// The plan.
    pub task: Task,
    /// What is wrong with it, and what is odd.
    pub problems: Vec<PlanProblem>,
    /// What it took to make it.
    pub spent: Spending,
}

/// An agent that makes a plan for its task and follows it, with every step in a journal.
#[derive(Clone)]
pub struct PlanningAgent {
    parts: Arc<Parts>,
    control: PlanControl,
}

impl PlanningAgent {
    /// An agent that follows the planner's plans, each subtask a run of `worker`.
    pub fn new(
        planner: impl Planner + 'static,
        worker: Arc<dyn Agent>,
        journal: Arc<dyn Journal>,
        options: PlanningAgentOptions,
    ) -> Self {
        let parts = Parts {
            planner: Arc::new(planner),
            workers: Arc::new(OneWorker(worker)),
            toolbox: None,
            conclude: Arc::new(LastResults),
            memory: None,
            approver: None,
            journal,
            options,
        };
        Self { parts: Arc::new(parts), control: PlanControl::new() }
    }

    /// The same agent with tools: those that a plan may name. A subtask whose arguments are in the plan is one call.
    pub fn with_toolbox(self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.with(|parts| parts.toolbox = Some(toolbox))
    }

    /// The same agent with somebody who chooses who does a subtask.
    pub fn with_workers(self, workers: Arc<dyn Workers>) -> Self {
        self.with(|parts| parts.workers = workers)
    }

    /// The same agent with somebody else who puts the answer together.
    pub fn with_conclusion(self, conclude: Arc<dyn Conclude>) -> Self {
        self.with(|parts| parts.conclude = conclude)
    }

    /// The same agent with a memory: it is asked before planning, and told what came of the goal.
    pub fn with_memory(self, memory: Arc<dyn LongTerm>) -> Self {
        self.with(|parts| parts.memory = Some(memory))
    }

    /// The same agent with somebody who is asked at once about a tool that needs consent. What is not answered at once
    /// waits, as everything else does that a plan asks: the run is suspended.
    pub fn with_approver(self, approver: impl Approver + 'static) -> Self {
        self.with(|parts| parts.approver = Some(Arc::new(approver)))
    }

    /// The same agent, whose run can be paused and redirected through `control`.
    pub fn with_control(mut self, control: PlanControl) -> Self {
        self.control = control;
        self
    }

    /// The same agent, whose answer must be JSON of a form. What is put together is held against it and put together anew
    /// if it does not fit, so often as `check` says; then the run fails. The form is in the run's first record, so
    /// whoever takes the run up asks for the same. Those who do subtasks are not told of it.
    pub fn with_form(self, form: ResponseFormat, check: FormCheck) -> Self {
        self.with(|parts| {
            let config = &mut parts.options.config;
            Arc::make_mut(&mut config.options).response_format = Some(form);
            config.form_check = Some(check);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }

    /// The same agent with other limits of its runs.
    pub fn with_limits(self, limits: ExecutionLimits) -> Self {
        self.with(|parts| parts.options.limits = limits)
    }

    /// What the agent works with.
    pub fn options(&self) -> &PlanningAgentOptions {
        &self.parts.options
    }

    /// Asks the planner for a plan and checks it; nothing is run and nothing is kept.
    ///
    /// # Errors
    /// The goal is empty; or there is no plan, and what that took ([`PlanRunError::NoDraft`]).
    pub async fn draft(&self, goal: &str, context: &Context) -> Result<PlanDraft, PlanRunError> {
        self.draft_in(SessionPlace::new(Origin::Prompt), goal, context).await
    }

    /// As [`draft`](Self::draft), for a run that would go on in a conversation.
    ///
    /// # Errors
    /// As [`draft`](Self::draft).
    pub async fn draft_in(
        &self,
        place: SessionPlace,
        goal: &str,
        context: &Context,
    ) -> Result<PlanDraft, PlanRunError> {
        if goal.trim().is_empty() {
            return Err(PlanRunError::Problems {
                problems: vec![PlanProblem::of_plan(ProblemKind::EmptyGoal)],
            });
        }
        let machine = PlanMachine::new(&self.started(&place, context), context.clock.now());
        let mut planning = self.parts.planning(context, &machine);
        planning.left = Some(machine.left());
        planning.values = self.parts.options.values.clone();
        planning.memories = self.parts.recall(goal).await;
        planning.background = place.background;
        let mut task = match self.parts.options.plan.clone() {
            Some(subtasks) => Task::new(context.run.as_str(), goal).with_subtasks(subtasks),
            None => self
                .parts
                .planner
                .create_plan(goal, &planning)
                .await
                .map_err(|error| PlanRunError::NoDraft { error, spent: planning.expenses.total() })?,
        };
        for (key, value) in &planning.values {
            task.context.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let mut options = self.parts.check_options(context, &machine);
        options.settings = self.parts.options.settings.clone();
        let problems = check(&task, &options);
        Ok(PlanDraft { task, problems, spent: planning.expenses.total() })
    }

    /// Starts the run that `context` names and drives it to its outcome, or until it waits for somebody.
    ///
    /// # Errors
    /// A limit forbids the run, or the journal failed.
    pub async fn start(&self, goal: &str, context: &Context) -> Result<Outcome, PlanRunError> {
        self.start_in(SessionPlace::new(Origin::Prompt), goal, context).await
    }

    /// As [`start`](Self::start), for a run that goes on in a conversation.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_in(
        &self,
        place: SessionPlace,
        goal: &str,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        let started = self.started(&place, context);
        context.may_delegate(started.config.limits.max_depth)?;
        if let Some(problem) = started.config.form().and_then(ResponseFormat::schema_problem) {
            return Err(PlanRunError::Form { problem });
        }
        let journal = context.journal(&self.parts.journal);
        let opening = self.opening(goal, place.background, context).await;
        let (log, records) = LogAppender::begin(&**journal, started, opening, context).await?;
        self.drive(fold_plan(context, &records)?, log, Said::default(), context).await
    }

    /// The first records of the run.
    async fn opening(&self, goal: &str, background: String, context: &Context) -> Vec<RecordBody> {
        let memories = self.parts.recall(goal).await;
        let options = &self.parts.options;
        let plan = |record| RecordBody::Plan(Box::new(record));
        let mut settings = options.settings.clone();
        if options.plan.is_some() {
            settings.replan.max_replans = 0;
        }
        let mut bodies = vec![plan(PlanRecord::Settings(settings))];
        if let Some(subtasks) = options.plan.clone() {
            bodies.push(plan(PlanRecord::Fixed { subtasks }));
        }
        let values = options.values.clone();
        if !values.is_empty() || !memories.is_empty() || !background.is_empty() {
            bodies.push(plan(PlanRecord::Given { values, memories, background }));
        }
        let message = Message::user(goal, context.clock.now()).into();
        bodies.push(RecordBody::Prompted { message, source: PromptSource::Prompt });
        bodies
    }

    /// Takes up the run that `context` names where its log ends: after a crash, a cancel or a pause.
    ///
    /// Subtasks that were done are not done again. The run keeps the settings and limits that it was started with.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended or follows no plan, processes that its tools started cannot be ended,
    /// or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, PlanRunError> {
        self.resume_with(&MoreLimits::default(), context).await
    }

    /// As [`resume`](Self::resume), with larger limits from now on: a run that met its limit goes on.
    ///
    /// # Errors
    /// As [`resume`](Self::resume); and the run has met a limit that still holds.
    pub async fn resume_with(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, PlanRunError> {
        self.take_up(None, None, more, context).await
    }

    /// Answers the question about a call of a run that is suspended, and takes it up. A plan that was edited is checked
    /// first. What a run below asks is answered there.
    ///
    /// # Errors
    /// There is no such question, there are several about this call, it has expired, the answer cannot be taken, the edited
    /// plan cannot be followed, or as for [`resume`](Self::resume).
    pub async fn answer(
        &self,
        call: CallId,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        self.take_up(None, Some((Question::Of(call), answer)), &MoreLimits::default(), context).await
    }

    /// As [`answer`](Self::answer), of the question with this id.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_question(
        &self,
        request_id: &str,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        self.take_up(None, Some((Question::Named(request_id), answer)), &MoreLimits::default(), context).await
    }

    /// Checks an answer to a question of the run that `context` names, before it is kept: a plan that was edited has to
    /// be one that can be followed. What a run below asks is checked there.
    ///
    /// # Errors
    /// The answer cannot be taken, the log is not a plan's, or the journal failed.
    pub async fn check_answer(
        &self,
        pending: &PendingApproval,
        answer: &Answer,
        context: &Context,
    ) -> Result<(), PlanRunError> {
        if !pending.request.path.is_empty() {
            return Ok(());
        }
        let records = context.journal(&self.parts.journal).read(&context.run).await?;
        self.parts.take(&fold_plan(context, &records)?, pending.call, answer, context)
    }

    async fn take_up(
        &self,
        goal: Option<&str>,
        answer: Option<(Question<'_>, Answer)>,
        more: &MoreLimits,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        let journal = context.journal(&self.parts.journal);
        let open = journal.open(&context.run, OpenMode::Existing).await?;
        let mut machine = fold_plan(context, &open.records)?;
        let run = || context.run.clone();
        match (machine.ended().map(|outcome| outcome.status), machine.ended_at(more)) {
            (None | Some(OutcomeStatus::Cancelled), _) | (Some(OutcomeStatus::Limit(_)), None) => {}
            (Some(OutcomeStatus::Failed), _) if machine.may_try_again() => {}
            (Some(OutcomeStatus::Limit(_)), Some(limit)) => {
                return Err(RunRefused::AtLimit { run: run(), limit }.into());
            }
            _ => return Err(RunRefused::Ended { run: run() }.into()),
        }
        check_called(&**journal, &open.records).await?;
        let context = open.context(context);
        let questions = open_questions(&open.records);
        let answered = match answer {
            Some((question, answer)) => {
                let (call, request) = question.among(&questions, &context.run)?;
                self.answered(&machine, call, request, answer, &context).await?
            }
            None => None,
        };
        if let Some(toolbox) = &self.parts.toolbox {
            for record in &open.records {
                let RecordBody::ToolFinished { call, result } = &record.body else { continue };
                if let Some(tool) = machine.node(*call).and_then(PlanNode::tool) {
                    toolbox.recall(&context.session, tool, result);
                }
            }
        }
        let groups = left_behind(&open.records);
        let toolbox = self.parts.toolbox.as_ref().filter(|_| !groups.is_empty());
        if let Some(toolbox) = toolbox
            && let Some(group) = toolbox.end_processes(&groups, &context).await.first()
        {
            return Err(PlanRunError::ProcessesLeft { run: context.run.clone(), group: group.id });
        }
        // Only the first record reached the journal; who calls says the goal again.
        let opening = match goal.filter(|_| !open.is_asked()) {
            Some(goal) => self.opening(goal, String::new(), &context).await,
            None => Vec::new(),
        };
        let said = Said {
            open: questions.into_iter().map(|(call, request)| (call, request.clone())).collect(),
            received: received_messages(&open.records),
        };
        let mut log = open.log(context.clone());
        let raised = (!more.is_empty()).then_some(RecordBody::LimitsRaised(*more));
        let first = raised.into_iter().chain([RecordBody::Resumed]).chain(answered).chain(opening).collect();
        log.step(first, |record| machine.apply(record)).await?;
        self.drive(machine, log, said, &context).await
    }

    /// The record of an answer that can be taken; what a run below asked is left in its inbox.
    async fn answered(
        &self,
        machine: &PlanMachine,
        call: CallId,
        request: &ApprovalRequest,
        answer: Answer,
        context: &Context,
    ) -> Result<Option<RecordBody>, PlanRunError> {
        let now = context.clock.now();
        if request.is_expired(now) {
            return Err(PlanRunError::Expired { run: context.run.clone(), call });
        }
        if let (Some(asker), Some(inbox)) = (request.asker(), context.journal(&self.parts.journal).inbox()) {
            let request = request.answered(answer);
            inbox.post(&asker.run, InboxEntry::new(context.ids.fresh("in"), now, request)).await?;
            return Ok(None);
        }
        self.parts.take(machine, call, &answer, context)?;
        Ok(Some(RecordBody::ToolAnswered { call, answer }))
    }

    async fn drive(
        &self,
        machine: PlanMachine,
        log: LogAppender,
        said: Said,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        let following =
            Following::new(self.parts.clone(), machine, log, context.clone(), self.control.clone(), said);
        Ok(driver::drive(following).await?)
    }

    fn started(&self, place: &SessionPlace, context: &Context) -> RunStarted {
        let options = &self.parts.options;
        let mut config = options.config.clone();
        config.limits = context.limits(options.limits.clone());
        if let Some(toolbox) = &self.parts.toolbox {
            config.tools = toolbox.specs();
        }
        RunStarted::of_lead(context, place, options.agent_id.clone(), RunKind::Plan, config)
    }
}

/// Which question is answered.
enum Question<'a> {
    /// The one about this call.
    Of(CallId),
    /// The one with this id.
    Named(&'a str),
}

impl Question<'_> {
    fn among<'q>(
        &self,
        open: &[(CallId, &'q ApprovalRequest)],
        run: &RunId,
    ) -> Result<(CallId, &'q ApprovalRequest), PlanRunError> {
        let is_meant = |(call, request): &&(CallId, &ApprovalRequest)| match self {
            Self::Of(wanted) => call == wanted,
            Self::Named(id) => request.request_id == *id,
        };
        let meant: Vec<_> = open.iter().filter(is_meant).collect();
        match (meant.as_slice(), self) {
            ([only], _) => Ok(**only),
            ([], Self::Of(call)) => Err(RunRefused::NoQuestion { run: run.clone(), call: *call }.into()),
            ([], Self::Named(id)) => {
                Err(PlanRunError::NoSuchQuestion { run: run.clone(), question: (*id).to_owned() })
            }
            ([(call, _), ..], _) => {
                let questions = meant.iter().map(|(_, request)| request.request_id.clone()).collect();
                Err(PlanRunError::SeveralQuestions { run: run.clone(), call: *call, questions })
            }
        }
    }
}

fn fold_plan(context: &Context, records: &[Arc<Record>]) -> Result<PlanMachine, PlanRunError> {
    crate::fold(records).ok_or_else(|| PlanRunError::NotAPlan { run: context.run.clone() })
}

impl Agent for PlanningAgent {
    fn name(&self) -> &str {
        &self.parts.options.name
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let outcome = match context.called_by() {
                Some(by) => {
                    let begin = self.start_in(SessionPlace::new(by.origin()), task, context);
                    by.attach(begin, self.take_up(Some(task), None, &MoreLimits::default(), context)).await
                }
                None => self.start(task, context).await,
            };
            outcome.unwrap_or_else(|error| {
                Outcome::failed(context.run.clone(), FailureKind::Refused, error.to_string())
            })
        })
    }
}

impl std::fmt::Debug for PlanningAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanningAgent").field("options", &self.parts.options).finish_non_exhaustive()
    }
}
