//! The parts of an inner tool that a wrapper passes on, and secrets that no result shows.

use std::{fs, sync::Arc};

use archon_tools::{Ask, EngineOptions, Permissions, ResultSchema, Workspace, builtin::WriteFile};
use archon_types::{
    BoxFuture, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId,
    Tool, ToolCall, ToolError, ToolResult,
};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{context, engine, run_call, show, spec, tool};

// spec: TE-57, AP-11
#[tokio::test]
async fn permission_rule_applies_to_the_subject_of_a_wrapped_tool() {
    let folder = TempDir::new().unwrap();
    let write = WriteFile::new(Workspace::new(folder.path()).unwrap());
    let checked = ResultSchema::new(write, &json!({ "type": "object" })).unwrap();
    let mut options = EngineOptions::default().granting(["fs_write"]).asking(Ask::WhereRequired);
    options.permissions = Permissions::parse(["write_file(secret/**)"], [""; 0], [""; 0]).unwrap();
    let checked: Arc<dyn Tool> = Arc::new(checked);
    let engine = engine([checked]).with_options(options);
    let write = async |path: &str| {
        let call = ToolCall::new("c", "write_file", json!({ "path": path, "content": "x" }));
        run_call(&engine, &call, &context()).await
    };
    let denied = write("secret/a.txt").await;
    assert_eq!(denied.metadata["error_type"], "permission_denied", "{}", denied.text());
    assert!(!folder.path().join("secret").exists());
    // Its preview is asked, too, and its result is checked.
    fs::write(folder.path().join("old.txt"), "old").unwrap();
    assert!(write("old.txt").await.text().contains("has not been read"));
    assert!(write("new.txt").await.text().contains("returned a result that does not match its schema"));
    // What it sets right itself is set right.
    let call = ToolCall::new("c", "write_file", json!({ "path": "empty.txt" }));
    run_call(&engine, &call, &context()).await;
    assert_eq!(fs::read_to_string(folder.path().join("empty.txt")).unwrap(), "");
}

/// One account at every service.
struct Account(Json);

impl CredentialStore for Account {
    fn put<'a>(
        &'a self,
        _: &'a CredentialKey,
        _: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn get<'a>(
        &'a self,
        _: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Some(Secret::new(self.0.clone())))))
    }

    fn list<'a>(
        &'a self,
        _: &'a TenantId,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

// spec: CR-05, TE-53
#[tokio::test]
async fn credentials_given_to_a_call_are_removed_from_all_results() {
    let talks = tool(spec("talks"), |context| async move {
        let key = context.credentials().get("mail").await?;
        let key = key.expose()["key"].as_str().unwrap().to_owned();
        Ok(ToolResult::success(format!("I used {key}.")).with_metadata("key", key))
    });
    let fails = tool(spec("fails"), |context| async move {
        let key = context.credentials().get("mail").await?;
        Err(ToolError::Failed(format!("{} was refused", key.expose()["key"])))
    });
    let engine = engine([talks, fails]);
    let mut run = context();
    run.credentials = Some(Arc::new(Account(json!({ "key": "swordfish-42" }))));
    for name in ["talks", "fails"] {
        let result = run_call(&engine, &ToolCall::new("c", name, json!({})), &run).await;
        let shown = show(&result);
        assert!(!shown.contains("swordfish"), "{shown}");
        assert!(shown.contains("****"), "{shown}");
    }
    // Nor what another call of the run was given; another run knows nothing of it.
    let says = tool(spec("says"), |_| async { Ok("swordfish-42".into()) });
    let engine = crate::fixture::engine([says]);
    for (run, shown) in [(run, "****"), (context(), "swordfish-42")] {
        let result = run_call(&engine, &ToolCall::new("c", "says", json!({})), &run).await;
        assert_eq!(result.text(), shown);
    }
}
