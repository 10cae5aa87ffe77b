//! The traits that work in a run or start one: agents, tools, hooks, planners and the run service.
//!
//! Imports only `log` and the folders below it.

mod agent;
mod called_run;
mod calls_below;
mod context;
mod delegation;
mod earlier_message;
mod evaluation;
mod fork;
mod hooks;
mod instructions;
mod notification;
mod planner;
mod reply;
mod run_agent;
mod run_error;
mod run_memory;
mod run_service;
mod session_place;
mod start_run;
mod task_service;
mod tool;
mod tool_questions;
mod toolbox;
mod trigger_store;
mod under_way;
mod workspace_snapshots;

pub use agent::Agent;
pub use called_run::{CUT_OFF, CalledRun, RunRefused, answer_below, check_called, is_log_lost, may_resume};
pub use calls_below::MAX_TOOL_DEPTH;
pub use context::{Context, PermissionBound, Permit};
pub use delegation::{CallerLog, Delegation};
pub use earlier_message::{EarlierMessage, MessagePlace};
pub use evaluation::{BranchResult, BranchVerdict, Evaluation, EvaluationError, EvaluationStrategy};
pub use fork::{Fork, ForkOptions, ForkPlace};
pub use hooks::{DynHooks, FnHooks, Hooks, InputFilter, InputVerdict};
pub use instructions::Instructions;
pub use notification::{Notification, NotificationChannel, NotificationKind};
pub use planner::{DynPlanner, FnPlanner, Plan, PlanError, Planner, PlanningContext, SpendingCounter};
pub use reply::{FinalAnswer, Reply, Unfinished};
pub use run_agent::RunAgent;
pub use run_error::RunError;
pub use run_memory::RunMemory;
pub use run_service::{
    AgentHead, AnswerRuns, ManageRuns, Removed, ResumedRuns, RunService, StartRuns, Started, StartedRun,
    Watch,
};
pub use session_place::SessionPlace;
pub use start_run::{RunSettings, StartRun, WhenBusy};
pub use task_service::{TaskCommand, TaskHead, TaskProblem, TaskService, TaskServiceError, TaskStatus};
pub use tool::{Tool, ToolContext, ToolSource};
pub use tool_questions::ToolQuestions;
pub use toolbox::{Executed, Prepared, ReadyCall, Toolbox};
pub use trigger_store::{StoredTask, StoredTasks, TaskChange, TaskHold, TaskStore, TaskStoreError};
pub use under_way::CallsUnderWay;
pub use workspace_snapshots::WorkspaceSnapshots;
