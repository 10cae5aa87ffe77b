//! The text of a run for a client, computed from the run's events. It is the same for a stream and for a whole
//! response.
//!
//! An answer that streams can break off and begin again with other words, but text that was sent cannot be taken
//! back. The records decide: a delta is passed on only if it continues the text that was sent. If the record of the
//! answer does not continue this text, [`Piece::BrokenOff`] says so.

use archon_types::{
    AssistantMessage, CommandId, Content, Delta, DeltaKind, Event, Outcome, OutcomeStatus, RecordBody, RunId,
    RunKind, RunStarted, StopReason, ToolMode,
};

/// A step in the text that a client gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// More text of the open part. If no part is open, this begins one.
    Text(String),
    /// The open part is complete, and has this phase.
    Complete(Phase),
    /// The open part broke off. If its text comes again, it comes in a new part.
    BrokenOff,
}

/// The phase of a part, named as in the Responses protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// Text that the agent writes before or between its tool calls, or the notice about a run that has no answer yet.
    Commentary,
    /// Commentary that ends where the model service paused, perhaps in the middle of a sentence. The next part
    /// continues it.
    Paused,
    FinalAnswer,
}

impl Phase {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Commentary | Self::Paused => "commentary",
            Self::FinalAnswer => "final_answer",
        }
    }

    /// Returns true if a blank line comes between a part of this phase and the next part.
    pub(crate) fn ends_paragraph(self) -> bool {
        self != Self::Paused
    }
}

/// A complete part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) phase: Phase,
}

/// The text of one run so far.
#[derive(Debug)]
pub(crate) struct Transcript {
    run: RunId,
    /// True if each turn is sent as it streams; false if only the answer is sent, at the end.
    is_live: bool,
    parts: Vec<Part>,
    /// The texts of the answers so far, in the form that the answer of an outcome has.
    answers: Vec<String>,
    /// The model call and the attempt of the latest delta.
    place: Option<(CommandId, u32)>,
    /// The text of this attempt that was received as deltas.
    heard: String,
    /// The text of the open part that was sent to the client.
    sent: String,
    /// The last model call whose answer is in the log. Deltas of this call may still arrive if the watcher began
    /// late; they are ignored.
    finished: Option<CommandId>,
}

impl Transcript {
    pub(crate) fn new(run: RunId, final_answer_only: bool) -> Self {
        Self {
            run,
            is_live: !final_answer_only,
            parts: Vec::new(),
            answers: Vec::new(),
            place: None,
            heard: String::new(),
            sent: String::new(),
            finished: None,
        }
    }

    /// Returns the complete parts.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the whole text, with a blank line between two parts, except after a paused part.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut is_between = false;
        for part in &self.parts {
            text.push_str(if is_between { "\n\n" } else { "" });
            text.push_str(&part.text);
            is_between = part.phase.ends_paragraph();
        }
        text
    }

    /// Applies an event, and returns the pieces to send. Events of child runs are ignored.
    pub(crate) fn apply(&mut self, event: &Event) -> Vec<Piece> {
        if *event.run() != self.run {
            return Vec::new();
        }
        match event {
            Event::Record { record, .. } => self.apply_record(&record.body),
            Event::Delta(delta) if self.is_live => self.hear(delta),
            _ => Vec::new(),
        }
    }

    /// Applies a record of the run, and returns the pieces to send.
    pub(crate) fn apply_record(&mut self, body: &RecordBody) -> Vec<Piece> {
        match body {
            RecordBody::RunStarted(started) => self.is_live &= says_its_answer(started),
            RecordBody::ModelCallFinished { command, message, .. } if self.is_live => {
                return self.take_answer(*command, message);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Applies the outcome, and returns the pieces to send: the answer, if it was not sent before, such as the answer
    /// of a plan.
    pub(crate) fn finish(&mut self, outcome: &Outcome) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if !std::mem::take(&mut self.sent).is_empty() {
            pieces.push(Piece::BrokenOff);
        }
        if let Some(answer) = outcome.answer()
            && !self.answers.iter().any(|known| known == answer)
        {
            let phase = match outcome.status {
                OutcomeStatus::Finished | OutcomeStatus::Limit(_) => Phase::FinalAnswer,
                _ => Phase::Commentary,
            };
            pieces.extend(self.say(answer, phase));
        }
        pieces
    }

    /// Adds a complete part, and returns its pieces.
    pub(crate) fn say(&mut self, text: &str, phase: Phase) -> Vec<Piece> {
        self.parts.push(Part { text: text.to_owned(), phase });
        vec![Piece::Text(text.to_owned()), Piece::Complete(phase)]
    }

    fn hear(&mut self, delta: &Delta) -> Vec<Piece> {
        let DeltaKind::Text { text } = &delta.kind else { return Vec::new() };
        if self.finished.is_some_and(|finished| delta.command <= finished) {
            return Vec::new();
        }
        let place = Some((delta.command, delta.attempt));
        if self.place != place {
            self.place = place;
            self.heard.clear();
        }
        // A watcher that came late has not heard the beginning; the record has all of it.
        if delta.offset != self.heard.len() as u64 {
            return Vec::new();
        }
        self.heard.push_str(text);
        // Some models begin with blanks before they call a tool.
        if self.heard.trim().is_empty() {
            return Vec::new();
        }
        match self.heard.strip_prefix(self.sent.as_str()) {
            Some(rest) if !rest.is_empty() => {
                let piece = Piece::Text(rest.to_owned());
                self.sent.clone_from(&self.heard);
                vec![piece]
            }
            // It repeats what was sent, or differs from it.
            _ => Vec::new(),
        }
    }

    fn take_answer(&mut self, command: CommandId, message: &AssistantMessage) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // Without line breaks between blocks, as the deltas have it.
        let text: String = message.content.iter().filter_map(Content::as_text).collect();
        let text = if text.trim().is_empty() { String::new() } else { text };
        let sent = std::mem::take(&mut self.sent);
        (self.place, self.finished) = (None, Some(command));
        self.heard.clear();
        let rest: &str = match text.strip_prefix(sent.as_str()) {
            Some(rest) => rest,
            None => {
                pieces.push(Piece::BrokenOff);
                text.as_str()
            }
        };
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        self.answers.push(message.text());
        if !text.is_empty() {
            let phase = match (message.tool_calls().next(), message.stop_reason) {
                (Some(_), _) | (None, StopReason::Aborted) => Phase::Commentary,
                (None, StopReason::Pause) => Phase::Paused,
                (None, _) => Phase::FinalAnswer,
            };
            pieces.push(Piece::Complete(phase));
            self.parts.push(Part { text, phase });
        }
        pieces
    }
}

/// Returns true if the texts of the run's model calls are the text for the client. In text mode they also contain
/// tool calls. An answer that is checked may be refused and requested again. A plan and a team make no model calls of
/// their own.
fn says_its_answer(started: &RunStarted) -> bool {
    let config = &started.config;
    started.kind == RunKind::Loop
        && config.tool_mode == ToolMode::Native
        && config.output_check.is_none()
        && config.goal_check.is_none()
}

#[cfg(test)]
mod tests;
