//! The components of a planning agent, and the checks of plans and answers that use them.

use std::sync::Arc;

use archon_types::{
    Answer, CALL_TOOL, CallId, Context, DynApprover, DynPlanner, Encoded, Journal, LongTerm, MemoryQuery,
    PlanError, PlanningContext, TOOL_SEARCH, Task, ToolDefinition, ToolSpec, Toolbox,
};

use crate::{
    CheckOptions, Conclude, PlanBudget, PlanMachine, PlanProblem, PlanRunError, PlanningAgentOptions,
    Workers, check, check_diff, diff::edited,
};

/// The components of a planning agent.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) planner: Arc<dyn DynPlanner>,
    pub(crate) workers: Arc<dyn Workers>,
    pub(crate) toolbox: Option<Arc<dyn Toolbox>>,
    pub(crate) conclude: Arc<dyn Conclude>,
    pub(crate) memory: Option<Arc<dyn LongTerm>>,
    pub(crate) approver: Option<Arc<dyn DynApprover>>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) options: PlanningAgentOptions,
}

impl Parts {
    pub(crate) fn planning(&self, context: &Context, machine: &PlanMachine) -> PlanningContext {
        let mut planning = PlanningContext::new(context.clone());
        planning.specs = self.specs();
        planning.tools = self.tools();
        planning.values = machine.task().context;
        planning.memories = machine.memories().to_vec();
        machine.background().clone_into(&mut planning.background);
        planning.max_subtasks = Some(self.options.size.max);
        planning
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        self.specs().iter().map(ToolSpec::definition).collect()
    }

    /// Returns the tools that subtasks may call: all, except the two tools with which a model searches and calls
    /// deferred tools, because a plan has no deferred tools; and except tools that instruct the model of a run, such
    /// as `activate_skill`, because a call in a plan is not in such a run.
    pub(crate) fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        let all = self.toolbox.as_ref().map(|toolbox| toolbox.specs()).unwrap_or_default();
        let is_step = |tool: &&ToolSpec| {
            tool.name != TOOL_SEARCH && tool.name != CALL_TOOL && !tool.annotations.instructs
        };
        match all.iter().all(|tool| is_step(&tool)) {
            true => all,
            false => Arc::new(Encoded::new(all.iter().filter(is_step).cloned().collect())),
        }
    }

    /// Returns the options for checking a plan. The first plan is checked against the limits, a replan
    /// against the remaining budget.
    pub(crate) fn check_options(&self, context: &Context, machine: &PlanMachine) -> CheckOptions {
        let mut options = CheckOptions::new(self.tools());
        options.missing_tools.clone_from(&self.options.missing_tools);
        options.settings = machine.settings().clone();
        options.size = self.options.size;
        let limits = context.limits(self.options.limits.clone());
        let mut budget = PlanBudget::new(limits.max_total_tokens, limits.max_duration_ms);
        budget.cost = limits.max_cost_micros;
        if machine.replans() > 0 {
            let lease = machine.unspent();
            (budget.tokens, budget.duration_ms) = (lease.tokens, lease.duration_ms);
            budget.cost = lease.cost_micros;
        }
        options.budget = Some(budget);
        options
    }

    /// Checks that a person's answer to the question about `call` is acceptable. An edited plan must pass the
    /// checks of plans.
    pub(crate) fn take(
        &self,
        machine: &PlanMachine,
        call: CallId,
        answer: &Answer,
        context: &Context,
    ) -> Result<(), PlanRunError> {
        let not_changeable = || Err(PlanRunError::NotChangeable { run: context.run.clone(), call });
        let arguments = match answer {
            Answer::Edit { arguments } => arguments,
            Answer::Reply { .. } if !machine.takes_reply(call) => return not_changeable(),
            _ => return Ok(()),
        };
        match machine.node(call) {
            Some(_) if machine.is_asked_by_tool(call) && arguments.is_object() => return Ok(()),
            Some(_) => return not_changeable(),
            None => {}
        }
        let task: Result<Task, _> = serde_json::from_value(arguments.clone());
        let task = task.map_err(|error| PlanError::Unreadable { problem: error.to_string() })?;
        let options = self.check_options(context, machine);
        let problems = match machine.proposal() {
            None => check(&task, &options),
            Some((proposed, _)) => check_diff(machine, &edited(&machine.task(), proposed, &task), &options),
        };
        match problems.iter().any(PlanProblem::is_error) {
            true => Err(PlanRunError::Problems { problems }),
            false => Ok(()),
        }
    }

    /// Recalls memories for a goal. A failure of the memory does not stop the run.
    pub(crate) async fn recall(&self, goal: &str) -> Vec<String> {
        let Some(memory) = &self.memory else { return Vec::new() };
        match memory.query(&MemoryQuery::new(goal)).await {
            Ok(found) => found.iter().map(archon_types::Recalled::line).collect(),
            Err(error) => {
                tracing::warn!(%error, "nothing was recalled");
                Vec::new()
            }
        }
    }

    pub(crate) async fn remember(&self, task: &Task, answer: &str) {
        let Some(memory) = &self.memory else { return };
        let count = task.subtasks.len();
        let about = [("kind".to_owned(), "plan".into()), ("subtasks".to_owned(), count.into())];
        let content = format!("{}\n{answer}", task.original_query);
        if let Err(error) = memory.store(&content, about.into_iter().collect()).await {
            tracing::warn!(%error, "the memory did not store the outcome");
        }
    }
}
