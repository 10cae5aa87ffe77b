//! Limits of one answer of a model, so that an endless answer fills neither memory nor log.

/// The maximum size of one answer of a model. An answer that exceeds a limit ends with an error that names
/// the limit. Answers of real models stay far below the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// The maximum number of bytes of text. Default 8 MiB.
    pub text_bytes: usize,
    /// The maximum number of bytes of thinking, including its signatures, which the service requires back.
    /// Default 8 MiB.
    pub thinking_bytes: usize,
    /// The maximum number of tool calls. Default 128.
    pub calls: usize,
    /// The maximum number of bytes in the names, ids and arguments of all tool calls together. Default 1
    /// MiB.
    pub argument_bytes: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { text_bytes: 8 << 20, thinking_bytes: 8 << 20, calls: 128, argument_bytes: 1 << 20 }
    }
}

/// The size of an answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerSize {
    pub(crate) text_bytes: usize,
    pub(crate) thinking_bytes: usize,
    pub(crate) calls: usize,
    pub(crate) argument_bytes: usize,
}

impl AnswerLimits {
    /// Returns the error text for the limit that the answer exceeds; `None` if it exceeds no limit.
    pub(crate) fn exceeded(&self, said: AnswerSize) -> Option<String> {
        // Runs for each delta, so the usual case is fast.
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
