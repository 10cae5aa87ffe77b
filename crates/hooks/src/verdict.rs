//! The verdict of hooks, and how several become one.

/// The verdict of one hook, or of several together. There is no yes: a hook that allows has no opinion, because only
/// permission rules and people allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No opinion.
    #[default]
    Silent,
    /// A person must decide, for this reason.
    Ask(String),
    /// No, for this reason.
    Deny(String),
}

impl Verdict {
    /// Returns the verdict of two hooks together: a no beats a question, and a question beats no opinion. Reasons
    /// of the same kind are joined in order.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny(one), Self::Deny(other)) => Self::Deny(format!("{one}; {other}")),
            (no @ Self::Deny(_), _) | (_, no @ Self::Deny(_)) => no,
            (Self::Ask(one), Self::Ask(other)) => Self::Ask(format!("{one}; {other}")),
            (ask @ Self::Ask(_), _) | (_, ask @ Self::Ask(_)) => ask,
            (Self::Silent, Self::Silent) => Self::Silent,
        }
    }
}

/// The answer of one hook, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Texts for the model.
    pub(crate) context: Vec<String>,
    /// Texts for people about answers that do not count.
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    /// Returns one answer of several, in order.
    pub(crate) fn fold(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().fold(Self::default(), |mut whole, answer| {
            whole.verdict = whole.verdict.and(answer.verdict);
            whole.context.extend(answer.context);
            whole.warnings.extend(answer.warnings);
            whole
        })
    }
}
