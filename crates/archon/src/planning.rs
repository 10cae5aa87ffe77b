//! Planning: this agent's model makes a plan for a goal, and this agent works on the subtasks.

use std::sync::Arc;

use archon_planner::{
    Briefing, LlmConclusion, LlmPlanCheck, LlmPlanner, OnlyTool, PlanDraft, PlanningAgent,
    PlanningAgentOptions, Workers,
};
use archon_react_loop::ReactAgent;
use archon_types::{
    Agent, AgentId, AgentMessage, Answer, BoxFuture, CallId, Context, ExecutionLimits, ExtensionMessage,
    MoreLimits, Origin, Outcome, PendingApproval, Planner, Reply, RunAgent, RunId, RunKind, RunSettings,
    SubTask, Toolbox,
};

use crate::{Archon, RunError, RunHandle, RunOptions, several::runs_of_several};

/// An agent that makes and executes plans. [`Archon::planning`] creates this agent. Cloning is cheap.
///
/// ```
/// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
/// let planning = agent.planning(agent.planner());
/// let draft = planning.draft("Compare the rivers of Paris and London").await?;
/// println!("{} subtasks", draft.task.subtasks.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Planning {
    archon: Archon,
    agent: PlanningAgent,
}

/// Creates `$part`, a part of a planning agent, which asks the model and the fallback models of `$archon` at their
/// prices.
macro_rules! of_own_model {
    ($archon:ident, $part:ident) => {{
        let own = $archon.agent.options();
        let part = $part::new($archon.models.provider.clone(), own.model.clone())
            .with_fallbacks($archon.models.fallbacks.clone());
        match own.price {
            Some(price) => part.with_price(price),
            None => part,
        }
    }};
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
        of_own_model!(self, LlmPlanner)
    }

    /// Returns a conclusion: it asks this agent's model to write the final answer of a plan, with the ids of the
    /// subtasks on which the answer is based. Set it in [`Planning::with`].
    pub fn conclusion(&self) -> LlmConclusion {
        of_own_model!(self, LlmConclusion)
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
        of_own_model!(self, LlmPlanCheck)
    }

    /// Creates an agent that executes the plans of `planner`, with this agent's tools, limits and journal.
    ///
    /// If the plan gives a tool and its arguments for a subtask, the subtask is one call of that tool. Every other
    /// subtask is a run of this agent. This run sees only the tool that the subtask names. If the subtask names none,
    /// the run sees all tools, or no tool if the model is small. If this agent has structured output
    /// ([`answering`](Self::answering)), its schema is for the answer of the plan.
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

    /// Does the same as [`planning`](Self::planning), with other options. Start from
    /// [`planning_options`](Self::planning_options).
    pub fn planning_with(&self, planner: impl Planner + 'static, options: PlanningAgentOptions) -> Planning {
        let is_small = self.is_small();
        let worker = self.agent.clone().without_output_schema();
        let workers = OwnWorkers { agent: worker.clone(), toolbox: self.toolbox.clone(), is_small };
        let mut agent = PlanningAgent::new(planner, Arc::new(worker), self.journal.clone(), options)
            .with_toolbox(self.toolbox.clone())
            .with_workers(Arc::new(workers))
            .with_conclusion(Arc::new(self.conclusion().only_for_schemas()));
        if let Some(schema) = self.output_schema() {
            agent = agent.with_output_schema(schema.format, schema.check);
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
        self.models.provider.capabilities(&self.agent.options().model).is_small
    }
}

runs_of_several!(Planning, agent, RunKind::Plan);

impl Planning {
    /// Changes the agent that plans and does the work: sets, for instance, its control, with which a program
    /// pauses the run, or its conclusion, which writes the answer.
    ///
    /// ```
    /// # fn example(agent: archon::Archon) {
    /// use archon::planner::PlanControl;
    /// let control = PlanControl::new();
    /// let planning = agent.planning(agent.planner()).with(|plan| plan.with_control(control.clone()));
    /// control.pause("wait for the morning");
    /// # }
    /// ```
    pub fn with(mut self, change: impl FnOnce(PlanningAgent) -> PlanningAgent) -> Self {
        self.agent = change(self.agent);
        self
    }

    /// Returns the planning agent in the form that a [`Runs`](crate::Runs) service registers. The service finds the
    /// agent by its id, and starts and resumes its runs.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Makes a plan and executes it until there is an answer, or until the run is suspended.
    ///
    /// # Errors
    /// [`RunError::Failed`] if there is no plan, or a required subtask failed. Another error if the task is
    /// empty, the agents cannot work, the run could not be started, or the journal failed.
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
    /// As [`resume`](Self::resume). The reply of the handle is an error if there is no such question, or if
    /// there are several about this call: then use [`answer_question`](Self::answer_question).
    pub async fn answer(&self, run: RunId, call: CallId, answer: Answer) -> Result<RunHandle, RunError> {
        self.spawn_answered(run, call, answer).await
    }

    /// Returns the planning agent, which other agents can call.
    pub fn agent(&self) -> &PlanningAgent {
        &self.agent
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

    /// Answers the question with this id, for a call that has several questions; otherwise the same as
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

    /// Returns the context unchanged, since a planning agent decides for each call if a person can be asked.
    fn asking(&self, context: Context) -> Context {
        context
    }

    async fn check(
        &self,
        pending: &PendingApproval,
        answer: &Answer,
        context: &Context,
    ) -> Result<(), RunError> {
        Ok(self.agent.check_answer(pending, answer, context).await?)
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
