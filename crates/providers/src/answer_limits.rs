//! How much one answer of a model may say, so that a server that does not stop fills neither memory nor log.

/// The most that one answer may say. More ends it with an error that names the limit. What a model in use says
/// stays far below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// Bytes of text; 8 MiB.
    pub text_bytes: usize,
    /// Bytes of thinking, with what the service wants back with it; 8 MiB.
    pub thinking_bytes: usize,
    /// Tool calls; 128.
    pub calls: usize,
    /// Bytes of the names, ids and arguments of all tool calls; 1 MiB.
    pub argument_bytes: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { text_bytes: 8 << 20, thinking_bytes: 8 << 20, calls: 128, argument_bytes: 1 << 20 }
    }
}

/// How much an answer has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text_bytes: usize,
    pub(crate) thinking_bytes: usize,
    pub(crate) calls: usize,
    pub(crate) argument_bytes: usize,
}

impl AnswerLimits {
    /// Which limit the answer is past, in words.
    pub(crate) fn exceeded(&self, said: Said) -> Option<String> {
        // Asked with each delta.
        if said.text_bytes <= self.text_bytes
            && said.thinking_bytes <= self.thinking_bytes
            && said.calls <= self.calls
            && said.argument_bytes <= self.argument_bytes
        {
            return None;
        }
        let checks = [
            (said.text_bytes, self.text_bytes, "bytes of text", "text_bytes"),
            (said.thinking_bytes, self.thinking_bytes, "bytes of thinking", "thinking_bytes"),
            (said.calls, self.calls, "tool calls", "calls"),
            (said.argument_bytes, self.argument_bytes, "bytes of arguments", "argument_bytes"),
        ];
        let (_, limit, what, setting) = checks.into_iter().find(|(said, limit, ..)| said > limit)?;
        Some(format!(
            "the answer was ended because it has more than {limit} {what}; `HttpOptions::limits.{setting}` allows more"
        ))
    }
}
