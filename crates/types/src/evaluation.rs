//! Choosing among branches: what a strategy is given, and what it says.
//!
//! A parallel loop runs several configurations side by side from one conversation, each as a run of its
//! own. A strategy then says whose conversation the session goes on with.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{AgentMessage, Context, LoopId, Message, Outcome, RunId, Usage};

/// Chooses one of the branches that came to an answer.
pub trait EvaluationStrategy: Send + Sync {
    /// A short lower-case name, for logs.
    fn name(&self) -> &str;

    /// Chooses. There is at least one branch, and the context's token ends a choice that takes time.
    fn evaluate<'a>(
        &'a self,
        evaluation: Evaluation<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Verdict, EvaluationError>>;

    /// What the choice may cost if a model is asked for it, in millionths of a currency unit, 0 where its
    /// tokens have no price. That much counts as spent if the process dies meanwhile. By default no model is
    /// asked.
    fn estimate(&self, evaluation: &Evaluation<'_>) -> Option<u64> {
        let _ = evaluation;
        None
    }

    /// Whether it can choose among so many branches; asked before any of them starts. By default any.
    ///
    /// # Errors
    /// It cannot.
    fn accepts(&self, branches: usize) -> Result<(), EvaluationError> {
        let _ = branches;
        Ok(())
    }
}

/// What there is to choose from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// What was said to every branch; empty where they answered what the conversation ends with.
    pub prompts: &'a [AgentMessage],
    /// The conversation that all branches began with, oldest first.
    pub conversation: &'a [Arc<Message>],
    /// The branches that have an answer, in the order of their configurations.
    pub branches: &'a [BranchResult],
}

impl<'a> Evaluation<'a> {
    /// A choice among `branches`.
    pub fn new(
        prompts: &'a [AgentMessage],
        conversation: &'a [Arc<Message>],
        branches: &'a [BranchResult],
    ) -> Self {
        Self { prompts, conversation, branches }
    }
}

/// What one branch came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BranchResult {
    /// Which configuration it worked with, from 0.
    pub config: usize,
    /// How it ended; its usage is the branch's alone.
    pub outcome: Outcome,
    /// All that it added to the conversation, the prompts included.
    pub messages: Vec<AgentMessage>,
}

impl BranchResult {
    /// The result of the branch with configuration `config`.
    pub fn new(config: usize, outcome: Outcome, messages: Vec<AgentMessage>) -> Self {
        Self { config, outcome, messages }
    }
}

/// What a strategy says.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Place of the chosen one in [`Evaluation::branches`], from 0.
    pub selected: usize,
    /// Tokens that the choice took.
    pub usage: Usage,
    /// What they cost, in millionths of a currency unit; unknown where tokens have no price.
    pub cost: Option<u64>,
    /// Why, as far as the strategy says.
    pub reason: Option<String>,
    /// What people should know about how the choice was made.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// A choice that took no tokens.
    pub fn select(selected: usize) -> Self {
        Self { selected, cost: Some(0), ..Self::default() }
    }
}

/// Why a strategy chose nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// There are more branches than it can choose from.
    #[error("the strategy {strategy} takes {max} branch at most and there are {branches}")]
    TooMany {
        /// [`EvaluationStrategy::name`].
        strategy: String,
        /// The most that it takes.
        max: usize,
        /// How many there are.
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
    /// What a person can do about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "give it fewer branches, or use another strategy",
            Self::Cancelled => "resume the run: branches with an answer keep it",
            Self::Other(_) => "use another strategy, or mend this one",
        }
    }
}

/// A branch of a parallel loop, as the loop's log names it before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelBranch {
    /// The branch's run.
    pub run: RunId,
    /// The run's display name.
    pub loop_id: LoopId,
}

/// How a parallel loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ParallelChoice {
    /// Who chose: [`EvaluationStrategy::name`].
    pub strategy: String,
    /// The configuration whose branch was chosen, from 0; none if there was nothing to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
    /// Tokens that the choice took.
    pub usage: Usage,
    /// Why, as far as the strategy said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What people should know about how the choice was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The chosen branch's answer under the parallel loop's own run. Its usage and its cost are those of
    /// all branches and of the choice.
    pub outcome: Outcome,
}

impl ParallelChoice {
    /// No branch was chosen.
    pub fn none(strategy: impl Into<String>, outcome: Outcome) -> Self {
        Self {
            strategy: strategy.into(),
            selected: None,
            usage: Usage::default(),
            reason: None,
            warnings: Vec::new(),
            outcome,
        }
    }
}
