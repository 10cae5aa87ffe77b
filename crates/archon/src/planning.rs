//! Planning: this agent's model makes a plan for a goal, and this agent works on the subtasks.

use std::sync::Arc;

use archon_planner::{
    Briefing, LlmConclusion, LlmPlanCheck, LlmPlanner, OnlyTool, PlanDraft, PlanningAgent,
    PlanningAgentOptions, Workers,
};
use archon_react_loop::{LoopError, ReactAgent};
use archon_types::{
    Agent, Answer, CallId, Context, ExecutionLimits, ExtensionMessage, MoreLimits, Origin, Outcome, Planner,
    Reply, RunAgent, RunId, SubTask, Toolbox,
};

use crate::{Archon, RunError, RunHandle, RunOptions};

/// An agent that makes and executes plans, which [`Archon::planning`] creates. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Planning {
    archon: Archon,
    agent: PlanningAgent,
}

impl Archon {
    /// Makes a plan for a task with this agent's model, executes it, and lets the model write the answer.
    /// [`planner::fold`](archon_planner::fold) folds the log of the run into its state
    /// ([`AgentState`](archon_types::AgentState)) and the task with its subtasks.
    ///
    /// # Errors
    /// As [`Planning::run`].
    pub async fn run_task(&self, task: impl Into<String>) -> Result<Reply, RunError> {
        let conclusion = Arc::new(self.conclusion());
        let planning = self.planning(self.planner());
        planning.with(|agent| agent.with_conclusion(conclusion)).run(task).await
    }

    /// Returns a planner that asks this agent's model, with its keys, its retries and its fallback models.
    pub fn planner(&self) -> LlmPlanner {
        let own = self.agent.options();
        let planner = LlmPlanner::new(self.questions.provider.clone(), own.model.clone())
            .with_fallbacks(self.questions.fallbacks.clone());
        match own.price {
            Some(price) => planner.with_price(price),
            None => planner,
        }
    }

    /// Returns a conclusion, which asks this agent's model to write the answer of a plan with citations of
    /// subtasks, for [`Planning::with`].
    pub fn conclusion(&self) -> LlmConclusion {
        let own = self.agent.options();
        let conclusion = LlmConclusion::new(self.questions.provider.clone(), own.model.clone())
            .with_fallbacks(self.questions.fallbacks.clone());
        match own.price {
            Some(price) => conclusion.with_price(price),
            None => conclusion,
        }
    }

    /// Returns a check that asks this agent's model if a plan fits the task, before the plan is executed.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), archon::RunError> {
    /// use archon::planner::CheckedPlanner;
    /// let agent = archon::Archon::builder().model("ollama:qwen3").build()?;
    /// let planning = agent.planning(CheckedPlanner::new(agent.planner(), agent.plan_check()));
    /// println!("{}", planning.run("Compare the rivers of Paris and London").await?.into_text()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan_check(&self) -> LlmPlanCheck {
        let own = self.agent.options();
        let check = LlmPlanCheck::new(self.questions.provider.clone(), own.model.clone())
            .with_fallbacks(self.questions.fallbacks.clone());
        match own.price {
            Some(price) => check.with_price(price),
            None => check,
        }
    }

    /// Creates an agent that executes the plans of `planner`, with this agent's tools, limits and journal.
    ///
    /// A subtask with a tool and its arguments in the plan is one call of that tool. Every other subtask is a
    /// run of this agent, which sees only the tool that the subtask names, or all tools if it names none. If
    /// this agent has structured output ([`answering`](Self::answering)), its schema is for the answer of the
    /// plan.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), archon::RunError> {
    /// use std::sync::Arc;
    /// let agent = archon::Archon::builder().model("ollama:qwen3").build()?;
    /// let planning = agent.planning(agent.planner());
    /// println!("{}", planning.run("Compare the rivers of Paris and London").await?.into_text()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn planning(&self, planner: impl Planner + 'static) -> Planning {
        self.planning_with(planner, self.planning_options())
    }

    /// Does the same as [`planning`](Self::planning), with other options.
    pub fn planning_with(&self, planner: impl Planner + 'static, options: PlanningAgentOptions) -> Planning {
        let is_small = self.is_small();
        let worker = self.agent.clone().without_output_schema();
        let workers = OwnWorkers { agent: worker.clone(), toolbox: self.toolbox.clone(), is_small };
        let mut agent = PlanningAgent::new(planner, Arc::new(worker), self.journal.clone(), options)
            .with_toolbox(self.toolbox.clone())
            .with_workers(Arc::new(workers))
            .with_conclusion(Arc::new(self.conclusion().for_forms()));
        if let Some(form) = self.output_schema() {
            agent = form.of_plan(agent);
        }
        let agent = match self.agent.approver() {
            Some(approver) => agent.with_approver(approver.clone()),
            None => agent,
        };
        Planning { archon: self.clone(), agent }
    }

    /// Returns the options that [`planning`](Self::planning) uses: this agent's name, id, model and limits,
    /// and defaults for the rest.
    pub fn planning_options(&self) -> PlanningAgentOptions {
        let own = self.agent.options();
        let mut options = PlanningAgentOptions::default();
        options.name.clone_from(&own.name);
        options.agent_id = own.agent_id.clone();
        options.config = self.lead_config();
        options.limits = own.limits.clone();
        if self.is_small() {
            options.briefing = Briefing::Short;
        }
        options
    }

    /// Returns true if the model needs short instructions.
    fn is_small(&self) -> bool {
        self.questions.provider.capabilities(&self.agent.options().model).is_small
    }
}

impl Planning {
    /// Changes the planning agent, for instance its memory, conclusion or control.
    pub fn with(mut self, change: impl FnOnce(PlanningAgent) -> PlanningAgent) -> Self {
        self.agent = change(self.agent);
        self
    }

    /// Returns the planning agent, which other agents can call.
    pub fn agent(&self) -> &PlanningAgent {
        &self.agent
    }

    /// Returns the agent for a [`Runs`](crate::Runs) service, which starts and resumes plans by id.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Makes a plan and checks it, without executing or storing it.
    ///
    /// # Errors
    /// The task is empty, or the planner made no plan.
    pub async fn draft(&self, task: impl Into<String>) -> Result<PlanDraft, RunError> {
        self.draft_with(task, RunOptions::default()).await
    }

    /// Does the same as [`draft`](Self::draft), with options. The planner sees the conversation of the
    /// session in `options`.
    ///
    /// # Errors
    /// As [`draft`](Self::draft), or the session is busy, or the journal failed.
    pub async fn draft_with(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<PlanDraft, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        let place = own.archon.place(origin, &task, &context).await?;
        Ok(own.agent.draft_in(place, &task, &context).await?)
    }

    /// Makes a plan and executes it until there is an answer, or until the run is suspended.
    ///
    /// # Errors
    /// [`RunError::Failed`] if there is no plan, or a required subtask failed. Another error if the goal is
    /// empty, the run could not be started, or the journal failed.
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

    /// Starts the run in the background and returns at once; otherwise the same as
    /// [`run_with`](Self::run_with).
    ///
    /// # Errors
    /// The task is empty, or as [`run_with`](Self::run_with).
    pub async fn start(&self, task: impl Into<String>, options: RunOptions) -> Result<RunHandle, RunError> {
        let task = task.into();
        let (own, context, origin) = self.prepare(&task, options).await?;
        let work = |_, context| async move { own.begin(&task, origin, &context).await };
        Ok(self.archon.spawn(context, work))
    }

    /// Resumes the run of a plan from the end of its log. Completed subtasks are not repeated.
    ///
    /// # Errors
    /// The run is unknown. The reply of the handle is an error if the run is in use, has ended or is not the
    /// run of a plan.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// Resumes the run of a plan with larger limits; otherwise the same as [`resume`](Self::resume).
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if the run has reached a limit that
    /// still applies.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        let (context, own) = (self.archon.context_of(run).await?, self.clone());
        Ok(self.archon.spawn(context, move |_, context| async move { own.resume_run(&more, &context).await }))
    }

    /// Returns this agent with the limits of one run; without `limits` with its own.
    pub(crate) fn limited(&self, limits: Option<ExecutionLimits>) -> Self {
        let own = self.clone();
        match limits {
            Some(limits) => own.with(|agent| agent.with_limits(limits)),
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
        let context = &self.archon.own(context);
        let mut place = self.archon.place(origin, goal, context).await?;
        place.extensions = extensions;
        let outcome = self.agent.start_in(place, goal, context).await?;
        self.archon.remember(&outcome, context).await?;
        Ok(outcome)
    }

    pub(crate) async fn resume_run(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, RunError> {
        let context = &self.archon.own(context);
        let resumed = self.agent.resume_with(more, context).await.map_err(RunError::from);
        self.archon.remember_ended(resumed, context).await
    }

    /// Answers the question with this id, because a call may have several questions; otherwise the same as
    /// [`answer`](Self::answer).
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_question(
        &self,
        run: RunId,
        request_id: impl Into<String>,
        answer: Answer,
    ) -> Result<RunHandle, RunError> {
        let (context, agent) = (self.archon.context_of(run).await?, self.agent.clone());
        let request_id = request_id.into();
        Ok(self.archon.spawn(context, |_, context| async move {
            Ok(agent.answer_question(&request_id, answer, &context).await?)
        }))
    }

    /// Answers the question about a call of a suspended run, and resumes the run.
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if there is no such question.
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError> {
        let context = self.archon.context_of(run).await?;
        let agent = self.agent.clone();
        Ok(self
            .archon
            .spawn(context, |_, context| async move { Ok(agent.answer(call, answer, &context).await?) }))
    }
}

/// Gives each subtask this agent with the one tool that the subtask names, or with all tools if it names
/// none. A small model without a named tool gets no tool, since it would call any tool that it has.
struct OwnWorkers {
    agent: ReactAgent,
    toolbox: Arc<dyn Toolbox>,
    is_small: bool,
}

impl Workers for OwnWorkers {
    fn worker(&self, _: &SubTask, tool: Option<&str>) -> Arc<dyn Agent> {
        let agent = self.agent.clone();
        // No tool has an empty name, so the agent gets none.
        match tool.or(self.is_small.then_some("")) {
            Some(tool) => Arc::new(agent.with_toolbox(Arc::new(OnlyTool::new(self.toolbox.clone(), tool)))),
            None => Arc::new(agent),
        }
    }
}
