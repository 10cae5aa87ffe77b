//! The names of records in JSON.

use crate::plans::{PlanRecord, TeamRecord};

use super::record::RecordBody;

macro_rules! names {
    ($record:ident, $member:literal, $example:literal: $($variant:ident = $name:literal,)+) => {
        impl $record {
            /// The names of all records of this type, as [`name`](Self::name) returns them.
            pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

            #[doc = concat!("Returns the `", $member, "` of the record in the JSON of logs and streams, such as `", $example, "`.")]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }
        }
    };
}

names! {
    RecordBody, "type", "tool_call_started":
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

names! {
    PlanRecord, "event", "replanned":
    Settings = "settings",
    Inputs = "inputs",
    FixedPlan = "fixed_plan",
    PlanningStarted = "planning_started",
    PlanningPaid = "planning_paid",
    Planned = "planned",
    Rejected = "rejected",
    Replanned = "replanned",
    ReplanRequested = "replan_requested",
    Skipped = "skipped",
    LoopExpanded = "loop_expanded",
    LoopFinished = "loop_finished",
    Paused = "paused",
    Unpaused = "unpaused",
    AnswerStarted = "answer_started",
    AnswerFinished = "answer_finished",
    AnswerFailed = "answer_failed",
}

names! {
    TeamRecord, "event", "delegated":
    Formed = "formed",
    Inputs = "inputs",
    Planned = "planned",
    Replanned = "replanned",
    PlanningFailed = "planning_failed",
    Delegated = "delegated",
    DelegationFailed = "delegation_failed",
    Heartbeat = "heartbeat",
    DelegationRevoked = "delegation_revoked",
    LateAnswer = "late_answer",
    DelegationRequested = "delegation_requested",
    MemberWaiting = "member_waiting",
    ValueShared = "value_shared",
    ConflictFound = "conflict_found",
    ConflictResolved = "conflict_resolved",
    AnswerFinished = "answer_finished",
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::{PlanRecord, TeamRecord};

    #[test]
    fn names_of_plan_and_team_records_are_events_that_serde_knows() {
        let plan = PlanRecord::NAMES.map(|name| (name, from_value::<PlanRecord>(event(name)).err()));
        let team = TeamRecord::NAMES.map(|name| (name, from_value::<TeamRecord>(event(name)).err()));
        for (name, error) in plan.into_iter().chain(team) {
            let text = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(!text.contains("unknown variant"), "{name}: {text}");
        }
    }

    fn event(name: &str) -> Value {
        json!({ "event": name })
    }
}
