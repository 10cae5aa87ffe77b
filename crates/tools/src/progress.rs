//! Passes a running tool's progress to the run's watchers, and keeps the last partial result.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use archon_types::{
    CallId, Content, Context, Delta, DeltaKind, Event, OutputLevel, Progress, ToolResult, ToolResultStatus,
};

/// The last partial result of a call.
#[derive(Clone, Default)]
pub(crate) struct Partial(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last: Option<ToolResult>,
    /// True once the call has its result. Later progress is ignored: an async task that the tool started may
    /// still report some.
    is_over: bool,
}

/// When this value is dropped, the call's progress is no longer passed on.
pub(crate) struct Closing(Partial);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.state().is_over = true;
    }
}

impl Partial {
    /// Returns a function that passes the tool's progress to the run's watchers until the call is over, and
    /// keeps the last partial result.
    pub(crate) fn listener(&self, run: &Context, call: CallId) -> Arc<dyn Fn(Progress) + Send + Sync> {
        let (run, sink, partial) = (run.run.clone(), run.sink.clone(), self.clone());
        let sent = AtomicU64::new(0);
        Arc::new(move |progress| {
            // Locked until the event is sent, so that no progress comes after the call's end.
            let mut state = partial.state();
            if state.is_over {
                return;
            }
            let (offset, kind) = match progress {
                Progress::Text(text) => {
                    let offset = sent.fetch_add(text.len() as u64, Ordering::Relaxed);
                    (offset, DeltaKind::ToolProgress { call, text })
                }
                Progress::Partial(result) => {
                    state.last = Some(result.clone());
                    (0, DeltaKind::ToolPartialResult { call, result: Box::new(result) })
                }
            };
            let (run, command) = (run.clone(), call.command);
            sink.emit(Event::Delta(Delta { run, command, attempt: 0, offset, kind }));
        })
    }

    /// Returns a value whose drop stops the call's progress: the call's future may be dropped before the call
    /// ends.
    pub(crate) fn closed_at_end(&self) -> Closing {
        Closing(self.clone())
    }

    /// Adds the partial result to the result of a call that timed out.
    pub(crate) fn complete(&self, result: &mut ToolResult) {
        if result.status != ToolResultStatus::Timeout {
            return;
        }
        let Some(partial) = self.state().last.take() else { return };
        if partial.content.is_empty() {
            return;
        }
        result.content.push(Content::text("What there was until then:"));
        result.content.extend(partial.content);
        result.output_level = Some(OutputLevel::Brief);
        result.metadata.insert("partial".to_owned(), true.into());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
