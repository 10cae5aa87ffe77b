//! A call of a tool by a command, without a run.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock,
    tools::{Ask, ToolEngine, ToolRegistry},
    types::{Context, Ids, Json, RunId, SessionId, ToolResult},
};

use crate::{app::App, assemble::engine_options, failure::Failure, toolset};

/// Calls a tool for this session, without a question: the person gave the command.
pub(super) async fn call(
    app: &App,
    session: Option<&SessionId>,
    name: &str,
    arguments: Json,
) -> Result<ToolResult, Failure> {
    let tools = toolset::by_name([name].into_iter(), app).await?.tools;
    let mut options = engine_options(app, &tools)?;
    options.ask = Ask::WhereRequired;
    let registry = ToolRegistry::new();
    let unusable = |e: archon::tools::ToolSetupError| {
        Failure::failed(e.to_string(), "the tools of this build: archon tools list")
    };
    registry.register_all(tools).map_err(unusable)?;
    let ids = Arc::new(RandomIds);
    let session = session.cloned().unwrap_or_else(|| SessionId::new(ids.fresh("session")));
    let context = Context::new(RunId::new(ids.fresh("run")), session, Arc::new(SystemClock), ids);
    let engine = ToolEngine::new(registry).with_options(options);
    Ok(engine.execute_tool_call(name, arguments, &context).await)
}
