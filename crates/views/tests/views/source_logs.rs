//! The logs that the sources of a call's arguments are looked for in.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, ContinuationKind, Effect, Origin, PromptSource, Record, RecordBody, RunId, ToolResult,
};
use archon_views::SourceLogs;

use crate::{
    samples::{prompted, started},
    support::at,
};

fn log(run: &str, origin: Origin, bodies: Vec<RecordBody>) -> Vec<Arc<Record>> {
    let mut started = started();
    (started.run, started.origin) = (RunId::new(run), origin);
    let bodies = std::iter::once(RecordBody::RunStarted(Box::new(started))).chain(bodies);
    (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at: at(seq), body })).collect()
}

fn call(index: u32) -> CallId {
    CallId::new(CommandId(0), index)
}

// spec: AP-05
#[test]
fn sources_of_a_called_run_have_of_its_caller_what_came_before_the_call() {
    let result = |index, text: &str| {
        let result = Arc::new(ToolResult::success(text));
        RecordBody::ToolCallFinished { call: call(index), result }
    };
    let begins = RecordBody::ToolCallStarted {
        call: call(1),
        attempt: 0,
        effect: Effect::default(),
        child_run: Some("child".into()),
    };
    let caller = log("caller", Origin::Prompt, vec![result(0, "early.txt"), begins, result(2, "later.txt")]);
    let origin = Origin::CalledBy { run: "caller".into(), call: call(1) };
    let mut logs = SourceLogs::new(log("child", origin, vec![]));
    assert_eq!(logs.missing(), Some(&"caller".into()));
    logs.add(caller);
    assert_eq!(logs.missing(), None);
    let sources = logs.into_sources();
    assert!(sources.find("early.txt").is_some());
    assert_eq!(sources.find("later.txt"), None);
    let found = sources.of_arguments(&serde_json::json!({ "path": "early.txt" }));
    assert_eq!((&found[0].run, found[0].seq), (&"caller".into(), 1));
}

#[test]
fn sources_of_a_continued_run_have_the_records_that_it_continues() {
    let say = |text: &str| prompted(text, PromptSource::Prompt);
    let before = log("first", Origin::Prompt, vec![say("Read notes.txt."), say("Read plans.txt.")]);
    let origin =
        Origin::Continues { run: "first".into(), records: 2, continuation: ContinuationKind::Default };
    let mut logs = SourceLogs::new(log("second", origin, vec![]));
    logs.add(before);
    let sources = logs.into_sources();
    assert!(sources.find("notes.txt").is_some());
    assert_eq!(sources.find("plans.txt"), None);
    // A run whose log cannot be read has no texts, and nothing further is wanted.
    let mut logs = SourceLogs::new(Vec::new());
    logs.add(Vec::new());
    assert_eq!(logs.missing(), None);
}
