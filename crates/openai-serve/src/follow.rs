//! A run that a request waits for, from its start to its end.

use std::sync::Arc;

use archon_types::{RunId, Watch};
use axum::http::StatusCode;
use futures_util::StreamExt;

use crate::{
    ending::Ending,
    error::ApiError,
    guard::Guard,
    shared::Shared,
    transcript::{Phase, Piece, Transcript},
};

/// A run that a request waits for.
pub(crate) struct Followed {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: RunId,
    pub(crate) transcript: Transcript,
    /// The events of the run; `None` once the run has ended or waits.
    events: Option<Watch>,
    guard: Guard,
    is_over: bool,
}

/// The next thing to send.
pub(crate) enum Step {
    Said(Vec<Piece>),
    /// The last pieces, and the end of the run.
    Ended(Vec<Piece>, Box<Ending>),
}

impl Followed {
    pub(crate) fn new(
        shared: Arc<Shared>,
        events: Watch,
        transcript: Transcript,
        guard: Guard,
        run: RunId,
    ) -> Self {
        Self { shared, run, transcript, events: Some(events), guard, is_over: false }
    }

    /// Returns the next step; `None` after the end or an error. It is cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Result<Step, ApiError>> {
        if self.is_over {
            return None;
        }
        let end = self.shared.options.end.clone();
        let step = tokio::select! {
            biased;
            step = self.next_step() => Some(step),
            () = end.cancelled() => None,
        };
        let step = step.unwrap_or_else(|| Err(self.server_ends()));
        self.is_over = !matches!(step, Ok(Step::Said(_)));
        Some(step.map_err(|error| error.of_run(&self.run)))
    }

    /// Waits for the end of the run.
    pub(crate) async fn wait(&mut self) -> Result<Ending, ApiError> {
        loop {
            match self.next().await {
                Some(Ok(Step::Said(_))) => {}
                Some(Ok(Step::Ended(_, ending))) => return Ok(*ending),
                Some(Err(error)) => return Err(error),
                None => return Err(self.server_ends()),
            }
        }
    }

    /// Stops following the run. The run continues.
    pub(crate) fn leave(&mut self) {
        self.guard.disarm();
        self.is_over = true;
    }

    async fn next_step(&mut self) -> Result<Step, ApiError> {
        loop {
            let Some(events) = &mut self.events else { return self.finish().await };
            match events.next().await {
                Some(Ok(event)) => {
                    let pieces = self.transcript.apply(&event);
                    if !pieces.is_empty() {
                        return Ok(Step::Said(pieces));
                    }
                }
                // The service has stopped the run; a cancel would take it up again.
                Some(Err(error)) => {
                    self.guard.disarm();
                    return Err(error.into());
                }
                None => {
                    self.guard.disarm();
                    self.events = None;
                }
            }
        }
    }

    async fn finish(&mut self) -> Result<Step, ApiError> {
        let ending = Ending::of(&*self.shared.runs, &self.run).await?;
        let mut pieces = self.transcript.finish(&ending.outcome);
        if let Some(notice) = &ending.notice {
            pieces.extend(self.transcript.say(notice, Phase::Commentary));
        }
        Ok(Step::Ended(pieces, Box::new(ending)))
    }

    fn server_ends(&self) -> ApiError {
        let message = format!(
            "The server ends. Run {run} goes on, here or after the next start: GET /v1/responses/resp_{run} \
             has its answer.",
            run = self.run
        );
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_ends", message).of_run(&self.run)
    }
}
