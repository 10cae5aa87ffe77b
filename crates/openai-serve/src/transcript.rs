//! The text of a run as a client gets it, computed from the run's events: the same for a stream and for a
//! whole response.
//!
//! An answer that streams can break off and begin again with other words, and what was sent cannot be taken back. The
//! records decide: the fold passes on a delta only while it continues what was sent, and says so if the record of the
//! answer does not.

use archon_types::{
    AssistantMessage, CommandId, Content, Delta, DeltaKind, Event, Outcome, OutcomeStatus, RecordBody, RunId,
    RunKind, RunStarted, StopReason, ToolMode,
};

/// The part of an answer that a client gets next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// More text of the part that is open; begins a part if none is open.
    Text(String),
    /// The open part is complete.
    Complete(Phase),
    /// The open part broke off. If its text begins again, it is in the next part.
    BrokenOff,
}

/// The phase of a part, in the words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// Text of the agent before or between its calls, and the notice about a run that has no answer yet.
    Commentary,
    /// Commentary that the service paused, perhaps in the middle of a sentence; the next part goes on with it.
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

    /// Returns true if a blank line is between the text of this phase and the next one.
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
    /// The answers so far, as an outcome has them.
    answers: Vec<String>,
    /// The command and the attempt of the deltas that come now.
    place: Option<(CommandId, u32)>,
    /// The text of this attempt, as far as its deltas tell it.
    heard: String,
    /// The text of the open part that was sent.
    sent: String,
    /// The last model call whose answer is in the log. Its deltas may still come to a watcher that came late.
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

    /// Returns the whole text, with a blank line between two parts, but not after a pause.
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

    /// Takes an event of the run, or of one of its child runs, which say nothing here.
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

    /// Takes a record of the run.
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

    /// Takes the outcome: an answer that was not sent, as of a plan, is sent now.
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

    /// Adds a part.
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

/// Returns true if the texts of a run's model calls are what the run says. In text mode they are also its calls, and an
/// answer that is checked may be refused and asked for again. A plan and a team have no calls of their own.
fn says_its_answer(started: &RunStarted) -> bool {
    let config = &started.config;
    started.kind == RunKind::Loop
        && config.tool_mode == ToolMode::Native
        && config.output_check.is_none()
        && config.goal_check.is_none()
}

#[cfg(test)]
mod tests;
