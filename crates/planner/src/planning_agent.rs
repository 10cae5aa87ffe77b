//! The planning agent: starts and resumes its runs, and takes answers to the runs' questions.

use std::sync::Arc;

use archon_run::{RunDriver, RunLog, cancelled_alone, surviving_groups};
use archon_types::{
    Agent, Answer, ApprovalRequest, Approver, BoxFuture, CallId, Context, ExecutionLimits, FailureKind,
    Journal, LongTerm, Message, MoreLimits, OpenMode, Origin, Outcome, OutputCheck, PendingApproval,
    PlanRecord, Planner, PromptSource, Record, RecordBody, ResponseFormat, RunId, RunKind, RunRefused,
    RunStarted, SessionPlace, Spending, Task, Toolbox, answer_below, check_called, may_resume,
};

use crate::{
    Conclude, LastResults, OneWorker, PlanControl, PlanMachine, PlanNode, PlanProblem, PlanRunError,
    PlanningAgentOptions, Workers, check,
    following::{Following, plan},
    open_questions,
    parts::Parts,
    problem::ProblemKind,
};

/// A plan that has not started.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanDraft {
    /// The plan.
    pub task: Task,
    /// Errors and warnings of the plan.
    pub problems: Vec<PlanProblem>,
    /// The planner's spending for the plan.
    pub spent: Spending,
}

/// An agent that makes a plan for its task and follows the plan, with every step in a journal.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_planner::{LlmConclusion, LlmPlanner, PlanningAgent, PlanningAgentOptions};
/// use archon_types::{Agent, AskLater, ExecutionLimits, Journal, LongTerm, Provider, Toolbox};
///
/// fn planning(
///     model: Arc<dyn Provider>,
///     worker: Arc<dyn Agent>,
///     journal: Arc<dyn Journal>,
///     tools: Arc<dyn Toolbox>,
///     memory: Arc<dyn LongTerm>,
/// ) -> PlanningAgent {
///     let planner = LlmPlanner::new(model.clone(), "gpt-5-mini");
///     PlanningAgent::new(planner, worker, journal, PlanningAgentOptions::default())
///         .with_toolbox(tools)
///         .with_memory(memory)
///         .with_conclusion(Arc::new(LlmConclusion::new(model, "gpt-5-mini")))
///         .with_approver(AskLater)
///         .with_limits(ExecutionLimits::default().with_max_total_tokens(200_000))
/// }
/// ```
#[derive(Clone)]
pub struct PlanningAgent {
    parts: Arc<Parts>,
    control: PlanControl,
}

impl PlanningAgent {
    /// Creates an agent that follows the planner's plans. Each subtask is a run of `worker`.
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

    /// Sets the tools that a plan may name. A subtask with a tool and its arguments is executed as one
    /// tool call.
    pub fn with_toolbox(self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.with(|parts| parts.toolbox = Some(toolbox))
    }

    /// Sets the object that chooses the agent for each subtask. Default: the `worker` of [`new`](Self::new).
    ///
    /// ```
    /// # use archon_planner::{PlanningAgent, Workers};
    /// fn with_two(agent: PlanningAgent, workers: std::sync::Arc<dyn Workers>) -> PlanningAgent {
    ///     agent.with_workers(workers)
    /// }
    /// ```
    pub fn with_workers(self, workers: Arc<dyn Workers>) -> Self {
        self.with(|parts| parts.workers = workers)
    }

    /// Sets the maker of the final answer. Default [`LastResults`].
    pub fn with_conclusion(self, conclude: Arc<dyn Conclude>) -> Self {
        self.with(|parts| parts.conclude = conclude)
    }

    /// Sets a memory. The agent recalls memories for the goal before it plans, and stores the answer. Default: none.
    pub fn with_memory(self, memory: Arc<dyn LongTerm>) -> Self {
        self.with(|parts| parts.memory = Some(memory))
    }

    /// Sets an approver, which is asked about tool calls that need an approval, and about calls in doubt. If the
    /// approver does not answer at once, the run is suspended. All other questions of a plan do not go to the
    /// approver; they always suspend the run.
    pub fn with_approver(self, approver: impl Approver + 'static) -> Self {
        self.with(|parts| parts.approver = Some(Arc::new(approver)))
    }

    /// Sets the control with which a program can pause and replan the run.
    ///
    /// ```
    /// # fn example(agent: archon_planner::PlanningAgent) {
    /// let control = archon_planner::PlanControl::new();
    /// let agent = agent.with_control(control.clone());
    /// control.pause("wait for the morning");
    /// # }
    /// ```
    pub fn with_control(mut self, control: PlanControl) -> Self {
        self.control = control;
        self
    }

    /// Sets a structured output: the answer must be JSON that fits the schema of `format`. An answer that
    /// does not fit is made again, at most as often as `check` allows; then the run fails. The schema is
    /// recorded, so that a resumed run uses the same schema. Agents of subtasks do not see the schema.
    ///
    /// ```
    /// # fn example(agent: archon_planner::PlanningAgent) {
    /// use archon_types::{OutputCheck, ResponseFormat};
    /// let schema = serde_json::json!({ "type": "object", "required": ["days"] });
    /// let format = ResponseFormat { name: "Trip".to_owned(), schema };
    /// let agent = agent.with_output_schema(format, OutputCheck::new(2)); // at most 2 retries
    /// # }
    /// ```
    pub fn with_output_schema(self, format: ResponseFormat, check: OutputCheck) -> Self {
        self.with(|parts| {
            let config = &mut parts.options.config;
            Arc::make_mut(&mut config.options).response_format = Some(format);
            config.output_check = Some(check);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }

    /// Sets the limits of each run, its subtasks included. Default: `ExecutionLimits::default`.
    pub fn with_limits(self, limits: ExecutionLimits) -> Self {
        self.with(|parts| parts.options.limits = limits)
    }

    /// Returns the options.
    pub fn options(&self) -> &PlanningAgentOptions {
        &self.parts.options
    }

    /// Asks the planner for a plan and checks the plan. Nothing is executed or recorded.
    ///
    /// # Errors
    /// [`PlanRunError::Problems`] if the goal is empty. [`PlanRunError::NoDraft`], with the reason and the spending, if
    /// the planner gave no plan.
    pub async fn draft(&self, goal: &str, context: &Context) -> Result<PlanDraft, PlanRunError> {
        self.draft_in(SessionPlace::new(Origin::Prompt), goal, context).await
    }

    /// Drafts a plan like [`draft`](Self::draft), for a run that would continue a conversation.
    ///
    /// # Errors
    /// See [`draft`](Self::draft).
    pub async fn draft_in(
        &self,
        place: SessionPlace,
        goal: &str,
        context: &Context,
    ) -> Result<PlanDraft, PlanRunError> {
        if goal.trim().is_empty() {
            let problems = vec![PlanProblem::of_plan(ProblemKind::EmptyGoal)];
            return Err(PlanRunError::Problems { problems });
        }
        let machine = PlanMachine::new(&self.started(&place, context), context.clock.now());
        let mut planning = self.parts.planning(context, &machine);
        planning.budget = Some(machine.remaining_budget());
        planning.values = self.parts.options.values.clone();
        planning.memories = self.parts.recall(goal).await;
        planning.background = place.background;
        let planned = match self.parts.options.plan.clone() {
            Some(subtasks) => Ok(Task::new(context.run.as_str(), goal).with_subtasks(subtasks)),
            None => self.parts.planner.create_plan(goal, &planning).await,
        };
        let spent = planning.expenses.total();
        let mut task = planned.map_err(|error| PlanRunError::NoDraft { error, spent })?;
        for (key, value) in &planning.values {
            task.context.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let mut options = self.parts.check_options(context, &machine);
        options.settings = self.parts.options.settings.clone();
        let problems = check(&task, &options);
        Ok(PlanDraft { task, problems, spent })
    }

    /// Starts the run that `context` names, and drives the run until it ends or is suspended.
    ///
    /// # Errors
    /// A limit forbids the run, the schema of the answer is invalid, or the journal failed.
    pub async fn start(&self, goal: &str, context: &Context) -> Result<Outcome, PlanRunError> {
        self.start_in(SessionPlace::new(Origin::Prompt), goal, context).await
    }

    /// Starts a run like [`start`](Self::start) that continues a conversation.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    pub async fn start_in(
        &self,
        place: SessionPlace,
        goal: &str,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        let started = self.started(&place, context);
        context.may_delegate(started.config.limits.max_depth)?;
        if let Some(problem) = started.config.output_format().and_then(ResponseFormat::schema_problem) {
            return Err(PlanRunError::InvalidSchema { problem });
        }
        let journal = context.journal(&self.parts.journal);
        let mut opening = self.opening(goal, place.background.clone(), context).await;
        opening.extend(place.extension_records());
        let (log, records) = RunLog::begin(&**journal, started, opening, context).await?;
        self.drive(fold_plan(context, &records)?, log, Vec::new()).await
    }

    /// Returns the records that follow the first record of the run.
    async fn opening(&self, goal: &str, background: String, context: &Context) -> Vec<RecordBody> {
        let memories = self.parts.recall(goal).await;
        let options = &self.parts.options;
        let mut settings = options.settings.clone();
        if options.plan.is_some() {
            settings.replan.max_replans = 0;
        }
        let mut bodies = plan(PlanRecord::Settings(settings));
        if let Some(subtasks) = options.plan.clone() {
            bodies.extend(plan(PlanRecord::FixedPlan { subtasks }));
        }
        let values = options.values.clone();
        if !values.is_empty() || !memories.is_empty() || !background.is_empty() {
            bodies.extend(plan(PlanRecord::Inputs { context: values, memories, background }));
        }
        let message = Message::user(goal, context.clock.now()).into();
        bodies.push(RecordBody::MessageAdded { message, source: PromptSource::Prompt });
        bodies
    }

    /// Resumes the run that `context` names from the end of its log, after a crash, a cancel or a pause.
    ///
    /// Finished subtasks are not repeated. The run keeps the settings and limits with which it was
    /// started.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended or is not a plan; processes that its tools started cannot be
    /// ended; or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, PlanRunError> {
        self.resume_with(&MoreLimits::default(), context).await
    }

    /// Resumes a run like [`resume`](Self::resume) after raising the limits, so that a run that ended at
    /// a limit continues.
    ///
    /// # Errors
    /// See [`resume`](Self::resume); or the run has reached a limit that `more` does not raise enough.
    pub async fn resume_with(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, PlanRunError> {
        self.resume_run(None, None, more, context).await
    }

    /// Answers the question about a call of a suspended run, and resumes the run. An edited plan is
    /// checked first. An answer to a question of a child run is posted to that child run.
    ///
    /// # Errors
    /// There is no such question, or there are several about this call; the question has expired; the
    /// answer is not acceptable; the edited plan cannot be followed; or the errors of
    /// [`resume`](Self::resume).
    pub async fn answer(
        &self,
        call: CallId,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        self.resume_run(None, Some((Question::Of(call), answer)), &MoreLimits::default(), context).await
    }

    /// Answers the question with this id, like [`answer`](Self::answer).
    ///
    /// # Errors
    /// See [`answer`](Self::answer).
    pub async fn answer_question(
        &self,
        request_id: &str,
        answer: Answer,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        self.resume_run(None, Some((Question::Named(request_id), answer)), &MoreLimits::default(), context)
            .await
    }

    /// Checks an answer to a question of the run that `context` names, before the answer is stored. An
    /// edited plan must pass the checks. Answers to questions of child runs are checked by those runs.
    ///
    /// # Errors
    /// The answer is not acceptable, the log is not the log of a plan, or the journal failed.
    pub async fn check_answer(
        &self,
        pending: &PendingApproval,
        answer: &Answer,
        context: &Context,
    ) -> Result<(), PlanRunError> {
        if !pending.request.call_path.is_empty() {
            return Ok(());
        }
        let records = context.journal(&self.parts.journal).read(&context.run).await?;
        self.parts.take(&fold_plan(context, &records)?, pending.call, answer, context)
    }

    async fn resume_run(
        &self,
        goal: Option<&str>,
        answer: Option<(Question<'_>, Answer)>,
        more: &MoreLimits,
        context: &Context,
    ) -> Result<Outcome, PlanRunError> {
        let journal = context.journal(&self.parts.journal);
        let open = journal.open(&context.run, OpenMode::Existing).await?;
        let mut machine = fold_plan(context, &open.records)?;
        may_resume(&context.run, machine.ended(), machine.ended_at(more), || machine.may_try_again())?;
        check_called(&**journal, &open.records).await?;
        let context = open.context(&cancelled_alone(context));
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
                let RecordBody::ToolCallFinished { call, result } = &record.body else { continue };
                if let Some(tool) = machine.node(*call).and_then(PlanNode::tool) {
                    toolbox.recall(&context.session, tool, result);
                }
            }
            let groups = surviving_groups(&open.records);
            if !groups.is_empty()
                && let Some(group) = toolbox.end_processes(&groups, &context).await.first()
            {
                return Err(PlanRunError::ProcessesLeft { run: context.run.clone(), group: group.id });
            }
        }
        // Only the first record reached the journal, so the run needs the goal again.
        let opening = match goal.filter(|_| !open.is_asked()) {
            Some(goal) => self.opening(goal, String::new(), &context).await,
            None => Vec::new(),
        };
        let questions = questions.into_iter().map(|(call, request)| (call, request.clone())).collect();
        let mut log = RunLog::resume(&**journal, open, context);
        let raised = (!more.is_empty()).then_some(RecordBody::LimitsRaised(*more));
        let first = raised.into_iter().chain([RecordBody::Resumed]).chain(answered).chain(opening).collect();
        log.step(first, |record| machine.apply(record)).await?;
        self.drive(machine, log, questions).await
    }

    /// Returns the record of an acceptable answer; `None` if the answer was posted to the child run that
    /// asked.
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
        let journal = context.journal(&self.parts.journal);
        if request.asker().is_some() && journal.inbox().is_some() {
            answer_below(&**journal, request, answer, context).await?;
            return Ok(None);
        }
        self.parts.take(machine, call, &answer, context)?;
        Ok(Some(RecordBody::ApprovalAnswered { call, answer }))
    }

    async fn drive(
        &self,
        machine: PlanMachine,
        log: RunLog,
        open: Vec<(CallId, ApprovalRequest)>,
    ) -> Result<Outcome, PlanRunError> {
        let (parts, control, context) = (self.parts.clone(), self.control.clone(), log.context().clone());
        let mut following = Following { parts, control, context, open, deciding: Vec::new() };
        Ok(RunDriver::new(machine, log).drive(&mut following).await?)
    }

    fn started(&self, place: &SessionPlace, context: &Context) -> RunStarted {
        let options = &self.parts.options;
        let mut config = options.config.clone();
        config.limits = context.limits(options.limits.clone());
        if self.parts.toolbox.is_some() {
            config.tools = self.parts.specs();
        }
        RunStarted::of_lead(context, place, options.agent_id.clone(), RunKind::Plan, config)
    }
}

/// Identifies the question that is answered.
enum Question<'a> {
    /// The question about this call.
    Of(CallId),
    /// The question with this id.
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
                    by.attach(begin, self.resume_run(Some(task), None, &MoreLimits::default(), context)).await
                }
                None => self.start(task, context).await,
            };
            outcome.unwrap_or_else(|error| {
                Outcome::failed(context.run.clone(), FailureKind::Refused, error.to_string())
            })
        })
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        Box::pin(async move { Some(crate::fold(&journal.read(run).await.ok()?)?.spending()) })
    }
}

archon_types::debug_fields!(PlanningAgent: options = parts.options);
