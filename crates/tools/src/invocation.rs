//! Runs calls that come from a program instead of a model, with the same checks.

use std::time::Duration;

use archon_types::{
    CallId, CommandId, Context, Executed, Json, Prepared, ToolCall, ToolInvocationRequest, ToolResult,
    Toolbox,
};

use crate::{
    ToolEngine,
    engine::{CallOptions, Tries},
    guard::Wanted,
    output,
};

impl ToolEngine {
    /// Runs one call of the tool `name` with all checks, and returns its result; an error is a result, too.
    ///
    /// A call that needs approval fails unless the engine has an approver that answers at once, because there is no
    /// run that could be suspended.
    pub async fn execute_tool_call(&self, name: &str, arguments: Json, run: &Context) -> ToolResult {
        let call = ToolCall::new(run.ids.fresh("call"), name, arguments);
        let options = CallOptions { tries: Tries::Here, ..CallOptions::default() };
        self.run_to_end(&call, run, options).await
    }

    /// Runs one call like [`execute_tool_call`](Self::execute_tool_call), with the settings of the request:
    /// id, time limit, retries after a timeout, level of detail, folder for large data, and permission level.
    pub async fn invoke(&self, request: ToolInvocationRequest, run: &Context) -> ToolResult {
        let options = CallOptions {
            timeout: Some(Duration::from_millis(request.timeout_ms)),
            wanted: Wanted { level: request.output_level, storage_dir: request.storage_dir.map(Into::into) },
            level: Some(request.permission_level),
            tries: if request.retry_on_timeout { Tries::Here } else { Tries::HereUnlessTimedOut },
        };
        let call = ToolCall::new(request.request_id, request.tool_name, request.parameters);
        self.run_to_end(&call, run, options).await
    }

    async fn run_to_end(&self, call: &ToolCall, run: &Context, options: CallOptions) -> ToolResult {
        let id = CallId::new(CommandId(0), 0);
        let asked = |summary: &str| {
            let text = format!("{summary}: a person has to decide first. It was not run.");
            output::error_of_type("permission_denied", text)
        };
        match self.prepare_with(id, call, run, options).await {
            Prepared::Ready(ready) => match self.execute(ready, run).await {
                Executed::Done(result) => *result,
                Executed::Suspended(question) => asked(&question.action_summary),
                _ => ToolResult::error("The toolbox ended the call in an unknown way."),
            },
            Prepared::Refused(result) => *result,
            Prepared::Ask(question) => asked(&question.action_summary),
            _ => ToolResult::error("The toolbox prepared the call in an unknown way."),
        }
    }
}
