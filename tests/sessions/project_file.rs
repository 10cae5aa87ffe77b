//! A file in which the project says what its agents should know: read before each question, an edit counts.

use std::sync::Arc;

use archon::{
    Archon, OutcomeStatus, ProjectFile, RunOptions, SubAgentTool,
    react_loop::replay,
    types::{BoxFuture, ContextConfig, Instructions, RecordBody, Request, ToolMode},
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use crate::shared::stage::{Show, Stage, call, reads};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn file(&self) -> ProjectFile {
        ProjectFile::in_folder(self.0.path())
    }
}

fn systems(show: &Show) -> Vec<Option<String>> {
    let system = |request: &Request| request.system.as_ref().map(|s| s.as_str().to_owned());
    show.model.requests().iter().map(system).collect()
}

fn read(show: &Show) -> Vec<String> {
    let read = |body| match body {
        RecordBody::InstructionsRead { text } => Some(text),
        _ => None,
    };
    show.bodies().into_iter().filter_map(read).collect()
}

/// A run of three turns in which a tool changes the folder after the first and the second.
async fn edited(folder: &Arc<Folder>, edits: [fn(&Folder); 2], system: Option<&str>) -> Show {
    let stage = Stage::new(|n, _| match n {
        0 | 1 => call(&format!("c{n}"), "edit", json!({ "n": n })),
        _ => FnProvider::text("done"),
    });
    let at = folder.clone();
    let (edit, _) = reads("edit", move |n, _| {
        edits[n](&at);
        Ok("edited".into())
    });
    let stage = stage.with(|b| b.tool(edit).project_file(folder.file()));
    let stage = match system {
        Some(system) => stage.with(|b| b.system(system)),
        None => stage,
    };
    let (outcome, show) = stage.play("Work.").await;
    assert!(outcome.is_finished());
    assert!(replay(&show.journal, &outcome.run).await.unwrap().is_identical());
    show
}

// spec: R-37
#[tokio::test]
async fn project_instructions_follow_the_file() {
    let folder = Arc::new(Folder::new());
    folder.write("AGENTS.md", "Use spaces.\n");
    let edits: [fn(&Folder); 2] = [
        |f| f.write("ARCHON.md", "Use tabs.\n"),
        |f| std::fs::remove_file(f.0.path().join("ARCHON.md")).unwrap(),
    ];
    let show = edited(&folder, edits, Some("Be brief.")).await;
    let with = |text: &str| Some(format!("Be brief.\n\n# Instructions of this project\n\n{text}"));
    assert_eq!(systems(&show), [with("Use spaces."), with("Use tabs."), with("Use spaces.")]);
    assert_eq!(read(&show), ["Use spaces.\n", "Use tabs.\n", "Use spaces.\n"]);
}

// spec: R-37
#[tokio::test]
async fn unchanged_instructions_are_not_logged_again_and_survive_a_read_failure() {
    let folder = Arc::new(Folder::new());
    folder.write("ARCHON.md", "Use tabs.");
    let edits: [fn(&Folder); 2] = [|_| (), |f| f.write("ARCHON.md", &"x".repeat(70_000))];
    let show = edited(&folder, edits, None).await;
    let text = Some("# Instructions of this project\n\nUse tabs.".to_owned());
    assert_eq!(systems(&show), [text.clone(), text.clone(), text]);
    assert_eq!(read(&show).len(), 1);

    let empty = Arc::new(Folder::new());
    let show = edited(&empty, [|_| (), |f| f.write("AGENTS.md", "Now.")], None).await;
    assert_eq!(systems(&show)[..2], [None, None]);
    assert!(systems(&show)[2].as_ref().unwrap().ends_with("Now."));
}

// spec: R-37, MA-30
#[tokio::test]
async fn project_instructions_are_not_passed_to_child_runs() {
    let folder = Folder::new();
    folder.write("ARCHON.md", "Use tabs.");
    let child_model = FnProvider::new(|_, _| FnProvider::text("found"));
    let child =
        Archon::builder().provider(Arc::new(child_model.clone()), "small").project_file(folder.file());
    let tool = SubAgentTool::new("researcher", child.build().unwrap());
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "researcher", json!({"task": "Look."})),
        _ => FnProvider::text("done"),
    });
    let (_, show) = stage.with(|b| b.tool(tool).project_file(folder.file())).play("Work.").await;
    assert!(systems(&show)[0].is_some());
    assert!(child_model.requests()[0].system.is_none());
}

// spec: R-37, C-01
#[tokio::test]
async fn project_instructions_in_text_mode_are_counted_in_the_window() {
    let folder = Folder::new();
    folder.write("ARCHON.md", &"Use tabs. ".repeat(2_000));
    let mut context = ContextConfig::new(10_000);
    context.system_prompt_tokens = 0;
    let stage = Stage::new(|n, _| match n {
        0..9 => FnProvider::text(&format!(
            "Thought: hm {}\nAction: {{\"tool\": \"look\", \"arguments\": {{\"n\": {n}}}}}",
            "word ".repeat(200)
        )),
        _ => FnProvider::text("Final Answer: done"),
    });
    let (look, _) = reads("look", |_, _| Ok("word ".repeat(200).into()));
    let builder = stage.with(|b| b.tool(look).tool_mode(ToolMode::Text).context(Some(context)));
    let (outcome, show) = builder.with(|b| b.project_file(folder.file())).play("Work.").await;
    assert!(outcome.is_finished());
    let first = systems(&show)[0].clone().unwrap();
    assert!(first.starts_with("You are an AI assistant") && first.contains("Use tabs. Use tabs."));
    // Half of the window is the file's: without it nothing would have to give way.
    assert!(show.bodies().iter().any(|b| matches!(b, RecordBody::Compacted(_))));
}

/// Instructions that never come.
struct Stuck;

impl Instructions for Stuck {
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(std::future::pending())
    }
}

// spec: R-37
#[tokio::test]
async fn a_run_whose_instructions_do_not_come_can_be_cancelled() {
    let stage = Stage::new(|_, _| FnProvider::text("done"));
    let show = stage.with(|b| b.instructions(Arc::new(Stuck))).raise();
    let handle = show.agent.start("Work.", RunOptions::default()).await.unwrap();
    handle.cancel();
    assert_eq!(handle.reply().await.ended().status, OutcomeStatus::Cancelled);
    assert!(show.model.requests().is_empty());
}
