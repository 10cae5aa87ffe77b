//! The handle of a run under way, with its events, its cancellation and its reply.

use std::{pin::Pin, sync::Arc, task, task::Poll};

use archon_react_loop::ReactAgent;
use archon_types::{CancellationToken, Context, Event, MoreLimits, Outcome, Reply, RunId, SessionId};
use futures_core::Stream;
use futures_util::{StreamExt, future::ready};
use tokio::task::JoinHandle;

use crate::{
    Archon, RunError, RunOptions,
    watch::{self, EventStream},
};

/// A run under way, as a stream of its events. Dropping the handle cancels the run.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, RunOptions, providers::ScriptedProvider};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// let model = Arc::new(ScriptedProvider::texts(["Done."]));
/// let agent = Archon::builder().provider(model, "scripted").build()?;
/// let run = agent.start("Tidy up", RunOptions::default()).await?;
/// println!("{} works", run.run_id());
/// assert_eq!(run.text().await?, "Done.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RunHandle {
    pub(crate) archon: Archon,
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    pub(crate) cancel: CancellationToken,
    pub(crate) events: EventStream,
    pub(crate) task: Option<JoinHandle<Result<Outcome, RunError>>>,
}

impl Archon {
    /// Starts a run for a task in the background and returns at once. If the options name a session, the run also
    /// takes over what the last run of the session left unread in its inbox: messages, a change of the mode, and a
    /// request to compact. A branch of the session takes over only the mode.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// use archon::RunOptions;
    ///
    /// let run = agent.start("Tidy up", RunOptions::default()).await?;
    /// println!("{} works", run.run_id());
    /// println!("{}", run.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::SessionBusy`] if the newest run of the session is at work or suspended;
    /// [`RunError::UnknownTool`] or [`RunError::ToolNotKnownYet`] if `options` name a tool that the agent does not
    /// have, or does not have yet; or the journal cannot be listed.
    pub async fn start(
        &self,
        task: impl Into<String>,
        mut options: RunOptions,
    ) -> Result<RunHandle, RunError> {
        let own = self.for_run(options.settings())?;
        let (context, origin, opening, unread) = own.prepare_task(task, options).await?;
        let archon = own.clone();
        Ok(own.spawn(context, |_, context| async move {
            archon.begin_with(opening, origin, unread, &context).await
        }))
    }

    /// Resumes a run from the end of its log: after a crash, a cancel or a failure. The run of a plan is resumed by
    /// its planning agent. A run that has finished cannot be resumed. But with a memory (`ArchonBuilder::memory`),
    /// the reply is then the outcome of that run, after the memory has stored its messages.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, id: &str) -> Result<(), archon::RunError> {
    /// println!("{}", agent.resume(id.into()).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run is unknown. The reply of the handle is an error if the run is in use, is the run of a plan, or
    /// has ended and there is no memory.
    pub async fn resume(&self, run: RunId) -> Result<RunHandle, RunError> {
        self.resume_with(run, MoreLimits::default()).await
    }

    /// Resumes a run with larger limits, so that a run that ended at a limit of turns, tokens, time or money
    /// goes on; otherwise the same as [`resume`](Self::resume).
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, id: &str) -> Result<(), archon::RunError> {
    /// use archon::types::MoreLimits;
    ///
    /// let more = MoreLimits::default().with_max_turns(10);
    /// println!("{}", agent.resume_with(id.into(), more).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`resume`](Self::resume). The reply of the handle is an error if the run has reached a limit that
    /// still applies.
    pub async fn resume_with(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
        let context = self.context_of(run).await?;
        Ok(self.spawn(
            context,
            move |agent, context| async move { Ok(agent.resume_with(&more, &context).await?) },
        ))
    }

    pub(crate) fn spawn<F>(&self, context: Context, work: impl FnOnce(ReactAgent, Context) -> F) -> RunHandle
    where
        F: Future<Output = Result<Outcome, RunError>> + Send + 'static,
    {
        let (sink, events) = watch::channel();
        let (run, session, cancel) = (context.run.clone(), context.session.clone(), context.cancel.clone());
        let agent = self.agent.clone();
        let task = self.launch(context, Arc::new(sink), |context| work(agent, context));
        RunHandle { archon: self.clone(), run, session, cancel, events, task: Some(task) }
    }
}

impl RunHandle {
    /// Returns the id of the run, which [`Archon::resume`] takes.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Returns the session of the run. The options of the next prompt must name this session to continue it.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// use archon::RunOptions;
    ///
    /// let run = agent.start("Hello", RunOptions::default()).await?;
    /// let next = RunOptions::in_session(run.session_id().clone());
    /// run.text().await?;
    /// println!("{}", agent.start("Where were we?", next).await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// Returns a token that cancels the run.
    pub fn cancel_token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Steers the run; see [`Archon::steer`].
    ///
    /// ```
    /// # async fn example(run: archon::RunHandle) -> Result<(), archon::RunError> {
    /// run.steer("In French, please.").await?;
    /// println!("{}", run.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Archon::steer`].
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), RunError> {
        self.archon.steer(&self.run, text).await
    }

    /// Sends a follow-up to the run; see [`Archon::follow_up`].
    ///
    /// ```
    /// # async fn example(run: archon::RunHandle) -> Result<(), archon::RunError> {
    /// run.follow_up("Then translate it.").await?;
    /// println!("{}", run.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Archon::follow_up`].
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), RunError> {
        self.archon.follow_up(&self.run, text).await
    }

    /// Cancels the run. Its reply is then [`Reply::Cancelled`], and the run can be resumed.
    ///
    /// ```
    /// # async fn example(run: archon::RunHandle) -> Result<(), archon::RunError> {
    /// use archon::Reply;
    ///
    /// run.cancel();
    /// assert!(matches!(run.reply().await?, Reply::Cancelled(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a stream of the text of this run's answers as the model writes it, until the run ends; then
    /// call [`reply`](Self::reply). The stream leaves out the text of the run's tools and child runs.
    ///
    /// ```no_run
    /// use archon::{Archon, RunError, RunOptions};
    /// use futures_util::StreamExt;
    ///
    /// # async fn run(agent: Archon) -> Result<(), RunError> {
    /// let mut run = agent.start("Tell me a story", RunOptions::default()).await?;
    /// let mut pieces = run.text_stream();
    /// while let Some(piece) = pieces.next().await {
    ///     print!("{piece}");
    /// }
    /// drop(pieces);
    /// run.text().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn text_stream(&mut self) -> impl Stream<Item = String> + Send + Unpin + '_ {
        let run = self.run.clone();
        self.filter_map(move |event| {
            let is_own = *event.run() == run;
            ready(event.as_text().filter(|_| is_own).map(str::to_owned))
        })
    }

    /// Waits for the reply and returns the text of its answer: a short form of [`reply`](Self::reply) and
    /// [`Reply::into_text`]. Use [`text_stream`](Self::text_stream) for pieces of the text.
    ///
    /// # Errors
    /// As [`reply`](Self::reply), and [`RunError::NotFinished`] if the run ended at a limit, is suspended or
    /// was cancelled.
    pub async fn text(self) -> Result<String, RunError> {
        self.reply().await?.into_text()
    }

    /// Waits for the reply of the run. Unread events are dropped.
    ///
    /// ```
    /// # async fn example(run: archon::RunHandle) -> Result<(), archon::RunError> {
    /// use archon::Reply;
    ///
    /// match run.reply().await? {
    ///     Reply::Finished(answer) => println!("{answer}"),
    ///     Reply::Waiting(run) => println!("{} waits for a person", run.run()),
    ///     _ => println!("it has no answer"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Failed`] if the run failed. Another error if the run could not be started, or the journal
    /// failed.
    pub async fn reply(mut self) -> Result<Reply, RunError> {
        let lost = RunError::Lost { run: self.run.clone() };
        let Some(task) = self.task.take() else { return Err(lost) };
        let outcome = task.await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the task of a run ended without an outcome");
            Err(lost)
        })?;
        Reply::of(outcome)
    }
}

impl Stream for RunHandle {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Option<Event>> {
        Pin::new(&mut self.events).poll_next(task)
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if self.task.is_some() {
            self.cancel.cancel();
        }
    }
}
