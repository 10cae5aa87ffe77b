//! The name of a record in JSON.

use super::record::RecordBody;

impl RecordBody {
    /// Returns the `type` of the record in the JSON of logs and streams, for instance `tool_started`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run_started",
            Self::Prompted { .. } => "prompted",
            Self::Received { .. } => "received",
            Self::Restored { .. } => "restored",
            Self::Carried(_) => "carried",
            Self::InputRejected { .. } => "input_rejected",
            Self::Vetoed { .. } => "vetoed",
            Self::NotKept { .. } => "not_kept",
            Self::ModelAsked { .. } => "model_asked",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ModelFailed { .. } => "model_failed",
            Self::SteppedDown { .. } => "stepped_down",
            Self::CallLost { .. } => "call_lost",
            Self::ToolRefused { .. } => "tool_refused",
            Self::Granted { .. } => "granted",
            Self::Settled { .. } => "settled",
            Self::AskedBeside { .. } => "asked_beside",
            Self::ToolAsked { .. } => "tool_asked",
            Self::ToolAnswered { .. } => "tool_answered",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolSpawned { .. } => "tool_spawned",
            Self::ChildBegun { .. } => "child_begun",
            Self::ToolFailed { .. } => "tool_failed",
            Self::ToolFinished { .. } => "tool_finished",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::LimitsRaised(_) => "limits_raised",
            Self::Resumed => "resumed",
            Self::ClockRead => "clock_read",
            Self::Noted { .. } => "noted",
            Self::Summarized(_) => "summarized",
            Self::InstructionsRead { .. } => "instructions_read",
            Self::GoalChecked(_) => "goal_checked",
            Self::FormChecked { .. } => "form_checked",
            Self::Compacted(_) => "compacted",
            Self::ContextStatus { .. } => "context_status",
            Self::ParallelStarted { .. } => "parallel_started",
            Self::ParallelEnded(_) => "parallel_ended",
            Self::Plan(_) => "plan",
            Self::Team(_) => "team",
            Self::LimitReached(_) => "limit_reached",
            Self::Suspended { .. } => "suspended",
            Self::RunFinished(_) => "run_finished",
        }
    }
}
