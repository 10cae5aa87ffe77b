//! An MCP server that wants a token, its authorization server, and a client of both.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use archon_mcp::{Login, McpError, McpOptions, McpServer, McpServers, SignIn, TokenStore};
use archon_testkit::MockServer;
use archon_types::{
    BoxFuture, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId,
    Timestamp,
};

use crate::{
    support,
    web_servers::{self, Shared, State, field, fields, lock},
};

/// The two servers, and the tokens that were kept.
pub(crate) struct World {
    pub(crate) mcp: MockServer,
    pub(crate) logins: MockServer,
    pub(crate) state: Shared,
    pub(crate) kept: MemoryStore,
}

impl World {
    pub(crate) async fn start() -> Self {
        let (mcp, logins, state) = web_servers::start().await;
        Self { mcp, logins, state, kept: MemoryStore::default() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn server(&self, sign_in: SignIn) -> McpServer {
        McpServer::http(format!("{}/mcp", self.mcp.url())).with_sign_in(sign_in)
    }

    pub(crate) fn options(&self) -> McpOptions {
        let store: Arc<dyn CredentialStore> = Arc::new(self.kept.clone());
        support::options().with_tokens(TokenStore::new(store, TenantId::from("me")))
    }

    /// Starts the server `web`.
    pub(crate) fn connect(&self, sign_in: SignIn) -> McpServers {
        McpServers::start([("web".to_owned(), self.server(sign_in))], &self.options()).unwrap()
    }

    pub(crate) async fn begin(&self, sign_in: SignIn) -> Result<Login, McpError> {
        let login = Login::begin("web", &self.server(sign_in), &self.options()).await?;
        self.state().challenge = field(login.url(), "code_challenge").unwrap();
        Ok(login)
    }

    /// Logs in a person who agrees.
    pub(crate) async fn log_in(&self, sign_in: SignIn) -> Result<(), McpError> {
        let login = self.begin(sign_in).await?;
        login.finish(&web_servers::agreed(login.url(), &self.logins.url())).await
    }

    /// Returns the tokens that the MCP server got, each once, in order.
    pub(crate) fn tokens_seen(&self) -> Vec<String> {
        let requests = self.mcp.requests();
        let mut seen: Vec<_> = requests
            .iter()
            .filter_map(|request| request.header("authorization")?.strip_prefix("Bearer "))
            .map(str::to_owned)
            .collect();
        seen.dedup();
        seen
    }

    /// Returns the forms that the authorization server got for tokens.
    pub(crate) fn forms(&self) -> Vec<BTreeMap<String, String>> {
        let requests = self.logins.requests();
        let forms = requests.iter().filter(|request| request.path == "/token");
        forms.map(|request| fields(&request.text)).collect()
    }
}

/// Credentials in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore(Arc<Mutex<BTreeMap<CredentialKey, Json>>>);

impl MemoryStore {
    pub(crate) fn accounts(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().map(|key| key.account.clone()).collect()
    }
}

impl CredentialStore for MemoryStore {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let mut kept = self.0.lock().unwrap();
        let before = match credentials {
            Some(credentials) => kept.insert(key.clone(), credentials.expose().clone()),
            None => kept.remove(key),
        };
        Box::pin(std::future::ready(Ok(before.is_some())))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        let found = self.0.lock().unwrap().get(key).cloned().map(Secret::new);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        let at = Timestamp::from_millis(0);
        let kept = self.0.lock().unwrap();
        let keys =
            kept.keys().filter(|key| key.tenant == *tenant && service.is_none_or(|it| it == key.service));
        let entries = keys.map(|key| CredentialEntry::new(key.clone(), at, at)).collect();
        Box::pin(std::future::ready(Ok(entries)))
    }
}
