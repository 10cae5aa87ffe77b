//! A person's login to a server, with a browser: OAuth 2.1 with a code and PKCE.

use archon_types::Redactor;
use reqwest::Url;
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use tokio::net::TcpListener;

use crate::{
    McpError, McpOptions, McpProblem, McpServer, Phase, SignIn, SignInBy,
    access::{Found, no_tokens, problem, quiet},
    connection::within,
    redirect,
    text::{MESSAGE, plain},
    tokens::StoredLogin,
};

/// The name of the client, which the authorization server shows to the person.
const CLIENT_NAME: &str = "Archon";

/// A person's login to a server, with a browser. The login stores its tokens in [`McpOptions::tokens`]. The
/// server's connection uses them from its next attempt on.
///
/// ```no_run
/// use archon_mcp::{Login, McpError, McpOptions, McpServer, SignIn};
///
/// # async fn run(options: &McpOptions) -> Result<(), McpError> {
/// let tickets = McpServer::http("https://tickets.example.com/mcp").with_sign_in(SignIn::person());
/// let login = Login::begin("tickets", &tickets, options).await?;
/// println!("Open this address in a browser: {}", login.url());
/// login.wait().await?;
/// # Ok(())
/// # }
/// ```
pub struct Login {
    server: String,
    manager: AuthorizationManager,
    redactor: Redactor,
    url: String,
    state: String,
    listener: TcpListener,
}

impl Login {
    /// Finds the authorization server of an MCP server, registers a new client there if the settings name none,
    /// and makes the address that the person has to open. `name` is the MCP server's name in errors.
    ///
    /// The login asks for the scopes in the settings; if there are none, for those that the MCP server names and
    /// those that were granted before. If the MCP server has refused a call because a scope was missing, the login
    /// asks for that scope too.
    ///
    /// # Errors
    /// The settings do not say that a person signs in, the options have no store of tokens, or the authorization
    /// server is not found or refuses the registration.
    pub async fn begin(name: &str, server: &McpServer, options: &McpOptions) -> Result<Self, McpError> {
        let (limit, redactor) = (server.timeouts.initialize, server.redactor());
        let beginning = Box::pin(quiet(begun(name, server, options, &redactor)));
        let begun = within(&*options.clock, limit, beginning).await;
        begun
            .unwrap_or(Err(McpProblem::Timeout(limit)))
            .map_err(|problem| McpError::new(name, Phase::SignIn, problem).cleaned(&redactor))
    }

    /// Returns the address that the person has to open. Its scheme is `https`, or `http` on this machine.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until the person has agreed in a browser on this machine, and fetches the tokens. There is no time
    /// limit. While a program awaits this future, it can also wait for an address that the person pastes, and
    /// pass that to [`finish`](Self::finish).
    ///
    /// # Errors
    /// The person or the authorization server refused, or the tokens cannot be fetched or stored.
    pub async fn wait(&self) -> Result<(), McpError> {
        let address = redirect::answer(&self.listener, &self.state).await;
        self.finish(&address.map_err(|e| self.error(McpProblem::Io(e.to_string())))?).await
    }

    /// Fetches the tokens with the address at which the browser ended. This is for a browser on another
    /// machine: the browser cannot open that address and shows an error, but the person can copy the address.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and if the address is not the answer to this login.
    pub async fn finish(&self, address: &str) -> Result<(), McpError> {
        quiet(self.finished(address)).await.map_err(|problem| self.error(problem))
    }

    async fn finished(&self, address: &str) -> Result<(), McpProblem> {
        let refused = |why: &str| Err(McpProblem::Protocol(plain(why, MESSAGE)));
        let Ok(address) = Url::parse(address.trim()) else {
            return refused("this is not an address; copy the whole address from the browser");
        };
        let field = |name| {
            let mut fields = address.query_pairs();
            fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if field("state").as_ref() != Some(&self.state) {
            return refused("this address is not the answer to this login");
        }
        if let Some(error) = field("error") {
            let more = field("error_description").map(|text| format!(" ({text})")).unwrap_or_default();
            return refused(&format!("the authorization server refused the login: {error}{more}"));
        }
        let Some(code) = field("code") else {
            return refused("the answer of the authorization server has no code");
        };
        let issuer = field("iss");
        let exchange =
            self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref());
        exchange.await.map(drop).map_err(|e| problem(&e))
    }

    fn error(&self, problem: McpProblem) -> McpError {
        McpError::new(&self.server, Phase::SignIn, problem).cleaned(&self.redactor)
    }
}

archon_types::debug_fields!(Login: server);

async fn begun(
    name: &str,
    server: &McpServer,
    options: &McpOptions,
    redactor: &Redactor,
) -> Result<Login, McpProblem> {
    let Some(sign_in) = server.sign_in.as_ref().filter(|sign_in| sign_in.by == SignInBy::Person) else {
        let why = "the server's settings have no sign-in of a person, so no login is possible";
        return Err(McpProblem::Invalid(why.to_owned()));
    };
    let address = &server.signed_in_address()?.url;
    let tokens = options.tokens.as_ref().ok_or_else(no_tokens)?;
    let (listener, redirect) = redirect::listen().await.map_err(|e| {
        McpProblem::Io(format!("no port of this machine can be opened for the browser's answer: {e}"))
    })?;
    let Found { mut manager, metadata, issuer } = Found::at(address, sign_in).await?;
    let mut account = tokens.account(address, &issuer, redactor.clone());
    // A login that cannot be read is replaced by this one.
    let scopes = scopes(&manager, sign_in, account.load_login().await.ok().flatten()).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let client = match known_client(sign_in, &metadata, &redirect) {
        Some(client) => client,
        None if metadata.registration_endpoint.is_none() => {
            return Err(McpProblem::Invalid(
                "the authorization server does not register clients by itself; register a client there, and set its \
                 id in the settings of the sign-in"
                    .to_owned(),
            ));
        }
        None => {
            let client = manager.register_client(CLIENT_NAME, &redirect, &scopes).await;
            let client = client.map_err(|e| problem(&e))?;
            account.client_secret = client.client_secret.clone();
            client
        }
    };
    manager.configure_client(client).map_err(|e| problem(&e))?;
    manager.set_credential_store(account);
    let url = manager.get_authorization_url(&scopes).await.map_err(|e| problem(&e))?;
    let state = Url::parse(&url).ok().and_then(|url| {
        let mut fields = url.query_pairs();
        fields.find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
    });
    let state =
        state.ok_or_else(|| McpProblem::Protocol("the address of the login has no state".to_owned()))?;
    Ok(Login { server: name.to_owned(), manager, redactor: redactor.clone(), url, state, listener })
}

/// Returns the client in the settings: a client that is already registered, or the client document if the
/// authorization server supports such documents.
fn known_client(
    sign_in: &SignIn,
    metadata: &AuthorizationMetadata,
    redirect: &str,
) -> Option<OAuthClientConfig> {
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let document = sign_in.client_document.as_ref();
    let document = document.filter(|_| reads_documents.is_some_and(|reads| reads.as_bool() == Some(true)));
    let mut client = OAuthClientConfig::new(sign_in.client_id.as_ref().or(document)?, redirect);
    client.client_secret = sign_in.client_secret.as_ref().map(|secret| secret.expose().clone());
    Some(client)
}

/// Returns the scopes that a login asks for.
async fn scopes(
    manager: &AuthorizationManager,
    sign_in: &SignIn,
    stored: Option<StoredLogin>,
) -> Vec<String> {
    let mut scopes = match sign_in.scopes.is_empty() {
        true => manager.select_initial_scopes(&[]).await,
        false => sign_in.scopes.clone(),
    };
    if let Some(stored) = stored.filter(|stored| sign_in.scopes.is_empty() || !stored.wanted.is_empty()) {
        // What was granted is asked for again: the new token replaces the old one.
        for scope in stored.credentials.granted_scopes.into_iter().chain(stored.wanted) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
    }
    scopes
}
