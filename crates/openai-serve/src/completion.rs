//! The objects of a chat completion.

use archon_types::{Json, RunId, Timestamp};
use serde_json::json;

use crate::ending::{Ending, Tokens};

/// The fields that every object of a completion has.
pub(crate) struct Completion {
    id: String,
    created: u64,
    model: String,
}

impl Completion {
    pub(crate) fn new(run: &RunId, created: Timestamp, model: String) -> Self {
        Self { id: format!("chatcmpl-{run}"), created: created.as_millis() / 1_000, model }
    }

    /// Returns the whole completion.
    pub(crate) fn whole(&self, text: &str, ending: &Ending) -> Json {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": text, "refusal": null, "annotations": [] },
                "logprobs": null,
                "finish_reason": ending.finish_reason(),
            }],
            "usage": usage(ending),
        })
    }

    /// Returns a chunk of a stream with these choices.
    pub(crate) fn chunk(&self, choices: &Json) -> Json {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

/// Returns the usage of a run.
pub(crate) fn usage(ending: &Ending) -> Json {
    let tokens = Tokens::of(&ending.outcome);
    json!({
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.total,
        "prompt_tokens_details": { "cached_tokens": tokens.cached },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}
