//! Several agents at once: each works on the same task from the same conversation, and the session goes on
//! with the one that a strategy chooses.

use std::sync::Arc;

use archon_react_loop::{LlmJudge, ParallelOutcome};
use archon_types::{
    AgentMessage, EvaluationStrategy, ExecutionLimits, Message, Outcome, ParallelChoice, Reply, RunAgent,
    RunId, SessionId,
};

use crate::{Archon, RunError, RunOptions};

/// What came of agents that worked side by side.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParallelReply {
    /// The reply of the branch that was chosen, or why there is none.
    pub reply: Reply,
    /// The session, which goes on with the chosen branch.
    pub session: SessionId,
    /// How each branch ended, in the order of the agents.
    pub branches: Vec<Outcome>,
    /// Which branch was chosen, and why.
    pub choice: ParallelChoice,
}

impl ParallelReply {
    fn of(outcome: ParallelOutcome) -> Result<Self, RunError> {
        let ParallelOutcome { session, branches, choice, .. } = outcome;
        Ok(Self { reply: Reply::of(choice.outcome.clone())?, session, branches, choice })
    }

    /// How the branch ended that was chosen, if one was.
    pub fn selected(&self) -> Option<&Outcome> {
        self.branches.get(usize::try_from(self.choice.selected?).ok()?)
    }
}

/// Agents that work side by side; made by [`Archon::parallel`].
#[derive(Clone, Debug)]
pub struct Parallel {
    archon: Archon,
    branches: archon_react_loop::Parallel,
}

impl Archon {
    /// Agents that work on a task side by side, with `strategy` to choose among them. The runs of all are
    /// kept in this agent's journal; it is itself a branch only if it is among them.
    ///
    /// Each branch keeps its own model, instructions and tools, and its own limits as far as these go. The
    /// branches share the limits of this agent: each has an equal part of its tokens and its money, and all of
    /// its time. What a strategy takes that asks a model comes on top. Tools that change the world do so
    /// in every branch. A branch that is [`answering`](Self::answering) in a form answers in it; if this agent is, all
    /// do. [`ParallelReply::typed`] reads the chosen answer as a value.
    ///
    /// # Errors
    /// There is no branch, or the strategy cannot choose among so many.
    pub fn parallel(
        &self,
        branches: impl IntoIterator<Item = Archon>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Parallel, RunError> {
        let in_form = |branch: Archon| match self.form() {
            Some(form) => branch.answering(form).agent,
            None => branch.agent,
        };
        let agents = branches.into_iter().map(in_form).collect();
        let branches = archon_react_loop::Parallel::new(self.journal.clone(), agents, strategy)?
            .with_limits(self.agent.options().limits.clone());
        Ok(Parallel { archon: self.clone(), branches })
    }

    /// A strategy that asks this agent's model which branch is best, with this agent's instructions, if it
    /// has any, and within its context window.
    pub fn judge(&self) -> LlmJudge {
        self.agent.judge()
    }
}

impl Parallel {
    /// The agents as a [`Runs`](crate::Runs) service has them: starts and resumes parallel loops by their ids.
    pub fn run_agent(&self) -> Arc<dyn RunAgent> {
        Arc::new(self.clone())
    }

    /// Says a task to every branch, in a session of its own, and waits until one is chosen.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with).
    pub async fn run(&self, task: impl Into<String>) -> Result<ParallelReply, RunError> {
        self.run_with(task, RunOptions::default()).await
    }

    /// Says a task to every branch and waits until one is chosen; from then on the session of `options` goes
    /// on with that branch. The run of `options` names the parallel loop, its token stops all branches, and
    /// its sink hears of all of them.
    ///
    /// A branch that fails does not disturb the others. If none has an answer, or the loop was cancelled, the session
    /// stands where it stood. If none has an answer and one waits for a person, the reply is [`Reply::Waiting`].
    ///
    /// # Errors
    /// [`RunError::Failed`]: no branch has an answer, or none was chosen; of which kind, if all failed in the same way. Or
    /// the session of `options` has no run, or the journal failed.
    pub async fn run_with(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<ParallelReply, RunError> {
        let prompt = Message::user(task, self.archon.clock.now()).into();
        self.begin(vec![prompt], options).await
    }

    /// Lets every branch answer what the session ends with, without a new prompt: after a failure, or a
    /// fork.
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

    /// Takes up a parallel loop that was cut off, was cancelled or had no answer. The branches have to be
    /// as many, and in the order, as when it was started.
    ///
    /// # Errors
    /// The run is unknown, is in use, has an answer, is no parallel loop or has other branches, or the
    /// journal failed.
    pub async fn resume(&self, run: RunId, options: RunOptions) -> Result<ParallelReply, RunError> {
        options.refuse_settings()?;
        options.refuse_place("a run that is resumed")?;
        let context = self.archon.context(run, SessionId::new(""), options);
        ParallelReply::of(self.branches.resume(&context).await?)
    }

    async fn begin(
        &self,
        prompts: Vec<AgentMessage>,
        mut options: RunOptions,
    ) -> Result<ParallelReply, RunError> {
        options.refuse_settings()?;
        let branches = self.limited(options.settings().limits);
        let (context, origin) = self.archon.prepare(options).await?;
        ParallelReply::of(branches.begin(prompts, origin, &context).await?)
    }

    pub(crate) fn archon(&self) -> &Archon {
        &self.archon
    }

    pub(crate) fn branches(&self) -> &archon_react_loop::Parallel {
        &self.branches
    }

    /// The branches of one run that has these limits, if it has its own.
    pub(crate) fn limited(&self, limits: Option<ExecutionLimits>) -> archon_react_loop::Parallel {
        let branches = self.branches.clone();
        match limits {
            Some(limits) => branches.with_limits(limits),
            None => branches,
        }
    }
}
