//! The messages of a conversation, with a cache of their encoding in a provider's format.

use std::{
    borrow::Cow,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::values::ContentHash;

use super::{content::Content, message::Message};

/// The messages of a conversation in order. Each message is written in the provider's format only once, as long
/// as requests have the same format and the same head.
///
/// Every request sends all messages again, and without a cache the encoding would make a turn cost more the
/// longer the run is. Messages are only appended, so encoded text stays valid: a provider encodes the new
/// messages and copies the earlier text in one piece.
#[derive(Default)]
pub struct Transcript {
    messages: Vec<Arc<Message>>,
    encoded: Mutex<EncodedText>,
    hashed: Mutex<Hashed>,
}

/// The cached text of a request body: the head, then the first `count` messages in one format.
#[derive(Clone, Default)]
struct EncodedText {
    format: String,
    /// The size of the head in bytes.
    head: usize,
    count: usize,
    /// The position in `text` directly after the last message, in bytes. `text` may end with the tail of the
    /// newest request body.
    end: usize,
    /// The head and the encoded messages. Request bodies that are being sent share this text.
    text: Arc<String>,
}

/// The cached hash of the first `count` messages, so that only later messages need to be hashed.
#[derive(Clone, Copy, Default)]
struct Hashed {
    count: usize,
    hash: ContentHash,
}

impl Transcript {
    /// Creates an empty transcript.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        self.messages.push(message.into());
    }

    /// Appends all messages to `out`, encoded in `format`.
    ///
    /// `encode` appends the text of one message; it is called for messages that are not yet encoded. `format`
    /// names the encoding, including every option that changes its output. With another format than before,
    /// all messages are encoded again.
    pub fn encode_into(&self, format: &str, out: &mut String, encode: impl Fn(&Message, &mut String)) {
        let mut encoded = self.encoded();
        self.encode(&mut encoded, format, "", encode);
        out.push_str(&encoded.text[encoded.head..encoded.end]);
    }

    /// Returns the whole body of a request: `head`, the messages in `format` separated by commas, and `tail`.
    /// There is no comma after a head that ends with a bracket.
    ///
    /// The cached text grows in place, so a turn encodes only its own messages, however long the conversation
    /// is. The text is copied if an earlier body is still in use. All messages are encoded again if the head
    /// or the format differs from that of the earlier body.
    pub fn body(
        &self,
        format: &str,
        head: &str,
        tail: &str,
        encode: impl Fn(&Message, &mut String),
    ) -> Arc<String> {
        let mut encoded = self.encoded();
        self.encode(&mut encoded, format, head, |message, text| {
            let before = text.len();
            if !text.ends_with('[') {
                text.push(',');
            }
            let start = text.len();
            encode(message, text);
            if text.len() == start {
                text.truncate(before);
            }
        });
        Arc::make_mut(&mut encoded.text).push_str(tail);
        encoded.text.clone()
    }

    /// Encodes the messages that have no cached text.
    fn encode(
        &self,
        encoded: &mut EncodedText,
        format: &str,
        head: &str,
        encode: impl Fn(&Message, &mut String),
    ) {
        if encoded.format != format || encoded.text[..encoded.head] != *head {
            let (format, text) = (format.to_owned(), Arc::new(head.to_owned()));
            *encoded = EncodedText { format, head: head.len(), end: head.len(), count: 0, text };
        }
        let text = Arc::make_mut(&mut encoded.text);
        text.truncate(encoded.end);
        for message in &self.messages[encoded.count..] {
            encode(message, text);
        }
        (encoded.end, encoded.count) = (text.len(), self.messages.len());
    }

    /// Returns the size of the encoded messages in bytes, an estimate for the size of the next request body.
    pub fn encoded_len(&self) -> usize {
        let encoded = self.encoded();
        encoded.end - encoded.head
    }

    /// Returns the hash of the messages as a model reads them: roles and content, without times, token counts
    /// and model names. The hash of a medium stands for its data. Each message is hashed once.
    pub(crate) fn content_hash(&self) -> u64 {
        let mut hashed = self.hashed.lock().unwrap_or_else(PoisonError::into_inner);
        let Hashed { count, mut hash } = *hashed;
        for message in &self.messages[count..] {
            let content = without_data(message.content());
            match &**message {
                Message::User(_) => hash.add(&("user", content)),
                Message::Assistant(_) => hash.add(&("assistant", content)),
                Message::ToolResult(m) => {
                    hash.add(&("result", &m.tool_call_id, &m.tool_name, m.is_error, content));
                }
            }
        }
        *hashed = Hashed { count: self.messages.len(), hash };
        hash.value()
    }

    fn encoded(&self) -> MutexGuard<'_, EncodedText> {
        // The lock is poisoned only if `encode` panicked, and then the text may end within a message.
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

/// The clone shares the messages and the cached text.
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

/// Returns the blocks with media as a log refers to them, so that a request has the same hash with and without
/// the data.
fn without_data(content: &[Content]) -> Cow<'_, [Content]> {
    let is_media = |block: &Content| matches!(block, Content::Media(_));
    if !content.iter().any(is_media) {
        return Cow::Borrowed(content);
    }
    let bare = |block: &Content| match block {
        Content::Media(media) => media.without_data().into(),
        other => other.clone(),
    };
    content.iter().map(bare).collect()
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
    use crate::{
        messages::{AssistantMessage, Media, UserMessage},
        values::Timestamp,
    };

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
    fn body_grows_in_place_unless_the_last_one_is_held_or_the_head_changes() {
        let calls = Cell::new(0);
        let body = |transcript: &Transcript, head: &str| {
            transcript.body("a", head, "]}", |message, out| {
                calls.set(calls.get() + 1);
                out.push_str(&message.text());
            })
        };
        let say = |transcript: &mut Transcript, text: &str| {
            transcript.push(Message::user(text, Timestamp::default()));
        };
        let mut transcript = Transcript::new();
        assert_eq!(*body(&transcript, "{["), "{[]}");
        say(&mut transcript, "1");
        say(&mut transcript, "");
        say(&mut transcript, "2");
        let held = body(&transcript, "{[");
        assert_eq!(*held, "{[1,2]}", "a message without text leaves no comma");
        say(&mut transcript, "3");
        let copied = body(&transcript, "{[");
        assert_eq!((held.as_str(), copied.as_str(), calls.get()), ("{[1,2]}", "{[1,2,3]}", 4));
        drop((held, copied));
        let at = Arc::as_ptr(&body(&transcript, "{["));
        say(&mut transcript, "4");
        let grown = body(&transcript, "{[");
        assert_eq!((grown.as_str(), Arc::as_ptr(&grown) == at, calls.get()), ("{[1,2,3,4]}", true, 5));
        assert_eq!(*body(&transcript, "{[0"), "{[0,1,2,3,4]}");
        assert_eq!(calls.get(), 10);
        assert_eq!(transcript.encoded_len(), ",1,2,3,4".len());
        let mut out = String::new();
        transcript.encode_into("a", &mut out, |message, out| out.push_str(&message.text()));
        assert_eq!(out, "1234");
    }

    #[test]
    fn transcript_hash_covers_only_the_text_that_a_model_reads() {
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

    // spec: EX-16
    #[test]
    fn transcript_hash_is_the_same_with_and_without_the_data_of_media() {
        let hash = |block: Content| {
            let message = UserMessage::new(vec![block], Timestamp::default());
            Transcript::from_iter([Message::User(message)]).content_hash()
        };
        let media = |text: &str| Media::new(text.as_bytes(), Some("a.pdf")).unwrap();
        assert_eq!(hash(media("%PDF-1.7").into()), hash(media("%PDF-1.7").without_data().into()));
        assert_ne!(hash(media("%PDF-1.7").into()), hash(media("%PDF-1.6").into()));
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
