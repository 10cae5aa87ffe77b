//! The probes of agent files: tools that read the data for the conditions of triggers. They change nothing, and see the
//! accounts of one tenant.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    RandomIds, SystemClock,
    tools::{ToolEngine, ToolRegistry},
    triggers::{Probe, TriggerParts},
    types::{
        BoxFuture, Context, CredentialStore, Ids as _, Json, RunId, SessionId, TenantId, ToolResultStatus,
    },
};

use super::file_triggers::FileTrigger;
use crate::{app::App, assemble::engine_options, failure::Failure, text::one_line, toolset};

/// The most characters of a failure in the history of a task.
const MOST_SHOWN: usize = 500;

/// Adds to `parts` the probes of an agent's triggers, one for each tenant whose task uses the probe. `app` has the
/// permission rules of the agent.
///
/// # Errors
/// [`Failure`] if a tool cannot be used.
pub(super) async fn add(
    mut parts: TriggerParts,
    app: &App,
    triggers: &[FileTrigger],
    accounts: Option<&Arc<dyn CredentialStore>>,
) -> Result<TriggerParts, Failure> {
    for probe in triggers.iter().filter_map(FileTrigger::probe) {
        let engine = engine(app, probe.tool).await?;
        for tenant in probe.tenants {
            let read = ToolProbe {
                engine: engine.clone(),
                tool: probe.tool.to_owned(),
                tenant: TenantId::new(tenant),
                accounts: accounts.cloned(),
            };
            parts = parts.probe_of(tenant, probe.name, Arc::new(read));
        }
    }
    Ok(parts)
}

/// Returns an engine that asks nobody, so a call that needs an approval is refused.
async fn engine(app: &App, tool: &str) -> Result<ToolEngine, Failure> {
    let tools = toolset::by_name([tool].into_iter(), app).await?.tools;
    let options = engine_options(app, &tools)?;
    let registry = ToolRegistry::new();
    let unusable = |error: archon::tools::ToolSetupError| {
        Failure::failed(error.to_string(), "the tools of this build: archon tools list")
    };
    registry.register_all(tools).map_err(unusable)?;
    Ok(ToolEngine::new(registry).with_options(options).for_parts())
}

/// A tool that reads data for one tenant.
struct ToolProbe {
    engine: ToolEngine,
    tool: String,
    tenant: TenantId,
    accounts: Option<Arc<dyn CredentialStore>>,
}

impl Probe for ToolProbe {
    fn read<'a>(&'a self, arguments: &'a BTreeMap<String, Json>) -> BoxFuture<'a, Result<Json, String>> {
        Box::pin(async move {
            let ids = Arc::new(RandomIds);
            let (run, session) = (RunId::new(ids.fresh("run")), SessionId::new(ids.fresh("session")));
            let mut call = Context::new(run, session, Arc::new(SystemClock), ids);
            (call.tenant, call.credentials) = (self.tenant.clone(), self.accounts.clone());
            let arguments = Json::Object(arguments.clone().into_iter().collect());
            let result = self.engine.execute_tool_call(&self.tool, arguments, &call).await;
            let text = result.content.first().and_then(|first| first.as_text()).unwrap_or_default();
            match result.status {
                ToolResultStatus::Success => Ok(data_of(text)),
                _ => Err(one_line(result.error_message.as_deref().unwrap_or(text), MOST_SHOWN)),
            }
        })
    }
}

/// Returns the JSON of a result, or its text. A result of an HTTP API has a line with the request before the body.
fn data_of(text: &str) -> Json {
    let body = text.split_once("\n\n").map(|(_, body)| body);
    let read = |text: &str| serde_json::from_str(text).ok();
    read(text).or_else(|| body.and_then(read)).unwrap_or_else(|| Json::from(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_of_a_result_are_its_json_or_its_text() {
        assert_eq!(data_of("[1, 2]"), json!([1, 2]));
        assert_eq!(data_of("GET https://shop.example.com/orders → 200\n\n[1, 2]"), json!([1, 2]));
        assert_eq!(data_of("two\n\nlines"), json!("two\n\nlines"));
    }
}
