//! Plans and teams in a conversation: creates the context that their agents read, and stores the prompt and
//! the answer in the memory.

use std::{fmt::Write as _, sync::Arc};

use archon_react_loop::fold_chain;
use archon_types::{
    AssistantMessage, Attributed, Content, Context, Message, Origin, Outcome, OutcomeStatus, Record,
    RecordBody, RunConfig, RunError, RunRefused, SessionPlace, Speaker, Trust,
};

use crate::Archon;

/// The maximum number of characters of the conversation that the agents read; of a longer conversation its
/// end.
const LONGEST: usize = 12_000;

impl Archon {
    /// Creates the session place of a run whose agents work on `goal`: the project's instructions, this
    /// agent's memories, and the conversation so far.
    pub(crate) async fn place(
        &self,
        origin: Origin,
        goal: &str,
        context: &Context,
    ) -> Result<SessionPlace, RunError> {
        let earlier = fold_chain(&**context.journal(&self.journal), &origin).await?;
        let mut parts = Vec::new();
        if let Some(instructions) = &self.parts.instructions {
            match instructions.read().await {
                Ok(text) => parts.extend(text.map(|text| format!("The project says:\n{}", text.trim()))),
                Err(error) => {
                    tracing::warn!(run = %context.run, error, "the project's instructions are not read");
                }
            }
        }
        let window = earlier.history.in_full();
        if let Some(memory) = self.run_memory() {
            let prompt = Message::user(goal, context.clock.now());
            let told = context.cancel.run_until_cancelled(memory.recall(context, &prompt, &window)).await;
            parts.extend(told.flatten().map(|told| told.text));
        }
        parts.extend(history_text(&window));
        let mut place = SessionPlace::new(origin);
        (place.earlier, place.background) = (earlier.runs, parts.join("\n\n"));
        Ok(place)
    }

    /// Stores the prompt and the answer of a run that has ended in the memory. Turns that were already stored
    /// stay unchanged.
    pub(crate) async fn remember(&self, outcome: &Outcome, context: &Context) -> Result<(), RunError> {
        let Some(memory) = self.run_memory() else { return Ok(()) };
        if matches!(outcome.status, OutcomeStatus::Suspended) {
            return Ok(());
        }
        let records = context.journal(&self.journal).read(&context.run).await?;
        memory.keep(context, messages_of_run(&records), None).await;
        Ok(())
    }

    /// Returns the outcome of a run that has ended and cannot be resumed, after its turns are in the memory,
    /// because the process may have died before it stored them.
    pub(crate) async fn remember_ended(
        &self,
        resumed: Result<Outcome, RunError>,
        context: &Context,
    ) -> Result<Outcome, RunError> {
        let outcome = match resumed {
            Err(error @ RunError::Refused(RunRefused::Ended { .. })) if self.run_memory().is_some() => {
                let records = context.journal(&self.journal).read(&context.run).await?;
                match records.last().map(|record| &record.body) {
                    Some(RecordBody::RunFinished(outcome)) => (**outcome).clone(),
                    _ => return Err(error),
                }
            }
            resumed => resumed?,
        };
        self.remember(&outcome, context).await?;
        Ok(outcome)
    }

    fn run_memory(&self) -> Option<&Arc<dyn archon_types::RunMemory>> {
        self.parts.run_memory.as_ref()
    }

    /// Returns the configuration for the first record of a plan or team: this agent's configuration, its
    /// memory and its project files.
    pub(crate) fn lead_config(&self) -> RunConfig {
        let mut config = archon_types::Agent::config(&self.agent).unwrap_or_default();
        config.memory = self.run_memory().and_then(|memory| memory.config());
        config.project_files = self.parts.instructions.as_ref().map(|i| i.files()).unwrap_or_default();
        config
    }
}

/// Returns the end of a conversation as text; `None` if the conversation is empty.
fn history_text(window: &[Attributed]) -> Option<String> {
    let mut lines = Vec::new();
    for said in window.iter().rev() {
        let who = match (said.by, &*said.message) {
            (Speaker::Tool | Speaker::Program, _) | (_, Message::ToolResult(_)) => continue,
            (_, Message::Assistant(_)) => "assistant",
            (_, Message::User(_)) => "user",
        };
        let texts =
            said.message.own_content().iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n");
        if !texts.trim().is_empty() {
            lines.push(format!("{who}: {}", texts.trim()));
        }
    }
    let mut text = "The conversation so far:".to_owned();
    let mut room = LONGEST;
    let fits = lines.iter().take_while(|line| {
        let length = line.chars().count();
        room = room.saturating_sub(length);
        room > 0
    });
    let count = fits.count().max(1).min(lines.len());
    lines.truncate(count);
    for line in lines.iter().rev() {
        // The end of a single message that is too long.
        let skipped = line.chars().count().saturating_sub(LONGEST);
        let _ = write!(text, "\n{}", line.chars().skip(skipped).collect::<String>());
    }
    (!lines.is_empty()).then_some(text)
}

/// Returns the messages of the prompt of a run, and its answer.
fn messages_of_run(records: &[Arc<Record>]) -> Vec<Attributed> {
    let mut said = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::MessageAdded { message, .. } => {
                let by = message.speaker().unwrap_or(Speaker::Person);
                said.extend(
                    message.as_llm().map(|prompt| Attributed::new(prompt.clone(), by).with_trust(by.trust())),
                );
            }
            RecordBody::RunFinished(outcome) => {
                let Some(answer) = outcome.answer() else { continue };
                let content = vec![Content::text(answer)];
                let answer =
                    AssistantMessage { content, timestamp: record.at, ..AssistantMessage::default() };
                let answer = Attributed::new(Message::Assistant(answer), Speaker::Model);
                said.push(answer.with_trust(Trust::Untrusted));
            }
            _ => {}
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use archon_types::Timestamp;

    use super::*;

    #[test]
    fn session_history_text_of_a_long_conversation_is_its_end() {
        let at = Timestamp::from_millis(0);
        let say = |text: String| Attributed::new(Message::user(text, at), Speaker::Person);
        assert_eq!(history_text(&[]), None);
        let window = [say("old".repeat(LONGEST)), say("middle".to_owned()), say("new".to_owned())];
        let text = history_text(&window).unwrap();
        assert_eq!(text, "The conversation so far:\nuser: middle\nuser: new");
        let text = history_text(&window[..1]).unwrap();
        assert!(text.ends_with("oldold") && text.len() < LONGEST + 100);
    }
}
