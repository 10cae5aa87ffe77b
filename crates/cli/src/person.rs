//! The provider behind a line that a person runs: the person has chosen the command, so no model is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon::types::{
    BoxStream, CancellationToken, Content, Message, ModelEvent, Provider, ProviderError, Request, ToolCall,
};
use futures_util::{StreamExt, stream};
use serde_json::json;

/// The provider of the agent that runs the shell lines of a person. For each line from [`set_line`](Self::set_line) it
/// answers with one call of `bash`, and it ends the run after the result of the call.
///
/// So a line of a person is logged, limited by the sandbox and later read by the model, as a call of the model is. Only
/// the run that was started for a line runs it; no other run does, even if that run ends early. The text of a run is
/// never taken for a line: a run that is resumed after its process was killed does not run its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Person {
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    /// The line whose run has not begun yet.
    waiting: Option<String>,
    /// The line of the run at work, until its first request.
    due: Option<String>,
}

impl Person {
    /// The provider's id in logs.
    pub(crate) const ID: &'static str = "person";
    /// The model's name in logs: there is none.
    pub(crate) const MODEL: &'static str = "";
    /// The tool that runs the lines.
    pub(crate) const TOOL: &'static str = "bash";

    /// Sets the line for the run that is started next; `None` for no line.
    pub(crate) fn set_line(&self, line: Option<String>) {
        self.lines().waiting = line;
    }

    /// Gives the waiting line to the run that begins with this prompt. Returns false if the prompt is not the line.
    pub(crate) fn begin_run(&self, prompt: Option<&str>) -> bool {
        let mut lines = self.lines();
        lines.due = lines.waiting.take_if(|line| prompt == Some(line.as_str()));
        lines.due.is_some()
    }

    /// Removes the line of a run that has ended, because the run may not have used it.
    pub(crate) fn end_run(&self) {
        self.lines().due = None;
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer after the result of a line.
const END: &str = "The person gave this line.";
/// The answer to the text of a line that is not run.
const NOT_RUN: &str = "The line was not run: its run was cut off before.";

impl Provider for Person {
    fn id(&self) -> &str {
        Self::ID
    }

    fn stream(
        &self,
        request: Request,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let is_message = request.messages.last().is_some_and(|last| matches!(**last, Message::User(_)));
        let line = self.lines().due.take();
        let block = match line {
            Some(command) => Content::from(ToolCall::new("line", Self::TOOL, json!({ "command": command }))),
            None if is_message => Content::text(NOT_RUN),
            None => Content::text(END),
        };
        stream::iter(ModelEvent::answer(Self::ID, request.model, block)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use archon::types::{AssistantMessage, Timestamp, ToolResult};

    use super::*;

    fn user(text: &str) -> Message {
        Message::user(text, Timestamp::default())
    }

    async fn answer(person: &Person, messages: Vec<Message>) -> AssistantMessage {
        let events = person.stream(Request::new(Person::MODEL, messages), CancellationToken::new());
        match events.collect::<Vec<_>>().await.pop() {
            Some(Ok(ModelEvent::Done(answer))) => *answer,
            other => panic!("{other:?}"),
        }
    }

    // spec: CL-03
    #[tokio::test]
    async fn answer_to_a_line_is_one_call_and_then_the_end() {
        let person = Person::default();
        person.set_line(Some("ls -l".to_owned()));
        person.begin_run(Some("ls -l"));
        let called = answer(&person, vec![user("ls -l")]).await;
        let call = called.tool_calls().next().unwrap().clone();
        assert_eq!((call.name.as_str(), &call.arguments), ("bash", &json!({ "command": "ls -l" })));
        let result = Message::tool_result(&call, &ToolResult::success("done"), Timestamp::default());
        let end = answer(&person, vec![user("ls -l"), Message::Assistant(called), result]).await;
        assert_eq!((end.tool_calls().count(), end.text().as_str()), (0, END));
    }

    // spec: CL-03
    #[tokio::test]
    async fn line_whose_run_ended_before_its_request_is_not_run() {
        let person = Person::default();
        person.set_line(Some("ls -l".to_owned()));
        person.begin_run(Some("ls -l"));
        person.end_run();
        person.begin_run(Some("ls -l"));
        assert_eq!(answer(&person, vec![user("ls -l")]).await.text(), NOT_RUN);
    }

    #[tokio::test]
    async fn text_of_a_resumed_run_is_not_run() {
        let end = answer(&Person::default(), vec![user("rm notes.txt")]).await;
        assert_eq!((end.tool_calls().count(), end.text().as_str()), (0, NOT_RUN));
    }
}
