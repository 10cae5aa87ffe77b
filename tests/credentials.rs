//! Accounts that tools act with: reached through the context, asked for where they are missing, and never seen.

use std::sync::Arc;

use archon::{
    OutcomeStatus, RunOptions, ToolContext, ToolError, ToolResult,
    store::MemoryCredentials,
    tools::FnTool,
    types::{CredentialKey, CredentialStore, Json, ProviderError, Secret, ToolSpec},
};
use archon_testkit::{FnProvider, VirtualClock};
use serde_json::json;

use crate::stage::{Show, Stage, call};

const CANARY: &str = "canary-\"7f3a91\"-key";

/// Names the account that it acts with; and says its key wherever a tool can say anything, as a careless one would.
fn careless() -> Arc<dyn archon::Tool> {
    let schema = json!({"type": "object", "properties": {"way": {"type": "string"}}});
    let spec = ToolSpec::new("repositories", "Lists the user's repositories.", schema);
    let work = |arguments: Json, context: ToolContext| async move {
        let account = context.credentials().get("github").await?;
        let (user, token) = (account.expose()["user"].clone(), account.expose()["token"].clone());
        let token = token.as_str().unwrap_or_default().to_owned();
        context.on_progress(format!("asking with {token}"));
        context.on_update(ToolResult::success(format!("so far {token}")));
        context.on_progress(format!("{account:?} {context:?} {:?}", context.credentials()));
        let json = json!({ "url": format!("https://x.test/?key={token}"), "headers": [token] });
        match arguments["way"].as_str() {
            Some("error") => Err(ToolError::Failed(format!("401 for {token}"))),
            Some("panic") => panic!("no answer to {token}"),
            _ => Ok(ToolResult::success(format!("one of {user}: {json}")).with_metadata("sent", json)),
        }
    };
    Arc::new(FnTool::new(spec, work))
}

async fn store() -> Arc<MemoryCredentials> {
    let store = MemoryCredentials::new(Arc::new(VirtualClock::new()));
    for tenant in ["ann", "bob"] {
        let key = CredentialKey::primary(tenant.into(), "github");
        let value = json!({ "user": tenant, "token": format!("{CANARY}-{tenant}") });
        store.save(&key, Secret::new(value)).await.unwrap();
    }
    Arc::new(store)
}

fn agent(ways: &'static [&'static str], store: Arc<MemoryCredentials>) -> Show {
    let stage = Stage::new(move |n, _| match ways.get(n) {
        Some(way) => call(&format!("c{n}"), "repositories", json!({ "way": way })),
        None => FnProvider::text("Done."),
    });
    stage.with(|b| b.tool(careless()).credentials(store)).raise()
}

fn on_behalf_of(tenant: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.tenant = Some(tenant.into());
    options
}

// spec: CR-05, CR-04
#[tokio::test]
async fn a_key_is_in_no_record_event_request_or_outcome_however_careless_the_tool() {
    let show = agent(&["result", "error", "panic"], store().await);
    let outcome = show.says("List them.", on_behalf_of("ann")).await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    let results = show.results();
    assert!(results[0].starts_with("one of \"ann\": {\"url\":\"https://x.test/?key=****\""), "{results:?}");
    assert_eq!(results[1], "Error: 401 for ****");
    assert!(results[2].contains("failed because of a fault of its own"), "{results:?}");
    let log: Vec<String> = show
        .journal_log(&outcome.run)
        .await
        .iter()
        .map(|record| serde_json::to_string(record).unwrap())
        .collect();
    let requests = show.model.requests().iter().map(|r| format!("{r:?}")).collect::<String>();
    let seen = format!("{log:?} {:?} {requests} {outcome:?}", show.sink.events());
    assert!(seen.contains("asking with ****") && seen.contains("so far ****"), "progress is heard");
    assert!(seen.contains("panicked: no answer to ****"), "the panic's own words are kept");
    assert!(!seen.contains("7f3a91"), "{seen}");
}

// spec: CR-04
#[tokio::test]
async fn a_missing_account_is_told_to_the_user() {
    let show = agent(&["result"], store().await);
    show.says("List them.", on_behalf_of("eve")).await;
    assert_eq!(
        show.results(),
        [
            "Error: No 'github' account is connected. Tell the user to connect their 'github' account, and go on without \
          it until then."
        ]
    );
}

// spec: CR-05
#[tokio::test]
async fn a_run_that_is_taken_up_acts_for_whom_it_was_started() {
    let store = store().await;
    let stage = Stage::new(|n, request| match n {
        0 => vec![Err(ProviderError::Auth("the key was refused".to_owned()))],
        1 => call("c1", "repositories", json!({})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let show = stage.with(|b| b.tool(careless()).credentials(store)).raise();
    let failed = show.says("List them.", on_behalf_of("bob")).await;
    assert_eq!(failed.status, OutcomeStatus::Failed);
    // Whoever takes it up says nothing of tenants.
    let resumed = show.agent.resume(failed.run).await.unwrap().outcome().await.unwrap();
    assert!(resumed.answer.starts_with("one of \"bob\""), "{resumed:?}");
}

/// Gets a token, and keeps what it became.
fn refreshing() -> Arc<dyn archon::Tool> {
    let spec = ToolSpec::new("refresh", "Gets a fresh token.", json!({"type": "object"}));
    let work = |_: Json, context: ToolContext| async move {
        let credentials = context.credentials();
        let before = credentials.get("github").await?;
        let fresh =
            Secret::new(json!({ "user": before.expose()["user"], "token": format!("{CANARY}-fresh") }));
        credentials.save("github", "primary", fresh).await?;
        let names: Vec<_> =
            credentials.list(None).await?.into_iter().map(|entry| entry.key.account).collect();
        Ok(ToolResult::success(format!("refreshed {}: {CANARY}-fresh", names.join(", "))))
    };
    Arc::new(FnTool::new(spec, work))
}

// spec: CR-06
#[tokio::test]
async fn a_tool_saves_what_an_account_became() {
    let store = store().await;
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "refresh", json!({})),
        _ => FnProvider::text("Done."),
    });
    let show = stage.with(|b| b.tool(refreshing()).credentials(store.clone())).raise();
    show.says("Refresh.", on_behalf_of("ann")).await;
    assert_eq!(show.results(), ["refreshed primary: ****"]);
    let kept = |tenant: &str| {
        let (store, key) = (store.clone(), CredentialKey::primary(tenant.into(), "github"));
        async move { store.get(&key).await.unwrap().unwrap().expose()["token"].clone() }
    };
    assert_eq!(kept("ann").await, format!("{CANARY}-fresh"));
    assert_eq!(kept("bob").await, format!("{CANARY}-bob"), "another tenant's is as it was");
}

// spec: CR-04
#[tokio::test]
async fn an_agent_without_credentials_says_so_too() {
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "repositories", json!({})),
        1 => call("c1", "refresh", json!({})),
        _ => FnProvider::text("Done."),
    });
    let (_, show) = stage.with(|b| b.tool(careless()).tool(refreshing())).play("List them.").await;
    assert!(show.results().iter().all(|text| text.contains("No 'github' account is connected")));
}
