//! Shell lines that a person runs with the tool `bash`: under the deny rules and in the sandbox, but without a
//! question, and also in plan mode.

use std::sync::Arc;

use archon::{
    Archon,
    tools::Permissions,
    types::{
        AgentId, AgentMessage, BoxFuture, Context, ContextConfig, ExecutionLimits, MoreLimits, Origin,
        Outcome, PLAN_TOOL, RunAgent, RunError, RunKind, RunSettings, StartRun,
    },
};

use super::line_journal::LineJournal;
use crate::{app::App, assemble::engine_options, failure::Failure, person::Person, toolset};

/// The id of the agent that runs shell lines. It differs from the id of the conversation's agent, whose runs ask a
/// model.
const AGENT: &str = "person";
/// The maximum number of turns of a run: one for the call of the line, and one for the answer after it.
const TURNS: u32 = 2;

/// Builds the agent that runs the lines of this person in a conversation with the agent `conversation`.
///
/// # Errors
/// [`Failure`] if this machine has no tool that runs commands, or a rule cannot be read.
pub(crate) async fn agent(
    app: &App,
    person: &Person,
    conversation: Arc<dyn RunAgent>,
) -> Result<Arc<dyn RunAgent>, Failure> {
    if !cfg!(unix) {
        let advice = "run the line in another terminal, or use Linux or macOS";
        return Err(Failure::usage("no tool runs commands on this system", advice));
    }
    // A hint that plan mode began names the tool that ends it. The model reads it later.
    let tools = toolset::by_name([Person::TOOL, PLAN_TOOL].into_iter(), app).await?.tools;
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
        .journal(Arc::new(LineJournal::new(app.open_journal()?)));
    if let Some(folder) = toolset::folder(app) {
        #[cfg(all(unix, feature = "undo"))]
        {
            builder = crate::undo::with_snapshots(app, builder, &folder);
        }
        builder = builder.workspace(folder);
    }
    Ok(Arc::new(LineAgent { agent: builder.build()?.run_agent(), person: person.clone(), conversation }))
}

/// The agent that runs shell lines. A line runs only in the run that was started for it. A message that came while a
/// line ran begins a run of the conversation's agent.
struct LineAgent {
    agent: Arc<dyn RunAgent>,
    person: Person,
    /// The agent of the conversation.
    conversation: Arc<dyn RunAgent>,
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
            if !self.person.begin_run(AgentMessage::joined_text(&prompts).ok().as_deref()) {
                return self.conversation.begin(prompts, origin, settings, context).await;
            }
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

    /// Compacts the conversation with the conversation's agent, because the agent of shell lines has no model.
    fn compact<'a>(
        &'a self,
        origin: Origin,
        instructions: Option<String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        self.conversation.compact(origin, instructions, context)
    }
}

/// Returns the request that starts a run for this line.
pub(crate) fn request(line: &str) -> StartRun {
    StartRun::new(line).agent(AGENT)
}

#[cfg(test)]
mod tests {
    use archon::{
        Runs, ToolContext,
        providers::ScriptedProvider,
        store::InMemoryJournal,
        tools::FnTool,
        types::{Json, Record, RunStarted, StartRuns, StartedRun, ToolResult, ToolSpec},
    };
    use archon_testkit::Ended;
    use serde_json::json;

    use super::*;

    /// The run service of a conversation with the agent `talk`.
    fn runs(person: &Person) -> Runs {
        let journal = InMemoryJournal::new();
        let spec = ToolSpec::new(Person::TOOL, "Runs a line.", json!({"type": "object"}));
        let bash = FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("done")) });
        let agent = Archon::builder()
            .agent_id(AGENT)
            .provider(Arc::new(person.clone()), Person::MODEL)
            .tool(bash)
            .journal(Arc::new(journal.clone()))
            .build()
            .unwrap();
        let talk = Archon::builder()
            .agent_id("talk")
            .provider(Arc::new(ScriptedProvider::texts(["One.", "Two."])), "scripted")
            .journal(Arc::new(journal.clone()))
            .build()
            .unwrap();
        let (agent, conversation) = (agent.run_agent(), talk.run_agent());
        let lines = LineAgent { agent, person: person.clone(), conversation: conversation.clone() };
        Runs::over(Arc::new(journal)).unwrap().with_agent(conversation).with_agent(Arc::new(lines))
    }

    /// Returns the log of a run after its end.
    async fn log(runs: &Runs, started: &StartedRun) -> Vec<Arc<Record>> {
        runs.reply(&started.run).await.ended();
        runs.records(&started.run, None).await.unwrap().records
    }

    // spec: CL-03
    #[tokio::test]
    async fn line_is_run_once_and_only_by_the_run_that_was_started_for_it() {
        let person = Person::default();
        let runs = runs(&person);
        person.set_line(Some("ls -l".to_owned()));
        for (prompt, agent, calls) in [("a message", "talk", 0), ("ls -l", AGENT, 1), ("ls -l", "talk", 0)] {
            let log = log(&runs, &runs.start(request(prompt)).await.unwrap()).await;
            let found = log.iter().filter(|record| record.body.name() == "tool_call_started").count();
            assert_eq!(found, calls, "{prompt}: {log:?}");
            assert_eq!(RunStarted::of(&log).map(|started| started.agent.as_str()), Some(agent), "{prompt}");
        }
    }

    #[tokio::test]
    async fn compaction_behind_a_line_is_a_run_of_the_conversations_agent() {
        let person = Person::default();
        let runs = runs(&person);
        person.set_line(Some("ls -l".to_owned()));
        let line = runs.start(request("ls -l").session("s")).await.unwrap();
        log(&runs, &line).await;
        let log = log(&runs, &runs.compact(&line.session, None, None).await.unwrap()).await;
        assert_eq!(RunStarted::of(&log).map(|started| started.agent.as_str()), Some("talk"));
    }
}
