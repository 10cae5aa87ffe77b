//! The calls of one turn: each is brought to exactly one result, whatever happens to it.

use std::{pin::pin, sync::Arc, task::Poll, time::Duration};

use archon_types::{
    ApprovalRequest, CallId, Context, Executed, JournalError, Prepared, ReadyCall, RecordBody, Timestamp,
    ToolResult, ToolResultStatus, Toolbox,
};
use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::{
    CallStage, CallState, ReactMachine, RunLog,
    driver::{Interrupt, interrupted, step},
};

/// Runs the calls that have no result yet: side by side if every tool of the turn allows it, one
/// after the other if not.
pub(crate) async fn run(
    toolbox: &dyn Toolbox,
    machine: &mut ReactMachine,
    log: &mut RunLog,
    context: &Context,
) -> Result<(), JournalError> {
    let crate::Command::RunCalls(calls) = machine.next() else { return Ok(()) };
    let open: Vec<CallState> = calls.iter().filter(|c| c.result().is_none()).cloned().collect();
    let side_by_side = open.len() > 1 && open.iter().all(|c| is_concurrency_safe(c, machine));
    let mut batch = Batch { toolbox, machine, log, context };
    if side_by_side {
        batch.run_together(open).await
    } else {
        for call in open {
            if context.cancel.is_cancelled() {
                break; // The machine settles the calls that were not started.
            }
            batch.run_together(vec![call]).await?;
        }
        Ok(())
    }
}

fn is_concurrency_safe(call: &CallState, machine: &ReactMachine) -> bool {
    let tools = &machine.config().tools;
    tools.iter().any(|t| t.name == call.call.name && t.annotations.concurrency_safe)
}

struct Batch<'a> {
    toolbox: &'a dyn Toolbox,
    machine: &'a mut ReactMachine,
    log: &'a mut RunLog,
    context: &'a Context,
}

impl Batch<'_> {
    async fn run_together(&mut self, calls: Vec<CallState>) -> Result<(), JournalError> {
        let mut ready = Vec::with_capacity(calls.len());
        for call in calls {
            if let Some(one) = self.prepare(call).await? {
                ready.push(one);
            }
        }
        let starts = ready.iter().map(|(ready, attempt)| RecordBody::ToolStarted {
            call: ready.id,
            attempt: *attempt,
            effect: ready.effect,
            child_run: None,
        });
        for record in self.log.append_all(starts.collect()).await? {
            self.machine.apply(&record);
        }
        let (toolbox, context, deadline) = (self.toolbox, self.context, self.machine.deadline());
        if ready.len() == 1
            && let Some((one, _)) = ready.pop()
        {
            let (call, result) = execute(toolbox, one, context, deadline).await;
            return self.finish(call, result).await;
        }
        let mut running: FuturesUnordered<_> =
            ready.into_iter().map(|(one, _)| execute(toolbox, one, context, deadline)).collect();
        while let Some((call, result)) = running.next().await {
            self.finish(call, result).await?;
        }
        Ok(())
    }

    /// Looks at a call; what cannot run is settled here.
    async fn prepare(&mut self, call: CallState) -> Result<Option<(ReadyCall, u32)>, JournalError> {
        let attempt = match call.stage {
            CallStage::Requested { attempts } => attempts,
            CallStage::InDoubt => {
                self.finish(call.id, in_doubt(&call.call.name)).await?;
                return Ok(None);
            }
            _ => return Ok(None),
        };
        match self.toolbox.prepare(call.id, &call.call, self.context).await {
            Prepared::Ready(ready) => return Ok(Some((ready, attempt))),
            Prepared::Refused(result) => self.refuse(call.id, result).await?,
            Prepared::Ask(request) => self.refuse(call.id, Box::new(nobody_to_ask(&request))).await?,
            _ => self.refuse(call.id, Box::new(ToolResult::error("the toolbox gave no verdict"))).await?,
        }
        Ok(None)
    }

    async fn refuse(&mut self, call: CallId, result: Box<ToolResult>) -> Result<(), JournalError> {
        step(self.machine, self.log, RecordBody::ToolRefused { call, result }).await
    }

    async fn finish(&mut self, call: CallId, result: ToolResult) -> Result<(), JournalError> {
        let result = Box::new(result);
        step(self.machine, self.log, RecordBody::ToolFinished { call, result }).await
    }
}

/// Executes one call. A toolbox that does not stop in time is dropped, and with it its work.
async fn execute(
    toolbox: &dyn Toolbox,
    ready: ReadyCall,
    context: &Context,
    deadline: Timestamp,
) -> (CallId, ToolResult) {
    let id = ready.id;
    let mut work = toolbox.execute(ready, context);
    let mut interrupt = pin!(interrupted(context, deadline, TOOL_GRACE));
    let executed = std::future::poll_fn(|task| match work.as_mut().poll(task) {
        Poll::Ready(executed) => Poll::Ready(Ok(executed)),
        Poll::Pending => interrupt.as_mut().poll(task).map(Err),
    })
    .await;
    let result = match executed {
        Ok(Executed::Done(result)) => *result,
        Ok(Executed::Suspended(request)) => nobody_to_ask(&request),
        Ok(_) => ToolResult::error("the toolbox gave no result"),
        Err(Interrupt::Cancelled) => ToolResult::cancelled("Cancelled"),
        Err(Interrupt::Deadline) => ToolResult::cancelled("Cancelled: the run's time is up"),
    };
    (id, result)
}

/// No approver means no.
fn nobody_to_ask(request: &ApprovalRequest) -> ToolResult {
    let text = format!(
        "Error: this needs a person's approval and nobody can be asked: {}. Go on without it.",
        request.action_summary
    );
    ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
        .with_metadata("error_type", "permission_denied")
}

/// A side effect is never silently repeated.
fn in_doubt(tool: &str) -> ToolResult {
    let text = format!(
        "Error: the effect of this call is unknown: `{tool}` was started and the process died before it \
         ended. It was not run again. Check what it did before you repeat it."
    );
    ToolResult::failed(ToolResultStatus::Error, text.clone(), text).with_metadata("error_type", "in_doubt")
}

/// How long a cancelled tool may take to clean up before it is dropped.
const TOOL_GRACE: Duration = Duration::from_millis(500);

/// The toolbox of an agent without tools.
#[derive(Debug, Default)]
pub(crate) struct NoTools(Arc<archon_types::Encoded<Vec<archon_types::ToolSpec>>>);

impl Toolbox for NoTools {
    fn specs(&self) -> Arc<archon_types::Encoded<Vec<archon_types::ToolSpec>>> {
        self.0.clone()
    }

    fn prepare<'a>(
        &'a self,
        _: CallId,
        call: &'a archon_types::ToolCall,
        _: &'a Context,
    ) -> archon_types::BoxFuture<'a, Prepared> {
        let text = format!("Tool '{}' not found. There are no tools; answer without one.", call.name);
        Box::pin(async { Prepared::Refused(Box::new(ToolResult::error(text))) })
    }

    fn execute<'a>(&'a self, _: ReadyCall, _: &'a Context) -> archon_types::BoxFuture<'a, Executed> {
        Box::pin(async { Executed::Done(Box::new(ToolResult::error("there are no tools"))) })
    }
}
