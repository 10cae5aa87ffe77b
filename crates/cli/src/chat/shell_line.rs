//! Lines that a person runs: the tool `bash` under the deny rules and in the sandbox, without a question, and also in
//! plan mode.

use std::sync::Arc;

use archon::{
    Archon,
    tools::Permissions,
    types::{
        AgentId, AgentMessage, BoxFuture, Context, ContextConfig, ExecutionLimits, MoreLimits, Origin,
        Outcome, RunAgent, RunError, RunKind, RunSettings, StartRun,
    },
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
pub(crate) async fn agent(app: &App, person: &Person) -> Result<Arc<dyn RunAgent>, Failure> {
    if !cfg!(unix) {
        let advice = "run the line in another terminal, or use Linux or macOS";
        return Err(Failure::usage("no tool runs commands on this system", advice));
    }
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
    Ok(Arc::new(LineAgent { agent: builder.build()?.run_agent(), person: person.clone() }))
}

/// The agent of lines: gives a line to the run that was started for it, and to no other, for instance not to a run
/// that reads a message of another process.
struct LineAgent {
    agent: Arc<dyn RunAgent>,
    person: Person,
}

impl RunAgent for LineAgent {
    fn kind(&self) -> RunKind {
        self.agent.kind()
    }

    fn id(&self) -> AgentId {
        self.agent.id()
    }

    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        Box::pin(async move {
            self.person.begin_run(AgentMessage::joined_text(&prompts).ok().as_deref());
            let outcome = self.agent.begin(prompts, origin, settings, context).await;
            self.person.end_run();
            outcome
        })
    }

    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        self.agent.resume(more, context)
    }
}

/// Returns the request for a run of this line.
pub(crate) fn request(line: &str) -> StartRun {
    StartRun::new(line).agent(AGENT)
}

#[cfg(test)]
mod tests {
    use archon::{
        Runs, ToolContext,
        store::InMemoryJournal,
        tools::FnTool,
        types::{Json, StartRuns, ToolResult, ToolSpec},
    };
    use archon_testkit::Ended;
    use serde_json::json;

    use super::*;

    /// The tool calls of a run of the agent of lines with this prompt.
    async fn calls(runs: &Runs, prompt: &str) -> usize {
        let started = runs.start(request(prompt)).await.unwrap();
        runs.reply(&started.run).await.ended();
        let log = runs.records(&started.run, None).await.unwrap().records;
        log.iter().filter(|record| record.body.name() == "tool_call_started").count()
    }

    // spec: CL-03
    #[tokio::test]
    async fn line_is_run_once_and_only_by_the_run_that_was_started_for_it() {
        let (person, journal) = (Person::default(), InMemoryJournal::new());
        let spec = ToolSpec::new(Person::TOOL, "Runs a line.", json!({"type": "object"}));
        let bash = FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("done")) });
        let agent = Archon::builder()
            .agent_id(AGENT)
            .provider(Arc::new(person.clone()), Person::MODEL)
            .tool(bash)
            .journal(Arc::new(journal.clone()))
            .build()
            .unwrap();
        let agent = LineAgent { agent: agent.run_agent(), person: person.clone() };
        let runs = Runs::over(Arc::new(journal)).unwrap().with_agent(Arc::new(agent));
        person.set_line(Some("ls -l".to_owned()));
        let found =
            [calls(&runs, "a message").await, calls(&runs, "ls -l").await, calls(&runs, "ls -l").await];
        assert_eq!(found, [0, 1, 0]);
    }
}
