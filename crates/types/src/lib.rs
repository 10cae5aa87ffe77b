//! The data types and traits that all crates of Archon share. It has no I/O and starts no tasks.
//!
//! Depend on it alone to write an agent, a tool, a provider or a store that works with every other crate.
//!
//! An implementation of one of the traits can live in a crate that depends on this one alone.
//!
//! | term | types | meaning |
//! |---|---|---|
//! | message | [`Message`], [`AgentMessage`] | a text of a person, a model or a tool, in a conversation |
//! | provenance | [`Speaker`], [`Attributed`] | the real author of a message; the role on the wire may be another |
//! | record | [`Record`] | one entry of a run's log; the log is the only state that is kept |
//! | delta | [`Delta`] | a piece of an answer while it streams; never stored |
//! | event | [`Event`], [`AgentEvent`], [`StreamEvent`] | records and deltas as they happen; the others are projections of them |
//! | model | [`Provider`], [`Request`], [`ModelEvent`] | takes a request, returns a stream of events |
//! | tool | [`Tool`], [`ToolSpec`], [`ToolResult`] | takes a call, returns exactly one result |
//! | toolbox | [`Toolbox`] | the interface through which a loop executes tool calls |
//! | context window | [`ContextConfig`], [`TokenCounter`], [`CompactionStrategy`], [`Compaction`] | the part of a conversation that the model sees |
//! | agent | [`Agent`], [`Outcome`] | takes a task, returns an outcome |
//! | run service | [`RunService`], [`StartRun`], [`RunError`] | starts, watches, answers, resumes, forks and deletes runs |
//! | kind of a run | [`RunKind`], [`RunAgent`] | loop, parallel, plan, team, agent call |
//! | journal | [`Journal`], [`RunWriter`] | appends records and reads them back |
//! | child run | [`Delegation`], [`Lease`], [`CalledRun`] | a run that a call of another run started, and its part of the budget |
//! | session | [`Session`], [`SessionRecorder`], [`SessionStore`] | the runs of a conversation as a tree, in a file that other programs can read |
//! | inbox | [`Inbox`], [`InboxRequest`] | messages for a run: steering, answers, a cancel |
//! | project | [`Instructions`] | instructions of a project for the agents that work in it |
//! | hook | [`Hooks`], [`InputFilter`] | a program's own code at fixed points of a run |
//! | choice | [`EvaluationStrategy`], [`Verdict`] | selects the branch of a parallel loop that its session continues with |
//! | plan | [`Task`], [`SubTask`], [`Plan`], [`Planner`] | a goal as a graph of subtasks |
//! | execution of a plan | [`PlanRecord`], [`PlanSettings`], [`PlanDiff`] | its settings, its progress and its changes |
//! | team | [`Role`], [`Member`], [`TeamSettings`] | agents with roles that work on one task |
//! | execution of a team | [`TeamRecord`], [`Claim`], [`SharedItem`] | delegations, missed heartbeats and conflicting results |
//! | memory | [`Episodic`], [`Working`], [`LongTerm`], [`Embedder`] | data that is kept between turns, steps and sessions |
//! | memory store | [`MemoryStore`], [`MemoryEntry`], [`Collection`] | keeps entries and finds candidates; one trait for every backend |
//! | memory of runs | [`RunMemory`] | stores the messages of a run before they leave the window, and recalls them |
//! | bus | [`Bus`], [`BusMessage`] | messages between agents |
//! | cycle | [`Cycle`], [`ToolCallRecord`] | a turn as a structured entry: a fold over records |
//! | metrics | [`ConversationMetrics`], [`GlobalStats`] | tool calls and durations of a conversation, with a text report: a fold over records |
//! | report | [`RunReport`] | the outcome of a run, the durations of its calls and its working time: a fold over records |
//! | state of a call | [`ToolExecutionState`], [`ToolExecutions`] | the progress of each call: a fold over records |
//! | round | [`ConversationRound`] | a question with its thoughts, calls and answer: a fold over records |
//! | approval | [`Approver`], [`ApprovalRequest`], [`PendingApproval`] | a person's answer before a call takes effect |
//! | pool | [`PoolIndex`], [`AgentStatus`] | finds the runs of a tenant that wait for people |
//! | structured output | [`FormCheck`], [`HeldForm`], `json_in` | an answer of a given JSON schema, and the check of it |
//! | secret | [`Secret`], [`Redactor`] | a value that is removed from everything that is kept or shown |
//! | time, identity | [`Clock`], [`Ids`], [`Timestamp`] | inputs, so that tests control them |
//!
//! Traits have three required methods at most and can be made into trait objects.
//!
//! # Example
//!
//! ```
//! use archon_types::{Agent, BoxFuture, Context, Outcome, OutcomeStatus};
//!
//! /// Answers each task with the task in capital letters.
//! struct Capitals;
//!
//! impl Agent for Capitals {
//!     fn name(&self) -> &str {
//!         "capitals"
//!     }
//!
//!     fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
//!         Box::pin(async move {
//!             let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
//!             outcome.set_answer(task.to_uppercase());
//!             outcome
//!         })
//!     }
//! }
//!
//! assert_eq!(Capitals.name(), "capitals");
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod agent;
mod agent_event;
#[cfg(feature = "almost-json")]
pub mod almost_json;
mod approval;
mod bus;
mod called_run;
mod calls_below;
mod carried;
mod cleanup;
mod collection;
mod compaction;
mod content;
mod content_hash;
mod context_config;
mod credentials;
mod cycle;
mod dead_letter;
mod delegation;
mod encoded;
mod error_context;
mod evaluation;
mod event;
mod executions;
mod failure;
mod failure_kind;
mod form;
mod goal;
mod hidden;
mod hooks;
mod ids;
mod inbox;
mod instructions;
mod interruption;
mod journal;
mod limits;
mod memory;
mod memory_store;
mod message;
mod metrics;
mod misfits;
mod nearest;
mod pending;
mod plan;
mod plan_record;
mod pool;
mod preview;
mod price;
mod process;
mod projection;
mod provider;
mod provider_wrapper;
mod record;
mod record_name;
mod redactor;
mod refusal;
mod reply;
mod report;
mod retry;
mod round;
mod run_error;
mod run_filter;
mod run_kind;
mod run_memory;
mod run_service;
#[cfg(feature = "schema")]
mod schema;
mod secret;
mod session;
mod session_fold;
mod session_place;
mod session_recorder;
mod session_store;
mod speaker;
mod stream_event;
mod task;
mod team;
mod team_record;
mod time;
mod token_bucket;
mod tokens;
mod tool;
mod tool_error;
mod tool_execution;
mod tool_result;
mod toolbox;
mod transcript;
mod under_way;

pub use agent::{Agent, AgentState, Ceiling, Context, Outcome, OutcomeStatus, Permit, ReactState};
pub use agent_event::AgentEvent;
#[cfg(feature = "almost-json")]
pub use almost_json::json_in;
pub use approval::{
    Answer, ApprovalRequest, ApprovalSettings, Approver, AskLater, Asker, Decision, DynApprover, FnApprover,
    OnDeny, OnExpiry, QuestionKind, binding, rebound,
};
pub use bus::{BROADCAST, Bus, BusError, BusMessage, Echo, MessageType, REQUEST_WAIT};
pub use called_run::{CUT_OFF, CalledRun, RunRefused, check_called, is_lost, may_resume};
pub use calls_below::MAX_TOOL_DEPTH;
pub use carried::{Carried, CarriedMessage, CarriedResult, CarriedSpending};
pub use cleanup::{CLEANUP_TOOL, CleanedUp, SeenResult};
pub use collection::Collection;
pub use compaction::{
    Compaction, CompactionInput, CompactionLevel, CompactionStrategy, ContextLevel, Summary, ViewPart,
    WindowItem,
};
pub use content::{Content, MalformedArguments, ToolCall};
pub use content_hash::ContentHash;
pub use context_config::{CompactionPolicy, ContextConfig, ResultTokens};
pub use credentials::{CredentialEntry, CredentialError, CredentialKey, CredentialStore, Credentials};
pub use cycle::{Cycle, CycleAction, CycleContext, CycleObservation, CyclePerformance, ToolCallRecord};
pub use dead_letter::{DeadLetter, DeathCause};
pub use delegation::{CallerLog, Delegation, Lease, Spending};
pub use encoded::Encoded;
pub use error_context::{ErrorContext, ErrorSeverity, FailureGroup};
pub use evaluation::{
    BranchResult, Evaluation, EvaluationError, EvaluationStrategy, ParallelBranch, ParallelChoice, Verdict,
};
pub use event::{Delta, DeltaKind, Event, NullSink, Sink, StreamDelta};
pub use executions::{ToolExecutionState, ToolExecutions};
pub use failure::{CircuitBreaker, FailurePolicy, FailureStep, FallbackModel, ModelTarget, OnStorageFailure};
pub use failure_kind::{FailureKind, ModelErrorCode};
pub use form::{FormCheck, FormProblem, FormVerdict, HeldForm, misfit_failure, misfit_line, misfit_note};
pub use goal::{GoalCheck, GoalVerdict};
pub use hidden::is_hidden;
pub use hooks::{DynHooks, FnHooks, HookPoint, Hooks, InputFilter, InputVerdict};
pub use ids::{
    AgentId, CallId, CommandId, Ids, LoopId, MessageId, RunId, SessionId, SubTaskId, TaskId, TenantId,
    ToolCallId, TurnId,
};
pub use inbox::{Inbox, InboxEntry, InboxRequest, received_messages};
pub use instructions::Instructions;
pub use interruption::Interruption;
pub use journal::{Durability, Journal, JournalError, OpenMode, OpenRun, RunHead, RunWriter, Salvaged};
pub use limits::{ExecutionLimits, LimitReached, MoreLimits, OnLimit};
pub use memory::{
    Embedder, Episodic, LongTerm, MemoryEntry, MemoryError, MemoryKind, MemoryQuery, Recalled, Trust, Working,
};
pub use memory_store::{
    Candidate, Damaged, Found, Listing, MemoryChange, MemoryFilter, MemoryOrder, MemoryPage, MemorySearch,
    MemoryStore, Validity,
};
pub use message::{
    AgentMessage, AssistantMessage, ExtensionMessage, LlmMessage, Message, MessageMetadata, StopReason,
    ToolResultMessage, Usage, UserMessage,
};
pub use metrics::{ConversationMetrics, GlobalStats, ToolAverages, ToolMetrics};
pub use nearest::{likeness, nearest};
pub use pending::{PendingApproval, answer_below, open_questions, pending_approvals, questions_below};
pub use plan::{DynPlanner, Expenses, FnPlanner, Plan, PlanError, Planner, PlanningContext};
pub use plan_record::{Citation, Confirm, OnCritical, PlanDiff, PlanRecord, PlanSettings, ReplanPolicy};
pub use pool::{AgentStatus, PoolFilter, PoolIndex};
pub use preview::{FileChange, Preview};
pub use price::{LongPromptPrice, ModelPrice};
pub use process::{ProcessGroup, ProcessLog, Processes};
pub use projection::AgentEvents;
pub use provider::{
    ApiErrorKind, CacheConfig, CacheStrategy, CachedParts, Capabilities, ErrorText, ModelEvent, Provider,
    ProviderError, Request, RequestOptions, ResponseFormat, ThinkingLevel, ToolChoice,
};
pub use record::{
    ContinuationKind, LOG_FORMAT, MemoryConfig, ModelFailure, Origin, PromptSource, QueueMode, Record,
    RecordBody, RunConfig, RunStarted, SideQuestion, ToolMode, TurnTrigger,
};
pub use redactor::{RedactedStream, Redactor};
pub use reply::{FinalAnswer, Reply, Unfinished};
pub use report::RunReport;
pub use retry::RetryConfig;
pub use round::{ConversationRound, RoundStatus};
pub use run_error::RunError;
pub use run_filter::{RunFilter, RunPlace, RunStatus};
pub use run_kind::RunKind;
pub use run_memory::{RunMemory, Told};
pub use run_service::{
    AnswerRuns, Fork, KeepRuns, Removed, ResumedRuns, RunAgent, RunService, RunSettings, StartRun, StartRuns,
    Started, StartedRun, Watch, WhenBusy,
};
#[cfg(feature = "schema")]
pub use schema::event_log_schema;
pub use secret::Secret;
pub use session::{
    ChildLoopRef, LoopConfigSnapshot, LoopEvent, LoopRecord, LoopStatus, ParallelGroupRecord, Session,
    SessionFormation, SessionState, SpawnRef, restore_messages, save_messages,
};
pub use session_place::SessionPlace;
pub use session_recorder::{SessionFormationPolicy, SessionRecorder, SessionRecorderConfig};
pub use session_store::{SessionError, SessionStore};
pub use speaker::{Attributed, Speaker};
pub use stream_event::{StreamEvent, StreamEvents, WaitingFor};
pub use task::{ForEach, IllegalTransition, OnFailure, SubTask, SubTaskRules, SubTaskStatus, Task};
pub use team::{
    ConflictPolicy, ConflictStrategy, Heartbeat, Member, Role, SharedItem, TeamPattern, TeamSettings,
};
pub use team_record::{Claim, TeamRecord};
pub use time::{Clock, Timestamp, not_before};
pub use token_bucket::TokenBucket;
pub use tokens::{
    IMAGE_TOKENS, TOKENS_PER_MESSAGE, TOKENS_PER_NAME, TokenCounter, TokenEstimate, Tokenizer, percentage,
};
pub use tool::{
    Correction, Effect, OutputLevel, Progress, Subject, Tool, ToolAnnotations, ToolContext, ToolDefinition,
    ToolInvocationRequest, ToolSpec,
};
pub use tool_error::ToolError;
pub use tool_execution::ToolExecutionStrategy;
pub use tool_result::{DataFile, ToolResult, ToolResultStatus, metadata};
pub use toolbox::{Executed, Prepared, ReadyCall, Toolbox};
pub use transcript::Transcript;
pub use under_way::CallsUnderWay;

pub(crate) use time::iso8601;

pub use futures_core::{future::BoxFuture, stream::BoxStream};
pub use tokio_util::sync::CancellationToken;

/// A JSON value in messages, schemas and results; object keys keep their order.
pub use serde_json::Value as Json;
