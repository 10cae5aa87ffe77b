//! An agent made of one closure, for tests of code that starts, watches and resumes agents.

use std::{
    future::{Future, pending, ready},
    sync::Arc,
};

use archon_types::{Agent, BoxFuture, Context, Outcome, OutcomeStatus, Usage};

type Work = dyn Fn(String, Context) -> BoxFuture<'static, Outcome> + Send + Sync;

/// An agent whose work is a closure.
///
/// ```
/// use archon_testkit::FnAgent;
/// use archon_types::Agent;
///
/// let agent = FnAgent::saying("Sent.");
/// println!("{}", agent.name());
/// ```
#[derive(Clone)]
pub struct FnAgent(Arc<Work>);

impl FnAgent {
    /// Creates an agent around a closure that is given the task and the context.
    pub fn new<F, W>(work: W) -> Arc<Self>
    where
        F: Future<Output = Outcome> + Send + 'static,
        W: Fn(String, Context) -> F + Send + Sync + 'static,
    {
        Arc::new(Self(Arc::new(move |task, context| Box::pin(work(task, context)))))
    }

    /// Creates an agent that always answers `text`.
    pub fn saying(text: &str) -> Arc<Self> {
        let text = text.to_owned();
        Self::new(move |_, context| ready(answer(&context, &text)))
    }

    /// Creates an agent that answers with its task.
    pub fn echo() -> Arc<Self> {
        Self::new(|task, context| ready(answer(&context, &task)))
    }

    /// Creates an agent that never ends, even if it is cancelled.
    pub fn hanging() -> Arc<Self> {
        Self::new(|_, _| pending())
    }
}

impl Agent for FnAgent {
    fn name(&self) -> &str {
        "fn"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        (self.0)(task.to_owned(), context.clone())
    }
}

/// Makes the outcome of a run that answered `text` and used ten tokens.
pub fn answer(context: &Context, text: &str) -> Outcome {
    let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
    outcome.set_answer(text.to_owned());
    outcome.usage = Usage { input: 10, ..Usage::default() };
    outcome
}
