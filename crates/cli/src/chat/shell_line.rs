//! Lines that a person runs: the tool `bash` under the deny rules and in the sandbox, without a question, and also in
//! plan mode.

use std::sync::Arc;

use archon::{
    Archon,
    tools::Permissions,
    types::{ContextConfig, ExecutionLimits, StartRun},
};

use crate::{app::App, assemble::engine_options, failure::Failure, person::Person, toolset};

/// The id of the agent that runs lines. It is not that of the conversation's agent, whose runs ask a model.
const AGENT: &str = "person";
/// The call of the line, and the answer behind it.
const TURNS: u32 = 2;

/// Builds the agent that runs the lines of this person.
///
/// # Errors
/// [`Failure`] if this machine has no tool that runs commands, or a rule cannot be read.
pub(crate) async fn agent(app: &App, person: &Person) -> Result<Archon, Failure> {
    let tools = toolset::by_name([Person::TOOL].into_iter(), app).await?.tools;
    let rules = app.config.settings.permissions.clone().unwrap_or_default();
    let invalid = |e: archon::tools::ToolSetupError| {
        Failure::usage(e.to_string(), "write deny rules as bash(git push:*) or read_file(secrets/**)")
    };
    // The person has chosen the command, so only rules that deny are left.
    let allow = vec![Person::TOOL.to_owned()];
    let permissions = Permissions::parse(rules.deny, Vec::new(), allow).map_err(invalid)?;
    let mut engine = engine_options(app, &Vec::new())?.without_plan_mode();
    engine.permissions = permissions;
    let mut builder = Archon::builder()
        .engine_options(engine)
        .agent_id(AGENT)
        .provider(Arc::new(person.clone()), Person::MODEL)
        // The window is that of the model, which reads the result later.
        .context(None::<ContextConfig>)
        .limits(ExecutionLimits::default().with_max_turns(TURNS))
        .tools(tools)
        .journal(app.open_journal()?);
    if let Some(folder) = toolset::folder(app) {
        builder = builder.workspace(folder);
    }
    Ok(builder.build()?)
}

/// Returns the request for a run of this line.
pub(crate) fn request(line: &str) -> StartRun {
    StartRun::new(line).agent(AGENT)
}
