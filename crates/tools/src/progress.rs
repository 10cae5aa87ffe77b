//! What a tool says before it is done: passed on to those who watch, the last of it kept.

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
    /// The call has its result. A task that its tool left behind may still speak.
    is_over: bool,
}

/// Closes what a call says, however the call ends.
pub(crate) struct Closing(Partial);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Partial {
    /// Lets those who watch the run hear what the tool says until the call is over, and keeps partial results.
    pub(crate) fn listener(&self, run: &Context, call: CallId) -> Arc<dyn Fn(Progress) + Send + Sync> {
        let (run, sink, kept) = (run.run.clone(), run.sink.clone(), self.clone());
        let said = AtomicU64::new(0);
        Arc::new(move |progress| {
            // Held until the watchers have it: nothing of a call comes after its end.
            let mut state = kept.state();
            if state.is_over {
                return;
            }
            let (offset, kind) = match progress {
                Progress::Text(text) => {
                    (said.fetch_add(text.len() as u64, Ordering::Relaxed), DeltaKind::Progress { call, text })
                }
                Progress::Partial(result) => {
                    state.last = Some(result.clone());
                    (0, DeltaKind::Partial { call, result: Box::new(result) })
                }
            };
            sink.emit(Event::Delta(Delta {
                run: run.clone(),
                command: call.command,
                attempt: 0,
                offset,
                kind,
            }));
        })
    }

    /// The call is over: what its tool says from now on nobody hears.
    fn close(&self) {
        self.state().is_over = true;
    }

    /// Closes when it is dropped: a call may be dropped before its end.
    pub(crate) fn closed_at_end(&self) -> Closing {
        Closing(self.clone())
    }

    /// Adds what there was to a call that ran out of time.
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
