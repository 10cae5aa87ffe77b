//! The messages that a model reads, and next to them their wire text, which grows as they do.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Message, content_hash::ContentHash};

/// Messages in order, each encoded at most once however many requests carry them.
///
/// A transcript is sent again with every request, and encoding all of it each time makes the cost
/// of a turn grow with the run. Messages are only ever added, so the text of those that were encoded
/// stays true: a provider encodes the new ones and copies the rest in one piece.
#[derive(Default)]
pub struct Transcript {
    messages: Vec<Arc<Message>>,
    encoded: Mutex<EncodedText>,
    hashed: Mutex<Hashed>,
}

/// The text of the first `count` messages in one format.
#[derive(Clone, Default)]
struct EncodedText {
    format: String,
    count: usize,
    text: String,
}

/// The hash of the first `count` messages.
#[derive(Clone, Copy, Default)]
struct Hashed {
    count: usize,
    hash: ContentHash,
}

impl Transcript {
    /// One without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message at the end; one that is shared stays shared.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        self.messages.push(message.into());
    }

    /// Appends the text of all messages in `format` to `out`.
    ///
    /// `encode` appends the text of one message and is called for those that have none yet. `format`
    /// names the encoding, including every option that changes its output; after a change of format
    /// everything is encoded again.
    pub fn encode_into(&self, format: &str, out: &mut String, encode: impl Fn(&Message, &mut String)) {
        let mut encoded = self.encoded();
        if encoded.format != format {
            *encoded = EncodedText { format: format.to_owned(), ..EncodedText::default() };
        }
        for message in &self.messages[encoded.count..] {
            encode(message, &mut encoded.text);
        }
        encoded.count = self.messages.len();
        out.push_str(&encoded.text);
    }

    /// Bytes of text that are kept, a guess at the size of the next body.
    pub fn encoded_len(&self) -> usize {
        self.encoded().text.len()
    }

    /// The hash of what a model reads: who said what, without times, tokens and who served it. Each
    /// message is hashed once.
    pub(crate) fn content_hash(&self) -> u64 {
        let mut kept = self.hashed.lock().unwrap_or_else(PoisonError::into_inner);
        let Hashed { count, mut hash } = *kept;
        for message in &self.messages[count..] {
            match &**message {
                Message::User(m) => hash.add(&("user", &m.content)),
                Message::Assistant(m) => hash.add(&("assistant", &m.content)),
                Message::ToolResult(m) => {
                    hash.add(&("result", &m.tool_call_id, &m.tool_name, m.is_error, &m.content));
                }
            }
        }
        *kept = Hashed { count: self.messages.len(), hash };
        hash.value()
    }

    fn encoded(&self) -> MutexGuard<'_, EncodedText> {
        // Only a panicking `encode` leaves the lock poisoned, with a text that may end mid-message.
        self.encoded.lock().unwrap_or_else(|poisoned| {
            let mut encoded = PoisonError::into_inner(poisoned);
            *encoded = EncodedText::default();
            self.encoded.clear_poison();
            encoded
        })
    }
}

impl Deref for Transcript {
    type Target = [Arc<Message>];

    fn deref(&self) -> &[Arc<Message>] {
        &self.messages
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Transcript {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self { messages: messages.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// The messages are shared with the clone, the text is copied.
impl Clone for Transcript {
    fn clone(&self) -> Self {
        let hashed = *self.hashed.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            messages: self.messages.clone(),
            encoded: Mutex::new(self.encoded().clone()),
            hashed: Mutex::new(hashed),
        }
    }
}

impl PartialEq for Transcript {
    fn eq(&self, other: &Self) -> bool {
        self.messages == other.messages
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.messages).finish()
    }
}

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.messages.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self { messages: Vec::deserialize(d)?, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{AssistantMessage, Content, Timestamp};

    #[test]
    fn each_message_is_encoded_once_until_the_format_changes() {
        let calls = Cell::new(0);
        let encoded = |transcript: &Transcript, format: &'static str| {
            let mut out = String::from("head");
            transcript.encode_into(format, &mut out, |m, out| {
                calls.set(calls.get() + 1);
                out.push_str(&format!(",{format}:{}", m.text()));
            });
            out
        };
        let mut transcript = Transcript::new();
        transcript.push(Message::user("1", Timestamp::default()));
        assert_eq!(encoded(&transcript, "a"), "head,a:1");
        transcript.push(Message::user("2", Timestamp::default()));
        assert_eq!(encoded(&transcript, "a"), "head,a:1,a:2");
        assert_eq!(calls.get(), 2);
        let mut fork = transcript.clone();
        fork.push(Message::user("3", Timestamp::default()));
        assert_eq!(encoded(&fork, "a"), "head,a:1,a:2,a:3");
        assert_eq!(encoded(&transcript, "a"), "head,a:1,a:2");
        assert_eq!(calls.get(), 3);
        assert_eq!(encoded(&transcript, "b"), "head,b:1,b:2");
        assert_eq!(calls.get(), 5);
    }

    #[test]
    fn the_hash_is_of_what_a_model_reads() {
        let said = |texts: &[&str], ms| -> Transcript {
            texts.iter().map(|text| Message::user(*text, Timestamp::from_millis(ms))).collect()
        };
        let mut grown = said(&["1"], 5);
        assert_eq!(grown.content_hash(), said(&["1"], 6).content_hash(), "times are not read");
        assert_ne!(grown.content_hash(), said(&["2"], 5).content_hash());
        let mut fork = grown.clone();
        grown.push(Message::user("2", Timestamp::default()));
        assert_eq!(grown.content_hash(), said(&["1", "2"], 0).content_hash());
        fork.push(Message::user("3", Timestamp::default()));
        assert_eq!(fork.content_hash(), said(&["1", "3"], 0).content_hash());
        let answer = AssistantMessage { content: vec![Content::text("1")], ..AssistantMessage::default() };
        let answer: Transcript = [Message::Assistant(answer)].into_iter().collect();
        assert_ne!(answer.content_hash(), said(&["1"], 0).content_hash(), "who said it is read");
    }

    #[test]
    fn a_panic_while_encoding_leaves_no_half_text() {
        let transcript: Transcript = [Message::user("1", Timestamp::default())].into_iter().collect();
        let mut out = String::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            transcript.encode_into("a", &mut String::new(), |_, out| {
                out.push_str("half");
                panic!("on purpose");
            });
        }));
        assert!(panicked.is_err());
        transcript.encode_into("a", &mut out, |m, out| out.push_str(&m.text()));
        assert_eq!(out, "1");
    }
}
