//! Sessions are saved as one goes, and a save that fails costs nothing but the copy.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, AutoSave, RunOptions, Tool, ToolContext,
    react_loop::PickFirst,
    store::FileSystemSessionStore,
    tools::FnTool,
    types::{
        BoxFuture, Member, PlanError, Planner, PlanningContext, SessionId, SubTask, Task, ToolAnnotations,
        ToolCall, ToolResult, ToolSpec,
    },
    views::{Session, SessionError, SessionState, SessionStore},
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

/// A store on files that fails the first time, and says when it was asked.
struct Failing {
    files: FileSystemSessionStore,
    saves: AtomicUsize,
    asked: mpsc::UnboundedSender<usize>,
}

impl SessionStore for Failing {
    fn save<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), SessionError>> {
        let n = self.saves.fetch_add(1, Ordering::Relaxed);
        let _ = self.asked.send(session.loops[0].messages.len());
        match n {
            0 => Box::pin(std::future::ready(Err(SessionError::Unsupported { action: "save today" }))),
            _ => self.files.save(session),
        }
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Session, SessionError>> {
        self.files.load(id)
    }

    fn list_ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, SessionError>> {
        self.files.list_ids()
    }
}

// spec: S-12, S-13
#[tokio::test]
async fn a_session_is_saved_while_its_run_works_and_when_it_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let (asked, mut saves) = mpsc::unbounded_channel();
    let files = FileSystemSessionStore::new(dir.path());
    let store = Arc::new(Failing { files, saves: AtomicUsize::new(0), asked });
    let saver = AutoSave::new(store.clone()).with_pause(Duration::from_secs(3));
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let spec = ToolSpec::new("wait", "Waits for the test.", json!({"type": "object"}))
        .with_annotations(ToolAnnotations::read_only());
    let tool = FnTool::new(spec, move |_: serde_json::Value, _: ToolContext| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(ToolResult::success("done"))
        }
    });
    let clock = VirtualClock::new();
    let provider = FnProvider::new(|n, _| match n {
        0 => FnProvider::calls(vec![ToolCall::new("c", "wait", json!({}))]),
        _ => FnProvider::text("all done"),
    });
    let agent = Archon::builder()
        .provider(Arc::new(provider), "scripted")
        .tools([Arc::new(tool) as Arc<dyn Tool>])
        .clock(Arc::new(clock.clone()))
        .save_sessions(saver.clone())
        .build()
        .expect("an agent");
    let run = agent.start("work", RunOptions::default()).await.expect("a run");
    let session = run.session_id().clone();
    assert_eq!(saver.state(&session), SessionState::NoSession);
    // The run's own limit, the tool's, and the pause before the save.
    clock.until_asleep(3).await;
    assert_eq!(saver.state(&session), SessionState::SessionActive);
    clock.advance(Duration::from_secs(3));
    assert!(saves.recv().await.expect("a save") > 0, "what was said is saved while the tool works");
    go.notify_one();
    assert!(run.reply().await.ended().is_finished(), "the failure is nobody's trouble");
    assert_eq!(saver.state(&session), SessionState::Saved);
    assert_eq!(store.saves.load(Ordering::Relaxed), 2, "changes within the pause are saved once");
    let saved = store.load(&session).await.expect("a session");
    assert_eq!(saved.loops[0].messages.len(), 4);
}

struct Steps;

impl Planner for Steps {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        Ok(Task::new("t", goal).with_subtasks(vec![SubTask::new("a", "Think")]))
    }
}

// spec: S-12
#[tokio::test]
async fn run_of_every_kind_on_the_callers_task_saves_its_session() {
    for kind in ["loop", "plan", "team", "parallel"] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Arc::new(FileSystemSessionStore::new(dir.path()));
        let agent = Archon::builder()
            .provider(Arc::new(FnProvider::new(|_, _| FnProvider::text("done"))), "scripted")
            .system("You are brief.")
            .save_sessions(AutoSave::new(store.clone()))
            .build()
            .expect("an agent");
        let worked = match kind {
            "loop" => agent.run("work").await.map(drop),
            "plan" => agent.planning(Arc::new(Steps)).run("work").await.map(drop),
            "team" => {
                let member = Member::new("ada", "researcher");
                agent
                    .team(Arc::new(Steps))
                    .member(member, Arc::new(agent.clone()))
                    .run("work")
                    .await
                    .map(drop)
            }
            _ => {
                let both = agent.parallel([agent.clone(), agent.clone()], Arc::new(PickFirst));
                both.expect("two branches").run("work").await.map(drop)
            }
        };
        worked.expect("a reply");
        let saved = store.list_ids().await.expect("a list");
        let [id] = &saved[..] else { panic!("{kind}: {saved:?}") };
        let messages = store.load(id).await.expect("a session").loops.into_iter().flat_map(|of| of.messages);
        assert!(messages.clone().count() >= 2, "{kind}");
        assert!(!format!("{:?}", messages.collect::<Vec<_>>()).contains("You are brief"), "{kind}");
    }
}
