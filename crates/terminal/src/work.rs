//! The present work of a conversation.

/// The present work of a conversation. The status line shows it, and the meanings of Esc and Ctrl+C depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// No run works, and the draft is empty.
    #[default]
    Idle,
    /// No run works, and the person types a draft.
    Composing,
    /// A run waits for its model, or reads the model's answer.
    Model,
    /// A run executes tool calls.
    Tools,
    /// A run waits for the answer to a question.
    Asking,
    /// A run works in another process.
    Elsewhere,
}

impl Work {
    /// Adds the state of the draft, which is not in the records: if no run works, returns
    /// [`Composing`](Self::Composing) with a draft and [`Idle`](Self::Idle) without one; otherwise returns the work
    /// unchanged.
    ///
    /// ```
    /// use archon_terminal::Work;
    ///
    /// assert_eq!(Work::Idle.with_draft(true), Work::Composing);
    /// ```
    pub fn with_draft(self, has_draft: bool) -> Self {
        match (self, has_draft) {
            (Self::Idle | Self::Composing, true) => Self::Composing,
            (Self::Idle | Self::Composing, false) => Self::Idle,
            (busy, _) => busy,
        }
    }

    /// Returns true if a run of this process works or waits for an answer, so that it can be stopped.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Model | Self::Tools | Self::Asking)
    }
}
