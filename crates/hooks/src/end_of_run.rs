//! The hooks at the end of a run, beside the program's own hooks.

use archon_types::{Hooks, Json, Outcome, OutcomeStatus, ToolCall, ToolResult, Transcript, Usage};
use serde_json::json;

use crate::{
    EventHooks,
    event::{HookEvent, Occurrence},
};

impl Hooks for EventHooks {
    async fn before_loop(&self, messages: &Transcript, index: u32) -> bool {
        for own in self.own() {
            if !own.before_loop(messages, index).await {
                return false;
            }
        }
        true
    }

    async fn after_loop(&self, outcome: &Outcome) {
        for own in self.own() {
            own.after_loop(outcome).await;
        }
        // A suspended run goes on once its question is answered.
        if outcome.status == OutcomeStatus::Suspended || !self.has(HookEvent::Stop, None) {
            return;
        }
        let mut fields = json!({ "run_id": outcome.run.as_str(), "stop_hook_active": false });
        fields["status"] = serde_json::to_value(outcome.status).unwrap_or(Json::Null);
        fields["last_assistant_message"] = json!(outcome.last_text());
        self.run(&Occurrence::new(HookEvent::Stop, None, fields)).await;
    }

    async fn before_turn(&self, messages: &Transcript, turn: u32) -> bool {
        for own in self.own() {
            if !own.before_turn(messages, turn).await {
                return false;
            }
        }
        true
    }

    async fn after_turn(&self, messages: &Transcript, usage: Usage) {
        for own in self.own() {
            own.after_turn(messages, usage).await;
        }
    }

    async fn on_error(&self, error: &str) {
        for own in self.own() {
            own.on_error(error).await;
        }
    }

    async fn before_tool(&self, call: &ToolCall) -> bool {
        for own in self.own() {
            if !own.before_tool(call).await {
                return false;
            }
        }
        true
    }

    async fn after_tool(&self, call: &ToolCall, result: &ToolResult) {
        for own in self.own() {
            own.after_tool(call, result).await;
        }
    }

    fn before_update(&self, call: &ToolCall, partial: &ToolResult) -> bool {
        self.own().iter().all(|own| own.before_update(call, partial))
    }

    fn after_update(&self, call: &ToolCall, partial: &ToolResult) {
        for own in self.own() {
            own.after_update(call, partial);
        }
    }
}
