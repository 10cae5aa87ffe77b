//! The [`Agent`] trait.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use crate::{
    config::{RunConfig, Spending},
    log::{Journal, Outcome},
    models::ResponseFormat,
    values::RunId,
};

use super::context::Context;

/// An agent, which works on tasks: a ReAct agent, a planning agent, a team or a remote agent.
///
/// ```
/// use archon_types::{Agent, BoxFuture, Context, Outcome, OutcomeStatus};
///
/// /// Answers every task with the same text.
/// struct Always(&'static str);
///
/// impl Agent for Always {
///     fn name(&self) -> &str {
///         "always"
///     }
///
///     fn run<'a>(&'a self, _task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
///         let outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished).with_answer(self.0);
///         Box::pin(std::future::ready(outcome))
///     }
/// }
/// ```
pub trait Agent: Send + Sync {
    /// Returns the name of the agent, which people see and by which other agents delegate work to it.
    fn name(&self) -> &str;

    /// Works on the task until there is an outcome. A failure is an outcome too.
    ///
    /// If `context` has a [`delegation`](Context::delegation), the journal may already have the run, from before
    /// a crash. Resume the run in this case: work that has ended must not be repeated.
    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome>;

    /// Returns the configuration of the agent's runs. A run that calls the agent logs the configuration, so
    /// that another process can build the same agent and resume the run. Default: `None`; then only a program
    /// that already has this agent can resume the run.
    fn config(&self) -> Option<RunConfig> {
        None
    }

    /// Returns a copy of this agent that requests an answer in the format `form` from its provider. `None` if the
    /// provider does not support this; the calling run then describes the format in the task. In both cases the
    /// calling run checks the answer. Default: `None`.
    fn with_output_format(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        let _ = form;
        None
    }

    /// Computes the spending of a run of this agent that has no outcome yet, from the run's log in `journal`.
    /// Default: `None`; the whole lease of the run then counts as spent.
    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        let _ = (run, journal);
        Box::pin(std::future::ready(None))
    }
}

impl<A: Agent + ?Sized> Agent for Arc<A> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        (**self).run(task, context)
    }

    fn config(&self) -> Option<RunConfig> {
        (**self).config()
    }

    fn with_output_format(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        (**self).with_output_format(form)
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        (**self).spending_of(run, journal)
    }
}
