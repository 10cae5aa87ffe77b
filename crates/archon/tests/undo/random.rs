//! Random runs that change files with the tools `write_file`, `edit_file` and `bash`: an undo gives back the same tree,
//! and a redo the other one.

use std::{collections::BTreeMap, sync::Arc};

use archon::{
    Archon,
    providers::{ScriptedProvider, Step},
    tools::{
        Ask, EngineOptions, Workspace,
        builtin::{Bash, BashOptions, file_tools},
        sandbox::Isolation,
    },
    types::{Record, RecordBody, WorkspaceSnapshots},
};
use archon_testkit::{Chance, cases, first_seed};
use serde_json::json;

use crate::Desk;

const NAMES: [&str; 6] = ["notes", "plan.md", "src/a.rs", "src/b.rs", "src/deep/c.rs", "é é.txt"];
/// Changes of a run.
const CHANGES: u64 = 8;

/// The calls of a model that knows what each file has.
struct Script {
    chance: Chance,
    files: BTreeMap<String, String>,
    steps: Vec<Step>,
    /// The number of the next text; no text comes twice.
    number: u32,
}

impl Script {
    fn new(seed: u64) -> Self {
        let files = BTreeMap::from([("notes".to_owned(), "0".to_owned())]);
        let mut script = Self { chance: Chance(seed), files, steps: Vec::new(), number: 0 };
        // This file stays, so that each run changes something.
        let text = script.text();
        script.call("write_file", &json!({ "path": "first", "content": text }));
        for _ in 0..=script.chance.below(CHANGES) {
            match script.chance.below(3) {
                0 => script.write(),
                1 => script.edit(),
                _ => script.command(),
            }
        }
        script.steps.push(Step::text("Done."));
        script
    }

    fn call(&mut self, tool: &str, arguments: &serde_json::Value) {
        let id = format!("c{}", self.steps.len());
        self.steps.push(Step::call(&id, tool, arguments.clone()));
    }

    fn text(&mut self) -> String {
        self.number += 1;
        format!("text {}\n", self.number)
    }

    /// Returns the path of a file; `None` if there is none.
    fn any_file(&mut self) -> Option<String> {
        let count = u64::try_from(self.files.len()).unwrap();
        let at = usize::try_from(self.chance.below(count)).unwrap();
        self.files.keys().nth(at).cloned()
    }

    fn write(&mut self) {
        let path = NAMES[usize::try_from(self.chance.below(NAMES.len() as u64)).unwrap()];
        if self.files.contains_key(path) {
            self.call("read_file", &json!({ "path": path }));
        }
        let text = self.text();
        self.call("write_file", &json!({ "path": path, "content": text }));
        self.files.insert(path.to_owned(), text);
    }

    fn edit(&mut self) {
        let Some(path) = self.any_file() else { return self.write() };
        let (old, new) = (self.files[&path].clone(), self.text());
        self.call("read_file", &json!({ "path": path }));
        self.call("edit_file", &json!({ "path": path, "old_text": old, "new_text": new }));
        self.files.insert(path, new);
    }

    fn command(&mut self) {
        let Some(path) = self.any_file() else { return self.write() };
        let old = self.files[&path].clone();
        let command = match self.chance.below(4) {
            0 => {
                let text = self.text();
                self.files.insert(path.clone(), format!("{old}{text}"));
                format!("printf '{text}' >> '{path}'")
            }
            1 => {
                self.files.remove(&path);
                format!("rm '{path}'")
            }
            2 => {
                self.number += 1;
                let to = format!("moved{}/file", self.number);
                self.files.remove(&path);
                self.files.insert(to.clone(), old);
                format!("mkdir moved{} && mv '{path}' '{to}'", self.number)
            }
            _ => format!("chmod 755 '{path}'"),
        };
        self.call("bash", &json!({ "command": command }));
    }
}

/// Runs the script on the desk, and returns the records of its run. No call may fail.
async fn run(desk: &Desk, seed: u64) -> Vec<Arc<Record>> {
    let workspace = Workspace::new(desk.workspace()).unwrap();
    let mut options = BashOptions::default();
    options.sandbox.isolation = Isolation::WithoutKernel;
    let agent = Archon::builder()
        .provider(Arc::new(ScriptedProvider::new(Script::new(seed).steps)), "scripted")
        .tools(file_tools(&workspace))
        .tool(Bash::new(workspace, options))
        .engine_options(
            EngineOptions::default().granting(["fs_write", "shell_exec"]).asking(Ask::WhereRequired),
        )
        .workspace(desk.workspace())
        .snapshots(Arc::new(desk.undo.clone()))
        .build()
        .unwrap();
    let reply = agent.run("Work").await.unwrap();
    let records = agent.journal().read(reply.run()).await.unwrap();
    for record in &records {
        if let RecordBody::ToolCallFinished { result, .. } = &record.body {
            assert!(!result.is_error(), "seed {seed}: {}", result.text());
        }
    }
    records
}

#[tokio::test]
async fn undo_of_random_changes_by_tools_gives_back_the_same_tree() {
    for seed in first_seed()..first_seed() + cases(5, 50) {
        let desk = Desk::new();
        let before = desk.undo.take(None).await.unwrap();
        let records = run(&desk, seed).await;
        let after = desk.undo.take(None).await.unwrap();
        assert_ne!(after, before, "seed {seed}: the run changed nothing");
        let restored = desk.undo.undo(&records, None).unwrap();
        assert!(restored.left.is_empty(), "seed {seed}: {restored:?}");
        assert_eq!(desk.undo.take(None).await.unwrap(), before, "seed {seed}: {restored:?}");
        desk.undo.redo(&records).unwrap();
        assert_eq!(desk.undo.take(None).await.unwrap(), after, "seed {seed}");
    }
}
