//! To what a person agrees: this tool, as it is, with exactly these arguments, also those that they wrote themselves.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use archon::{
    Archon, OutcomeStatus, Tool, ToolContext, ToolResult,
    react_loop::replay,
    tools::{EngineOptions, FnTool},
    types::{
        Answer, BoxFuture, Context, Correction, Decision, Json, OpenMode, Preview, RecordBody, Request,
        Subject, ToolAnnotations, ToolError, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

use crate::{
    approvals::asked_at_once::{Done, Person, careful, now},
    shared::stage::{Show, Stage, call},
};

fn did(done: &Done) -> Vec<String> {
    done.lock().unwrap().clone()
}

fn no() -> Decision {
    now(Answer::Cancel { reason: String::new() })
}

fn send(n: usize, request: &Request) -> crate::shared::stage::Answer {
    match n {
        0 => call("c0", "send_email", json!({"to": "Ann"})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    }
}

/// Another `send_email`, which needs no receiver.
fn other(done: &Done) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::default();
    annotations.requires_confirmation = true;
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    let (spec, done) = (ToolSpec::new("send_email", "Sends.", schema), done.clone());
    Arc::new(FnTool::new(spec.with_annotations(annotations), move |arguments: Json, _: ToolContext| {
        done.lock().unwrap().push(format!("another {arguments}"));
        async { Ok(ToolResult::success("sent")) }
    }))
}

/// The same run in another process.
fn taken_up(show: &Show, tool: Arc<dyn Tool>, person: &Person) -> Archon {
    Archon::builder()
        .provider(Arc::new(show.model.clone()), "scripted")
        .tool(tool)
        .journal(Arc::new(show.journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .approver(Arc::new(person.clone()))
        .build()
        .unwrap()
}

// spec: AP-05, AP-11
#[tokio::test]
async fn edited_arguments_are_bound_to_the_approved_tool() {
    for (same, says, asked, does) in [
        (true, vec![], vec![], vec!["send_email Bob"]),
        (false, vec![no()], vec![r#"Run send_email with {"to":"Bob"}"#], vec![]),
        (
            false,
            vec![now(Answer::Approve)],
            vec![r#"Run send_email with {"to":"Bob"}"#],
            vec![r#"another {"to":"Bob"}"#],
        ),
        (
            false,
            vec![now(Answer::Edit { arguments: json!({"to": "Cid"}) })],
            vec![r#"Run send_email with {"to":"Bob"}"#],
            vec![r#"another {"to":"Cid"}"#],
        ),
    ] {
        let done = Done::default();
        let tool = careful("send_email", &done);
        let stage = Stage::new(send).with(|b| b.tool(tool).approver(Arc::new(Person::default())));
        let (outcome, show) = stage.play("Write to Ann.").await;
        assert_eq!(outcome.status, OutcomeStatus::Suspended);
        let open = show.agent.approvals(None).await.unwrap();
        let edit = Answer::Edit { arguments: json!({"to": "Bob"}) };
        assert!(show.agent.answer_pending(&open[0], edit).await.unwrap());

        let person = Person::saying(says);
        let tool = if same { careful("send_email", &done) } else { other(&done) };
        let second = taken_up(&show, tool, &person);
        let outcome = second.resume(outcome.run).await.unwrap().reply().await.ended();
        assert!(outcome.is_finished(), "{outcome:?}");
        assert_eq!(
            (person.seen(), did(&done)),
            (asked.iter().map(|&a| a.to_owned()).collect(), does.iter().map(|&d| d.to_owned()).collect())
        );
        assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    }
}

/// A tool whose calls lead to a file.
struct ToFile(Arc<dyn Tool>);

impl Tool for ToFile {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn subject(&self, _: &Json) -> Subject {
        Subject::Paths { root: "/w".into(), paths: vec!["/w/file".into()] }
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.0.call(arguments, context)
    }
}

// spec: AP-04, AP-05
#[tokio::test]
async fn a_call_in_doubt_runs_again_as_a_person_changed_it() {
    let done = Done::default();
    let edit = Answer::Edit { arguments: json!({"to": "Bob"}) };
    let tool: Arc<dyn Tool> = Arc::new(ToFile(careful("send_email", &done)));
    let stage = Stage::new(send).with(|b| b.tool(tool).approver(Arc::new(Person::saying([now(edit)]))));
    let (outcome, show) = stage.play("Write to Ann.").await;
    assert_eq!(did(&done), ["send_email Bob"]);
    let log = show.journal_log(&outcome.run).await;
    let start = log.iter().position(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
    for (says, asked, does) in
        [(vec![now(Answer::Approve)], 1, vec!["send_email Bob"]), (vec![no()], 1, vec![])]
    {
        done.lock().unwrap().clear();
        let journal = archon::store::InMemoryJournal::new();
        {
            use archon::types::{Durability, Journal};
            let mut open = journal.open(&outcome.run, OpenMode::Create).await.unwrap();
            open.writer.append(&log[..=start], Durability::Synced).await.unwrap();
        }
        let person = Person::saying(says);
        let second = Archon::builder()
            .provider(Arc::new(show.model.clone()), "scripted")
            .tool(Arc::new(ToFile(careful("send_email", &done))) as Arc<dyn Tool>)
            .journal(Arc::new(journal.clone()))
            .clock(Arc::new(VirtualClock::new()))
            .approver(Arc::new(person.clone()))
            .build()
            .unwrap();
        let outcome = second.resume(outcome.run.clone()).await.unwrap().reply().await.ended();
        assert!(outcome.is_finished(), "{outcome:?}");
        assert_eq!((person.seen().len(), did(&done)), (asked, does.iter().map(|&d| d.to_owned()).collect()));
        assert!(replay(&journal, &outcome.run).await.unwrap().is_identical());
    }
}

/// Needs the number of the day, and knows it.
struct Daily {
    spec: ToolSpec,
    today: Arc<AtomicU64>,
    done: Done,
}

impl Daily {
    fn tool(today: &Arc<AtomicU64>, done: &Done) -> Arc<dyn Tool> {
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec = ToolSpec::new("daily", "Does what is to be done on a day.", json!({"type": "object"}));
        Arc::new(Self { spec: spec.with_annotations(annotations), today: today.clone(), done: done.clone() })
    }
}

impl Tool for Daily {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        match arguments["day"] == self.today.load(Ordering::SeqCst) {
            true => Ok(None),
            false => Err(ToolError::InvalidArgs("that is not today".to_owned())),
        }
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.done.lock().unwrap().push(format!("day {}", arguments["day"]));
        Box::pin(async { Ok("done".into()) })
    }

    fn correction(&self, _: &Json, _: &Context) -> Option<Correction> {
        let today = self.today.load(Ordering::SeqCst);
        Some(Correction::new("today", json!({ "day": today }), "the day is today"))
    }
}

// spec: TE-33, AP-05
#[tokio::test]
async fn approved_correction_is_bound_and_another_one_is_asked_again() {
    for (day, says, asked, does) in [
        (1, vec![], vec![], vec!["day 1"]),
        (2, vec![no()], vec![r#"Run daily with {"day":2}"#], vec![]),
        (2, vec![now(Answer::Approve)], vec![r#"Run daily with {"day":2}"#], vec!["day 2"]),
    ] {
        let (today, done) = (Arc::new(AtomicU64::new(1)), Done::default());
        let options = || EngineOptions::default().correcting(["today"]);
        let model = |n: usize, request: &Request| match n {
            0 => call("c0", "daily", json!({})),
            _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
        };
        let tool = Daily::tool(&today, &done);
        let person = Person::default();
        let stage = Stage::new(model)
            .with(|b| b.tool(tool).engine_options(options()).approver(Arc::new(person.clone())));
        let (outcome, show) = stage.play("Do it.").await;
        assert_eq!(outcome.status, OutcomeStatus::Suspended);
        assert_eq!(person.seen(), [r#"Run daily with {"day":1}"#]);
        let open = show.agent.approvals(None).await.unwrap();
        assert!(show.agent.answer_pending(&open[0], Answer::Approve).await.unwrap());
        today.store(day, Ordering::SeqCst);
        let person = Person::saying(says);
        let second = Archon::builder()
            .provider(Arc::new(show.model.clone()), "scripted")
            .tool(Daily::tool(&today, &done))
            .engine_options(options())
            .journal(Arc::new(show.journal.clone()))
            .clock(Arc::new(VirtualClock::new()))
            .approver(Arc::new(person.clone()))
            .build()
            .unwrap();
        let outcome = second.resume(outcome.run).await.unwrap().reply().await.ended();
        assert_eq!(
            (person.seen(), did(&done)),
            (asked.iter().map(|&a| a.to_owned()).collect(), does.iter().map(|&d| d.to_owned()).collect())
        );
        let told = outcome.last_text().unwrap_or_default().contains("the day is today");
        assert_eq!(told, !does.is_empty(), "{outcome:?}");
        assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    }
}

/// Writes files of a folder.
#[cfg(unix)]
fn writer(folder: &std::path::Path) -> Arc<dyn Tool> {
    let workspace = archon::tools::Workspace::new(folder).unwrap();
    Arc::new(archon::tools::builtin::WriteFile::new(workspace))
}

// spec: AP-05
#[cfg(unix)]
#[tokio::test]
async fn approval_of_a_file_is_bound_to_its_resolved_path() {
    let again = "Create 'hooks/post-commit'";
    // After the swap a file in `hooks` is one in `docs` as well.
    for (swapped, says, asked, expected) in [
        (false, vec![], vec![], vec!["docs/post-commit"]),
        (true, vec![no()], vec![again], vec![]),
        (true, vec![now(Answer::Approve)], vec![again], vec!["docs/post-commit", "hooks/post-commit"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["docs", "hooks"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        let options = || {
            let mut options = EngineOptions::default().granting(["fs_write"]);
            options.ask = archon::tools::Ask::BeforeChanges;
            options
        };
        let model = |n: usize, request: &Request| match n {
            0 => call("c0", "write_file", json!({"path": "docs/post-commit", "content": "x"})),
            _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
        };
        let tool = writer(folder.path());
        let stage = Stage::new(model)
            .with(|b| b.tool(tool).engine_options(options()).approver(Arc::new(Person::default())));
        let (outcome, show) = stage.play("Write it.").await;
        assert_eq!(outcome.status, OutcomeStatus::Suspended);
        let open = show.agent.approvals(None).await.unwrap();
        assert!(show.agent.answer_pending(&open[0], Answer::Approve).await.unwrap());
        if swapped {
            std::fs::rename(at("docs"), at("docs.old")).unwrap();
            std::os::unix::fs::symlink("hooks", at("docs")).unwrap();
        }
        let person = Person::saying(says);
        let second = Archon::builder()
            .provider(Arc::new(show.model.clone()), "scripted")
            .tool(writer(folder.path()))
            .engine_options(options())
            .journal(Arc::new(show.journal.clone()))
            .clock(Arc::new(VirtualClock::new()))
            .approver(Arc::new(person.clone()))
            .build()
            .unwrap();
        let outcome = second.resume(outcome.run).await.unwrap().reply().await.ended();
        assert_eq!(person.seen(), asked);
        let files = ["docs.old/post-commit", "docs/post-commit", "hooks/post-commit"];
        let there: Vec<_> = files.into_iter().filter(|file| at(file).exists()).collect();
        assert_eq!(there, expected);
        assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    }
}
