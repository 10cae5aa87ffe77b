//! The counterpart of the run service: an agent of one kind, whose runs a service starts and resumes.

use futures_core::future::BoxFuture;

use crate::{
    config::{MoreLimits, RunKind},
    log::{Origin, Outcome, PendingApproval},
    messages::AgentMessage,
    tools::Answer,
    values::{AgentId, RunId},
};

use super::{
    context::Context,
    fork::{Fork, ForkOptions},
    run_error::RunError,
    start_run::RunSettings,
};

/// An agent of one kind whose runs a service starts and resumes.
///
/// The log of a run has all data that the agent needs to resume the run. For a run that failed, these methods return
/// its outcome and not an error; the service turns the outcome into a [`RunError`].
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     AgentId, AgentMessage, BoxFuture, Context, MoreLimits, Origin, Outcome, RunAgent, RunError, RunKind,
///     RunSettings,
/// };
///
/// /// Prints the runs of another agent. The methods with a default should be passed on too.
/// struct Printed(Arc<dyn RunAgent>);
///
/// impl RunAgent for Printed {
///     fn kind(&self) -> RunKind {
///         self.0.kind()
///     }
///
///     fn id(&self) -> AgentId {
///         self.0.id()
///     }
///
///     fn begin<'a>(
///         &'a self,
///         prompts: Vec<AgentMessage>,
///         origin: Origin,
///         settings: RunSettings,
///         context: &'a Context,
///     ) -> BoxFuture<'a, Result<Outcome, RunError>> {
///         println!("{} begins", context.run);
///         self.0.begin(prompts, origin, settings, context)
///     }
///
///     fn resume<'a>(
///         &'a self,
///         more: &'a MoreLimits,
///         context: &'a Context,
///     ) -> BoxFuture<'a, Result<Outcome, RunError>> {
///         println!("{} is resumed", context.run);
///         self.0.resume(more, context)
///     }
/// }
/// ```
pub trait RunAgent: Send + Sync {
    /// Returns the kind of the agent's runs.
    fn kind(&self) -> RunKind;

    /// Returns the id of the agent. The logs of its runs name this id, so that a service can resume the runs.
    fn id(&self) -> AgentId;

    /// Starts the run that `context` names, and works on it until it ends or is suspended.
    ///
    /// # Errors
    /// The run could not be started or logged, or `settings` has a setting that runs of this kind do not support.
    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Resumes the run that `context` names. The run goes on at the end of its log, with the larger limits of
    /// `more`.
    ///
    /// # Errors
    /// The run cannot be resumed.
    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Starts the run that `context` names. This run only compacts the conversation that `origin` continues.
    /// `instructions` are a person's instructions for the summary. Default: an error, for runs without a
    /// conversation of their own.
    ///
    /// # Errors
    /// The run could not be started or logged, or runs of this kind have no conversation.
    fn compact<'a>(
        &'a self,
        origin: Origin,
        instructions: Option<String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>> {
        let _ = (origin, instructions);
        let error = RunError::Unsupported {
            run: context.run.clone(),
            kind: self.kind(),
            action: "be compacted",
            instead: "send a message to the session, and compact it then",
        };
        Box::pin(std::future::ready(Err(error)))
    }

    /// Creates a fork of `run`: writes the first records of the new run that `context` names, but does not start
    /// the new run. The input filters of this agent check the message of the fork. If [`ForkOptions::agent`] is
    /// set, to whatever id, the new run has the configuration of this agent; otherwise it has the configuration
    /// in the log of `run`. Default: an error, for runs without turns.
    ///
    /// # Errors
    /// `run` has no such place, the message is empty, the agent cannot start a run, or the journal failed.
    fn fork<'a>(
        &'a self,
        run: &'a RunId,
        options: ForkOptions,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Fork, RunError>> {
        let _ = (options, context);
        let error = RunError::Unsupported {
            run: run.clone(),
            kind: self.kind(),
            action: "be forked by this agent",
            instead: "fork it without a message and an agent, and send a prompt to its session",
        };
        Box::pin(std::future::ready(Err(error)))
    }

    /// Checks an answer to a question before it is stored, for instance changed arguments against the tool's
    /// schema, or a changed plan. Default: accepts every answer.
    ///
    /// # Errors
    /// The answer is invalid; the question stays open.
    fn check_answer<'a>(
        &'a self,
        pending: &'a PendingApproval,
        answer: &'a Answer,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        let _ = (pending, answer, context);
        Box::pin(std::future::ready(Ok(())))
    }
}
