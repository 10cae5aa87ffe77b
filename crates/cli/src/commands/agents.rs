//! `archon agents`: lists the agents of the settings and of files, and lets one of them work on a task.

use archon::types::{RunKind, StartRun, StartRuns};
use clap::Subcommand;
use serde_json::json;

use super::{AgentFlags, AllowFlags, ModelFlags, ToolFlags, task::task};
use crate::{
    agent_files,
    app::App,
    assemble,
    config::{AgentSettings, Settings},
    drive::follow,
    exit::Exit,
    failure::Failure,
    servers::Tools,
    text::one_line,
    toolset,
};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents that the main agent may call, and the files to which you have not agreed
    List {
        #[command(flatten)]
        flags: ToolFlags,
    },
    /// Let an agent work on a task and print the answer
    Run(Box<AgentsRunArgs>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentsRunArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    pub(super) agent: AgentFlags,
    #[command(flatten)]
    allow: AllowFlags,
    /// The agent's name
    name: String,
    /// The task; `-` reads it from standard input. Text that is piped in besides a task is data for the task
    #[arg(required = true, value_name = "TASK")]
    task: Vec<String>,
}

impl AgentsCommand {
    pub(crate) fn settings(&self) -> Settings {
        match self {
            Self::List { flags } => super::settings(&ModelFlags::default(), flags),
            Self::Run(args) => {
                let mut settings = super::settings(&args.model, &args.tools);
                args.agent.apply(&mut settings);
                args.allow.apply(&mut settings);
                settings
            }
        }
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { .. } => list(app).await,
            Self::Run(args) => args.run(app).await,
        }
    }
}

impl AgentsRunArgs {
    async fn run(self, app: &App) -> Result<Exit, Failure> {
        let task = task(app, &self.task)?;
        let mut app = app.clone();
        let agents = app.config.settings.agents.get_or_insert_default();
        match agents.get_mut(&self.name) {
            // A flag counts more than a file.
            Some(agent) if self.model.model.is_some() => agent.model = None,
            Some(_) => {}
            None => agent_files::check_agreed(&app, &self.name)?,
        }
        let (builder, _) = assemble::alone(&app, &self.name).await?;
        let runs = app.open_runs()?.with_agent(builder.build()?.run_agent());
        let request = StartRun::new(task).agent(self.name.as_str()).kind(RunKind::Loop);
        let run = runs.start(request).await?.run;
        follow(&app, &runs, &run, Vec::new()).await
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
    toolset::settle(app).await;
    let main = toolset::chosen(app).await?.tools;
    let agents = app.config.settings.agents.clone().unwrap_or_default();
    for (name, agent) in &agents {
        show(app, name, agent, &main).await?;
    }
    let has_untrusted = agent_files::list_untrusted(app);
    app.hint_if(
        agents.is_empty() && !has_untrusted,
        "there are no agents: write one into .archon/agents/NAME.md, or under [agents.NAME]",
    );
    Ok(Exit::Finished)
}

async fn show(app: &App, name: &str, agent: &AgentSettings, main: &Tools) -> Result<(), Failure> {
    let tools = assemble::tools_of(app, agent, main).await?;
    let tools: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let file = agent.file.as_ref().map(|file| agent_files::path(file));
    let item = json!({
        "name": name, "description": agent.description, "file": file, "agreed": true,
        "model": agent.model, "tools": tools, "max_turns": agent.max_turns,
    });
    app.item(&item, || {
        let model = agent.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
        let place = file.as_ref().map(|file| format!("; {file}")).unwrap_or_default();
        format!("{name:<16}  {}{model}{place}", one_line(&agent.description, 80))
    });
    if let Some(problem) = agent.file.as_ref().and_then(|file| agent_files::unknown_tools(file, main)) {
        app.hint(problem);
    }
    Ok(())
}
