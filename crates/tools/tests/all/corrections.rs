//! Arguments that are set right once, where the options allow it.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use archon_tools::{Ask, EngineOptions, FnTool, ToolEngine, Workspace, builtin::file_tools};
use archon_types::{
    Answer, ApprovalRequest, Approver, BoxFuture, Context, Correction, Decision, Executed, Json, Prepared,
    Preview, ReadyCall, Subject, Tool, ToolCall, ToolContext, ToolError, ToolResult, ToolSpec, Toolbox,
    metadata,
};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{call_id, context, engine, run_call};

fn files(options: EngineOptions) -> (TempDir, ToolEngine) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.txt"), "one two one\n").unwrap();
    let tools = file_tools(&Workspace::new(folder.path()).unwrap());
    (folder, engine(tools).with_options(options.granting(["fs_write"]).asking(Ask::WhereRequired)))
}

async fn say(engine: &ToolEngine, tool: &str, arguments: Json) -> ToolResult {
    run_call(engine, &ToolCall::new("c", tool, arguments), &context()).await
}

// spec: TE-33
#[tokio::test]
async fn a_new_file_without_content_is_empty_and_no_other_loses_its_content() {
    let (folder, engine) = files(EngineOptions::default());
    let written = say(&engine, "write_file", json!({ "path": "new.txt" })).await;
    assert_eq!(
        written.text(),
        "[The arguments of this call were corrected: content was left out, and is empty]\nCreated 'new.txt' (0 bytes, 0 \
         lines)."
    );
    assert_eq!(written.metadata[metadata::CORRECTION], "empty_content");
    assert_eq!(fs::read_to_string(folder.path().join("new.txt")).unwrap(), "");
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    for arguments in [json!({ "path": "a.txt" }), json!({ "path": "b.txt", "text": "x" }), json!({})] {
        let refused = say(&engine, "write_file", arguments).await;
        assert_eq!(refused.metadata["error_type"], "validation_error", "{}", refused.text());
    }
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one two one\n");
    let mut options = EngineOptions::default();
    options.corrections.clear();
    let (folder, engine) = files(options);
    assert!(say(&engine, "write_file", json!({ "path": "new.txt" })).await.is_error());
    assert!(!folder.path().join("new.txt").exists());
}

// spec: TE-33
#[tokio::test]
async fn a_text_in_several_places_is_replaced_in_all_only_if_that_is_configured() {
    let edit = json!({ "path": "a.txt", "old_text": "one", "new_text": "1" });
    let (folder, engine) = files(EngineOptions::default());
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    assert!(say(&engine, "edit_file", edit.clone()).await.text().contains("stands 2 times"));
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one two one\n");

    let (folder, engine) = files(EngineOptions::default().correcting(["replace_all"]));
    assert!(say(&engine, "edit_file", edit.clone()).await.text().contains("has not been read"));
    say(&engine, "read_file", json!({ "path": "a.txt" })).await;
    let mut once = edit.clone();
    once["replace_all"] = false.into();
    assert!(say(&engine, "edit_file", once).await.is_error(), "the model said otherwise");
    assert_eq!(
        say(&engine, "edit_file", edit).await.text(),
        "[The arguments of this call were corrected: old_text stands 2 times, and replace_all was set]\nEdited 'a.txt' \
         in 2 places."
    );
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "1 two 1\n");
}

/// Wants `n` to be 2, and sets it to one more than it is.
struct Counts(Arc<dyn Tool>, Arc<Mutex<Vec<Json>>>);

impl Counts {
    fn new() -> Self {
        let schema = json!({ "type": "object", "properties": { "n": { "const": 2 } } });
        let called = Arc::new(Mutex::new(Vec::new()));
        let seen = called.clone();
        let tool = FnTool::new(ToolSpec::new("counts", "Wants n to be two.", schema), move |arguments, _| {
            seen.lock().unwrap().push(arguments);
            async { Ok("done".into()) }
        });
        Self(Arc::new(tool), called)
    }
}

impl Tool for Counts {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.0.call(arguments, context)
    }

    fn correction(&self, arguments: &Json, _: &Context) -> Option<Correction> {
        let n = arguments["n"].as_i64().expect("a number, or a panic that stays inside");
        Some(Correction::new("one_more", json!({ "n": n + 1 }), "n is one more"))
    }
}

// spec: TE-33
#[tokio::test]
async fn correction_is_tried_once_and_repeated_after_a_crash() {
    let counts = Counts::new();
    let called = counts.1.clone();
    let tool: Arc<dyn Tool> = Arc::new(counts);
    let engine = engine([tool]).with_options(EngineOptions::default().correcting(["one_more"]));
    assert!(say(&engine, "counts", json!({ "n": 0 })).await.is_error(), "two corrections would be needed");
    assert!(say(&engine, "counts", json!({ "n": "x" })).await.is_error());
    assert!(!say(&engine, "counts", json!({ "n": 1 })).await.is_error());
    // Whoever takes a call up that another process prepared has only what the model sent.
    let call = ToolCall::new("c", "counts", json!({ "n": 1 }));
    assert!(matches!(engine.prepare(call_id(), &call, &context()).await, Prepared::Ready(_)));
    let ready = ReadyCall::new(call_id(), call, archon_types::Effect::ReadOnly);
    let Executed::Done(result) = engine.execute(ready, &context()).await else { panic!("it waits") };
    assert!(result.text().starts_with("[The arguments of this call were corrected: n is one more]"));
    assert_eq!(*called.lock().unwrap(), [json!({ "n": 2 }), json!({ "n": 2 })]);
}

/// Answers with what it is told; meanwhile the file changes so that the call that was agreed to cannot work.
struct Slow {
    file: std::path::PathBuf,
    asked: Mutex<Vec<Json>>,
    says: Mutex<Vec<Decision>>,
}

impl Approver for Slow {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.asked.lock().unwrap().push(request.details["arguments"].clone());
        fs::write(&self.file, "one two one\n").unwrap();
        self.says.lock().unwrap().remove(0)
    }
}

// spec: TE-33, AP-05
#[tokio::test]
async fn correction_after_approval_needs_a_new_approval() {
    let edit = json!({ "path": "a.txt", "old_text": "one", "new_text": "1" });
    let mut everywhere = edit.clone();
    everywhere["replace_all"] = true.into();
    let no = || Answer::Cancel { reason: String::new() };
    for (second, becomes) in [(Answer::Approve, "1 two 1\n"), (no(), "one two one\n")] {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, "one two\n").unwrap();
        let workspace = Workspace::new(folder.path()).unwrap();
        let mut options = EngineOptions::default().granting(["fs_write"]).correcting(["replace_all"]);
        options.ask = archon_tools::Ask::BeforeChanges;
        let slow = Arc::new(Slow {
            file: file.clone(),
            asked: Mutex::default(),
            says: Mutex::new(vec![Decision::Now(Answer::Approve), Decision::Now(second)]),
        });
        let tool: Arc<dyn Tool> = Arc::new(Edits::new(&workspace));
        let engine = engine([tool]).with_options(options).with_approver(slow.clone());
        let result = say(&engine, "edits", edit.clone()).await;
        assert_eq!(*slow.asked.lock().unwrap(), [edit.clone(), everywhere.clone()], "{}", result.text());
        assert_eq!(fs::read_to_string(&file).unwrap(), becomes, "{}", result.text());
    }
}

/// Replaces a text in a file, in all places if it is told to, and knows how to set a call right that says too little.
struct Edits(ToolSpec, std::path::PathBuf);

impl Edits {
    fn new(workspace: &Workspace) -> Self {
        let spec = ToolSpec::new("edits", "Replaces a text in a file.", json!({ "type": "object" }));
        Self(spec, workspace.root().join("a.txt"))
    }

    fn fits(&self, arguments: &Json) -> Result<(), ToolError> {
        let text = fs::read_to_string(&self.1).unwrap();
        let places = text.matches(arguments["old_text"].as_str().unwrap()).count();
        match places == 1 || arguments["replace_all"] == Json::Bool(true) {
            true => Ok(()),
            false => Err(ToolError::InvalidArgs(format!("it stands {places} times"))),
        }
    }
}

impl Tool for Edits {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        self.fits(arguments).map(|()| None)
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            self.fits(&arguments)?;
            let text = |name: &str| arguments[name].as_str().unwrap().to_owned();
            let new = fs::read_to_string(&self.1).unwrap().replace(&text("old_text"), &text("new_text"));
            fs::write(&self.1, new).unwrap();
            Ok("done".into())
        })
    }

    fn correction(&self, arguments: &Json, _: &Context) -> Option<Correction> {
        let mut all = arguments.clone();
        all["replace_all"] = true.into();
        Some(Correction::new("replace_all", all, "replace_all was set"))
    }
}

// spec: TE-33, AP-05
#[tokio::test]
async fn a_question_is_about_the_corrected_arguments_and_a_yes_to_others_does_not_count() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.txt"), "one two one\n").unwrap();
    let workspace = Workspace::new(folder.path()).unwrap();
    let mut options = EngineOptions::default().granting(["fs_write"]).correcting(["replace_all"]);
    options.ask = archon_tools::Ask::BeforeChanges;
    let tool: Arc<dyn Tool> = Arc::new(Edits::new(&workspace));
    let spec = tool.spec().clone();
    let engine = engine([tool]).with_options(options);
    let sent = json!({ "path": "a.txt", "old_text": "one", "new_text": "1" });
    let call = ToolCall::new("c", "edits", sent.clone());
    let mut run = context();
    run.can_ask = true;
    let Prepared::Ask(question) = engine.prepare(call_id(), &call, &run).await else {
        panic!("nobody is asked")
    };
    let corrected = question.details["arguments"].clone();
    assert_eq!(corrected["replace_all"], true);
    assert_eq!(question.binding, archon_types::binding(&spec, &corrected, &Subject::Unknown));
    run.agreed = Some(archon_types::binding(&spec, &sent, &Subject::Unknown).into());
    assert!(
        matches!(engine.prepare(call_id(), &call, &run).await, Prepared::Ask(_)),
        "a yes to other arguments"
    );
    run.agreed = Some(question.binding.as_str().into());
    let Prepared::Ready(ready) = engine.prepare(call_id(), &call, &run).await else {
        panic!("it was agreed to")
    };
    let Executed::Done(result) = engine.execute(ready, &run).await else { panic!("it waits") };
    assert_eq!(result.text(), "[The arguments of this call were corrected: replace_all was set]\ndone");
    // What only the execution corrects is asked about, too: the file is as it was.
    fs::write(folder.path().join("a.txt"), "one two one\n").unwrap();
    let ready = ReadyCall::new(call_id(), call, archon_types::Effect::SideEffect);
    assert!(matches!(engine.execute(ready, &run_that_can_ask()).await, Executed::Suspended(_)));
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one two one\n");
}

fn run_that_can_ask() -> Context {
    let mut run = context();
    run.can_ask = true;
    run
}
