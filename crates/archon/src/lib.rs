//! Agents that think with a model, act with tools, and survive a crash.
//!
//! This crate combines the other crates of the workspace; each of them can be used without it.
//!
//! ```no_run
//! use archon::{Archon, tool};
//!
//! /// Adds two whole numbers and returns the sum.
//! #[tool(read_only)]
//! async fn add(a: i64, b: i64) -> String {
//!     (a + b).to_string()
//! }
//!
//! # async fn run() -> Result<(), archon::RunError> {
//! let agent = Archon::builder().model("ollama:qwen3").tool(add).build()?;
//! println!("{}", agent.run("What is 19 + 23?").await?.into_text()?);
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | build an agent | [`Archon::builder`] |
//! | run a task, or watch it run | [`Archon::run`], [`Archon::start`], [`RunHandle::text_stream`] |
//! | give one run a budget, instructions or fewer tools | [`RunOptions`] |
//! | build an agent that differs from another in some parts | [`Archon::to_builder`] |
//! | get an answer as a value of a type | [`Archon::run_typed`], `Planning::run_typed`, `Teamwork::run_typed`, [`ParallelReply::typed`]; or [`Archon::answering`] and [`RunHandle::typed`] |
//! | continue a conversation | [`Archon::conversation`], or [`RunOptions::session`] |
//! | steer or cancel a run, from any process | [`Archon::steer`], [`Archon::cancel`] |
//! | resume a run after a crash or a cancel | [`Archon::resume`] |
//! | ask people for approvals, and list the open questions | [`ArchonBuilder::approver`], [`Archon::approvals`], [`Archon::answer`] |
//! | refuse calls by your own rule, or change results | [`ArchonBuilder::guard`] |
//! | start, watch, answer and resume runs of every kind by one handle | [`Runs`] |
//! | resume runs whose questions have expired | [`Runs::keep_sweeping`] |
//! | serve many customers, each of whom sees only their own runs | [`Runs::for_tenant`] |
//! | fork a run at an earlier turn | [`Archon::fork`] |
//! | let several agents work on a task, and take the best answer | [`Archon::parallel`] |
//! | make a plan for a goal, and execute it | `Archon::planning`, with the feature `planner` |
//! | let a team do the work | `Archon::team`, with the feature `orchestrator` |
//! | answer messages of many people, and ask them for approvals | `orchestrator::Assistant::new` over this agent, with the feature `orchestrator` |
//! | compute the records of a log again, and compare them | [`react_loop::replay`] |
//! | read a conversation as a tree of runs | [`views::Session::read`] |
//! | let an agent call another agent | [`SubAgentTool`] |
//! | let an agent call agents that files describe | `FileAgents`, with the feature `skills` |
//! | give an agent skills: folders with instructions | `ArchonBuilder::skills`, with the feature `skills` |
//! | call commands and HTTP endpoints at events of a run; they may refuse calls | `ArchonBuilder::event_hooks`, with the feature `hooks` |
//! | let an agent write programs | `code::CodeExecutor`, with the features `code-python` and `code-javascript` |
//! | use the tools of MCP servers | `ArchonBuilder::mcp`, with the feature `mcp` |
//! | use the operations of an HTTP API | `ArchonBuilder::with_openapi_file`, with the feature `openapi` |
//! | offer tools and agents to MCP clients | `mcp_serve::ToolServer`, with the feature `mcp-serve` |
//! | serve runs over HTTP, to programs and web pages | `server::Server`, with the feature `server` |
//! | offer agents as models to OpenAI clients | `openai_serve::ModelServer`, with the feature `openai-serve` |
//! | start runs by schedule, event and condition | `triggers::TriggerEngine`, with the feature `triggers` |
//! | start runs by web hooks, files and messages | `event_sources::WebhookDoor` and others, with the feature `event-sources` |
//! | let people answer by a link or by mail | `answers::Answers`, with the features `answers` and `answers-mail` |
//! | notify people of runs in the background: web hooks, Slack, Telegram, mail | `notify::WebhookChannel` and others, with the features `notify` and `notify-mail` |
//! | let people sign in at services of your tools | `oauth::OAuth`, with the feature `oauth` |
//! | write a tool, with a database or without | [`tool`], or the [`Tool`] trait |
//! | read a project's instructions for its agents | [`ProjectFile`] |
//! | save sessions for other programs during runs | [`ArchonBuilder::save_sessions`] |
//! | undo what a run changed in its workspace | `Undo`, with the feature `undo` |
//! | replace the model, the tools or the storage | the builder takes any [`Provider`], [`Toolbox`] or [`Journal`] |
//!
//! A failed run is an error, [`RunError`], with the kind of failure, the id of the run and advice. All methods that
//! start or resume runs return this error. [`ArchonBuilder::build`] has its own error, [`BuildError`], which `?`
//! converts into a `RunError`. A run that is suspended, ended at a limit or was cancelled is a [`Reply`], which must
//! be matched before its text can be used:
//!
//! ```no_run
//! use archon::{Archon, Reply, RunError};
//!
//! # async fn run(agent: Archon) -> Result<(), RunError> {
//! match agent.run("Refund order A-1021").await? {
//!     Reply::Finished(answer) => println!("{answer}"),
//!     Reply::Waiting(run) => println!("somebody has to agree; then resume {}", run.run()),
//!     Reply::AtLimit(limit, run) => println!("{limit}; so far: {}", run.partial().unwrap_or("nothing")),
//!     _ => println!("it was stopped"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A reply cannot be printed by mistake:
//!
//! ```compile_fail,E0277
//! # async fn run(agent: archon::Archon) -> Result<(), archon::RunError> {
//! println!("{}", agent.run("Refund order A-1021").await?);
//! # Ok(())
//! # }
//! ```
//!
//! Enums such as [`Reply`] get more variants in later versions, so a `match` needs a `_ =>` arm. Structs of
//! options get more fields, so create them with `default()` or `new(…)` and change them with `with_…` or
//! field by field:
//!
//! ```
//! use std::time::Duration;
//!
//! use archon::{
//!     tools::{Ask, EngineOptions},
//!     types::{ApprovalSettings, ExecutionLimits, OnExpiry},
//! };
//!
//! let limits = ExecutionLimits::default().with_max_turns(10).with_max_cost_micros(50_000);
//! let questions = ApprovalSettings::default()
//!     .with_timeout(Duration::from_secs(24 * 60 * 60))
//!     .with_on_expiry(OnExpiry::Abort);
//! let engine = EngineOptions::default().asking(Ask::BeforeChanges).with_timeout(Duration::from_secs(5));
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "memory")]
mod agent_memory;
mod approvals;
mod archon;
#[cfg(feature = "orchestrator")]
mod assistant;
mod auto_save;
mod build;
mod builder;
mod claim;
mod conversation;
mod error;
mod handle;
mod memory_limit;
#[cfg(feature = "planner")]
mod models;
mod parallel;
#[cfg(feature = "planner")]
mod planning;
mod project_file;
mod random_ids;
mod run_agents;
mod run_clock;
mod run_options;
mod runs;
#[cfg(any(feature = "planner", feature = "orchestrator"))]
mod several;
#[cfg(feature = "skills")]
mod skill_toolbox;
#[cfg(feature = "orchestrator")]
mod teamwork;
mod typed;
#[cfg(all(unix, feature = "undo"))]
mod undo;
mod unread;
mod watch;

pub use approvals::Approvals;
pub use archon::Archon;
/// Makes a tool from a function: its doc comment becomes the description, its signature the schema.
///
/// - A doc comment on a parameter describes it to the model. The model may leave out a parameter of the type
///   `Option<T>` or with `#[default(value)]`.
/// - A parameter with `#[state]`, such as `#[state] db: &Database`, gets its value when the tool is created:
///   `refund(db)`. The engine passes a parameter of the type `&ToolContext`. The model sees neither.
/// - The attribute accepts `read_only`, `idempotent`, `destructive`, `requires_confirmation`, `concurrency_safe`,
///   `blocking`, `timeout_ms = 5000`, and with a text as value `name`, `description`, `version`, `summary`.
///
/// `archon_tools::tool` is the same macro; its documentation describes each of these in detail.
///
/// ```
/// use archon::tool;
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// fn add(
///     /// The first number.
///     left: f64,
///     /// The second number.
///     right: f64,
/// ) -> f64 {
///     left + right
/// }
///
/// let builder = archon::Archon::builder().model("ollama:qwen3").tool(add);
/// ```
pub use archon_macros::facade_tool as tool;
#[cfg(feature = "memory")]
pub use archon_memory::AgentMemory;
pub use archon_react_loop::SubAgentTool;
pub use archon_tools::{ToolEngine, ToolRegistry};
pub use archon_types::{
    Agent, Context, Event, FailureKind, FinalAnswer, Journal, Outcome, OutcomeStatus, Provider, Reply,
    RunError, RunId, SessionId, Tool, ToolContext, ToolError, ToolResult, Toolbox, Unfinished,
};
pub use auto_save::AutoSave;
pub use builder::ArchonBuilder;
#[cfg(feature = "skills")]
pub use builder::FileAgents;
pub use conversation::Conversation;
pub use error::BuildError;
pub use handle::RunHandle;
pub use memory_limit::ProcessMemoryLimit;
pub use parallel::{Parallel, ParallelReply};
#[cfg(feature = "planner")]
pub use planning::Planning;
pub use project_file::ProjectFile;
pub use random_ids::RandomIds;
pub use run_clock::SystemClock;
pub use run_options::RunOptions;
pub use runs::{AgentSource, Runs, Sweeping, TenantRuns};
#[cfg(feature = "orchestrator")]
pub use teamwork::Teamwork;
pub use typed::{OutputSchema, Typed};
#[cfg(all(unix, feature = "undo"))]
pub use undo::Undo;

/// The crate with the derive macro of [`JsonSchema`](schemars::JsonSchema), which types for
/// [`Archon::run_typed`] need.
pub use schemars;

/// Names that most programs need: `use archon::prelude::*;`.
///
/// Agents and their runs, tools, and the traits that a program implements: approvers, hooks, guards and
/// planners.
pub mod prelude {
    pub use crate::{
        Archon, ArchonBuilder, BuildError, Conversation, Event, FailureKind, FinalAnswer, Reply, RunError,
        RunHandle, RunId, RunOptions, Runs, SessionId, Tool, ToolContext, ToolError, ToolResult, Typed,
        Unfinished, tool,
        tools::{CallGuard, EngineOptions, FnGuard, GuardedCall},
        types::{
            Answer, AnswerRuns, ApprovalRequest, Approver, AskLater, Decision, ExecutionLimits, FnApprover,
            FnHooks, FnPlanner, Hooks, ManageRuns, Planner, StartRun, StartRuns,
        },
    };
}

/// Answers to questions of runs from outside of the program: by a link, and by a reply to a mail.
#[cfg(feature = "answers")]
pub use archon_answers as answers;
/// Code execution: programs that an agent writes, run in this process under limits.
#[cfg(any(feature = "code-python", feature = "code-javascript"))]
pub use archon_code as code;
/// Sources of events, for which the tasks of `triggers` start runs: signed web hooks, files, messages of a bus, and
/// mail (with the feature `event-sources-imap`).
#[cfg(feature = "event-sources")]
pub use archon_event_sources as event_sources;
/// Event hooks: commands and HTTP endpoints that are called at events of runs. A hook may deny a tool call, or let a
/// person decide about the call.
#[cfg(feature = "hooks")]
pub use archon_hooks as hooks;
/// MCP servers, their tools, and the pins, which are the tool definitions that a program trusts.
#[cfg(feature = "mcp")]
pub use archon_mcp as mcp;
/// A server that offers tools and agents of this program to MCP clients.
#[cfg(feature = "mcp-serve")]
pub use archon_mcp_serve as mcp_serve;
/// Long-term memory: stores and recalls memories.
#[cfg(feature = "memory")]
pub use archon_memory as memory;
/// Notifications to people about runs in the background: by web hook, Slack, Telegram or mail.
#[cfg(feature = "notify")]
pub use archon_notify as notify;
#[cfg(feature = "oauth")]
pub use archon_oauth as oauth;
/// A server that offers agents as models at the OpenAI endpoints Responses and Chat Completions.
#[cfg(feature = "openai-serve")]
pub use archon_openai_serve as openai_serve;
/// Tools of an HTTP API, from its OpenAPI document.
#[cfg(feature = "openapi")]
pub use archon_openapi as openapi;
/// Plans: makes, checks, executes, changes and draws plans.
#[cfg(feature = "planner")]
pub use archon_planner as planner;
/// Providers of models: protocols, names, scripted providers for tests.
pub use archon_providers as providers;
/// The agent loop, in which a model and its tools take turns: its state machine and its driver.
pub use archon_react_loop as react_loop;
/// Runs over HTTP: a router of JSON and server-sent events, behind tokens with roles.
#[cfg(feature = "server")]
pub use archon_server as server;
/// Skills: folders with instructions that an agent loads when a task needs them.
#[cfg(feature = "skills")]
pub use archon_skills as skills;
/// Snapshots of a workspace, and the results of an undo.
#[cfg(all(unix, feature = "undo"))]
pub use archon_snapshots as snapshots;
/// Journals, which store the logs of runs.
pub use archon_store as store;
/// Tool search: requests leave out the definitions of many tools, and the model finds these tools with a search.
#[cfg(feature = "tool-search")]
pub use archon_tool_search as tool_search;
/// Tasks that start runs without a person: by a schedule, for an event, or when a condition becomes true.
#[cfg(feature = "triggers")]
pub use archon_triggers as triggers;
/// Teams of agents, and a bus for messages within one process. Assistants, which talk with many people, and the pool
/// of runs that wait for people.
#[cfg(feature = "orchestrator")]
pub mod orchestrator {
    pub use archon_assistant::*;
    pub use archon_bus::*;
    pub use archon_orchestrator::*;
}
/// The tool registry, the engine that checks and runs tool calls, and the built-in tools.
pub mod tools {
    pub use archon_tools::*;

    // Shadows the macro of the same name, whose paths work only in crates that depend on `archon-tools`.
    /// The macro [`tool`](macro@crate::tool).
    pub use archon_macros::facade_tool as tool;
}
/// The types and traits that all crates share.
pub use archon_types as types;
/// Views computed from logs: turns, rounds, metrics, reports and sessions.
pub use archon_views as views;

/// The README and the pages of the book, whose Rust blocks are compiled.
#[cfg(all(
    doctest,
    feature = "bash",
    feature = "encryption",
    feature = "git",
    feature = "orchestrator",
    feature = "planner",
    feature = "sqlite-memory",
    feature = "web",
    feature = "yaml",
))]
mod book;
