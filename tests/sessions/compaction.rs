//! A compaction that a person asks for: at once if no run works, otherwise before the next request.

use std::sync::{Arc, OnceLock};

use archon::{
    Archon, Journal, OutcomeStatus, RunError, RunId, Runs, SessionId, ToolContext,
    react_loop::replay,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        CompactionLevel, Json, RecordBody, Request, StartRun, StartRuns, Started, ToolCall, ToolResult,
        ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use futures_util::FutureExt;
use serde_json::json;

struct Desk {
    runs: Runs,
    journal: InMemoryJournal,
    model: FnProvider,
}

/// A model with long answers, which sums up if it is asked to, and a tool that asks for a compaction of its own
/// session. After the message `last`, a person asks for a compaction while the model answers.
fn desk() -> Desk {
    let journal = InMemoryJournal::new();
    let service: Arc<OnceLock<Runs>> = Arc::default();
    let own = service.clone();
    let model = FnProvider::new(move |_, request| match read(request) {
        text if text.contains("<conversation>") => FnProvider::text("They talked."),
        text if text.ends_with("tidy") => FnProvider::calls(vec![ToolCall::new("c", "tidy", json!({}))]),
        text if text.ends_with("last") => {
            let session = SessionId::new("s");
            let asked = own.get().unwrap().compact(&session, None, Some("Keep the names.")).now_or_never();
            assert_eq!(asked.unwrap().unwrap().how, Started::Queued);
            FnProvider::text("The last answer.")
        }
        _ => FnProvider::text(&"word ".repeat(1_000)),
    });
    let own = service.clone();
    let tidy = ToolSpec::new("tidy", "Asks for a compaction.", json!({"type": "object"}));
    let tidy = FnTool::new(tidy, move |_: Json, context: ToolContext| {
        let own = own.clone();
        async move {
            let asked = own.get().unwrap().compact(&context.run.session, None, None).await.unwrap();
            assert_eq!((&asked.run, asked.how), (&context.run.run, Started::Queued));
            Ok(ToolResult::success("asked"))
        }
    });
    let archon = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .system("Be brief.")
        .tool(tidy)
        .journal(Arc::new(journal.clone()))
        .build()
        .unwrap();
    let runs = Runs::new(archon);
    let _ = service.set(runs.clone());
    Desk { runs, journal, model }
}

/// The messages of a request as one text.
fn read(request: &Request) -> String {
    request.messages.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n")
}

impl Desk {
    async fn say(&self, text: &str) -> RunId {
        let started = self.runs.start(StartRun::new(text).session("s")).await.unwrap();
        assert_eq!(self.runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
        started.run
    }

    async fn talk(&self, messages: usize) {
        for n in 0..messages {
            self.say(&format!("message {n}")).await;
        }
    }

    async fn names(&self, run: &RunId) -> Vec<&'static str> {
        self.journal.read(run).await.unwrap().iter().map(|record| record.body.name()).collect()
    }
}

#[tokio::test]
async fn compact_without_a_run_at_work_starts_a_run_that_only_does_this() {
    let desk = desk();
    desk.talk(6).await;
    let started = desk.runs.compact(&SessionId::new("s"), None, Some("Keep the names.")).await.unwrap();
    assert_eq!(started.how, Started::New);
    assert_eq!(desk.runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
    let expected = [
        "run_started",
        "compaction_requested",
        "auxiliary_call_started",
        "summarized",
        "compacted",
        "run_finished",
    ];
    assert_eq!(desk.names(&started.run).await, expected);
    let log = desk.journal.read(&started.run).await.unwrap();
    let level = log.iter().find_map(|record| match &record.body {
        RecordBody::Compacted(compaction) => Some(compaction.level),
        _ => None,
    });
    assert_eq!(level, Some(CompactionLevel::Summarize));
    assert!(read(&desk.model.requests()[6]).ends_with("and wants: Keep the names."));
    let next = desk.say("and now?").await;
    let asked = read(&desk.model.requests()[7]);
    for (text, is_there) in
        [("message 0", true), ("They talked.", true), ("message 2", false), ("message 5", true)]
    {
        assert_eq!(asked.contains(text), is_there, "{text}: {asked}");
    }
    for run in [&started.run, &next] {
        assert!(replay(&desk.journal, run).await.unwrap().is_identical());
    }
}

#[tokio::test]
async fn compact_during_a_run_happens_before_its_next_request() {
    let desk = desk();
    desk.talk(6).await;
    let run = desk.say("tidy").await;
    let names = desk.names(&run).await;
    let place =
        |name: &str| names.iter().rposition(|other| *other == name).unwrap_or_else(|| panic!("{names:?}"));
    assert!(
        place("compaction_requested") < place("compacted")
            && place("compacted") < place("model_call_started")
    );
    assert!(read(desk.model.requests().last().unwrap()).contains("They talked."));
    assert!(replay(&desk.journal, &run).await.unwrap().is_identical());
}

#[tokio::test]
async fn compact_during_the_last_answer_happens_in_the_next_run_of_the_session() {
    let desk = desk();
    desk.talk(6).await;
    let last = desk.say("last").await;
    assert!(!desk.names(&last).await.contains(&"compaction_requested"));
    let next = desk.say("and now?").await;
    let names = desk.names(&next).await;
    let place =
        |name: &str| names.iter().position(|other| *other == name).unwrap_or_else(|| panic!("{names:?}"));
    assert!(place("compacted") < place("model_call_started"), "{names:?}");
    let requests = desk.model.requests();
    let summary = requests.iter().map(read).find(|text| text.contains("<conversation>")).unwrap();
    assert!(summary.ends_with("and wants: Keep the names."), "{summary}");
    let after = desk.say("more").await;
    assert!(!desk.names(&after).await.contains(&"compaction_requested"), "one compaction is enough");
    for run in [&last, &next] {
        assert!(replay(&desk.journal, run).await.unwrap().is_identical());
    }
}

#[tokio::test]
async fn compact_a_short_session_changes_nothing_and_asks_no_model() {
    let desk = desk();
    desk.talk(1).await;
    let started = desk.runs.compact(&SessionId::new("s"), None, None).await.unwrap();
    assert_eq!(desk.runs.reply(&started.run).await.ended().status, OutcomeStatus::Finished);
    assert_eq!(desk.names(&started.run).await, ["run_started", "compaction_requested", "run_finished"]);
    assert_eq!(desk.model.requests().len(), 1);
    let none = desk.runs.compact(&SessionId::new("other"), None, None).await.unwrap_err();
    assert!(matches!(none, RunError::NothingToContinue), "{none}");
}

#[tokio::test]
async fn context_report_has_the_tokens_of_each_part_and_less_after_a_compaction() {
    let desk = desk();
    let session = SessionId::new("s");
    let report = async || desk.runs.context_report(&session, None).await.unwrap();
    desk.say("message").await;
    let first = report().await;
    // 3.8 characters are a token: 9 of the instructions, and 5 tokens more for each message.
    assert_eq!((first.system, first.tool_results, first.memory), (2, 0, 0));
    assert_eq!(first.messages, (7 * 10 / 38 + 5) + (5_000 * 10 / 38 + 5));
    assert!(first.tools > 0);
    assert_eq!(first.free(), first.window.map(|window| window - first.used()));
    desk.say("tidy").await;
    desk.talk(6).await;
    let before = report().await;
    assert_eq!((before.system, before.tools, before.tool_results), (first.system, first.tools, 1 + 5));
    let started = desk.runs.compact(&session, None, None).await.unwrap();
    desk.runs.reply(&started.run).await.ended();
    let after = report().await;
    assert!(after.messages < before.messages / 2, "{after:?} {before:?}");
    assert_eq!(after.system, before.system);
}
