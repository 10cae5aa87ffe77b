//! Executes the calls of a plan. A subtask is the run of an agent, or one tool call if the plan has the
//! arguments.

use std::sync::Arc;

use archon_run::Recorded;
use archon_types::{
    ApprovalRequest, CallId, Citation, Content, Context, Effect, Executed, FailureKind, Journal, Json,
    Outcome, OutcomeStatus, Prepared, ReadyCall, RecordBody, RunId, Subject, ToolCall, ToolResult, ToolSpec,
    Toolbox, binding, is_log_lost, questions_below, rebound,
};
use serde_json::json;

use crate::{
    NodeState, PlanNode,
    brief::{Briefing, brief, short_brief},
    following::{Following, Happened, Run},
};

/// Starts the call of a subtask, or records the reason why the call cannot start.
pub(crate) async fn start(plan: &mut Following, run: &mut Run, call: CallId) -> Recorded {
    let Some(node) = run.machine.node(call) else { return Ok(()) };
    let definition = node.tool().and_then(|name| plan.tool(name));
    let arguments = match run.machine.arguments(call, definition.as_ref()) {
        Ok(arguments) => arguments,
        Err(why) => return refuse(run, call, why).await,
    };
    match (definition, arguments) {
        (Some(tool), Some(arguments)) => run_tool(plan, run, call, &tool.name, arguments).await,
        (_, arguments) => {
            let Some(lease) = run.machine.lease(call) else { return Ok(()) };
            let child = run.context().run.of_call(call);
            let started = RecordBody::ToolCallStarted {
                call,
                attempt: 0,
                effect: Effect::Idempotent,
                child_run: Some(child.clone()),
            };
            run.record(vec![RecordBody::LeaseGranted { call, child_run: child, lease }, started]).await?;
            run_agent(plan, run, call, arguments.as_ref());
            Ok(())
        }
    }
}

/// Continues a call that was running when the process died or the run was cancelled. A child run is
/// resumed. A tool that may have had an effect is not called again.
pub(crate) async fn attach(plan: &mut Following, run: &mut Run, call: CallId) -> Recorded {
    let Some(node) = run.machine.node(call) else { return Ok(()) };
    let (tool, is_begun) = (node.tool().map(str::to_owned), node.is_begun());
    let NodeState::Running { effect, child } = node.state.clone() else { return Ok(()) };
    let definition = tool.as_deref().and_then(|name| plan.tool(name));
    let arguments = run.machine.arguments(call, definition.as_ref()).ok().flatten();
    match (child, effect, tool.as_deref(), arguments) {
        (Some(child), ..) if is_begun && is_log_lost(&**plan.journal(), &child).await? => {
            let request = lost_question(plan, run, call, &child);
            plan.ask_about(run, call, request).await
        }
        (Some(_), _, _, arguments) => {
            run_agent(plan, run, call, arguments.as_ref());
            Ok(())
        }
        (None, Effect::ReadOnly | Effect::Idempotent, Some(tool), Some(arguments)) => {
            run_tool(plan, run, call, tool, arguments).await
        }
        // A call that may have had an effect is in doubt already and not running.
        _ => {
            let result = Arc::new(ToolResult::error(
                "the call was cut off, and its tool or its arguments do not exist any more",
            ));
            run.record(vec![RecordBody::ToolCallFinished { call, result }]).await
        }
    }
}

/// Asks a person about a call that was cut off. The question shows the arguments, and is bound to them,
/// so that an approval allows a second run of exactly this call.
pub(crate) async fn doubt(
    plan: &mut Following,
    run: &mut Run,
    call: CallId,
    mut request: Box<ApprovalRequest>,
) -> Recorded {
    let node = run.machine.node(call);
    if node.is_some_and(PlanNode::is_begun) {
        let request = lost_question(plan, run, call, &run.context().run.of_call(call));
        return plan.ask_about(run, call, request).await;
    }
    let tool = node.and_then(|node| node.tool()).unwrap_or_default().to_owned();
    let edited = node.and_then(|node| node.edited.clone());
    let definition = plan.tool(&tool);
    let planned = || run.machine.arguments(call, definition.as_ref()).ok().flatten();
    if let Some(arguments) = edited.or_else(planned) {
        let known = std::mem::take(&mut request.binding);
        *request = ApprovalRequest::in_doubt(&request.request_id, &tool, &arguments);
        let specs = plan.parts.toolbox.as_ref().map(|toolbox| toolbox.specs());
        let spec = specs.as_ref().and_then(|specs| specs.iter().find(|spec| spec.name == tool));
        request.binding = match (known, spec) {
            (known, Some(spec)) if known.is_empty() => binding(spec, &arguments, &Subject::Unknown),
            (known, _) => known,
        };
    }
    plan.ask_about(run, call, request).await
}

/// Returns the question about a child run whose log is lost, so that its effects are unknown.
fn lost_question(plan: &Following, run: &Run, call: CallId, child: &RunId) -> Box<ApprovalRequest> {
    let subtask = run.machine.node(call).map(|node| &node.subtask);
    let name = subtask.map(|subtask| subtask.id.as_str()).unwrap_or_default();
    let task = json!({ "task": subtask.map(|subtask| subtask.description.as_str()) });
    let id = format!("{}.{call}.lost", run.context().run);
    let mut request = ApprovalRequest::in_doubt(id, name, &task).of_lost_run(child);
    let tool = run.machine.node(call).and_then(|node| node.tool());
    if let Some(subtask) = subtask {
        plan.parts.workers.worker(subtask, tool).name().clone_into(&mut request.agent_name);
    }
    Box::new(request)
}

async fn run_tool(
    plan: &mut Following,
    run: &mut Run,
    call: CallId,
    tool: &str,
    arguments: Json,
) -> Recorded {
    let Some(toolbox) = plan.parts.toolbox.clone() else { return Ok(()) };
    let attempt = run.machine.node(call).map_or(0, |node| node.starts);
    let mut context = trusting(run);
    context.cancel = run.stop().clone();
    context.processes = Some(run.reporter());
    context.under_way = Some(run.under_way());
    let spec = toolbox.specs().iter().find(|spec| spec.name == tool).cloned();
    let (arguments, edited, agreed) = agreed(run, call, arguments, spec.as_ref());
    let tool_call = ToolCall::new(format!("call_{call}"), tool, arguments);
    // An approval that was given counts even if nobody can be asked any more.
    let mut asking = context.clone();
    asking.can_ask |= agreed.is_some() || plan.parts.approver.is_some();
    asking.agreed = agreed.as_deref().map(Arc::from);
    let mut ready = match toolbox.prepare(call, &tool_call, &asking).await {
        Prepared::Ready(ready) => ready,
        Prepared::Refused(result) => {
            return run.record(vec![RecordBody::ToolCallRefused { call, result: result.into() }]).await;
        }
        Prepared::Ask(mut request) => {
            let Some(spec) = spec else {
                return refuse(run, call, format!("the tool {tool} does not exist any more")).await;
            };
            if request.binding.is_empty() {
                request.binding = binding(&spec, &tool_call.arguments, &Subject::Unknown);
            }
            // A person is not asked twice about the same call.
            if agreed.as_ref() != Some(&request.binding) {
                return plan.ask_about(run, call, request).await;
            }
            ReadyCall::new(call, tool_call, spec.annotations.effect)
        }
        _ => return refuse(run, call, format!("the toolbox did not accept the call of {tool}")).await,
    };
    ready.started_before = attempt;
    let started = RecordBody::ToolCallStarted { call, attempt, effect: ready.effect, child_run: None };
    run.record(vec![started]).await?;
    let journal = context.journal(&plan.parts.journal).clone();
    let work = executed(toolbox, ready, edited, context, journal);
    run.spawn(work, move || ended(call, ToolResult::error("the tool panicked")));
    Ok(())
}

/// Returns three values: the arguments for the call; these arguments again if a person changed them, otherwise
/// `None`; and the binding of a person's approval, if there is one. With changed arguments, the binding is `None` if
/// the approval was for another tool.
fn agreed(
    run: &Run,
    call: CallId,
    planned: Json,
    spec: Option<&ToolSpec>,
) -> (Json, Option<Json>, Option<String>) {
    let node = run.machine.node(call);
    let agreed = node.and_then(|node| node.agreed.clone());
    let Some(edited) = node.and_then(|node| node.edited.clone()) else { return (planned, None, agreed) };
    let agreed = agreed.zip(spec).and_then(|(agreed, spec)| {
        [&planned, &edited].iter().find_map(|asked| rebound(&agreed, spec, asked, &edited))
    });
    (edited.clone(), Some(edited), agreed)
}

/// Executes a prepared call, and returns its result or its questions.
async fn executed(
    toolbox: Arc<dyn Toolbox>,
    ready: ReadyCall,
    edited: Option<Json>,
    context: Context,
    journal: Arc<dyn Journal>,
) -> Happened {
    let call = ready.id;
    match toolbox.execute(ready, &context).await {
        Executed::Done(mut result) => {
            if let Some(edited) = edited {
                let text = format!("[A person changed the arguments of this call to {edited}]");
                result.content.insert(0, Content::text(text));
            }
            ended(call, *result)
        }
        // The call waits for its child run.
        Executed::Suspended(said) => {
            let child = context.run.of_call(call);
            Happened::Asked(call, questions_below(Some(&*journal), &child, call, *said).await)
        }
        _ => ended(call, ToolResult::error("the toolbox ended the call in an unknown way")),
    }
}

fn run_agent(plan: &Following, run: &mut Run, call: CallId, arguments: Option<&Json>) {
    let Some(node) = run.machine.node(call) else { return };
    let (subtask, tool, whole) = (&*node.subtask, node.tool(), run.machine.task());
    let task = match plan.parts.options.briefing {
        Briefing::Full => brief((&whole, run.machine.background()), subtask, tool, arguments),
        Briefing::Short => short_brief(&whole, subtask),
    };
    let worker = plan.parts.workers.worker(subtask, tool);
    let context = child_context(plan, run, call);
    let (stop, child) = (run.stop().clone(), context.run.clone());
    let journal = context.journal(&plan.parts.journal).clone();
    let failed = Outcome::failed(child.clone(), FailureKind::Panicked, "it panicked");
    let work = async move {
        let outcome = worker.run(&task, &context).await;
        let name = worker.name();
        match outcome.status {
            OutcomeStatus::Cancelled if stop.is_cancelled() => Happened::Interrupted,
            OutcomeStatus::Suspended => {
                let said = outcome.to_question(call, name);
                Happened::Asked(call, questions_below(Some(&*journal), &child, call, said).await)
            }
            _ => settled(call, &outcome, name),
        }
    };
    run.spawn(work, move || settled(call, &failed, "agent"));
}

/// Returns the records about a child run that has ended: its spending, and its outcome as the result of the
/// call.
fn settled(call: CallId, outcome: &Outcome, agent: &str) -> Happened {
    let (child_run, spent) = (outcome.run.clone(), outcome.spending());
    let settled = RecordBody::LeaseSettled { call, child_run, spent };
    let result = Arc::new(outcome.to_result(agent));
    Happened::Ended(vec![settled, RecordBody::ToolCallFinished { call, result }])
}

/// Returns the context of the child run for a subtask.
fn child_context(plan: &Following, run: &Run, call: CallId) -> Context {
    let parent = &trusting(run);
    let lease = run.machine.lease(call).unwrap_or_default();
    let max_depth = parent.limits(plan.parts.options.limits.clone()).max_depth;
    let child = parent.of_call(call, lease, max_depth, plan.journal().clone(), run.stop().child_token());
    child.with_caller_log(run.reporter())
}

/// Returns the run's context, to which the permission rules are added that people trusted in this run ("always
/// allow").
fn trusting(run: &Run) -> Context {
    let mut own = run.context().clone();
    let above = run.context().trusted.iter().filter(|rule| !run.machine.trusted().contains(rule));
    own.trusted = run.machine.trusted().iter().chain(above).cloned().collect();
    own
}

fn ended(call: CallId, result: ToolResult) -> Happened {
    Happened::Ended(vec![RecordBody::ToolCallFinished { call, result: Arc::new(result) }])
}

/// Returns the citation of a subtask in an answer.
pub(crate) fn citation(node: &PlanNode) -> Citation {
    Citation::new(&node.subtask, node.result.as_deref().and_then(|result| result.child_run.clone()))
}

/// Records the reason why a call cannot start.
pub(crate) async fn refuse(run: &mut Run, call: CallId, why: impl std::fmt::Display) -> Recorded {
    let result = Arc::new(ToolResult::error(why.to_string()));
    run.record(vec![RecordBody::ToolCallRefused { call, result }]).await
}
