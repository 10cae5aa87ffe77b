//! Prepares the calls of a turn: asks people for approvals, and refuses calls that cannot run.

use archon_run::Recorded;
use archon_types::{
    ApprovalRequest, Context, JournalError, Prepared, ReadyCall, RecordBody, RunConfig, ToolCall, ToolResult,
    ToolSpec, metadata,
};

use crate::{
    CallStage, CallState, calls::refusal, decide, delegate, drive::ReactExecutor, driver::Run, hooked,
    machine::in_doubt,
};

impl ReactExecutor<'_> {
    /// Prepares a call for execution. A call that cannot run is settled here.
    pub(super) async fn prepare(
        &mut self,
        call: CallState,
        tools: &Context,
        run: &mut Run,
    ) -> Result<Option<(ReadyCall, u32)>, JournalError> {
        // Hooks are not asked again about a call that is retried, or whose tool has the answer to its question.
        let is_allowed_by_hooks = matches!(call.stage, CallStage::Waiting { .. }) || call.answered.is_some();
        if let CallStage::Waiting { result, .. } = &call.stage {
            let error = result.error_message.clone().unwrap_or_else(|| result.text());
            self.failed.insert(call.id, error);
        }
        let (attempt, is_in_doubt) = match call.stage {
            CallStage::Requested { attempts } | CallStage::Waiting { attempts, .. } => (attempts, false),
            CallStage::InDoubt { attempts } => (attempts, true),
            _ => return Ok(None),
        };
        if is_in_doubt || delegate::is_log_lost(self.driver, &self.context.run, &call).await? {
            self.doubt(&call, run).await?;
            return Ok(None);
        }
        let wanted = call.wanted();
        let specs = self.driver.toolbox.specs();
        let sourced = self.sourced_spec(&specs, &wanted.name);
        let spec = specs.iter().chain(&sourced).find(|spec| spec.name == wanted.name);
        let hidden = delegate::hidden(self.driver, &run.machine, &call.call, &self.context);
        if let Some(result) = hidden.or_else(|| version_refusal(run.machine.config(), spec?)) {
            self.refuse(call.id, result, run).await?;
            return Ok(None);
        }
        // An approval that was given counts even if nobody can be asked any more.
        let agreed = call.consent.is_some().then(|| {
            let mut agreed = tools.clone();
            agreed.can_ask = true;
            agreed.agreed = spec.and_then(|spec| decide::agreed(spec, &call));
            agreed
        });
        let tools = agreed.as_ref().unwrap_or(tools);
        let prepared = match self.driver.toolbox.prepare(call.id, &wanted, tools).await {
            Prepared::Ask(request) => {
                let agreed = tools.agreed.as_deref();
                self.consent(&call, (&wanted, spec), agreed, *request, run).await?
            }
            prepared => Some(prepared),
        };
        let Some(prepared) = prepared else { return Ok(None) };
        let refused = match prepared {
            Prepared::Ready(mut ready) if is_allowed_by_hooks || self.driver.may_run(&ready.call).await => {
                ready.started_before = attempt;
                return Ok(Some((ready, attempt)));
            }
            Prepared::Ready(ready) => Box::new(hooked::skipped(&ready.call.name)),
            Prepared::Refused(result) => result,
            _ => Box::new(ToolResult::error("the toolbox gave no verdict")),
        };
        self.refuse(call.id, refused, run).await?;
        Ok(None)
    }

    /// Returns the spec of a tool that comes from a source. `None` if the toolbox lists the tool itself, or no
    /// source has the tool.
    fn sourced_spec(&self, specs: &[ToolSpec], name: &str) -> Option<ToolSpec> {
        let is_listed = specs.iter().any(|spec| spec.name == name);
        if is_listed { None } else { self.driver.toolbox.sourced_spec(name) }
    }

    /// Handles a call that needs a person's approval. With an approval of exactly this call, the call is
    /// ready, even if the toolbox does not check approvals. Otherwise the question is recorded, or the
    /// call is refused if nobody can be asked.
    async fn consent(
        &self,
        call: &CallState,
        (wanted, spec): (&ToolCall, Option<&ToolSpec>),
        agreed: Option<&str>,
        request: ApprovalRequest,
        run: &mut Run,
    ) -> Result<Option<Prepared>, JournalError> {
        let asking = (self.driver, &run.machine);
        let request = decide::complete(request, spec, &wanted.arguments, asking, &self.context);
        if agreed == Some(&*request.binding) {
            let annotations = spec.map(|spec| spec.annotations.clone()).unwrap_or_default();
            let mut ready = ReadyCall::new(call.id, wanted.clone(), annotations.effect);
            ready.concurrency_safe = annotations.concurrency_safe;
            return Ok(Some(Prepared::Ready(ready)));
        }
        if !self.context.can_ask {
            return Ok(Some(Prepared::Refused(Box::new(nobody_to_ask(&request)))));
        }
        run.record(vec![RecordBody::ApprovalRequested { call: call.id, request }]).await?;
        Ok(None)
    }

    /// Handles a call in doubt: asks a person, if one can be asked.
    async fn doubt(&self, call: &CallState, run: &mut Run) -> Recorded {
        let name = &call.call.name;
        if !self.context.can_ask {
            return self.finish(call.id, in_doubt(name), run).await;
        }
        let wanted = call.wanted();
        let id = self.context.ids.fresh("approval");
        let mut request = ApprovalRequest::in_doubt(id, name, &wanted.arguments);
        if let Some(summary) = call.consent.as_ref().and_then(|consent| consent.summary.as_deref()) {
            request = request.in_words(summary);
        }
        if call.is_begun {
            request = request.of_lost_run(&self.context.run.of_call(call.id));
        }
        let specs = self.driver.toolbox.specs();
        let sourced = self.sourced_spec(&specs, name);
        let spec = specs.iter().chain(&sourced).find(|spec| spec.name == *name);
        // An approval of a second execution is bound to the same call as the first approval.
        let agreed = spec.and_then(|spec| decide::agreed(spec, call));
        request.binding = agreed.map(|binding| binding.to_string()).unwrap_or_default();
        let asking = (self.driver, &run.machine);
        let request = decide::complete(request, spec, &wanted.arguments, asking, &self.context);
        run.record(vec![RecordBody::ApprovalRequested { call: call.id, request }]).await
    }
}

/// Returns the refusal of a call of a deferrable tool if the version of the tool differs from the one in the first
/// record of the run, which can happen after a resume: the model read another definition. Tools that are not
/// deferrable belong to the program, and a run continues with their new definition.
fn version_refusal(config: &RunConfig, spec: &ToolSpec) -> Option<Box<ToolResult>> {
    // The entry of a source describes tools that were not known when the run began.
    let recorded = config.tool(&spec.name).filter(|tool| tool.name == spec.name)?;
    if !recorded.annotations.deferrable || recorded.version == spec.version {
        return None;
    }
    let text = format!(
        "Error: The definition of tool '{}' changed after this run began, so the call was not run. Go on without \
         the tool. A new run can use the new definition.",
        spec.name
    );
    Some(Box::new(refusal(text, "not_found")))
}

/// Returns the refusal of a call that needs an approval when nobody can be asked.
fn nobody_to_ask(request: &ApprovalRequest) -> ToolResult {
    let text = format!(
        "Error: this needs a person's approval and nobody can be asked: {}. Go on without it.",
        request.action_summary
    );
    refusal(text, "permission_denied")
        .with_metadata(metadata::NOBODY_ASKED, request.rules.first().cloned().unwrap_or_default())
}
