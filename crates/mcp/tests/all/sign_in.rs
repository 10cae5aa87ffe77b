//! Sign-in with OAuth: logins, renewal, scopes, issuers, programs, and secrets that are never shown.

use std::{
    io,
    sync::{Arc, Mutex},
};

use archon_mcp::SignIn;
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    support::{call, failure, tool},
    two_servers::World,
    web_servers::{CLIENT_SECRET, CODE, agreed, field},
};

/// Calls the tool of the server and returns the text of the result.
async fn called(world: &World, sign_in: SignIn, text: &str) -> String {
    let servers = world.connect(sign_in);
    let text = call(&*tool(&servers, "web__echo").await, text).await.text();
    servers.close().await;
    text
}

/// Returns the text of the failure to connect.
async fn refused(world: &World, sign_in: SignIn) -> String {
    let servers = world.connect(sign_in);
    let text = failure(&servers, "web").await;
    servers.close().await;
    text
}

// spec: MC-06
#[tokio::test]
async fn a_person_logs_in_with_a_browser_and_the_tools_can_be_called() {
    let world = World::start().await;
    let text = refused(&world, SignIn::person()).await;
    assert_eq!(
        text,
        "MCP server 'web', phase sign-in: the server requires a sign-in: nobody has logged in yet. Log in to \
         the server (`Login::begin`)."
    );
    let login = world.begin(SignIn::person()).await.unwrap();
    let url = login.url().to_owned();
    assert_eq!(field(&url, "code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(field(&url, "scope").as_deref(), Some("read"));
    let resource = format!("{}/mcp", world.mcp.url());
    assert_eq!(field(&url, "resource"), Some(resource.clone()));
    let address = agreed(&url, &world.logins.url());
    // Any page can make a browser send a request to this port.
    let strange = address.replace("state=", "state=another");
    let browser = async {
        assert_eq!(reqwest::get(strange).await.unwrap().status(), 404);
        reqwest::get(address).await.unwrap().text().await.unwrap()
    };
    let (logged_in, page) = tokio::join!(login.wait(), browser);
    logged_in.unwrap();
    assert!(page.contains("go back to the program"), "{page}");
    assert_eq!(world.kept.accounts(), [format!("{resource} {}", world.logins.url())]);
    assert_eq!(world.forms()[0].get("resource"), Some(&resource));

    let text = called(&world, SignIn::person(), "my token is access-token-1, or refresh-token-1").await;
    assert_eq!(text, "my token is ****, or ****");
    assert_eq!(world.tokens_seen(), ["access-token-1"]);
}

// spec: MC-06
#[tokio::test]
async fn an_answer_that_another_issuer_sent_is_refused_and_its_code_is_not_used() {
    let world = World::start().await;
    let login = world.begin(SignIn::person()).await.unwrap();
    let good = agreed(login.url(), &world.logins.url());
    let no_issuer = good.split("&iss=").next().unwrap().to_owned();
    for (address, why) in [
        (agreed(login.url(), "https://evil.example.com"), "issuer mismatch"),
        (no_issuer, "missing required issuer"),
        (good.replace("state=", "state=x"), "not the answer to this login"),
        (good.replace("code=", "error=access_denied&error_description=No.&c="), "access_denied (No.)"),
        ("localhost".to_owned(), "this is not an address"),
    ] {
        let error = login.finish(&address).await.unwrap_err().to_string();
        assert!(error.contains("phase sign-in") && error.contains(why), "{error}");
    }
    assert_eq!((world.forms().len(), world.kept.accounts().len()), (0, 0));
    login.finish(&good).await.unwrap();
}

// spec: MC-06
#[tokio::test]
async fn an_authorization_server_that_says_it_is_another_one_or_is_not_the_expected_one_is_refused() {
    let world = World::start().await;
    let expected = SignIn::person().with_issuer("https://login.example.com");
    let error = world.begin(expected.clone()).await.unwrap_err().to_string();
    assert!(error.contains("but the settings require 'https://login.example.com'"), "{error}");
    let error = refused(&world, expected).await;
    assert!(error.contains("but the settings require"), "{error}");
    world.begin(SignIn::person().with_issuer(world.logins.url())).await.unwrap();

    world.state().issuer = Some("https://login.example.com".to_owned());
    let error = world.begin(SignIn::person()).await.unwrap_err().to_string();
    assert!(error.contains("phase sign-in") && error.contains("issuer mismatch"), "{error}");
    assert!(world.forms().is_empty());
}

// spec: MC-06
#[tokio::test]
async fn tokens_of_one_issuer_are_not_used_when_the_server_names_another_one() {
    let world = World::start().await;
    world.log_in(SignIn::person()).await.unwrap();
    let other = World::start().await;
    world.state().named = other.logins.url();
    let text = refused(&world, SignIn::person()).await;
    assert!(text.contains("nobody has logged in yet"), "{text}");
    assert_eq!((world.tokens_seen().len(), other.forms().len()), (0, 0));

    let options = world.options();
    assert!(options.tokens.as_ref().unwrap().log_out(&world.server(SignIn::person())).await.unwrap());
    assert_eq!(world.kept.accounts().len(), 0);
}

// spec: MC-06
#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_never_sent_after() {
    let world = World::start().await;
    world.state().lifetime = Some(0);
    world.log_in(SignIn::person()).await.unwrap();
    world.state().lifetime = Some(3600);
    assert_eq!(called(&world, SignIn::person(), "hello").await, "hello");
    assert_eq!(world.tokens_seen(), ["access-token-2"]);
    let renewal = &world.forms()[1];
    assert_eq!(renewal.get("refresh_token").map(String::as_str), Some("refresh-token-1"));
    assert_eq!(renewal.get("resource"), Some(&format!("{}/mcp", world.mcp.url())));
    // The renewed ones are kept.
    assert_eq!(called(&world, SignIn::person(), "again").await, "again");
    assert_eq!(world.forms().len(), 2);
}

// spec: MC-06, MC-08
#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    let world = World::start().await;
    world.log_in(SignIn::person()).await.unwrap();
    let servers = world.connect(SignIn::person());
    let echo = tool(&servers, "web__echo").await;
    world.state().accepted.clear();
    assert_eq!(call(&*echo, "hello").await.text(), "hello");
    assert_eq!((world.tokens_seen(), world.forms().len()), (vec_of(["access-token-1", "access-token-2"]), 2));

    world.state().is_useless = true;
    world.state().accepted.clear();
    let text = call(&*echo, "hello").await.text();
    assert!(
        text.contains("phase sign-in: the server requires a sign-in: the server rejected the access token"),
        "{text}"
    );
    assert!(text.contains("Log in to the server (`Login::begin`)."), "{text}");
    assert_eq!(world.forms().len(), 3);
    servers.close().await;
}

// spec: MC-08
#[tokio::test]
async fn a_login_that_has_ended_is_reported_as_such() {
    let world = World::start().await;
    world.state().lifetime = Some(0);
    world.log_in(SignIn::person()).await.unwrap();
    // The authorization server knows the refresh token no more.
    world.state().issued = 7;
    let text = refused(&world, SignIn::person()).await;
    assert!(text.contains("phase sign-in") && text.contains("the last login is no longer valid"), "{text}");
    assert!(!text.contains("refresh-token") && world.tokens_seen().is_empty(), "{text}");
}

// spec: MC-06, MC-08
#[tokio::test]
async fn a_missing_scope_is_named_and_the_next_login_asks_for_it_too() {
    let world = World::start().await;
    world.log_in(SignIn::person()).await.unwrap();
    world.state().needed = Some("write".to_owned());
    let text = called(&world, SignIn::person(), "hello").await;
    assert!(
        text.contains("phase sign-in: the server refuses the request without the scope 'write'"),
        "{text}"
    );
    assert!(text.contains("Log in to the server again"), "{text}");
    let login = world.begin(SignIn::person()).await.unwrap();
    assert_eq!(field(login.url(), "scope").as_deref(), Some("read write"));
    world.state().needed = None;
    login.finish(&agreed(login.url(), &world.logins.url())).await.unwrap();
    assert_eq!(called(&world, SignIn::person(), "hello").await, "hello");
    // What was granted is asked for again.
    let login = world.begin(SignIn::person()).await.unwrap();
    assert_eq!(field(login.url(), "scope").as_deref(), Some("read write"));
    let login = world.begin(SignIn::person().with_scopes(["read"])).await.unwrap();
    assert_eq!(field(login.url(), "scope").as_deref(), Some("read"));
}

// spec: MC-06
#[tokio::test]
async fn a_program_signs_in_with_its_secret_and_gets_a_new_token_when_one_expires_or_is_refused() {
    let world = World::start().await;
    world.state().lifetime = Some(0);
    let nightly = SignIn::program("nightly", CLIENT_SECRET).with_scopes(["read"]);
    let servers = world.connect(nightly);
    let echo = tool(&servers, "web__echo").await;
    // The first one had expired before it was used.
    assert!(!world.tokens_seen().contains(&"access-token-1".to_owned()));
    world.state().lifetime = Some(3600);
    assert_eq!(call(&*echo, CLIENT_SECRET).await.text(), "****");
    world.state().accepted.clear();
    assert_eq!(call(&*echo, "hello").await.text(), "hello");
    let form = &world.forms()[0];
    assert_eq!(form.get("scope").map(String::as_str), Some("read"));
    assert_eq!(form.get("resource"), Some(&format!("{}/mcp", world.mcp.url())));
    assert!(world.kept.accounts().is_empty());
    servers.close().await;

    let text = refused(&world, SignIn::program("other", CLIENT_SECRET)).await;
    assert!(text.contains("phase sign-in") && !text.contains(CLIENT_SECRET), "{text}");
}

#[tokio::test]
async fn begin_of_a_login_uses_the_client_of_the_settings_before_it_registers_one() {
    let world = World::start().await;
    let document = "https://app.example.com/client.json";
    for (sign_in, client) in [
        (SignIn::person().with_client("by-hand", None), "by-hand"),
        (SignIn::person().with_client_document(document), document),
        (SignIn::person().with_client_document(document).with_client("by-hand", None), "by-hand"),
        (SignIn::person(), "client-1"),
    ] {
        let login = world.begin(sign_in).await.unwrap();
        assert_eq!(field(login.url(), "client_id").as_deref(), Some(client));
    }
    let registered = world.logins.requests().into_iter().filter(|request| request.path == "/register");
    let registered: Vec<_> = registered.collect();
    assert_eq!(registered.len(), 1);
    let redirect = registered[0].body["redirect_uris"][0].as_str().unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback"), "{redirect}");
}

// spec: MC-08
#[tokio::test]
async fn a_sign_in_that_cannot_work_is_a_fault_of_the_settings() {
    let world = World::start().await;
    let person = || SignIn::person();
    let mut options = world.options();
    let both = world.server(person()).with_secret("authorization", "Bearer sk-secret-1");
    let command = archon_mcp::McpServer::stdio("files", [""; 0]).with_sign_in(person());
    let without = archon_mcp::McpServer::http(world.mcp.url());
    let program = world.server(SignIn::program("id", "secret"));
    for (server, why) in [
        (both, "a sign-in and a header `Authorization`"),
        (command, "the server is started with a command"),
        (without, "no sign-in of a person"),
        (program, "no sign-in of a person"),
    ] {
        let begun = archon_mcp::Login::begin("web", &server, &options).await;
        let error = begun.unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("Correct the settings"), "{error}");
    }
    options.tokens = None;
    let begun = archon_mcp::Login::begin("web", &world.server(person()), &options).await;
    assert!(begun.unwrap_err().to_string().contains("needs a store of tokens"));
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn logs_of_all_levels_have_no_code_and_no_token() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(lines.clone())
        .finish();
    // While there is one dispatcher only, a thread without it switches a callsite off for all threads.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    // All tasks of the test run on this thread.
    let logged = tracing::subscriber::set_default(subscriber);
    let world = World::start().await;
    world.state().lifetime = Some(0);
    world.log_in(SignIn::person()).await.unwrap();
    world.state().lifetime = Some(3600);
    let servers = world.connect(SignIn::person());
    let echo = tool(&servers, "web__echo").await;
    world.state().accepted.clear();
    assert_eq!(call(&*echo, "hello").await.text(), "hello");
    servers.close().await;
    assert_eq!(refused(&world, SignIn::program("nobody", CLIENT_SECRET)).await.matches("phase").count(), 1);
    drop(logged);

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("rmcp") && text.contains("archon::mcp"), "nothing was logged");
    let verifier = world.forms()[0]["code_verifier"].clone();
    for secret in [CODE, CLIENT_SECRET, "access-token-", "refresh-token-", &verifier] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

fn vec_of<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}
