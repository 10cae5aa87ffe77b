//! Makes deltas of an answer while the answer streams.

use archon_types::{CommandId, Context, Delta, DeltaKind, Event, ModelEvent, ToolCallId};

/// Converts the events of a model to deltas. Each delta has its byte offset in the text, in the thinking, or
/// in the arguments of its call.
pub(crate) struct Deltas<'a> {
    context: &'a Context,
    command: CommandId,
    attempt: u32,
    text: u64,
    thinking: u64,
    calls: Vec<(u32, ToolCallId, u64)>,
}

impl<'a> Deltas<'a> {
    pub(crate) fn new(command: CommandId, attempt: u32, context: &'a Context) -> Self {
        Self { context, command, attempt, text: 0, thinking: 0, calls: Vec::new() }
    }

    /// Returns true if any delta was emitted.
    pub(crate) fn any(&self) -> bool {
        self.text > 0 || self.thinking > 0 || !self.calls.is_empty()
    }

    pub(crate) fn emit(&mut self, event: ModelEvent) {
        let (offset, kind) = match event {
            ModelEvent::TextDelta(text) => (advance(&mut self.text, &text), DeltaKind::Text { text }),
            ModelEvent::ThinkingDelta(text) => {
                (advance(&mut self.thinking, &text), DeltaKind::Thinking { text })
            }
            ModelEvent::ToolCallStart { index, id, name } => {
                let id = ToolCallId::new(id);
                self.calls.push((index, id.clone(), 0));
                (0, DeltaKind::ToolCallStarted { index, id, name })
            }
            ModelEvent::ToolCallDelta { index, arguments: text } => {
                let Some((_, id, sent)) = self.calls.iter_mut().find(|(i, ..)| *i == index) else { return };
                let id = id.clone();
                (advance(sent, &text), DeltaKind::ToolCallArguments { index, id, text })
            }
            _ => return,
        };
        self.context.sink.emit(Event::Delta(Delta {
            run: self.context.run.clone(),
            command: self.command,
            attempt: self.attempt,
            offset,
            kind,
        }));
    }
}

fn advance(offset: &mut u64, text: &str) -> u64 {
    let at = *offset;
    *offset += text.len() as u64;
    at
}
