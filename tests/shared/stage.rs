//! A stage for scenarios: an agent with a model and tools that follow a script, and all that can be seen of its runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, ArchonBuilder, Journal, Outcome, RunId, RunOptions, Tool, ToolContext, ToolError, ToolResult,
    store::InMemoryJournal,
    tools::{FnTool, builtin},
    types::{
        Effect, Event, Json, ModelEvent, ProviderError, Record, RecordBody, Request, ToolAnnotations,
        ToolCall, ToolSpec,
    },
    views::{AgentEvent, AgentEvents},
};
use archon_testkit::{Ended, FnProvider, RecordingSink, SeededIds, VirtualClock};
use serde_json::json;

pub(crate) type Answer = Vec<Result<ModelEvent, ProviderError>>;

/// Everything that a scenario looks at.
pub(crate) struct Stage {
    pub(crate) journal: InMemoryJournal,
    pub(crate) model: FnProvider,
    pub(crate) sink: RecordingSink,
    builder: ArchonBuilder,
}

impl Stage {
    /// A calculator, and a model that answers so to the n-th request, from 0.
    pub(crate) fn new(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let (journal, model) = (InMemoryJournal::new(), FnProvider::new(answer));
        let builder = Archon::builder()
            .provider(Arc::new(model.clone()), "scripted")
            .tool(builtin::Calculator::new())
            .journal(Arc::new(journal.clone()))
            .clock(Arc::new(VirtualClock::new()))
            .ids(Arc::new(SeededIds::new(1)));
        Self { journal, model, sink: RecordingSink::new(), builder }
    }

    /// The same stage with one more part.
    pub(crate) fn with(mut self, change: impl FnOnce(ArchonBuilder) -> ArchonBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// The agent, and what remains to look at.
    pub(crate) fn raise(self) -> Show {
        let agent = self.builder.build().expect("an agent");
        Show { agent, journal: self.journal, model: self.model, sink: self.sink }
    }

    /// Plays one task to its end.
    pub(crate) async fn play(self, task: &str) -> (Outcome, Show) {
        let show = self.raise();
        let outcome = show.says(task, RunOptions::default()).await;
        (outcome, show)
    }
}

/// A stage on which something was played.
pub(crate) struct Show {
    pub(crate) agent: Archon,
    pub(crate) journal: InMemoryJournal,
    pub(crate) model: FnProvider,
    pub(crate) sink: RecordingSink,
}

impl Show {
    pub(crate) async fn says(&self, task: &str, options: RunOptions) -> Outcome {
        let options = options.watched_by(Arc::new(self.sink.clone()));
        self.agent.run_with(task, options).await.ended()
    }

    /// The log of a run.
    pub(crate) async fn journal_log(&self, run: &RunId) -> Vec<Arc<Record>> {
        self.journal.read(run).await.expect("a log")
    }

    /// The text of every tool result, in order.
    pub(crate) fn results(&self) -> Vec<String> {
        let result = |body: RecordBody| match body {
            RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
                Some(result.text())
            }
            _ => None,
        };
        self.bodies().into_iter().filter_map(result).collect()
    }

    pub(crate) fn bodies(&self) -> Vec<RecordBody> {
        self.sink.records().iter().map(|record| record.body.clone()).collect()
    }
}

/// A tool that only reads, and how often it ran.
pub(crate) fn reads(
    name: &str,
    answer: impl Fn(usize, Json) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let mut annotations = ToolAnnotations::default();
    annotations.effect = Effect::ReadOnly;
    acts(name, annotations, answer)
}

/// A tool with these annotations, and how often it ran.
pub(crate) fn acts(
    name: &str,
    annotations: ToolAnnotations,
    answer: impl Fn(usize, Json) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let spec = ToolSpec::new(name, format!("Does {name}."), json!({"type": "object"}));
    let (runs, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let count = runs.clone();
    let work = move |arguments: Json, _: ToolContext| {
        let (n, answer) = (count.fetch_add(1, Ordering::SeqCst), answer.clone());
        async move { answer(n, arguments) }
    };
    (Arc::new(FnTool::new(spec.with_annotations(annotations), work)), runs)
}

pub(crate) fn call(id: &str, name: &str, arguments: Json) -> Answer {
    FnProvider::calls(vec![ToolCall::new(id, name, arguments)])
}

/// How many milliseconds lie between two moments of a virtual clock.
pub(crate) fn millis(between: Duration) -> u64 {
    u64::try_from(between.as_millis()).expect("a short time")
}

/// The names of the events that an interface sees, a line each; the same one in a row counts once.
pub(crate) fn names(events: &[Event]) -> String {
    let mut projection = AgentEvents::new();
    let named = events.iter().flat_map(|e| projection.push(e)).map(|e| match e {
        AgentEvent::MessageStart { message, .. } => format!("MessageStart({})", role(&message)),
        AgentEvent::MessageEnd { message, .. } => format!("MessageEnd({})", role(&message)),
        other => {
            let value = serde_json::to_value(&other).expect("an event is JSON");
            value["type"].as_str().expect("a type").to_owned()
        }
    });
    let mut lines: Vec<String> = named.collect();
    lines.dedup();
    lines.join("\n")
}

fn role(message: &archon::types::AgentMessage) -> String {
    let value = serde_json::to_value(message).expect("a message is JSON");
    value["role"].as_str().expect("a role").to_owned()
}
