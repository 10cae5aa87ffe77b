//! What a tool says before it is done: passed on to those who watch, the last of it kept.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use archon_types::{
    CallId, Content, Context, Delta, DeltaKind, Event, OutputLevel, Progress, ToolResult, ToolResultStatus,
};

/// The last partial result of a call.
#[derive(Clone, Default)]
pub(crate) struct Partial(Arc<Mutex<Option<ToolResult>>>);

impl Partial {
    /// Lets those who watch the run hear what the tool says, and keeps partial results.
    pub(crate) fn listener(&self, run: &Context, call: CallId) -> Arc<dyn Fn(Progress) + Send + Sync> {
        let (run, sink, kept) = (run.run.clone(), run.sink.clone(), self.clone());
        let said = AtomicU64::new(0);
        Arc::new(move |progress| {
            let (offset, kind) = match progress {
                Progress::Text(text) => {
                    (said.fetch_add(text.len() as u64, Ordering::Relaxed), DeltaKind::Progress { call, text })
                }
                Progress::Partial(result) => {
                    kept.keep(&result);
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

    /// Adds what there was to a call that ran out of time.
    pub(crate) fn complete(&self, result: &mut ToolResult) {
        if result.status != ToolResultStatus::Timeout {
            return;
        }
        let Some(partial) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if partial.content.is_empty() {
            return;
        }
        result.content.push(Content::text("What there was until then:"));
        result.content.extend(partial.content);
        result.output_level = Some(OutputLevel::Brief);
        result.metadata.insert("partial".to_owned(), true.into());
    }

    fn keep(&self, result: &ToolResult) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.clone());
    }
}
