//! The object of a response.

use archon_types::{Json, RunId, SessionId, Timestamp};
use serde_json::json;

use crate::{
    ending::{Ending, Tokens},
    transcript::Part,
};

/// The prefix of the id of a response, before the id of its run.
const PREFIX: &str = "resp_";

/// Returns the id of the response of a run.
pub(crate) fn response_id(run: &RunId) -> String {
    format!("{PREFIX}{run}")
}

/// Returns the id of the run from the id of a response; `None` if the text is not the id of a response.
pub(crate) fn run_of_id(id: &str) -> Option<RunId> {
    id.strip_prefix(PREFIX).filter(|run| !run.is_empty()).map(RunId::new)
}

/// The fields of a response that are known when its run starts.
pub(crate) struct ResponseHead {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    pub(crate) model: String,
    pub(crate) created: Timestamp,
    /// The run that the run of this response continues.
    pub(crate) previous: Option<RunId>,
}

impl ResponseHead {
    /// Returns the response with these parts. Without `ending`, its status is `in_progress`. The field `background`
    /// is left out: it is not in the log, so a later read of the response could not repeat it.
    pub(crate) fn json(&self, parts: &[Part], ending: Option<&Ending>) -> Json {
        let status = ending.map_or("in_progress", Ending::response_status);
        let failure = ending.filter(|ending| ending.has_failed());
        let reason = ending.and_then(Ending::incomplete_reason);
        let items = parts.iter().enumerate();
        let output: Vec<Json> = items.map(|(index, part)| message(&self.item_id(index), part)).collect();
        json!({
            "id": response_id(&self.run),
            "object": "response",
            "created_at": self.created.as_millis() / 1_000,
            "status": status,
            "error": failure.map(|ending| json!({ "code": "server_error", "message": ending.failure() })),
            "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
            "instructions": null,
            "max_output_tokens": null,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous.as_ref().map(response_id),
            "conversation": { "id": self.session },
            "reasoning": { "effort": null, "summary": null },
            "service_tier": "default",
            "store": true,
            "temperature": 1.0,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": ending.map(usage),
            "user": null,
            "metadata": {},
        })
    }

    /// Returns the id of an item of the output.
    pub(crate) fn item_id(&self, index: usize) -> String {
        format!("msg_{}_{index}", self.run)
    }
}

/// Returns a complete message of the output.
pub(crate) fn message(id: &str, part: &Part) -> Json {
    item(id, "completed", Some(part.phase.as_str()), &json!([text_part(&part.text)]))
}

/// Returns a message of the output.
pub(crate) fn item(id: &str, status: &str, phase: Option<&str>, content: &Json) -> Json {
    json!({
        "id": id,
        "type": "message",
        "status": status,
        "role": "assistant",
        "phase": phase,
        "content": content,
    })
}

/// Returns the content of a message.
pub(crate) fn text_part(text: &str) -> Json {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn usage(ending: &Ending) -> Json {
    let tokens = Tokens::of(&ending.outcome);
    json!({
        "input_tokens": tokens.prompt,
        "input_tokens_details": { "cached_tokens": tokens.cached },
        "output_tokens": tokens.completion,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": tokens.total,
    })
}
