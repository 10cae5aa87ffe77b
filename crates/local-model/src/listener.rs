//! Turns the output of the engine into the events and the message of an answer.

use archon_types::{AssistantMessage, Content, ModelEvent, StopReason, Timestamp, ToolCall};

use crate::engine::End;
use crate::reply::{Piece, ReplyReader, whole_characters};

/// Turns the bytes of one answer into model events, and collects the answer's message.
#[derive(Debug)]
pub(crate) struct Listener {
    message: AssistantMessage,
    /// Splits the reply into parts; `None` if the reply is plain text.
    reader: Option<ReplyReader>,
    /// The id for the tool call that the reply may have.
    call_id: String,
    call: Option<OpenCall>,
    plain: PlainText,
}

/// A tool call whose arguments are not complete yet.
#[derive(Debug)]
struct OpenCall {
    name: String,
    arguments: String,
    complete: bool,
}

impl Listener {
    /// Creates a listener for an answer that starts from `message`; `stops` are the stop sequences of plain
    /// text.
    pub(crate) fn new(
        message: AssistantMessage,
        reader: Option<ReplyReader>,
        call_id: String,
        stops: Vec<String>,
    ) -> Self {
        let plain = PlainText { held: Vec::new(), stops, stopped: None };
        Self { message, reader, call_id, call: None, plain }
    }

    pub(crate) fn prompt_was_read(&mut self, fresh: usize, reused: usize) -> ModelEvent {
        self.message.usage.input = fresh as u64;
        self.message.usage.cache_read = reused as u64;
        ModelEvent::Start
    }

    pub(crate) fn receive(&mut self, bytes: &[u8], tokens: usize) -> Vec<ModelEvent> {
        self.message.usage.output += tokens as u64;
        let pieces = match &mut self.reader {
            Some(reader) => reader.push(bytes),
            None => vec![Piece::Text(self.plain.push(bytes))],
        };
        pieces.into_iter().filter_map(|piece| self.piece(piece)).collect()
    }

    /// Returns true if a stop sequence was received: the answer has ended, and further output is ignored.
    pub(crate) fn was_stopped(&self) -> bool {
        self.plain.stopped.is_some()
    }

    /// Returns the last events, and the whole message.
    pub(crate) fn finish(&mut self, end: End, now: Timestamp) -> (Vec<ModelEvent>, AssistantMessage) {
        let rest = self.plain.finish();
        let events: Vec<_> = self.piece(Piece::Text(rest)).into_iter().collect();
        self.message.stop_reason = match end {
            End::Complete if self.call.is_some() => StopReason::ToolUse,
            End::Complete if self.was_stopped() => StopReason::StopSequence,
            End::Complete => StopReason::Stop,
            End::Length => StopReason::Length,
            End::Cancelled => StopReason::Aborted,
        };
        if self.message.stop_reason == StopReason::StopSequence {
            self.message.stop_sequence.clone_from(&self.plain.stopped);
        }
        // A cancelled call is left out, so that no call stays without a result. A call that the limit cut
        // off is kept as malformed, so that the model gets an error.
        if let Some(call) = self.call.take()
            && end != End::Cancelled
        {
            let call_id = std::mem::take(&mut self.call_id);
            let call = match ToolCall::from_json_text(call_id, call.name, &call.arguments) {
                whole if call.complete || whole.malformed.is_some() => whole,
                cut => ToolCall {
                    malformed: Some(archon_types::MalformedArguments {
                        text: call.arguments,
                        error: "cut off by the token limit".into(),
                    }),
                    ..cut
                },
            };
            self.message.content.push(Content::from(call));
        }
        let usage = &mut self.message.usage;
        usage.total_tokens = usage.input + usage.cache_read + usage.output;
        self.message.timestamp = now;
        (events, std::mem::take(&mut self.message))
    }

    fn piece(&mut self, piece: Piece) -> Option<ModelEvent> {
        match piece {
            Piece::Call { name } => {
                self.call = Some(OpenCall { name: name.clone(), arguments: String::new(), complete: false });
                Some(ModelEvent::ToolCallStart { index: 0, id: self.call_id.clone(), name })
            }
            Piece::Arguments(arguments) => {
                self.call.as_mut()?.arguments.push_str(&arguments);
                Some(ModelEvent::ToolCallDelta { index: 0, arguments })
            }
            Piece::CallEnd => {
                self.call.as_mut()?.complete = true;
                Some(ModelEvent::ToolCallEnd { index: 0 })
            }
            Piece::Text(text) if text.is_empty() => None,
            Piece::Text(text) => {
                match self.message.content.last_mut() {
                    Some(Content::Text { text: have }) => have.push_str(&text),
                    _ => self.message.content.push(Content::text(text.clone())),
                }
                Some(ModelEvent::TextDelta(text))
            }
        }
    }
}

/// Plain text that is streamed. It holds back bytes that may be a part of a character or the start of a stop
/// sequence.
#[derive(Debug)]
struct PlainText {
    held: Vec<u8>,
    stops: Vec<String>,
    /// The stop sequence that was received.
    stopped: Option<String>,
}

impl PlainText {
    fn push(&mut self, bytes: &[u8]) -> String {
        if self.stopped.is_some() {
            return String::new();
        }
        self.held.extend_from_slice(bytes);
        let find = |stop: &String| {
            let stop = stop.as_bytes();
            (!stop.is_empty()).then(|| self.held.windows(stop.len()).position(|w| w == stop)).flatten()
        };
        let found = self.stops.iter().filter_map(|stop| Some((find(stop)?, stop)));
        if let Some((at, stop)) = found.min_by_key(|(at, _)| *at) {
            self.stopped = Some(stop.clone());
            self.held.truncate(at);
            return self.finish();
        }
        // Holds back the longest possible start of a stop sequence; it ends at a character's edge, because
        // stop sequences are text.
        let begun = |stop: &String| {
            let most = stop.len().saturating_sub(1).min(self.held.len());
            (1..=most).rev().find(|n| self.held.ends_with(&stop.as_bytes()[..*n]))
        };
        let held = self.stops.iter().filter_map(begun).max().unwrap_or(0);
        let end = whole_characters(&self.held).min(self.held.len() - held);
        let rest = self.held.split_off(end);
        String::from_utf8_lossy(&std::mem::replace(&mut self.held, rest)).into_owned()
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(stops: &[&str], parts: &[&[u8]]) -> (Vec<String>, String) {
        let stops = stops.iter().map(|s| (*s).to_owned()).collect();
        let mut text = PlainText { held: Vec::new(), stops, stopped: None };
        let said = parts.iter().map(|part| text.push(part)).collect();
        (said, text.finish())
    }

    #[test]
    fn half_a_character_waits_for_the_other_half() {
        assert_eq!(plain(&[], &[b"a\xc3", b"\xbcb"]), (vec!["a".into(), "\u{fc}b".into()], String::new()));
    }

    #[test]
    fn a_stop_text_ends_the_answer_even_in_pieces() {
        let (said, rest) = plain(&["END", "\n\n"], &[b"one E", b"N", b"two EN", b"D three", b"four"]);
        assert_eq!(said.concat() + &rest, "one ENtwo ");
        let stops = ["\n\n", "END"].map(str::to_owned).to_vec();
        let mut text = PlainText { held: Vec::new(), stops, stopped: None };
        text.push(b"one END two\n\n");
        assert_eq!(text.stopped.as_deref(), Some("END"));
    }
}
