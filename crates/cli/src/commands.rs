//! The commands: one file for each, and one line for each in the list below.

#[cfg(not(all(
    unix,
    feature = "chat",
    feature = "mcp",
    feature = "mcp-serve",
    feature = "openapi",
    feature = "serve",
    feature = "setup",
    feature = "skills",
    feature = "triggers",
    feature = "undo"
)))]
#[macro_use]
mod absent;
mod agents;
mod approvals;
#[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
mod assistant;
#[cfg(not(all(feature = "serve", feature = "skills", feature = "triggers")))]
absent! {
    mod assistant: AssistantArgs, "archon assistant",
    "build with `--features serve,skills,triggers`"
}
#[cfg(feature = "chat")]
mod chat;
#[cfg(not(feature = "chat"))]
absent! {
    mod chat: ChatArgs, "archon chat",
    "build with `--features chat`, or start a conversation with `archon run TASK` and continue it with `archon run --continue TASK`"
}
mod completions;
mod config;
mod credentials;
mod doctor;
mod fork;
#[cfg(feature = "setup")]
mod init;
#[cfg(not(feature = "setup"))]
absent! {
    mod init: InitArgs, "archon init",
    "set the variable of the service and `model` in archon.toml, or build with `--features setup`"
}
mod man;
#[cfg(all(unix, feature = "mcp"))]
mod mcp;
#[cfg(not(all(unix, feature = "mcp")))]
absent! { mod mcp: McpArgs, "archon mcp", "build with `--features mcp`" }
mod memory;
mod model;
mod models;
mod new;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(not(feature = "openapi"))]
absent! { mod openapi: OpenapiArgs, "archon openapi", "build with `--features openapi`" }
mod plan;
#[cfg(all(unix, feature = "undo"))]
mod redo;
#[cfg(not(all(unix, feature = "undo")))]
absent! { mod redo: RedoArgs, "archon redo", "build with `--features undo`, on Linux or macOS" }
mod replay;
mod resume;
mod run;
mod runs;
mod schema;
#[cfg(feature = "serve")]
mod serve;
#[cfg(not(feature = "serve"))]
absent! { mod serve: ServeArgs, "archon serve", "build with `--features serve`" }
mod sessions;
#[cfg(feature = "skills")]
mod skills;
#[cfg(not(feature = "skills"))]
absent! { mod skills: SkillsArgs, "archon skills", "build with `--features skills`" }
mod structured_output;
mod task;
mod team;
mod tools;
#[cfg(feature = "triggers")]
mod triggers;
#[cfg(not(feature = "triggers"))]
absent! { mod triggers: TriggersArgs, "archon triggers", "build with `--features triggers`" }
mod trust;
#[cfg(all(unix, feature = "undo"))]
mod undo;
#[cfg(not(all(unix, feature = "undo")))]
absent! { mod undo: UndoArgs, "archon undo", "build with `--features undo`, on Linux or macOS" }
mod which;

use std::path::PathBuf;

use archon::{
    Archon, Runs,
    memory::Memory,
    tools::Rule,
    types::{Collection, RunConfig, RunFilter, RunKind, RunStarted, RunStatus, SessionId, StartRuns},
};
use clap::Subcommand;

use crate::{
    app::App,
    assemble,
    cassette::Cassette,
    config::{Detail, EmbedderChoice, Mode, Money, PermissionRules, Settings, Span, Thinking, ToolSelection},
    exit::Exit,
    failure::Failure,
    output::Output,
};
use structured_output::OutputFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Choose a provider, keep its key, and set the default model
    Init(init::InitArgs),
    #[cfg_attr(feature = "chat", doc = "Have a conversation on the terminal; the default without a command")]
    #[cfg_attr(
        not(feature = "chat"),
        doc = "Have a conversation on the terminal: not in this build (cargo feature `chat`)"
    )]
    Chat(Box<chat::ChatArgs>),
    /// Work on a task and print the answer
    Run(run::RunArgs),
    /// Make a plan for a goal and show it, follow it, show the plan of a run, or answer its questions
    Plan(Box<plan::PlanArgs>),
    /// Let a team of agents work on a task
    #[command(subcommand)]
    Team(team::TeamCommand),
    /// List the agents of the settings and of files, or let one of them work on a task
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// List, show, fork or delete runs
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Resume a run that was interrupted, cancelled or failed
    Resume(resume::ResumeArgs),
    /// Take back what a run changed in its folder
    Undo(undo::UndoArgs),
    /// Take back the last undo in the session of a run
    Redo(redo::RedoArgs),
    /// Show the questions of runs that wait for you, and answer them
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Check that a run's log follows from its inputs
    Replay(which::WhichRun),
    /// Show conversations, or export one
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Store, find and forget memories
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Show the tools, or call one without a model
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// List, check and agree to skills: instructions that the agent loads when a task needs them
    Skills(skills::SkillsArgs),
    /// Add, list and test MCP servers, whose tools the agent gets, and agree to their tools
    Mcp(mcp::McpArgs),
    /// Import OpenAPI documents, whose operations the agent gets as tools; list and remove them
    Openapi(openapi::OpenapiArgs),
    /// Serve runs over HTTP, to programs and browsers, until Ctrl-C
    #[command(after_help = "Questions of runs always wait for an answer, so --ask-later is refused.")]
    Serve(Box<serve::ServeArgs>),
    /// Serve many tenants over HTTP with the agents of a folder, until Ctrl-C
    #[command(after_help = "Questions of runs always wait for an answer, so --ask-later is refused.")]
    Assistant(Box<assistant::AssistantArgs>),
    /// Add, list, pause and start tasks that start runs when nobody is there; `archon serve` starts their runs
    Triggers(triggers::TriggersArgs),
    /// Show the models that can be used now
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Download and list models that run in this program
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Store the keys of services, encrypted, for use without a key in the environment
    #[command(subcommand)]
    Credentials(credentials::CredentialsCommand),
    /// Show, check and change settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Agree to the settings, hooks, skills and instructions of a project, or take that back
    Trust(trust::TrustArgs),
    /// Write a small Rust project with an agent into a new folder
    New(new::NewArgs),
    /// Show the state of this machine, and the model and tools that would be used, with the reasons
    Doctor(doctor::DoctorArgs),
    /// Print the completion script of a shell, as in `archon completions bash`
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write a page for each command into a folder
    Man(man::ManArgs),
    /// Print a JSON Schema of this program's output or settings
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
}

impl Command {
    /// Returns the settings of the command's flags; `None` for a command that needs no settings.
    pub(crate) fn settings(&self) -> Option<Settings> {
        Some(match self {
            #[cfg(feature = "chat")]
            Self::Chat(args) => args.settings(),
            #[cfg(not(feature = "chat"))]
            Self::Chat(_) => return None,
            Self::Run(args) => args.settings(),
            Self::Plan(args) => args.settings(),
            Self::Resume(args) => args.flags.settings(),
            Self::Team(command) => command.settings(),
            Self::Agents(command) => command.settings(),
            Self::Tools(command) => command.settings(),
            Self::Models(command) => command.settings(),
            Self::Doctor(args) => args.settings(),
            Self::Mcp(_) | Self::Openapi(_) => Settings::default(),
            #[cfg(feature = "serve")]
            Self::Serve(args) => args.settings(),
            #[cfg(not(feature = "serve"))]
            Self::Serve(_) => return None,
            #[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
            Self::Assistant(args) => args.settings(),
            #[cfg(not(all(feature = "serve", feature = "skills", feature = "triggers")))]
            Self::Assistant(_) => return None,
            #[cfg(feature = "triggers")]
            Self::Triggers(args) => return args.settings(),
            #[cfg(not(feature = "triggers"))]
            Self::Triggers(_) => return None,
            Self::Memory(command) => command.settings(),
            Self::Approvals(command) => return command.settings(),
            Self::Runs(command) => return command.settings(),
            Self::Config(command) => return command.settings(),
            Self::Replay(_)
            | Self::Undo(_)
            | Self::Redo(_)
            | Self::Sessions(_)
            | Self::Model(_)
            | Self::Credentials(_)
            | Self::Skills(_)
            | Self::Trust(_)
            | Self::Init(_)
            | Self::New(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Schema(_) => return None,
        })
    }

    /// Returns true if the command builds or shows agents, so that agent files must be read.
    pub(crate) fn has_agents(&self) -> bool {
        let shows_others = matches!(self, Self::Config(_) | Self::Memory(_) | Self::Models(_));
        !shows_others && self.settings().is_some()
    }

    /// Returns true if the command works without settings, and so also while a settings file has problems.
    pub(crate) fn is_without_settings(&self) -> bool {
        match self {
            Self::Config(command) => command.settings().is_none(),
            Self::New(_) | Self::Completions(_) | Self::Man(_) | Self::Schema(_) => true,
            _ => false,
        }
    }

    /// Returns the recording or the replay of model calls that the flags set.
    fn cassette(&self) -> Result<Cassette, Failure> {
        match self {
            #[cfg(feature = "chat")]
            Self::Chat(args) => args.agent.cassette(),
            Self::Run(args) => args.work.agent.cassette(),
            Self::Plan(args) => args.work.agent.cassette(),
            Self::Team(team::TeamCommand::Run { flags, .. }) => flags.work.agent.cassette(),
            Self::Agents(agents::AgentsCommand::Run(args)) => args.agent.cassette(),
            _ => Ok(Cassette::None),
        }
    }

    /// Runs the command. `whole` describes the whole command line, for its manual and its completions.
    pub(crate) async fn run(self, app: &App, whole: fn() -> clap::Command) -> Result<Exit, Failure> {
        let app = &App { cassette: self.cassette()?, ..app.clone() };
        let result = self.run_with(app, whole).await;
        crate::mcp::close(app).await;
        app.cassette.warn_of_unused_calls(&app.output);
        app.cassette.finish(result, &app.output)
    }

    async fn run_with(self, app: &App, whole: fn() -> clap::Command) -> Result<Exit, Failure> {
        match self {
            Self::Chat(args) => args.run(app).await,
            Self::Run(args) => args.run(app).await,
            Self::Plan(args) => args.run(app).await,
            Self::Team(command) => command.run(app).await,
            Self::Agents(command) => command.run(app).await,
            Self::Runs(command) => command.run(app).await,
            Self::Resume(args) => args.run(app).await,
            Self::Undo(args) => args.run(app).await,
            Self::Redo(args) => args.run(app).await,
            Self::Approvals(command) => command.run(app).await,
            Self::Replay(which) => replay::run(app, &which).await,
            Self::Sessions(command) => command.run(app).await,
            Self::Memory(command) => command.run(app).await,
            Self::Tools(command) => command.run(app).await,
            Self::Mcp(args) => args.run(app).await,
            Self::Openapi(args) => args.run(app).await,
            Self::Serve(args) => args.run(app).await,
            Self::Assistant(args) => args.run(app).await,
            Self::Triggers(args) => args.run(app).await,
            Self::Models(command) => command.run(app).await,
            Self::Model(command) => command.run(app).await,
            Self::Credentials(command) => command.run(app).await,
            Self::Init(args) => args.run(app).await,
            Self::Config(command) => command.run(app),
            Self::Skills(args) => args.run(app).await,
            Self::Trust(args) => args.run(app),
            Self::New(args) => args.run(app),
            Self::Doctor(args) => args.run(app).await,
            Self::Completions(args) => args.run(app, whole),
            Self::Man(args) => args.run(app, whole),
            Self::Schema(command) => command.run(app),
        }
    }
}

/// Returns the command for a command line that names none: a conversation, if a person is at the terminal and reads the
/// output there.
pub(crate) fn alone(output: &Output, is_json: bool) -> Option<Command> {
    let has_person = output.asks && output.live && !is_json;
    (has_person && cfg!(feature = "chat")).then(conversation)
}

fn conversation() -> Command {
    Command::Chat(Box::default())
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ModelFlags {
    /// The model: a name, PROVIDER:NAME, or the path of a GGUF file
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Address of an OpenAI-compatible service, up to and including /v1
    #[arg(long, value_name = "U")]
    pub(crate) base_url: Option<String>,
}

/// Flags that choose the tools and the folder that they see.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ToolFlags {
    /// The tools: names separated by commas, `all` or `none` [default: those that change nothing, and
    /// those of MCP servers and APIs; in a conversation also those that change files and run commands]
    #[arg(long, value_name = "a,b|all|none")]
    pub(crate) tools: Option<ToolSelection>,
    /// The folder that tools may see [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

/// Flags for an agent's work.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AgentFlags {
    /// A fallback model for a model that cannot answer; may be given again
    #[arg(long, value_name = "M")]
    pub(crate) fallback: Option<Vec<String>>,
    /// A file with the project's instructions, read again before each question [default: for
    /// the main agent AGENTS.md of the project, or CLAUDE.md without it, once you agreed to the file]
    #[arg(long, value_name = "FILE")]
    pub(crate) project_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// The form in which the model gets tools [default: the form that it supports]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// The amount of thinking before an answer [default: off]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) thinking: Option<Thinking>,
    /// The length of tool results that the model reads [default: set by the tool]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) output_level: Option<Detail>,
    /// Record the model calls in this cassette, without keys
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Call no model: replay the answers of this cassette
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

/// Flags of the commands that work on a task.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    allow: AllowFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    memory: MemoryFlags,
}

impl WorkFlags {
    fn apply(&self, settings: &mut Settings) {
        self.agent.apply(settings);
        self.allow.apply(settings);
        self.memory.vectors.apply(settings);
    }

    /// Builds the agent of the settings for a run in this session, with the memory and the structured output of the
    /// flags.
    async fn archon(&self, app: &App, session: Option<&SessionId>) -> Result<Archon, Failure> {
        let last = match session {
            Some(session) => last_config(app, session).await,
            None => None,
        };
        let memory = self.memory.open(app).await;
        self.output.apply(assemble::chosen(app, memory, last.as_ref()).await?)
    }
}

/// Flags for an existing run; all other settings come from its log.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RecordedFlags {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    allow: AllowFlags,
}

impl RecordedFlags {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = settings(&self.model, &self.tools);
        self.allow.apply(&mut settings);
        settings
    }
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LimitFlags {
    /// The maximum number of model calls of the run; in a plan, of each subtask
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// The maximum number of tokens of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// The maximum cost of the run in US dollars, as in 0.50: needs a model with a known price
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<Money>,
    /// The maximum time that the run may work: 90s, 20m or 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) max_duration: Option<Span>,
}

impl LimitFlags {
    fn apply(&self, settings: &mut Settings) {
        (settings.max_turns, settings.max_tokens) = (self.max_turns, self.max_tokens);
        (settings.max_cost, settings.max_duration) = (self.max_cost, self.max_duration);
    }
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AllowFlags {
    /// Allow calls that match this rule without a question, as in write_file(src/**); may be given again
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,
}

impl AllowFlags {
    fn apply(&self, settings: &mut Settings) {
        if !self.allow.is_empty() {
            let allow = self.allow.iter().map(ToString::to_string).collect();
            settings.permissions = Some(PermissionRules { allow, ..PermissionRules::default() });
        }
    }
}

/// Flags for finding memories.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct EmbedderFlags {
    /// The embedder, with which memories are also found by meaning [default: auto]
    #[arg(long, value_enum)]
    pub(crate) embedder: Option<EmbedderChoice>,
}

impl EmbedderFlags {
    fn apply(&self, settings: &mut Settings) {
        settings.embedder = self.embedder;
    }
}

/// Flags that choose the session of a run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionFlags {
    /// Continue the session of the last run
    #[arg(long = "continue", conflicts_with = "session")]
    go_on: bool,
    /// Continue this session, or begin one with this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl SessionFlags {
    /// Returns the session that the flags choose; `None` if they choose none.
    async fn id(&self, app: &App) -> Result<Option<SessionId>, Failure> {
        Ok(match &self.session {
            Some(name) => Some(SessionId::new(name.as_str())),
            None if self.go_on => Some(last_session(&app.runs()?).await?),
            None => None,
        })
    }
}

/// Returns the configuration of the last run of an agent in a session; `None` if there is no such run, or if it
/// cannot be read.
async fn last_config(app: &App, session: &SessionId) -> Option<RunConfig> {
    let runs = app.runs().ok()?;
    let heads = runs.list(&RunFilter::of_session(session.clone()).top_level().limit(LOOKED_AT)).await.ok()?;
    for head in heads.iter().filter(|head| head.kind == Some(RunKind::Loop)) {
        let records = runs.records(&head.run_id, None).await.ok()?.whole().ok()?;
        let config = RunStarted::of(&records).map(|started| started.config.clone())?;
        if !assemble::asks_no_model(&config) {
            return Some(config);
        }
    }
    None
}

/// The maximum number of runs to check for one whose log can be read.
const LOOKED_AT: usize = 20;

/// Returns the session of the newest top-level run. A newest run that has not ended is an error.
async fn last_session(runs: &Runs) -> Result<SessionId, Failure> {
    for head in runs.list(&RunFilter::all().top_level().limit(LOOKED_AT)).await? {
        if head.problem.is_some() {
            // Refuses a damaged log: continuing an older run of its session would silently lose what this one
            // has.
            if head.session.is_some() {
                runs.records(&head.run_id, None).await?.whole()?;
            }
            continue;
        }
        if matches!(head.status, RunStatus::Running | RunStatus::Interrupted) {
            let what = format!("the last run, {}, has not ended", head.run_id);
            return Err(Failure::usage(what, format!("resume it first: archon resume {}", head.run_id)));
        }
        return head.session.ok_or_else(|| archon::RunError::NothingToContinue.into());
    }
    Err(archon::RunError::NothingToContinue.into())
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MemoryFlags {
    /// Store memories in this collection, as in user:anna, and recall them from it
    #[arg(long, value_name = "COLLECTION")]
    pub(crate) memory: Option<Collection>,
    #[command(flatten)]
    vectors: EmbedderFlags,
}

impl MemoryFlags {
    /// Opens the memory of the flags; `None` if the flags set no collection, or if the memory cannot be opened.
    async fn open(&self, app: &App) -> Option<Memory> {
        let Some(collection) = &self.memory else { return None };
        crate::memory::open_for_run(app, collection).await
    }
}

impl AgentFlags {
    fn cassette(&self) -> Result<Cassette, Failure> {
        match (&self.record, &self.replay) {
            (Some(path), _) => Cassette::recording(path),
            (_, Some(path)) => Cassette::replaying(path),
            (None, None) => Ok(Cassette::None),
        }
    }

    fn apply(&self, settings: &mut Settings) {
        settings.fallback.clone_from(&self.fallback);
        settings.project_file.clone_from(&self.project_file);
        settings.mode = self.mode;
        (settings.thinking, settings.output_level) = (self.thinking, self.output_level);
        self.limits.apply(settings);
    }
}

fn settings(model: &ModelFlags, tools: &ToolFlags) -> Settings {
    let mut settings = Settings::default();
    model.apply(&mut settings);
    tools.apply(&mut settings);
    settings
}

impl ModelFlags {
    fn apply(&self, settings: &mut Settings) {
        settings.model.clone_from(&self.model);
        settings.base_url.clone_from(&self.base_url);
    }
}

impl ToolFlags {
    fn apply(&self, settings: &mut Settings) {
        settings.tools.clone_from(&self.tools);
        settings.workspace.clone_from(&self.workspace);
    }
}

pub(crate) use trust::warning;
