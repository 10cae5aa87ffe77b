//! Calls that start child runs: their leases, and the spending of the child runs.

use std::sync::Arc;

use archon_run::Recorded;
use archon_types::{
    CallId, CallerLog, Context, Delegation, Journal, JournalError, RecordBody, RunId, Spending, ToolCall,
    ToolResult, ToolSpec, metadata,
};

use crate::{CallState, Driver, ReactMachine, calls::refusal, driver::Run, fold, sub_agent::COST};

/// Returns the context of a call that starts a child run; `None` for any other call.
pub(crate) fn context(
    driver: &Driver,
    machine: &ReactMachine,
    call: CallId,
    context: &Context,
    caller_log: Arc<dyn CallerLog>,
) -> Option<Context> {
    let (lease, journal) = (machine.lease(call)?, driver.journal.clone()?);
    let max_depth = machine.config().limits.max_depth;
    let mut own = context.clone();
    let delegation = Delegation::new(context.run.clone(), call, lease, max_depth, journal);
    own.delegation = Some(Arc::new(delegation.with_caller_log(caller_log)));
    Some(own)
}

/// Returns true if the log of the call's child run is lost: the caller's log has the child run, but the journal does
/// not have its log.
pub(crate) async fn is_log_lost(
    driver: &Driver,
    run: &RunId,
    call: &CallState,
) -> Result<bool, JournalError> {
    match &driver.journal {
        Some(journal) if call.is_begun => archon_types::is_log_lost(&**journal, &run.of_call(call.id)).await,
        _ => Ok(false),
    }
}

/// Returns the refusal of a call of a tool that is not in the first record of the run, for instance after a
/// resume with more tools.
pub(crate) fn hidden(
    driver: &Driver,
    machine: &ReactMachine,
    call: &ToolCall,
    context: &Context,
) -> Option<Box<ToolResult>> {
    let config = machine.config();
    let is_offered = |name: &str| config.tool(name).is_some();
    let all = driver.toolbox.specs();
    // A toolbox refuses a call of a tool that it does not have itself.
    let is_sourced = || driver.toolbox.sourced_spec(&call.name).is_some();
    if is_offered(&call.name) || (all.iter().all(|tool| is_offered(&tool.name)) && !is_sourced()) {
        return None;
    }
    let name: String = call.name.chars().take(NAME_SHOWN).collect();
    let is_agent = || all.iter().any(|tool| tool.name == call.name && tool.annotations.agent);
    let text = match context.depth >= config.limits.max_depth && is_agent() {
        true => format!("Error: Tool '{name}' not found. An agent that was called calls no others here."),
        false => format!("Error: Tool '{name}' not found. {}", available(&config.tools)),
    };
    Some(Box::new(refusal(text, "not_found")))
}

fn available(tools: &[ToolSpec]) -> String {
    let names: Vec<&str> = tools.iter().take(NAMES_LISTED).map(|tool| tool.name.as_str()).collect();
    match (names.len(), tools.len() - names.len()) {
        (0, _) => "There are no tools: answer without one.".to_owned(),
        (_, 0) => format!("Available tools: {}.", names.join(", ")),
        (_, more) => format!("Available tools: {} and {more} more.", names.join(", ")),
    }
}

/// Maximum number of characters of an invented tool name that the refusal of its call shows.
const NAME_SHOWN: usize = 100;
/// Maximum number of available tools that the refusal names.
const NAMES_LISTED: usize = 50;

/// Appends the record that ends a call, and before it the record of the child run's spending.
pub(crate) async fn close(driver: &Driver, run: &mut Run, body: RecordBody) -> Recorded {
    let settled = match &body {
        RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
            settlement(driver, &run.machine, &run.context().run, *call, result).await
        }
        _ => None,
    };
    run.record(settled.into_iter().chain([body]).collect()).await
}

async fn settlement(
    driver: &Driver,
    machine: &ReactMachine,
    run: &RunId,
    call: CallId,
    result: &ToolResult,
) -> Option<RecordBody> {
    machine.lease(call)?;
    let child = run.of_call(call);
    let spent = match &driver.journal {
        Some(journal) => spending_of(&**journal, &child).await,
        None => None,
    };
    let spent = spent.unwrap_or_else(|| reported(result));
    let settled = RecordBody::LeaseSettled { call, child_run: child, spent };
    (machine.settled(call) != Some(spent)).then_some(settled)
}

/// Returns the spending of a run from its log. An open model call counts with the amount reserved for it.
pub(crate) async fn spending_of(journal: &dyn Journal, run: &RunId) -> Option<Spending> {
    let records = journal.read(run).await.ok()?;
    match records.last().map(|last| &last.body) {
        Some(RecordBody::RunFinished(outcome)) => Some(outcome.spending()),
        _ => Some(fold(run, &records, Default::default()).ok()?.spending()),
    }
}

/// Returns the spending that a call's result reports, for agents whose log is not in this journal.
fn reported(result: &ToolResult) -> Spending {
    let figure = |key| result.metadata.get(key).and_then(serde_json::Value::as_u64).unwrap_or_default();
    Spending::new(figure(metadata::TOKEN_USAGE), figure(COST))
}

#[cfg(test)]
mod tests;
