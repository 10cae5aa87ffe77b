//! The data types and traits that all crates of Archon share. This crate performs no I/O and starts no tasks.
//!
//! Use this crate alone to implement an agent, a tool, a provider or a store: its types work with every other crate
//! of Archon.
//!
//! | term | types | meaning |
//! |---|---|---|
//! | message | [`Message`], [`AgentMessage`] | a text of a person, a model or a tool, in a conversation |
//! | medium | [`Media`], [`MediaKind`] | a picture, a PDF file or other data in a message; the log names it by hash |
//! | provenance | [`Speaker`], [`Attributed`] | the real author of a message, which its role does not always show |
//! | record | [`Record`] | one entry of a run's log; the log is the only state that is kept |
//! | delta | [`Delta`] | a piece of an answer while it streams; never stored |
//! | event | [`Event`] | a record that was appended, or a delta |
//! | model | [`Provider`], [`Request`], [`ModelEvent`] | takes a request, returns a stream of events |
//! | tool | [`Tool`], [`ToolSpec`], [`ToolResult`] | takes a call, returns exactly one result |
//! | toolbox | [`Toolbox`] | the interface through which a loop executes tool calls |
//! | context window | [`ContextConfig`], [`TokenCounter`], [`CompactionStrategy`], [`Compaction`] | the part of a conversation that the model sees |
//! | agent | [`Agent`], [`Outcome`] | takes a task, returns an outcome |
//! | run service | [`RunService`], [`StartRun`], [`RunError`] | starts, watches, answers, resumes, forks and deletes runs |
//! | kind of a run | [`RunKind`], [`RunAgent`] | loop, parallel, plan, team, agent call |
//! | journal | [`Journal`], [`RunWriter`] | appends records and reads them back |
//! | child run | [`Delegation`], [`Lease`], [`CalledRun`] | a run that a call of another run started, and its part of the budget |
//! | inbox | [`Inbox`], [`InboxRequest`] | messages for a run: steering, answers, a cancel |
//! | project | [`Instructions`] | instructions of a project for the agents that work in it |
//! | workspace snapshot | [`WorkspaceSnapshots`], [`WorkspaceSnapshot`] | the files before and after the effects of a turn, for an undo |
//! | hook | [`Hooks`], [`InputFilter`] | a program's own code at fixed points of a run |
//! | choice | [`EvaluationStrategy`], [`BranchVerdict`] | selects the winning branch of a parallel loop |
//! | plan | [`Task`], [`SubTask`], [`Plan`], [`Planner`] | a goal as a graph of subtasks |
//! | execution of a plan | [`PlanRecord`], [`PlanSettings`], [`PlanDiff`] | the plan's settings, progress and changes |
//! | team | [`TeamRole`], [`Member`], [`TeamSettings`] | agents with roles that work on one task |
//! | execution of a team | [`TeamRecord`], [`Claim`], [`SharedItem`] | delegations, missed heartbeats and conflicting results |
//! | memory | [`Episodic`], [`Working`], [`LongTerm`], [`Embedder`] | data that an agent keeps between turns, runs and sessions |
//! | memory store | [`MemoryStore`], [`MemoryEntry`], [`Collection`] | keeps entries and finds candidates; one trait for every backend |
//! | memory of runs | [`RunMemory`] | stores the messages of a run before they leave the window, and recalls them |
//! | bus | [`Bus`], [`BusMessage`] | messages between agents |
//! | notification | [`Notification`], [`NotificationChannel`] | a message to a person about a run or a task |
//! | task store | [`TaskStore`], [`StoredTask`] | keeps tasks that start runs, at a time or for an event |
//! | tasks | [`TaskService`], [`TaskHead`] | lists, creates, pauses and starts these tasks |
//! | approval | [`Approver`], [`ApprovalRequest`], [`PendingApproval`] | a person's answer before a call takes effect |
//! | pool | [`PoolIndex`], [`AgentStatus`] | finds the runs of a tenant that wait for people |
//! | structured output | [`OutputCheck`], [`OutputChecker`], `json_in` | an answer that must match a JSON schema, and the check of the answer |
//! | secret | [`Secret`], [`Redactor`] | a value that is removed from everything that is kept or shown |
//! | time, identity | [`Clock`], [`Ids`], [`Timestamp`] | the time and new ids; a test can control both |
//!
//! Each folder has one part of these types. A folder imports only folders that stand above it in this table:
//!
//! | types | folder |
//! |---|---|
//! | ids, time, hashes, secrets, helpers for texts | `values/` |
//! | messages, tool results, trust levels, the context window | `messages/` |
//! | the bus | `bus/` |
//! | descriptions of tools, approvals, credentials, processes | `tools/` |
//! | memories and their stores | `memory/` |
//! | providers, requests, prices | `models/` |
//! | the configuration of a run: limits, retries, checks | `config/` |
//! | plans and teams | `plans/` |
//! | records, journals, inboxes | `log/` |
//! | agents, tools, hooks, planners, the run service | `runs/` |
//!
//! Traits that an application implements have few required methods, mostly one to three; those for a store or a
//! service that hides a whole system have more. Each of them is object-safe, or has an object-safe form, such as
//! [`DynHooks`] for [`Hooks`].
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

// Each folder imports only those before it: values, messages, bus, tools, memory, models, config, plans,
// log, runs.
mod bus;
mod config;
mod log;
mod memory;
mod messages;
mod models;
mod plans;
mod runs;
mod tools;
mod values;

pub use bus::{
    BROADCAST, Bus, BusError, BusMessage, DeadLetter, DeathCause, Echo, MessageType, REQUEST_WAIT,
};
pub use config::{
    CircuitBreaker, ExecutionLimits, FailurePolicy, FallbackModel, FallbackStep, GoalCheck, GoalVerdict,
    Lease, LimitReached, MemoryConfig, ModelTarget, MoreLimits, OnLimit, OnStorageFailure, OutputCheck,
    OutputChecker, OutputVerdict, QueueMode, RetryConfig, RunConfig, RunKind, SchemaProblem, Spending,
    ToolMode, problems_line, problems_note, schema_failure,
};
#[cfg(feature = "schema")]
pub use log::event_log_schema;
pub use log::{
    AgentState, AgentStatus, AuxiliaryCall, ContinuationKind, Delta, DeltaKind, Durability, Event, HookPoint,
    Inbox, InboxEntry, InboxRequest, Journal, JournalError, LOG_FORMAT, ModelFailure, NullSink, OpenMode,
    OpenRun, Origin, Outcome, OutcomeStatus, ParallelBranch, ParallelChoice, PendingApproval, PoolFilter,
    PoolIndex, PromptSource, ReactState, Record, RecordBody, RunFilter, RunHead, RunPlace, RunStarted,
    RunStatus, RunWriter, Salvaged, SessionSnapshot, Sink, SnapshotMessage, SnapshotPlace, SnapshotResult,
    SnapshotSpending, TRIGGER_KEYS, TRIGGER_MESSAGE, TurnTrigger, WorkspaceSnapshot, open_questions,
    pending_approvals, questions_below, received_messages,
};
pub use memory::{
    Candidate, Collection, Damaged, Embedder, Episodic, Listing, LongTerm, MemoryCandidates, MemoryChange,
    MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder, MemoryPage, MemoryQuery, MemorySearch,
    MemoryStore, Recalled, Validity, Working,
};
pub use messages::{
    AgentMessage, AssistantMessage, Attributed, CALL_TOOL, CLEANUP_TOOL, CleanedUp, Compaction,
    CompactionInput, CompactionLevel, CompactionPolicy, CompactionStrategy, Content, ContextConfig,
    ContextLevel, DataFile, ExtensionMessage, IMAGE_TOKENS, Interruption, LlmMessage, MalformedArguments,
    Media, MediaError, MediaKind, MediaView, Message, MessageMetadata, OutputLevel, PDF_PAGE_TOKENS,
    RecalledText, RedactedStream, Redactor, ResultTokens, SeenResult, Speaker, StopReason, Summary,
    TOKENS_PER_MESSAGE, TOKENS_PER_NAME, TOOL_SEARCH, TokenCounter, TokenEstimate, Tokenizer, ToolCall,
    ToolMark, ToolResult, ToolResultMessage, ToolResultStatus, Transcript, Trust, Usage, UserMessage,
    ViewPart, WindowItem, metadata, percentage, sniff,
};
pub use models::{
    ApiErrorKind, CacheConfig, CacheStrategy, CachedParts, Capabilities, ErrorText, FailureKind,
    LongPromptPrice, ModelErrorCode, ModelEvent, ModelPrice, Provider, ProviderError, Reads, Request,
    RequestOptions, ResponseFormat, ThinkingLevel, ToolChoice, format_money,
};
pub use plans::{
    Citation, Claim, Confirm, ConflictPolicy, ConflictStrategy, ForEach, Heartbeat, IllegalTransition,
    Member, OnCritical, OnFailure, PlanDiff, PlanRecord, PlanSettings, ReplanPolicy, SharedItem, SubTask,
    SubTaskRules, SubTaskStatus, Task, TeamPattern, TeamRecord, TeamRole, TeamSettings,
};
pub use runs::{
    Agent, AgentHead, AnswerRuns, BranchResult, BranchVerdict, CUT_OFF, CalledRun, CallerLog, CallsUnderWay,
    Context, Delegation, DynHooks, DynPlanner, EarlierMessage, Evaluation, EvaluationError,
    EvaluationStrategy, Executed, FinalAnswer, FnHooks, FnPlanner, Fork, ForkOptions, ForkPlace, Hooks,
    InputFilter, InputVerdict, Instructions, MAX_TOOL_DEPTH, ManageRuns, MessagePlace, Notification,
    NotificationChannel, NotificationKind, PermissionBound, Permit, Plan, PlanError, Planner,
    PlanningContext, Prepared, ReadyCall, Removed, Reply, ResumedRuns, RunAgent, RunError, RunMemory,
    RunRefused, RunService, RunSettings, SessionPlace, SpendingCounter, StartRun, StartRuns, Started,
    StartedRun, StoredTask, StoredTasks, TaskChange, TaskCommand, TaskHead, TaskHold, TaskProblem,
    TaskService, TaskServiceError, TaskStatus, TaskStore, TaskStoreError, Tool, ToolContext, ToolQuestions,
    ToolSource, Toolbox, Unfinished, Watch, WhenBusy, WorkspaceSnapshots, answer_below, check_called,
    is_log_lost, may_resume,
};
pub use tools::{
    Answer, AnsweredQuestion, ApprovalRequest, ApprovalSettings, Approver, AskLater, AskingRun, Correction,
    CredentialEntry, CredentialError, CredentialKey, CredentialStore, Credentials, Decision, DynApprover,
    Effect, FileChange, FnApprover, ListedStep, ModeSource, OnDeny, OnExpiry, PLAN_TOOL, Preview,
    ProcessGroup, ProcessLog, Processes, Progress, QuestionKind, STEP_LIST_TOOL, SessionMode, SharedMode,
    StepList, StepStatus, Subject, ToolAnnotations, ToolDefinition, ToolError, ToolExecutionStrategy,
    ToolInvocationRequest, ToolSpec, binding, rebound,
};
pub use values::{
    AgentId, CallId, Clock, CommandId, ContentHash, Encoded, Ids, LoopId, MessageId, RunId, Secret,
    SessionId, SubTaskId, TaskId, TenantId, Timestamp, TokenBucket, ToolCallId, TurnId, is_hidden,
    is_this_machine, iso8601, likeness, nearest, not_before, one_line, printable, shorten, visible,
};
#[cfg(feature = "almost-json")]
pub use values::{almost_json, json_in};

pub use futures_core::{future::BoxFuture, stream::BoxStream};
pub use tokio_util::sync::CancellationToken;

/// A JSON value in messages, schemas and results; object keys keep their order.
pub use serde_json::Value as Json;
