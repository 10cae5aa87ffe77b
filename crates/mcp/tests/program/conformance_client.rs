//! The client that the official conformance suite of the Model Context Protocol starts: the address of the suite's
//! server is its last argument. It connects, logs in as a person who agrees to everything, calls every tool, and agrees
//! to whatever the server asks for.

#![allow(clippy::print_stderr, reason = "the suite keeps what the client writes")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_mcp::{
    InMemoryPins, Login, McpOptions, McpServer, McpServers, Phase, ServerState, SignIn, TokenStore,
};
use archon_testkit::RealClock;
use archon_types::{
    BoxFuture, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId, Tool,
};
use serde_json::json;
use tokio::sync::Mutex;

/// The name of the server.
const SERVER: &str = "suite";
/// Maximum number of logins in a scenario.
const LOGINS: usize = 3;
/// The address by which the suite knows a client without a registration.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Maximum wait for a connection.
const LONGEST: Duration = Duration::from_secs(10);

type Failure = Box<dyn Error>;

mod caller;

use caller::result_of;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let given = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let given: Json = serde_json::from_str(&given).unwrap_or_default();
    let address = std::env::args().next_back().ok_or("usage: conformance_client ADDRESS")?;
    let mut server = McpServer::http(address);
    if scenario.starts_with("auth/") {
        server = server.with_sign_in(sign_in(&scenario, &given));
    }
    let store: Arc<dyn CredentialStore> = Arc::new(Tokens::default());
    let options = McpOptions::new(Arc::new(RealClock::new()), Arc::new(InMemoryPins::default()))
        .with_tokens(TokenStore::new(store, TenantId::from("suite")))
        .with_questions_during_calls();
    for _ in 0..LOGINS {
        if called_all(&server, &options, &given).await? {
            return Ok(());
        }
        log_in(&server, &options).await?;
    }
    called_all(&server, &options, &given).await?.then_some(()).ok_or_else(|| "logged in often enough".into())
}

fn sign_in(scenario: &str, given: &Json) -> SignIn {
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let secret = given["client_secret"].as_str().map(Secret::from);
    match scenario {
        "auth/client-credentials-basic" => SignIn::program(text("client_id"), text("client_secret")),
        _ if given["client_id"].is_string() => SignIn::person().with_client(text("client_id"), secret),
        _ => SignIn::person().with_client_document(DOCUMENT),
    }
}

/// Connects and calls the tools. Returns false if a login is needed.
async fn called_all(server: &McpServer, options: &McpOptions, given: &Json) -> Result<bool, Failure> {
    let servers = McpServers::start([(SERVER.to_owned(), server.clone())], options)?;
    let end = Instant::now() + LONGEST;
    // The second attempt is one with the older handshake.
    let tools = loop {
        let tools = servers.tools(LONGEST).await;
        match servers.status().into_iter().next().map(|status| status.state) {
            Some(ServerState::Ready) => break tools,
            Some(ServerState::Down(error)) if error.phase == Phase::SignIn => {
                eprintln!("{error}");
                return Ok(false);
            }
            state if Instant::now() > end => return Err(format!("not connected: {state:?}").into()),
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    let mut is_allowed = true;
    for (tool, arguments) in calls(&tools, given) {
        let text = match result_of(&**tool, arguments).await {
            Ok(result) => result.text(),
            Err(error) => error.to_string(),
        };
        eprintln!("{}: {text}", tool.spec().name);
        is_allowed &= !text.contains("phase sign-in");
    }
    servers.close().await;
    Ok(is_allowed)
}

/// Returns the calls that the suite wants, or one of each tool.
fn calls<'t>(tools: &'t [Arc<dyn Tool>], given: &Json) -> Vec<(&'t Arc<dyn Tool>, Json)> {
    let wanted = given["toolCalls"].as_array().cloned().unwrap_or_default();
    let named = |name: &str| tools.iter().find(|tool| tool.spec().name == format!("{SERVER}__{name}"));
    match wanted.is_empty() {
        true => tools.iter().map(|tool| (tool, arguments(&tool.spec().parameters))).collect(),
        false => wanted
            .iter()
            .filter_map(|call| Some((named(call["name"].as_str()?)?, call["arguments"].clone())))
            .collect(),
    }
}

/// Makes arguments that satisfy a simple schema.
fn arguments(schema: &Json) -> Json {
    let value = |schema: &Json| match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    fields.into_iter().map(|(name, schema)| (name, value(&schema))).collect::<serde_json::Map<_, _>>().into()
}

/// Logs in. The suite's authorization server agrees at once, and answers with the address of the answer.
async fn log_in(server: &McpServer, options: &McpOptions) -> Result<(), Failure> {
    let login = Login::begin(SERVER, server, options).await?;
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let page = browser.get(login.url()).send().await?;
    let answer = page.headers().get("location").ok_or("the authorization server sent the browser nowhere")?;
    Ok(login.finish(answer.to_str()?).await?)
}

/// The tokens of this run.
#[derive(Default)]
struct Tokens(Mutex<Vec<(CredentialKey, Secret<Json>)>>);

impl CredentialStore for Tokens {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        Box::pin(async move {
            let mut kept = self.0.lock().await;
            let before = kept.len();
            kept.retain(|(other, _)| other != key);
            let was_there = kept.len() < before;
            kept.extend(credentials.map(|credentials| (key.clone(), credentials)));
            Ok(was_there)
        })
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        Box::pin(async move {
            let kept = self.0.lock().await;
            Ok(kept.iter().find(|(other, _)| other == key).map(|(_, credentials)| credentials.clone()))
        })
    }

    fn list<'a>(
        &'a self,
        _: &'a TenantId,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
