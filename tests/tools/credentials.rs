//! Accounts that tools act with: reached through the context, asked for where they are missing, and never seen.

use std::sync::Arc;

use archon::{
    Archon, OutcomeStatus, RunOptions, ToolContext, ToolError, ToolResult,
    store::{InMemoryCredentials, InMemoryJournal},
    tools::FnTool,
    types::{CredentialKey, CredentialStore, Journal, Json, ProviderError, Secret, ToolSpec},
};
use archon_testkit::{Ended, FnProvider, MockResponse, MockServer, RecordingSink, SeededIds, VirtualClock};
use serde_json::json;

use crate::{
    shared::stage::{Show, Stage, call},
    shared::wire,
};

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

async fn store() -> Arc<InMemoryCredentials> {
    let store = InMemoryCredentials::new(Arc::new(VirtualClock::new()));
    for tenant in ["ann", "bob"] {
        let key = CredentialKey::primary(tenant.into(), "github");
        let value = json!({ "user": tenant, "token": format!("{CANARY}-{tenant}") });
        store.save(&key, Secret::new(value)).await.unwrap();
    }
    Arc::new(store)
}

fn agent(ways: &'static [&'static str], store: Arc<InMemoryCredentials>) -> Show {
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
async fn credential_never_appears_in_records_events_requests_or_outcome() {
    let show = agent(&["result", "error", "panic"], store().await);
    let outcome = show.says("List them.", on_behalf_of("ann")).await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    let results = show.results();
    assert!(results[0].starts_with("one of \"ann\": {\"url\":\"https://x.test/?key=****\""), "{results:?}");
    assert_eq!(results[1], "Error: 401 for ****");
    assert!(results[2].contains("failed because of a bug in the tool"), "{results:?}");
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
async fn missing_account_error_is_reported_to_the_user() {
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
async fn resumed_run_uses_the_credentials_of_its_tenant() {
    let store = store().await;
    let stage = Stage::new(|n, request| match n {
        0 => vec![Err(ProviderError::Auth("the key was refused".into()))],
        1 => call("c1", "repositories", json!({})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let show = stage.with(|b| b.tool(careless()).credentials(store)).raise();
    let failed = show.says("List them.", on_behalf_of("bob")).await;
    assert_eq!(failed.status, OutcomeStatus::Failed);
    // Whoever takes it up says nothing of tenants.
    let resumed = show.agent.resume(failed.run).await.unwrap().reply().await.ended();
    assert!(resumed.last_text().unwrap_or_default().starts_with("one of \"bob\""), "{resumed:?}");
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
async fn tool_stores_refreshed_credentials() {
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
async fn tool_without_a_credential_store_is_an_error() {
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "repositories", json!({})),
        1 => call("c1", "refresh", json!({})),
        _ => FnProvider::text("Done."),
    });
    let (_, show) = stage.with(|b| b.tool(careless()).tool(refreshing())).play("List them.").await;
    assert!(show.results().iter().all(|text| text.contains("No 'github' account is connected")));
}

/// `sk-canary-1234567` as it is, in base64 alone and behind a word, in a URL and in hex.
const KEY: &str = "sk-canary-1234567";
const KEY_FORMS: [&str; 5] = [
    KEY,
    "c2stY2FuYXJ5LTEyMzQ1Njc=",
    "a2V5IHNrLWNhbmFyeS0xMjM0NTY3",
    "%73%6b%2d%63%61%6e%61%72%79%2d%31%32%33%34%35%36%37",
    "736B2D63616E6172792D31323334353637",
];
/// What of them must be nowhere; the first digits of the third say something of the word in front.
const TRACES: [&str; 5] =
    ["canary", "c2stY2FuYXJ5", "NrLWNhbmFyeS0x", "%73%6b%2d%63%61", "736B2D63616E617279"];

// spec: CR-05, P-05
#[tokio::test]
async fn model_key_never_appears_in_any_encoding() {
    let forms = KEY_FORMS.join(" ");
    // Every delta ends in the middle of the key.
    let pieces: Vec<String> = forms.split_inclusive("23").map(wire::text).collect();
    let thinking = json!({"choices": [{"index": 0, "delta": {"reasoning_content": forms}}]}).to_string();
    let mut asks = vec![thinking];
    asks.extend(pieces.clone());
    asks.push(wire::call(0, "c0", "look", &json!({"key": KEY, KEY: [forms]}).to_string()));
    asks.extend([wire::finish("tool_calls"), "[DONE]".to_owned()]);
    let answers = pieces.into_iter().chain([wire::finish("stop"), "[DONE]".to_owned()]);
    let refused = MockResponse::json(401, &json!({"error": {"message": forms}}));
    let server =
        MockServer::start([MockResponse::events(asks), MockResponse::events(answers), refused]).await;
    // A tool that finds the key in a file.
    let work = |arguments: Json, context: ToolContext| async move {
        let forms = KEY_FORMS.join(" ");
        context.on_progress(forms.clone());
        context.on_update(ToolResult::success(forms.clone()));
        let mut result =
            ToolResult::success(format!("{forms} {arguments}")).with_metadata(KEY, json!([forms]));
        result.error_message = Some(forms);
        Ok::<_, ToolError>(result)
    };
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
    let (journal, sink) = (InMemoryJournal::new(), RecordingSink::new());
    let agent = Archon::builder()
        .model(format!("openai-compatible@{}/v1:mock", server.url()))
        .api_keys([KEY])
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .system(format!("The key is {KEY}."))
        .tool(Arc::new(FnTool::new(spec, work)) as Arc<dyn archon::Tool>)
        .build()
        .unwrap();
    let mut seen = String::new();
    for status in [OutcomeStatus::Finished, OutcomeStatus::Failed] {
        let options = RunOptions::default().watched_by(Arc::new(sink.clone()));
        let outcome = agent.run_with(format!("Look: {forms}"), options).await.ended();
        assert_eq!(outcome.status, status, "{outcome:?}");
        seen += &format!("{outcome:?}\n");
        for record in journal.read(&outcome.run).await.unwrap() {
            seen += &serde_json::to_string(&record).unwrap();
            seen.push('\n');
        }
    }
    seen += &format!("{:?} {}", sink.events(), sink.texts().concat());
    for trace in TRACES {
        let found = seen.lines().find(|line| line.contains(trace));
        assert_eq!(found, None, "{trace}");
    }
    assert!(seen.contains("**** **** a2V5IH**** **** ****"), "{seen}");
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert!(!request.text.contains("canary"), "{}", request.text);
    }
}
