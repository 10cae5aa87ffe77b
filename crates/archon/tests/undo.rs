//! Undo of what the tools of a run changed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(all(feature = "bash", feature = "files"))]
#[path = "undo/random.rs"]
mod random;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use archon::{
    Archon, Undo,
    providers::{ScriptedProvider, Step},
    tool,
    types::{Record, RecordBody, RunStarted, SnapshotPlace},
};
use serde_json::json;
use tempfile::TempDir;

/// Writes a text into the file `notes` of a folder.
#[tool]
fn note(folder: String, text: String) -> String {
    fs::write(Path::new(&folder).join("notes"), text).unwrap();
    "written".to_owned()
}

struct Desk {
    folder: TempDir,
    undo: Undo,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("notes"), "0").unwrap();
        let undo = Undo::open(folder.path().join("store"), workspace).unwrap();
        Self { folder, undo }
    }

    fn workspace(&self) -> String {
        self.folder.path().join("workspace").display().to_string()
    }

    fn notes(&self) -> String {
        fs::read_to_string(Path::new(&self.workspace()).join("notes")).unwrap()
    }

    /// Runs an agent that writes each text in a turn of its own, and returns the records of its run.
    async fn run(&self, texts: &[&str]) -> Vec<Arc<Record>> {
        let call =
            |text: &&str| Step::call(text, "note", json!({ "folder": self.workspace(), "text": text }));
        let script = texts.iter().map(call).chain([Step::text("Done.")]);
        let agent = Archon::builder()
            .provider(Arc::new(ScriptedProvider::new(script)), "scripted")
            .tool(note)
            .workspace(self.workspace())
            .snapshots(Arc::new(self.undo.clone()))
            .build()
            .unwrap();
        let reply = agent.run("Write").await.unwrap();
        agent.journal().read(reply.run()).await.unwrap()
    }
}

#[tokio::test]
async fn undo_takes_back_the_last_turns_and_then_the_others() {
    let desk = Desk::new();
    let records = desk.run(&["1", "2", "3"]).await;
    assert_eq!(desk.notes(), "3");
    assert_eq!(desk.undo.preview(&records, Some(1)).unwrap().written, [Path::new("notes")]);
    for (turns, notes) in [(Some(1), "2"), (Some(1), "1"), (None, "0")] {
        desk.undo.undo(&records, turns).unwrap();
        assert_eq!(desk.notes(), notes);
    }
    desk.undo.undo(&records, None).unwrap_err();
    for notes in ["1", "2", "3"] {
        desk.undo.redo(&records).unwrap();
        assert_eq!(desk.notes(), notes);
    }
    assert!(desk.undo.preview_redo(&records).unwrap().is_empty());
}

#[tokio::test]
async fn undo_of_the_last_turn_skips_those_that_changed_nothing() {
    let desk = Desk::new();
    let records = desk.run(&["1", "2", "2"]).await;
    desk.undo.undo(&records, Some(1)).unwrap();
    assert_eq!(desk.notes(), "1");
}

#[tokio::test]
async fn undo_after_an_edit_of_the_person_leaves_the_file() {
    let desk = Desk::new();
    let records = desk.run(&["1"]).await;
    fs::write(Path::new(&desk.workspace()).join("notes"), "mine").unwrap();
    let restored = desk.undo.undo(&records, None).unwrap();
    assert_eq!(desk.notes(), "mine");
    assert_eq!(restored.left.len(), 1);
}

/// The records of a run that is killed before the snapshot after its call.
fn until_kill(mut records: Vec<Arc<Record>>) -> Vec<Arc<Record>> {
    let is_after = |record: &Arc<Record>| match &record.body {
        RecordBody::WorkspaceSnapshot(snapshot) => snapshot.place == SnapshotPlace::After,
        _ => false,
    };
    let end = records.iter().position(is_after).unwrap();
    records.truncate(end);
    records
}

#[tokio::test]
async fn undo_of_a_killed_run_takes_back_its_changes() {
    let desk = Desk::new();
    let records = until_kill(desk.run(&["1"]).await);
    desk.undo.undo(&records, None).unwrap();
    assert_eq!(desk.notes(), "0");
}

#[tokio::test]
async fn undo_of_a_killed_and_resumed_run_leaves_an_edit_between() {
    let desk = Desk::new();
    let mut records = until_kill(desk.run(&["1"]).await);
    let last = records.last().unwrap();
    let resumed =
        Record { seq: last.seq + 1, at: last.at + Duration::from_secs(600), body: RecordBody::Resumed };
    records.push(Arc::new(resumed));
    let path = Path::new(&desk.workspace()).join("notes");
    fs::write(&path, "mine").unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    let restored = desk.undo.undo(&records, None).unwrap();
    assert_eq!(desk.notes(), "mine");
    assert!(restored.left[0].why.contains("cut off"), "{restored:?}");
}

#[tokio::test]
async fn run_without_effects_takes_no_snapshot_into_its_log() {
    let desk = Desk::new();
    let records = desk.run(&[]).await;
    assert!(RunStarted::of(&records).is_some());
    assert!(!records.iter().any(|record| matches!(record.body, RecordBody::WorkspaceSnapshot(_))));
    assert!(desk.undo.preview(&records, None).unwrap().is_empty());
}
