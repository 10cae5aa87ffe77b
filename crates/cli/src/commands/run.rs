//! `archon run`: works on a task and prints the answer.

use std::{io::Read, sync::Arc};

use archon::{
    Archon, ArchonBuilder, ProjectFile, RunOptions,
    memory::Memory,
    react_loop::Fallback,
    tools::{Ask, EngineOptions},
    types::{AskLater, Collection, ExecutionLimits, RunStatus, SessionId},
};
use clap::ValueEnum as _;

use super::{AgentFlags, Asking, MemoryFlags, ModelFlags, ToolFlags};
use crate::{
    app::App,
    ask::Prompt,
    choose::{self, Chosen},
    config::{Origin, Settings},
    drive::drive,
    exit::Exit,
    failure::Failure,
    permissions, toolset,
};

/// What `archon run` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    agent: AgentFlags,
    /// Go on in the session of the last run
    #[arg(long = "continue", conflicts_with = "session")]
    go_on: bool,
    /// Go on in this session, or begin one of this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    #[command(flatten)]
    memory: MemoryFlags,
    /// Make a plan first, and follow it; a plan remembers nothing
    #[arg(long, conflicts_with_all = ["go_on", "session", "memory"])]
    plan: bool,
    /// Show the plan and follow it only after a yes
    #[arg(long, requires = "plan")]
    confirm: bool,
    /// What is to be done; `-` reads it from standard input
    #[arg(required = true, value_name = "TASK")]
    task: Vec<String>,
}

impl RunArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        self.agent.apply(&mut settings);
        self.memory.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let task = task(&self.task)?;
        let archon = remembering(app, self.memory.open(app).await?).await?;
        if self.plan {
            return super::plan::follow(app, &archon, task, super::plan::confirm_if(self.confirm)).await;
        }
        let session = match self.session {
            Some(id) => Some(SessionId::new(id)),
            None if self.go_on => Some(last_session(&archon).await?),
            None => None,
        };
        let mut options = RunOptions::default();
        options.session = session;
        let run = archon.start(task, options).await?;
        let resume = resume_line(app, run.run_id().as_str(), self.memory.memory.as_ref());
        drive(run, &[], &resume, app).await
    }
}

/// The agent that the settings describe, with the model that they lead to.
pub(crate) async fn chosen(app: &App) -> Result<Archon, Failure> {
    remembering(app, None).await
}

/// The same with a memory.
async fn remembering(app: &App, memory: Option<Memory>) -> Result<Archon, Failure> {
    let tools = toolset::chosen(app)?;
    let chosen = choose::model(app, None).await?;
    let fallbacks = choose::fallbacks(app, None).await?;
    let mut builder = assemble(app, chosen, fallbacks, tools, ExecutionLimits::default())?;
    if let Some(memory) = memory {
        builder = builder.memory(memory);
    }
    Ok(builder.build()?)
}

/// The agent that the settings describe; what they leave open of the limits is as `limits` say.
pub(crate) fn assemble(
    app: &App,
    chosen: Chosen,
    fallbacks: Vec<Chosen>,
    tools: toolset::Tools,
    mut limits: ExecutionLimits,
) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    if let Some(turns) = settings.max_turns {
        limits.max_turns = turns;
    }
    let mut engine = EngineOptions::default().granting(["code_exec", "fs_write", "shell_exec"]);
    engine.ask = Ask::BeforeChanges;
    engine.permissions = permissions::all(app)?;
    permissions::warn_of_wide(&tools, &engine.permissions, app);
    let has_tools = !tools.is_empty();
    let mut builder = Archon::builder()
        .engine_options(engine)
        .agent_id("archon")
        .provider_with_keys(chosen.provider, chosen.keys, chosen.model)
        .tools(tools)
        .journal(Arc::new(app.open_journal()?))
        .limits(limits);
    for Chosen { provider, keys, model, .. } in fallbacks {
        builder = builder.fallback_provider(Fallback::new(provider, model).with_keys(keys));
    }
    match Asking::of(app) {
        Asking::Here => {
            let prompt = Prompt::new(app.output.clone(), Prompt::keyboard(), permissions::kept(app));
            builder = builder.approver(Arc::new(prompt));
        }
        Asking::Later => builder = builder.approver(Arc::new(AskLater)),
        Asking::Nobody => {}
    }
    if let Some(folder) = has_tools.then(|| toolset::folder(app)).flatten() {
        builder = builder.workspace(folder);
    }
    if let Some(system) = &settings.system {
        builder = builder.system(system);
    }
    if let Some(file) = &settings.project_file {
        builder = builder.project_file(ProjectFile::new(file));
    }
    if let Some(mode) = settings.mode {
        builder = builder.tool_mode(mode.into());
    }
    Ok(builder)
}

/// What is to be done, in these words or on standard input.
pub(crate) fn task(words: &[String]) -> Result<String, Failure> {
    let text = said(words, "the task")?;
    if text.trim().is_empty() {
        return Err(archon::Error::Run(archon::react_loop::LoopError::EmptyPrompt).into());
    }
    Ok(text)
}

/// These words, or for `-` what standard input says. `what` is what the command takes them for.
pub(crate) fn said(words: &[String], what: &str) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|e| {
            let advice = format!("pipe text in UTF-8 into the command, or say {what} as an argument");
            Failure::usage(format!("cannot read {what} from standard input: {e}"), advice)
        })?;
    }
    Ok(text)
}

async fn last_session(archon: &Archon) -> Result<SessionId, Failure> {
    let head = archon.newest_run(None).await?.ok_or(archon::Error::NothingToContinue)?;
    if matches!(head.status, RunStatus::Running | RunStatus::Interrupted) {
        let what = format!("the last run, {}, has not ended", head.run_id);
        return Err(Failure::usage(what, format!("take it up first: archon resume {}", head.run_id)));
    }
    head.session.ok_or_else(|| archon::Error::NothingToContinue.into())
}

/// The command that takes the run up: with the flags that it cannot know from the log. Without its `memory` a run keeps
/// nothing of what its window drops from then on.
pub(crate) fn resume_line(app: &App, run: &str, memory: Option<&Collection>) -> String {
    let settings = &app.config.settings;
    let path = |p: &Option<std::path::PathBuf>| p.as_ref().map(|p| p.display().to_string());
    let mut line = format!("archon resume {run}");
    if let Some(memory) = memory {
        line.push_str(&format!(" --memory {}", quoted(&memory.to_string())));
    }
    let embedder = settings.embedder.and_then(|e| Some(e.to_possible_value()?.get_name().to_owned()));
    for (key, value) in [
        ("embedder", embedder),
        ("workspace", path(&settings.workspace)),
        ("project_file", path(&settings.project_file)),
        ("data_dir", path(&settings.data_dir)),
    ] {
        if let (Some(Origin::Flag(flag)), Some(value)) = (app.config.origin(key), value) {
            line.push_str(&format!(" {flag} {}", quoted(&value)));
        }
    }
    line
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+=,".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
