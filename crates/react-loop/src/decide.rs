//! Asks the approver of this process; without an answer the run suspends.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use archon_types::{
    ApprovalRequest, CallId, Context, Decision, DynApprover, InboxEntry, InboxRequest, JournalError,
    RecordBody, RunId, Subject, ToolSpec,
};

use crate::{CallState, Driver, ReactMachine, RunLog, interrupt::Watch, run_log::step};

/// Puts all open questions to the approver and appends its answers. Without an answer the run suspends.
pub(crate) async fn decide(
    driver: &Driver,
    machine: &mut ReactMachine,
    log: &mut RunLog,
    watch: &mut Watch<'_>,
    context: &Context,
) -> Result<(), JournalError> {
    let (calls, requests): (Vec<CallId>, Vec<ApprovalRequest>) =
        machine.questions().map(|(call, request)| (call, request.clone())).unzip();
    let decisions = match &driver.approver {
        Some(approver) => ask_approver(&**approver, &requests, machine, context).await,
        None => Some(Vec::new()),
    };
    let Some(decisions) = decisions else {
        // A question expired, or the run was cancelled.
        return step(log, machine, RecordBody::ClockRead).await;
    };
    let mut answered = false;
    for ((call, request), decision) in calls.into_iter().zip(&requests).zip(decisions) {
        let Decision::Now(answer) = decision else { continue };
        if let Some(asker) = request.asker()
            && !tell(driver, &asker.run, request.answered(answer.clone()), context).await
        {
            continue;
        }
        answered = true;
        step(log, machine, RecordBody::ToolAnswered { call, answer }).await?;
    }
    if !answered {
        let suspension = machine.suspension();
        step(log, machine, suspension).await?;
    }
    // The time that people took does not count for the run.
    watch.renew(machine.deadline());
    Ok(())
}

/// Returns the approver's decisions; `None` if a question expires or the run is cancelled before.
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

/// Posts an answer to the child run that asks. This is done before the answer is recorded here.
async fn tell(driver: &Driver, run: &RunId, request: InboxRequest, context: &Context) -> bool {
    let Some(inbox) = driver.journal.as_ref().and_then(|journal| journal.inbox()) else { return false };
    let entry = InboxEntry::new(context.ids.fresh("in"), context.clock.now(), request);
    let told = inbox.post(run, entry).await;
    if let Err(error) = &told {
        tracing::warn!(%run, %error, "an answer cannot be left for the run that asked");
    }
    told.is_ok()
}

/// Completes a question with the agent's name, a binding if the toolbox has set none, and the time at which
/// it expires.
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

/// Returns the binding of a person's consent to a call, if the tool is still the same.
pub(crate) fn agreed(spec: &ToolSpec, call: &CallState) -> Option<Arc<str>> {
    let consent = call.consent.as_ref()?;
    let Some(edited) = &consent.edited else { return Some(consent.binding.as_str().into()) };
    // The binding shows if the question was about this tool.
    let mut asked = consent.asked.iter().chain([&call.call.arguments]);
    asked.find_map(|asked| archon_types::rebound(&consent.binding, spec, asked, edited)).map(Into::into)
}

/// Returns the spec of a tool by its name.
pub(crate) fn spec_in<'a>(specs: &'a [ToolSpec], name: &str) -> Option<&'a ToolSpec> {
    specs.iter().find(|spec| spec.name == name)
}

/// Returns a context with the session's "always allow" rules for the tools of a batch; `None` if there are no
/// such rules.
pub(crate) fn trusting(machine: &ReactMachine, context: &Context) -> Option<Context> {
    if machine.trusted().is_empty() {
        return None;
    }
    let mut own = context.clone();
    let above = context.trusted.iter().filter(|rule| !machine.trusted().contains(rule));
    own.trusted = machine.trusted().iter().chain(above).cloned().collect::<Arc<[String]>>();
    Some(own)
}
