//! The choice among the branches of a parallel loop: the strategy trait, its input and its verdict.
//!
//! A parallel loop runs several configurations in parallel from one conversation, each as a run of its own. A
//! strategy then selects the branch whose conversation the session continues with.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    log::Outcome,
    messages::{AgentMessage, Message, Usage},
};

use super::context::Context;

/// Selects one of the branches that have an answer.
pub trait EvaluationStrategy: Send + Sync {
    /// Returns a short lower-case name, for logs.
    fn name(&self) -> &str;

    /// Selects a branch. There is at least one branch. The context's cancellation token ends a selection that
    /// takes time.
    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<BranchVerdict, EvaluationError>>;

    /// Returns the highest cost of a selection by a model, in millionths of a currency unit, or 0 if its
    /// tokens have no price. This amount counts as spent if the process dies before the verdict. Default:
    /// none, for strategies without a model.
    fn estimate(&self, evaluation: &Evaluation<'_>) -> Option<u64> {
        let _ = evaluation;
        None
    }

    /// Checks if it can select among this number of branches; called before any of them starts. Default: any
    /// number.
    ///
    /// # Errors
    /// It cannot.
    fn accepts(&self, branches: usize) -> Result<(), EvaluationError> {
        let _ = branches;
        Ok(())
    }
}

/// The input of a selection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The messages that every branch got; empty if they answered the last message of the conversation.
    pub prompts: &'a [AgentMessage],
    /// The conversation at the start of all branches, oldest first.
    pub conversation: &'a [Arc<Message>],
    /// The branches that have an answer, in the order of their configurations.
    pub branches: &'a [BranchResult],
}

impl<'a> Evaluation<'a> {
    /// Creates the input.
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
    /// The index of its configuration, from 0.
    pub config: usize,
    /// The outcome; its usage is that of the branch alone.
    pub outcome: Outcome,
    /// All messages that it added to the conversation, with the prompts.
    pub messages: Vec<AgentMessage>,
}

impl BranchResult {
    /// Creates the result of the branch with configuration `config`.
    pub fn new(config: usize, outcome: Outcome, messages: Vec<AgentMessage>) -> Self {
        Self { config, outcome, messages }
    }
}

/// The verdict of a strategy.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BranchVerdict {
    /// The index of the selected branch in [`Evaluation::branches`], from 0.
    pub selected: usize,
    /// Tokens that the selection used.
    pub usage: Usage,
    /// The cost of the tokens, in millionths of a currency unit; none if tokens have no price.
    pub cost_micros: Option<u64>,
    /// The reason, if the strategy gives one.
    pub reason: Option<String>,
    /// Warnings about the selection, for people.
    pub warnings: Vec<String>,
}

impl BranchVerdict {
    /// Creates a verdict that used no tokens.
    pub fn select(selected: usize) -> Self {
        Self { selected, cost_micros: Some(0), ..Self::default() }
    }
}

/// The reason why a strategy selected no branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// There are more branches than the strategy can handle.
    #[error("the strategy {strategy} takes {max} branch at most and there are {branches}")]
    TooMany {
        /// [`EvaluationStrategy::name`].
        strategy: String,
        /// The most branches that it handles.
        max: usize,
        /// The number of branches.
        branches: usize,
    },
    /// The run was cancelled before there was a verdict.
    #[error("the choice was cancelled")]
    Cancelled,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl EvaluationError {
    /// Returns advice for a person, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "give it fewer branches, or use another strategy",
            Self::Cancelled => "resume the run: branches with an answer keep it",
            Self::Other(_) => "use another strategy, or fix this one",
        }
    }
}
