//! The report about the context window: the tokens that each part of the next request takes.

use archon_types::{Content, Journal, Message, RunId, TokenCounter, Tokenizer, UserMessage};
use serde::Serialize;

use crate::{LoopError, ReactMachine, fold, fold_before, token_counter};

/// The tokens that each part of the next request of a conversation takes. They are estimates, corrected by the
/// counts that the service reported for the requests of the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextReport {
    /// The system prompt: the instructions of the agent and of the project. In text mode, it also describes the
    /// tools.
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    /// Memories that were recalled for messages.
    pub memory: u64,
    /// Messages of people and of the program, and answers of the model with their calls.
    pub messages: u64,
    /// Results of tool calls.
    pub tool_results: u64,
    /// The size of the model's context window in tokens; `None` if the run has no
    /// [`ContextConfig`](archon_types::ContextConfig).
    pub window: Option<u64>,
}

impl ContextReport {
    /// Returns the tokens of all parts.
    pub fn used(&self) -> u64 {
        [self.system, self.tools, self.memory, self.messages, self.tool_results]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Returns the tokens that are left in the window; `None` if the size of the window is not configured.
    pub fn free(&self) -> Option<u64> {
        self.window.map(|window| window.saturating_sub(self.used()))
    }
}

/// Returns the report about the next request of a run, or of the run that continues it.
///
/// # Errors
/// The run is not a loop, or the run, or a run that it continues, cannot be read.
pub async fn context_report(journal: &dyn Journal, run: &RunId) -> Result<ContextReport, LoopError> {
    let records = journal.read(run).await?;
    let history = fold_before(journal, run, &records).await?.history;
    Ok(report(&fold(run, &records, history)?))
}

fn report(machine: &ReactMachine) -> ContextReport {
    let config = machine.config().context.as_ref();
    let tokenizer = config.map_or(Tokenizer::Estimate, |config| config.tokenizer);
    let counter = token_counter(tokenizer);
    let request = machine.request();
    let system = request.system.as_ref().map_or(0, |system| counter.count(system.as_str()));
    let mut parts = ContextReport { system, ..ContextReport::default() };
    for tool in request.tools.iter() {
        for text in [&tool.name, &tool.description, &tool.parameters.to_string()] {
            parts.tools = parts.tools.saturating_add(counter.count(text));
        }
    }
    for message in request.messages.iter() {
        let whole = counter.count_message(message);
        match &**message {
            Message::ToolResult(_) => parts.tool_results = parts.tool_results.saturating_add(whole),
            Message::User(user) => {
                let memory = recalled(user, counter).min(whole);
                parts.memory = parts.memory.saturating_add(memory);
                parts.messages = parts.messages.saturating_add(whole - memory);
            }
            Message::Assistant(_) => parts.messages = parts.messages.saturating_add(whole),
        }
    }
    let corrected = |tokens| machine.window().corrected(tokens);
    ContextReport {
        system: corrected(parts.system),
        tools: corrected(parts.tools),
        memory: corrected(parts.memory),
        messages: corrected(parts.messages),
        tool_results: corrected(parts.tool_results),
        window: config.map(|config| config.max_context_tokens),
    }
}

/// Returns the tokens of the memories in a message.
fn recalled(user: &UserMessage, counter: &dyn TokenCounter) -> u64 {
    let memories = user.content.iter().skip(user.own_content().len());
    memories.filter_map(Content::as_text).map(|text| counter.count(text)).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use archon_run::Machine as _;
    use archon_types::{
        Origin, PromptSource, RecalledText, Record, RecordBody, RunConfig, RunStarted, Timestamp, Trust,
    };

    use super::*;

    #[test]
    fn report_counts_recalled_memories_apart_from_the_message() {
        let at = Timestamp::from_millis(1);
        let mut started =
            RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), RunConfig::default());
        started.origin = Origin::Prompt;
        let mut machine = ReactMachine::new(&started, at, Default::default());
        let mut user = UserMessage::new(vec![Content::text("x".repeat(38))], at);
        user.add_recalled(RecalledText::new("y".repeat(76), Trust::Trusted));
        let message = Message::User(user).into();
        let body = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
        machine.apply(&Record { seq: 1, at, body });
        let report = report(&machine);
        assert_eq!((report.memory, report.messages), (20, 10 + 5));
        assert_eq!((report.system, report.tools, report.tool_results), (0, 0, 0));
        assert_eq!((report.used(), report.window, report.free()), (35, None, None));
    }
}
