//! The choice among the branches of a parallel loop: the strategy trait, its input and its verdict.
//!
//! A parallel loop runs several configurations from one conversation in parallel, each as a run of its own. A
//! strategy then selects one branch, and the session continues with the conversation of this branch.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    log::Outcome,
    messages::{AgentMessage, Message, Usage},
};

use super::context::Context;

/// Selects one branch of a parallel loop, among the branches that have an answer.
///
/// ```
/// use archon_types::{BoxFuture, BranchVerdict, Context, Evaluation, EvaluationError, EvaluationStrategy};
///
/// /// Selects the branch with the shortest answer.
/// struct Shortest;
///
/// impl EvaluationStrategy for Shortest {
///     fn name(&self) -> &str {
///         "shortest"
///     }
///
///     fn evaluate<'a>(
///         &'a self,
///         evaluation: Evaluation<'a>,
///         _context: &'a Context,
///     ) -> BoxFuture<'a, Result<BranchVerdict, EvaluationError>> {
///         let lengths = evaluation.branches.iter().map(|branch| branch.outcome.last_text().map_or(0, str::len));
///         let shortest = lengths.enumerate().min_by_key(|(_, length)| *length).map_or(0, |(at, _)| at);
///         Box::pin(async move { Ok(BranchVerdict::select(shortest)) })
///     }
/// }
/// ```
pub trait EvaluationStrategy: Send + Sync {
    /// Returns the short lower-case name of the strategy, for logs.
    fn name(&self) -> &str;

    /// Selects one of the branches; there is at least one. A slow selection must stop when `context.cancel` is
    /// cancelled, with [`EvaluationError::Cancelled`].
    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<BranchVerdict, EvaluationError>>;

    /// Returns the maximum cost of a selection by a model, in millionths of a currency unit; 0 if its tokens
    /// have no price. This amount counts as spent if the process dies before the verdict. Default: `None`,
    /// for strategies without a model.
    fn estimate(&self, evaluation: &Evaluation<'_>) -> Option<u64> {
        let _ = evaluation;
        None
    }

    /// Checks the number of branches before any of them starts. Default: any number.
    ///
    /// # Errors
    /// The strategy cannot select among this number of branches.
    fn accepts(&self, branches: usize) -> Result<(), EvaluationError> {
        let _ = branches;
        Ok(())
    }
}

/// The input of [`EvaluationStrategy::evaluate`]: the conversation so far and the results of the branches.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The messages that every branch got; empty if the branches answered the conversation's last message.
    pub prompts: &'a [AgentMessage],
    /// The conversation at the start of all branches, oldest first.
    pub conversation: &'a [Arc<Message>],
    /// The branches that have an answer, in the order of their configurations.
    pub branches: &'a [BranchResult],
}

impl<'a> Evaluation<'a> {
    /// Creates the input of a selection.
    pub fn new(
        prompts: &'a [AgentMessage],
        conversation: &'a [Arc<Message>],
        branches: &'a [BranchResult],
    ) -> Self {
        Self { prompts, conversation, branches }
    }
}

/// The result of one branch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BranchResult {
    /// The index of the branch's configuration in the list with which the parallel loop was built, from 0.
    pub config: usize,
    /// The outcome of the branch. The usage in it counts only this branch.
    pub outcome: Outcome,
    /// All messages that the branch added to the conversation, including the prompts.
    pub messages: Vec<AgentMessage>,
}

impl BranchResult {
    /// Creates the result of a branch. `config` is the index of its configuration, from 0.
    pub fn new(config: usize, outcome: Outcome, messages: Vec<AgentMessage>) -> Self {
        Self { config, outcome, messages }
    }
}

/// The result of [`EvaluationStrategy::evaluate`]: the selected branch, the cost of the selection and the reason.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BranchVerdict {
    /// The index of the selected branch in [`Evaluation::branches`], from 0.
    pub selected: usize,
    /// The tokens that the selection used.
    pub usage: Usage,
    /// The cost of the selection in millionths of a currency unit; `None` if tokens have no price.
    pub cost_micros: Option<u64>,
    /// The reason for the choice; `None` if the strategy gives no reason.
    pub reason: Option<String>,
    /// Warnings about the selection, to show to people.
    pub warnings: Vec<String>,
}

impl BranchVerdict {
    /// Creates a verdict for the branch at index `selected` of [`Evaluation::branches`], from 0. The selection
    /// used no tokens and no money.
    pub fn select(selected: usize) -> Self {
        Self { selected, cost_micros: Some(0), ..Self::default() }
    }
}

/// The reason why a strategy selected no branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// There are more branches than the strategy can handle.
    #[error("the strategy {strategy} handles at most {max} branches, but there are {branches}")]
    TooMany {
        /// The [`name`](EvaluationStrategy::name) of the strategy.
        strategy: String,
        /// The maximum number of branches that the strategy handles.
        max: usize,
        /// The number of branches of the parallel loop.
        branches: usize,
    },
    /// The run was cancelled before there was a verdict.
    #[error("the choice among the branches was cancelled")]
    Cancelled,
    /// Any other error, with its text.
    #[error("{0}")]
    Other(String),
}

impl EvaluationError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "use fewer branches, or another strategy",
            Self::Cancelled => "resume the run: finished branches keep their answers",
            Self::Other(_) => "use another strategy, or correct this one",
        }
    }
}
