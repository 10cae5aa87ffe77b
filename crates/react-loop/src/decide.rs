//! Asks the approver of this process. Without an answer, the run is suspended.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use archon_run::Recorded;
use archon_types::{
    Answer, ApprovalRequest, CallId, Context, Decision, DynApprover, RecordBody, Subject, ToolSpec,
    answer_below,
};

use crate::{CallState, Driver, ReactMachine, drive::ReactExecutor, driver::Run};

impl ReactExecutor<'_> {
    /// Asks the approver all open questions and records the answers. If no question gets an answer, or there
    /// is no approver, the run is suspended.
    pub(crate) async fn decide(&self, run: &mut Run) -> Recorded {
        let (calls, requests): (Vec<CallId>, Vec<ApprovalRequest>) =
            run.machine.questions().map(|(call, request)| (call, request.clone())).unzip();
        let decisions = match &self.driver.approver {
            Some(approver) => ask_approver(&**approver, &requests, &run.machine, &self.context).await,
            None => Some(Vec::new()),
        };
        let Some(decisions) = decisions else {
            // A question expired, or the run was cancelled.
            return run.record(vec![RecordBody::ClockRead]).await;
        };
        let mut answered = false;
        for ((call, request), decision) in calls.into_iter().zip(&requests).zip(decisions) {
            let Decision::Now(answer) = decision else { continue };
            let is_below = request.asker().is_some();
            // The child run gets its answer before the answer is recorded here.
            if is_below && !forward_answer(self.driver, request, answer.clone(), &self.context).await {
                continue;
            }
            answered = true;
            run.record(vec![RecordBody::ApprovalAnswered { call, answer }]).await?;
        }
        if !answered {
            run.record(vec![run.machine.suspension()]).await?;
        }
        // The time for which people were asked does not count for the run.
        run.watch.renew(run.machine.deadline());
        Ok(())
    }
}

/// Returns the approver's decisions; `None` if a question expires or the run is cancelled first.
async fn ask_approver(
    approver: &dyn DynApprover,
    requests: &[ApprovalRequest],
    machine: &ReactMachine,
    context: &Context,
) -> Option<Vec<Decision>> {
    let mut work = approver.boxed_decide_all(requests);
    let mut cancelled = pin!(context.cancel.cancelled());
    let mut expiry = machine.next_expiry().map(|end| context.clock.sleep_until(end));
    poll_fn(|task| {
        if let Poll::Ready(decisions) = work.as_mut().poll(task) {
            return Poll::Ready(Some(decisions));
        }
        let is_over = cancelled.as_mut().poll(task).is_ready()
            || expiry.as_mut().is_some_and(|end| end.as_mut().poll(task).is_ready());
        if is_over { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// Puts an answer into the inbox of the child run that asked. Returns false if that fails.
async fn forward_answer(driver: &Driver, asked: &ApprovalRequest, answer: Answer, context: &Context) -> bool {
    let Some(journal) = &driver.journal else { return false };
    let forwarded = answer_below(&**journal, asked, answer, context).await;
    if let Err(error) = &forwarded {
        tracing::warn!(run = %context.run, %error, "cannot store an answer for the run that asked");
    }
    forwarded.is_ok()
}

/// Completes a question with the agent's name, a binding if it has none, and the time at which it expires.
pub(crate) fn complete(
    mut request: ApprovalRequest,
    spec: Option<&ToolSpec>,
    arguments: &archon_types::Json,
    (driver, machine): (&Driver, &ReactMachine),
    context: &Context,
) -> Box<ApprovalRequest> {
    if request.agent_name.is_empty() {
        request.agent_name.clone_from(&driver.agent_name);
    }
    if let Some(spec) = spec.filter(|_| request.binding.is_empty()) {
        request.binding = archon_types::binding(spec, arguments, &Subject::Unknown);
    }
    let settings = machine.config().approvals.clone().unwrap_or_default();
    let wait = request.timeout_ms.unwrap_or(settings.timeout_ms);
    let end = context.clock.now_for_others() + std::time::Duration::from_millis(wait);
    request.expires_at.get_or_insert(end);
    Box::new(request)
}

/// Returns the binding of a person's consent to a call; `None` without a consent. If the person changed the
/// arguments, returns a binding to the changed arguments, or `None` if the question was about another
/// definition of the tool.
pub(crate) fn agreed(spec: &ToolSpec, call: &CallState) -> Option<Arc<str>> {
    let consent = call.consent.as_ref()?;
    let Some(edited) = &consent.edited else { return Some(consent.binding.as_str().into()) };
    // The binding shows whether the question was about this tool.
    let mut asked = consent.asked.iter().chain([&call.call.arguments]);
    asked.find_map(|asked| archon_types::rebound(&consent.binding, spec, asked, edited)).map(Into::into)
}

/// Returns the context for a batch of calls, with the session's "always allow" rules; `None` if there are no such
/// rules.
pub(crate) fn trusting(machine: &ReactMachine, context: &Context) -> Option<Context> {
    if machine.trusted().is_empty() {
        return None;
    }
    let mut own = context.clone();
    let above = context.trusted.iter().filter(|rule| !machine.trusted().contains(rule));
    own.trusted = machine.trusted().iter().chain(above).cloned().collect::<Arc<[String]>>();
    Some(own)
}
