//! The model of runs without a model: it makes the one call that the message names, and repeats the result.

use archon_types::{
    CancellationToken, Content, Json, Message, ModelEvent, Provider, ProviderError, Request, ToolCall,
};
use futures_util::stream::{self, BoxStream};
use serde::Deserialize;
use serde_json::{Map, json};

/// The id of the agent that makes the calls of [`TriggerAction::Code`](crate::TriggerAction::Code).
pub const CODE_AGENT: &str = "triggers-code";

/// A [`Provider`] that calls no model service. It answers the first request of a run with the tool call that the
/// message names, and the second with the result of this call.
///
/// Register the agent [`CODE_AGENT`] with this provider, and with your code as its tools. So your code passes the same
/// checks as each other tool, is logged, and is not repeated after a crash.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeModel;

/// The message of a code action.
#[derive(Deserialize)]
struct Call {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Json>,
    /// The event that started the run, which becomes the argument `event`.
    #[serde(default)]
    event: Option<Json>,
}

impl Provider for CodeModel {
    fn id(&self) -> &str {
        "code"
    }

    fn stream(
        &self,
        request: Request,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let events = match answer(&request) {
            Ok(block) => ModelEvent::answer("code", request.model.clone(), block).into(),
            Err(problem) => vec![Err(ProviderError::Other(problem.into()))],
        };
        Box::pin(stream::iter(events))
    }
}

/// Returns the call, or the result of the call.
fn answer(request: &Request) -> Result<Content, String> {
    match request.messages.last().map(|message| &**message) {
        Some(Message::ToolResult(result)) => {
            let text = Content::join_text(&result.content).into_owned();
            if result.is_error { Err(text) } else { Ok(Content::text(text)) }
        }
        Some(Message::User(user)) => {
            let text = Content::join_text(user.written_content());
            let call: Call = serde_json::from_str(&text)
                .map_err(|error| format!("the message names no code to call: {error}"))?;
            let mut arguments = call.arguments;
            if let Some(event) = call.event {
                arguments.insert("event".to_owned(), event);
            }
            Ok(Content::from(ToolCall::new("call_1", call.tool, json!(arguments))))
        }
        _ => Err("there is no message with a code to call".to_owned()),
    }
}
