//! The provider behind a client's call: the client has chosen the tool and the arguments, so no model is asked.

use archon_types::{
    BoxStream, CancellationToken, Content, Json, Message, ModelEvent, Provider, ProviderError, Request,
    ToolCall,
};
use futures_util::{StreamExt, stream};
use serde_json::json;

/// The provider of the agent that runs the calls of clients. The prompt of such a run names a tool and its
/// arguments; the provider answers with that call, and ends the run after its result.
///
/// So a call of a client has everything that a call of a model has: journal, guards, approvals and resume.
///
/// ```
/// use archon_mcp_serve::ClientCalls;
/// use archon_types::Provider;
///
/// assert_eq!(ClientCalls.id(), ClientCalls::ID);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCalls;

impl ClientCalls {
    /// The provider's id in logs.
    pub const ID: &'static str = "mcp-client";
    /// The model's name in logs; the provider ignores it.
    pub const MODEL: &'static str = "call";
}

/// Returns the prompt of a run that makes one call.
pub(crate) fn prompt(tool: &str, arguments: &Json) -> String {
    json!({ "tool": tool, "arguments": arguments }).to_string()
}

fn call_in(prompt: &str) -> Option<ToolCall> {
    let mut prompt: Json = serde_json::from_str(prompt).ok()?;
    let arguments = prompt.get_mut("arguments")?.take();
    Some(ToolCall::new("call", prompt.get("tool")?.as_str()?, arguments))
}

impl Provider for ClientCalls {
    fn id(&self) -> &str {
        Self::ID
    }

    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let last = request.messages.iter().last();
        let call = last.and_then(|message| match &**message {
            Message::User(_) => call_in(&message.text()),
            _ => None,
        });
        let block = call.map_or_else(|| Content::text("The call has ended."), Content::from);
        stream::iter(ModelEvent::answer(Self::ID, request.model, block)).boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use archon_types::{AssistantMessage, Timestamp};

    use super::*;

    async fn answer_to(text: &str) -> AssistantMessage {
        let messages = vec![Message::user(text, Timestamp::default())];
        let events = ClientCalls.stream(Request::new(ClientCalls::MODEL, messages), CancellationToken::new());
        match events.collect::<Vec<_>>().await.pop() {
            Some(Ok(ModelEvent::Done(answer))) => *answer,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn stream_of_a_prompt_with_a_call_is_that_call() {
        let arguments = json!({ "path": "notes/paris.md", "lines": [1, 2] });
        let answer = answer_to(&prompt("read_file", &arguments)).await;
        let call = answer.tool_calls().next().unwrap();
        assert_eq!((call.name.as_str(), &call.arguments), ("read_file", &arguments));
    }

    #[tokio::test]
    async fn stream_of_any_other_prompt_ends_the_run() {
        for text in ["hello", "{}", r#"{"tool": 1, "arguments": {}}"#] {
            assert_eq!(answer_to(text).await.tool_calls().count(), 0, "{text}");
        }
    }
}
