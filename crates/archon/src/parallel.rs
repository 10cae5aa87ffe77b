//! Parallel loops: several agents work on the same task from the same conversation, and the session continues
//! with the branch that a strategy selects.

use std::sync::Arc;

use archon_react_loop::{LlmJudge, ParallelOutcome};
use archon_types::{
    AgentMessage, EvaluationStrategy, ExecutionLimits, Message, Outcome, ParallelChoice, Reply, RunAgent,
    RunHead, RunId, SessionId,
};

use crate::{Archon, RunError, RunOptions};

/// The result of a parallel loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParallelReply {
    /// The reply of the selected branch, or of the parallel loop if no branch was selected.
    pub reply: Reply,
    /// The session, which continues with the selected branch.
    pub session: SessionId,
    /// The outcome of each branch, in the order in which [`Archon::parallel`] got the agents.
    pub branches: Vec<Outcome>,
    /// The selected branch, and the reason for the choice.
    pub choice: ParallelChoice,
}

impl ParallelReply {
    fn of(outcome: ParallelOutcome) -> Result<Self, RunError> {
        let ParallelOutcome { session, branches, choice, .. } = outcome;
        Ok(Self { reply: Reply::of(choice.outcome.clone())?, session, branches, choice })
    }

    /// Returns the outcome of the selected branch; `None` if no branch was selected.
    pub fn selected(&self) -> Option<&Outcome> {
        self.branches.get(usize::try_from(self.choice.selected?).ok()?)
    }
}

/// A parallel loop: several agents work on the same task, and a strategy selects one answer. [`Archon::parallel`]
/// creates it.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, providers::ScriptedProvider, react_loop::PickFirst};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// let model = |text| Arc::new(ScriptedProvider::texts([text]));
/// let short = Archon::builder().provider(model("42"), "scripted").build()?;
/// let long = Archon::builder().provider(model("It is 42."), "scripted").build()?;
/// let both = short.parallel([short.clone(), long], Arc::new(PickFirst))?;
/// let found = both.run("What is 6 * 7?").await?;
/// assert_eq!(found.branches.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Parallel {
    archon: Archon,
    branches: archon_react_loop::ParallelLoop,
}

impl Archon {
    /// Creates a parallel loop: each agent of `branches` works on the task, and `strategy` selects one of their
    /// answers. All runs are in this agent's journal. This agent is a branch only if `branches` contains it.
    ///
    /// Each branch has its own model, instructions, tools and limits. The limits of this agent apply to all branches
    /// together: each branch gets an equal share of the token limit and the cost limit, and the whole time limit. The
    /// model calls of a strategy do not count. Side effects of tools happen in every branch, also in branches that are
    /// not selected. A branch with structured output ([`answering`](Self::answering)) uses its own schema; if this
    /// agent has a schema, all branches use that. [`ParallelReply::typed`] reads the selected answer as a value.
    ///
    /// # Errors
    /// There is no branch, or the strategy cannot select among this number of branches.
    pub fn parallel(
        &self,
        branches: impl IntoIterator<Item = Archon>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Parallel, RunError> {
        let in_form = |branch: Archon| match self.output_schema() {
            Some(form) => branch.answering(form).agent,
            None => branch.agent,
        };
        let agents = branches.into_iter().map(in_form).collect();
        let branches = archon_react_loop::ParallelLoop::new(self.journal.clone(), agents, strategy)?
            .with_limits(self.agent.options().limits.clone());
        Ok(Parallel { archon: self.clone(), branches })
    }

    /// Returns a strategy that asks this agent's model for the best branch, with this agent's instructions
    /// and context window.
    pub fn judge(&self) -> LlmJudge {
        self.agent.judge()
    }
}

impl Parallel {
    /// Returns the parallel loop in the form that a [`Runs`](crate::Runs) service registers. The service
    /// finds the loop by the agent id of its first branch.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Gives a task to every branch, in a new session, and waits until a branch is selected.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with).
    pub async fn run(&self, task: impl Into<String>) -> Result<ParallelReply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// Gives a task to every branch and waits until a branch is selected; then the session of `options`
    /// continues with that branch. Of `options`, `run` is the id of the parallel loop, the cancellation
    /// token cancels all branches, and the sink gets the events of all branches.
    ///
    /// A branch that fails does not affect the others. If no branch has an answer, or the loop was cancelled,
    /// the session continues from its previous point. If no branch has an answer and one waits for a person,
    /// the reply is [`Reply::Waiting`].
    ///
    /// # Errors
    /// [`RunError::Failed`] if no branch has an answer, or none was selected; the error has the kind of
    /// failure if all branches failed in the same way. Another error if the session of `options` is busy, or
    /// the journal failed.
    pub async fn run_with(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<ParallelReply, RunError> {
        let prompt = Message::user(task, self.archon.clock.now()).into();
        self.begin(vec![prompt], options).await
    }

    /// Lets every branch answer the last message of `session`, after a failure or a fork. `session` replaces the
    /// session in `options`.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with).
    pub async fn continue_in(
        &self,
        session: SessionId,
        mut options: RunOptions,
    ) -> Result<ParallelReply, RunError> {
        options.session = Some(session);
        self.begin(Vec::new(), options).await
    }

    /// Resumes a parallel loop that was cut off, was cancelled or had no answer. The number and the order of
    /// the branches must be the same as at its start.
    ///
    /// # Errors
    /// The run is unknown, is in use, has an answer, is not a parallel loop or has other branches, or the
    /// journal failed.
    pub async fn resume(&self, run: RunId, options: RunOptions) -> Result<ParallelReply, RunError> {
        options.refuse_settings()?;
        options.refuse_place("a run that is resumed")?;
        let head = RunHead::of(run.clone(), &self.archon.journal.read(&run).await?);
        let context = self.archon.context(run, head.session.unwrap_or_else(|| SessionId::new("")), options);
        let work = |context| async move { self.branches.resume(&context).await };
        ParallelReply::of(self.archon.work(context, work).await?)
    }

    async fn begin(
        &self,
        prompts: Vec<AgentMessage>,
        mut options: RunOptions,
    ) -> Result<ParallelReply, RunError> {
        options.refuse_settings()?;
        let branches = self.limited(options.settings().limits);
        let (context, origin) = self.archon.prepare(options).await?;
        let work = |context| async move { branches.begin(prompts, origin, &context).await };
        ParallelReply::of(self.archon.work(context, work).await?)
    }

    pub(crate) fn archon(&self) -> &Archon {
        &self.archon
    }

    pub(crate) fn branches(&self) -> &archon_react_loop::ParallelLoop {
        &self.branches
    }

    /// Returns the parallel loop, with `limits` for all its branches together if `limits` are given.
    pub(crate) fn limited(&self, limits: Option<ExecutionLimits>) -> archon_react_loop::ParallelLoop {
        let branches = self.branches.clone();
        match limits {
            Some(limits) => branches.with_limits(limits),
            None => branches,
        }
    }
}
