//! The names of records in JSON.

use super::record::RecordBody;

macro_rules! names {
    ($($variant:ident = $name:literal,)+) => {
        impl RecordBody {
            /// The names of all types of records, as [`RecordBody::name`] returns them.
            pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

            /// Returns the `type` of the record in the JSON of logs and streams, such as `tool_call_started`.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }
        }
    };
}

names! {
    RunStarted = "run_started",
    MessageAdded = "message_added",
    InboxMessageReceived = "inbox_message_received",
    ConversationRestored = "conversation_restored",
    SessionSnapshot = "session_snapshot",
    InputRejected = "input_rejected",
    StoppedByHook = "stopped_by_hook",
    LogUnavailable = "log_unavailable",
    ModelCallStarted = "model_call_started",
    ModelCallFinished = "model_call_finished",
    ModelCallFailed = "model_call_failed",
    FallbackSelected = "fallback_selected",
    ModelCallLost = "model_call_lost",
    ToolCallRefused = "tool_call_refused",
    LeaseGranted = "lease_granted",
    LeaseSettled = "lease_settled",
    AuxiliaryCallStarted = "auxiliary_call_started",
    ApprovalRequested = "approval_requested",
    ApprovalAnswered = "approval_answered",
    ModeChanged = "mode_changed",
    WorkspaceSnapshot = "workspace_snapshot",
    ToolCallStarted = "tool_call_started",
    ProcessStarted = "process_started",
    ChildRunCreated = "child_run_created",
    ToolCallFailed = "tool_call_failed",
    ToolCallFinished = "tool_call_finished",
    CancelRequested = "cancel_requested",
    LimitsRaised = "limits_raised",
    Resumed = "resumed",
    ClockRead = "clock_read",
    HintAdded = "hint_added",
    CompactionRequested = "compaction_requested",
    Summarized = "summarized",
    InstructionsRead = "instructions_read",
    GoalChecked = "goal_checked",
    OutputChecked = "output_checked",
    Compacted = "compacted",
    ContextStatus = "context_status",
    ParallelStarted = "parallel_started",
    ParallelFinished = "parallel_finished",
    Plan = "plan",
    Team = "team",
    LimitReached = "limit_reached",
    Suspended = "suspended",
    RunFinished = "run_finished",
}
