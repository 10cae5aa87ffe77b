//! The wire format of the chunks of a chat-completions stream, private to this protocol.
//!
//! Fields that no struct names are skipped. Values that the decoder keeps are owned from the start, so that they are
//! moved into an event and never copied; other values are borrowed. Rare values are boxed, because these structs are
//! moved several times for every token.

use std::{borrow::Cow, fmt};

use archon_types::{Json, Usage};

use crate::{answer_limits::AnswerSize, token_counts::with_cache_inside};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// One event, or a whole answer that was not streamed.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Word<'a>>,
    #[serde(borrow, default = "none")]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    usage: Option<Box<WireUsage>>,
    /// The usage, in Groq's answers.
    x_groq: Option<Box<GroqExtra>>,
    pub(super) error: Option<Box<Json>>,
}

fn none<T>() -> Option<T> {
    None
}

impl Chunk<'_> {
    pub(super) fn usage(&self) -> Option<Usage> {
        let groq = || self.x_groq.as_ref().and_then(|x| x.usage.as_ref());
        let moonshot = || self.choices.iter().flatten().find_map(|choice| choice.usage.as_deref());
        self.usage.as_deref().or_else(groq).or_else(moonshot).map(Usage::from)
    }
}

#[derive(Deserialize)]
struct GroqExtra {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// The index of the answer; only the first answer is requested and read.
    #[serde(default)]
    pub(super) index: u32,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole message; an answer that was not streamed has it instead of `delta`.
    #[serde(borrow)]
    pub(super) message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Word<'a>>,
    /// The stop sequence or the id of a stop token, in vLLM's answers.
    stop_reason: Option<Box<Json>>,
    /// The stop sequence or the id of a stop token, in SGLang's answers.
    matched_stop: Option<Box<Json>>,
    /// The usage, in Moonshot's answers.
    usage: Option<Box<WireUsage>>,
}

impl Choice<'_> {
    /// Returns the stop sequence that ended the answer, if the service names it.
    pub(super) fn stop_text(&self) -> Option<String> {
        let said = self.stop_reason.as_deref().or(self.matched_stop.as_deref())?;
        said.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(default)]
    pub(super) content: Text,
    pub(super) refusal: Option<Box<Text>>,
    #[serde(default)]
    pub(super) reasoning_content: Text,
    #[serde(default)]
    pub(super) reasoning: Text,
    /// The reasoning in parts with their signatures, in OpenRouter's answers.
    pub(super) reasoning_details: Option<Vec<Json>>,
    #[serde(borrow, default = "none")]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Box<Function<'a>>>,
}

impl Delta<'_> {
    /// Returns true if the delta has no content.
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.reasoning_content.is_empty()
            && self.reasoning.is_empty()
            && self.refusal.as_ref().is_none_or(|refusal| refusal.is_empty())
            && self.reasoning_details.as_ref().is_none_or(Vec::is_empty)
            && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
            && self.function_call.as_ref().is_none_or(|function| function.is_empty())
    }

    /// Removes the content that deltas already contained from a message that repeats the whole answer. Of the text,
    /// the first `content_bytes` bytes are removed. Content of any other kind is removed completely if deltas
    /// contained a part of it.
    pub(super) fn leave_out(&mut self, content_bytes: usize, said: AnswerSize) {
        self.content.text = self.content.text.get(content_bytes..).unwrap_or_default().to_owned();
        if said.thinking_bytes > 0 {
            self.content.thinking = None;
            (self.reasoning_content, self.reasoning) = (Text::default(), Text::default());
            self.reasoning_details = None;
        }
        if said.calls > 0 {
            (self.tool_calls, self.function_call) = (None, None);
        }
        if said.text_bytes > 0 {
            self.refusal = None;
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) id: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Word<'a>>,
    #[serde(default)]
    pub(super) arguments: Arguments,
}

impl Function<'_> {
    /// Returns true if there is neither a name nor arguments.
    pub(super) fn is_empty(&self) -> bool {
        Word::non_empty(&self.name).is_none() && self.arguments.0.is_empty()
    }
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    /// The cached tokens, in DeepSeek's answers.
    prompt_cache_hit_tokens: Option<u64>,
    /// The cached tokens, in Moonshot's answers.
    cached_tokens: Option<u64>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl WireUsage {
    /// Returns the number of output tokens. Most services include thinking in the completion tokens; xAI
    /// counts thinking separately, which the total shows.
    fn output(&self) -> u64 {
        let said = self.completion_tokens.unwrap_or(0);
        let thought = self.completion_tokens_details.as_ref().and_then(|d| d.reasoning_tokens).unwrap_or(0);
        let both = said.saturating_add(thought);
        let is_beside = self.total_tokens == Some(self.prompt_tokens.unwrap_or(0).saturating_add(both));
        if is_beside { both } else { said }
    }
}

impl From<&WireUsage> for Usage {
    fn from(wire: &WireUsage) -> Self {
        let details = wire.prompt_tokens_details.as_ref();
        let cached = details.and_then(|d| d.cached_tokens);
        let cached = cached.or(wire.prompt_cache_hit_tokens).or(wire.cached_tokens).unwrap_or(0);
        let written = details.and_then(|d| d.cache_write_tokens).unwrap_or(0);
        let usage = Self {
            input: wire.prompt_tokens.unwrap_or(0),
            output: wire.output(),
            cache_read: cached,
            cache_write: written,
            total_tokens: wire.total_tokens.unwrap_or(0),
        };
        with_cache_inside(usage)
    }
}

/// A short text, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Word<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Word<'_> {
    pub(super) fn non_empty(word: &Option<Self>) -> Option<&str> {
        word.as_ref().map(|w| &*w.0).filter(|w| !w.is_empty())
    }
}

/// The text of a message in the forms that services use: a string, null, or a list of parts (Mistral).
/// Thinking parts are kept separate; other values count as empty.
#[derive(Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) thinking: Option<Box<str>>,
}

impl Text {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_none()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, null, or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text { text: text.to_owned(), thinking: None })
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let (mut all, mut thinking) = (Text::default(), String::new());
        while let Some(part) = parts.next_element::<Part>()? {
            all.text.push_str(&part.text.text);
            thinking.push_str(&part.thinking.text);
        }
        all.thinking = (!thinking.is_empty()).then(|| thinking.into());
        Ok(all)
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Text,
    #[serde(default)]
    thinking: Text,
}

/// The text of arguments; some servers send the arguments as an object instead.
#[derive(Default)]
pub(super) struct Arguments(pub(super) String);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("argument text, an object, or null")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arguments, E> {
        Ok(Arguments(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Arguments, A::Error> {
        Json::deserialize(MapAccessDeserializer::new(map)).map(|object| Arguments(object.to_string()))
    }
}
