//! The provider behind a line that a person runs: the person has chosen the command, so no model is asked.

use archon::types::{
    AssistantMessage, BoxStream, CancellationToken, Content, Interruption, Message, ModelEvent, Provider,
    ProviderError, Request, StopReason, ToolCall,
};
use futures_util::{StreamExt, stream};
use serde_json::json;

/// The provider of the agent that runs the lines of a person. The prompt of such a run is a command line; the provider
/// answers with a call of `bash`, and ends the run after its result.
///
/// So a line of a person is logged, limited by the sandbox and read by the model later as a call of the model is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Person;

impl Person {
    /// The provider's id in logs.
    pub(crate) const ID: &'static str = "person";
    /// The model's name in logs: there is none.
    pub(crate) const MODEL: &'static str = "";
    /// The tool that runs the lines.
    pub(crate) const TOOL: &'static str = "bash";
}

/// The answer after the result.
const END: &str = "The person ran this line.";

/// Returns the line that is to run now; `None` if it has its result.
fn line(request: &Request) -> Option<String> {
    let of_now = || request.messages.iter().rev().take_while(|message| Interruption::of(message).is_none());
    let last_answer = of_now().find_map(|message| match &**message {
        Message::Assistant(answer) => Some(answer),
        _ => None,
    });
    let has_result = last_answer
        .is_some_and(|answer| answer.provider == Person::ID && answer.tool_calls().next().is_some());
    let last = of_now().next().filter(|message| matches!(***message, Message::User(_)) && !has_result)?;
    Some(Content::join_text(last.own_content()).into_owned())
}

impl Provider for Person {
    fn id(&self) -> &str {
        Self::ID
    }

    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let (content, stop_reason) = match line(&request) {
            Some(command) => {
                let call = ToolCall::new("line", Self::TOOL, json!({ "command": command }));
                (Content::from(call), StopReason::ToolUse)
            }
            None => (Content::text(END), StopReason::Stop),
        };
        let answer = AssistantMessage {
            content: vec![content],
            stop_reason,
            model: request.model,
            provider: Self::ID.to_owned(),
            ..AssistantMessage::default()
        };
        stream::iter([Ok(ModelEvent::Start), Ok(ModelEvent::Done(Box::new(answer)))]).boxed()
    }
}

#[cfg(test)]
mod tests {
    use archon::types::{Timestamp, ToolResult};

    use super::*;

    fn user(text: &str) -> Message {
        Message::user(text, Timestamp::default())
    }

    fn called(command: &str) -> [Message; 2] {
        let call = ToolCall::new("line", Person::TOOL, json!({ "command": command }));
        let result = Message::tool_result(&call, &ToolResult::success("done"), Timestamp::default());
        let answer = AssistantMessage {
            content: vec![Content::from(call)],
            provider: Person::ID.to_owned(),
            ..AssistantMessage::default()
        };
        [Message::Assistant(answer), result]
    }

    fn line_of(messages: Vec<Message>) -> Option<String> {
        line(&Request::new(Person::MODEL, messages))
    }

    // spec: CL-03
    #[test]
    fn line_is_the_last_message_until_it_has_a_result() {
        assert_eq!(line_of(vec![user("ls -l")]).as_deref(), Some("ls -l"));
        let [call, result] = called("ls -l");
        let mut messages = vec![user("ls -l"), call, result];
        assert_eq!(line_of(messages.clone()), None);
        messages.push(user("<a hint of the loop>"));
        assert_eq!(line_of(messages), None, "a hint is no line");
    }

    #[test]
    fn line_after_a_stopped_one_is_run() {
        let [call, result] = called("sleep 60");
        let stopped = user(Interruption::ToolUse.marker());
        assert_eq!(line_of(vec![user("sleep 60"), call, result, stopped, user("ls")]).as_deref(), Some("ls"));
    }
}
