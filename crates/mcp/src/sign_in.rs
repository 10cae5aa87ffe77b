//! The settings of a sign-in: who signs in, as which client, and for what.

use archon_types::Secret;

/// The sign-in at a server that requires one: OAuth 2.1, as the protocol prescribes it.
///
/// ```
/// use archon_mcp::{McpServer, SignIn};
///
/// let tickets = McpServer::http("https://tickets.example.com/mcp").with_sign_in(SignIn::person());
/// let nightly = SignIn::program("archon-nightly", "client-secret").with_issuer("https://login.example.com");
/// let reports = McpServer::http("https://reports.example.com/mcp").with_sign_in(nightly);
/// # drop((tickets, reports));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignIn {
    /// The party that signs in.
    pub by: SignInBy,
    /// The client's id at the authorization server, if somebody registered it there. Without one, a person's
    /// sign-in uses the client document, if there is one and the server knows such documents, and else registers
    /// a client.
    pub client_id: Option<String>,
    /// The client's secret, if it has one. It goes to the authorization server that the MCP server names, unless
    /// the issuer is set.
    pub client_secret: Option<Secret>,
    /// The `https` address of a client ID metadata document: a page of yours that describes the client. Its
    /// `redirect_uris` must have `http://127.0.0.1/callback`; the port differs from login to login.
    pub client_document: Option<String>,
    /// The scopes to ask for. Default: for a person, those that the server names; for a program, none, so the
    /// authorization server chooses.
    pub scopes: Vec<String>,
    /// The authorization server, by its issuer address. Another authorization server is refused, and only
    /// the one that is set here may be at a private address. Default: any that the MCP server names.
    pub issuer: Option<String>,
}

/// The party that signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignInBy {
    /// A person, with a browser. The login is done once, and its tokens are kept.
    Person,
    /// This program, with the id and the secret of a client (the grant `client_credentials`).
    Program,
}

impl SignIn {
    /// Creates the sign-in of a person. Its tokens come from a login, which the feature `sign-in` provides.
    pub fn person() -> Self {
        Self {
            by: SignInBy::Person,
            client_id: None,
            client_secret: None,
            client_document: None,
            scopes: Vec::new(),
            issuer: None,
        }
    }

    /// Creates the sign-in of a program, without a person: with a client's id and secret.
    pub fn program(id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self { by: SignInBy::Program, ..Self::person().with_client(id, Some(secret.into())) }
    }

    /// Sets a client that somebody registered at the authorization server, with its secret if it has one.
    ///
    /// ```
    /// use archon_mcp::SignIn;
    /// let sign_in = SignIn::person().with_client("archon-desk", None);
    /// ```
    pub fn with_client(mut self, id: impl Into<String>, secret: Option<Secret>) -> Self {
        self.client_id = Some(id.into());
        self.client_secret = secret;
        self
    }

    /// Sets the `https` address of a client ID metadata document: a page of yours that describes the client.
    ///
    /// ```
    /// use archon_mcp::SignIn;
    /// let sign_in = SignIn::person().with_client_document("https://desk.example.com/client.json");
    /// ```
    pub fn with_client_document(mut self, address: impl Into<String>) -> Self {
        self.client_document = Some(address.into());
        self
    }

    /// Sets the scopes to ask for; see the field [`scopes`](Self::scopes) for the default.
    ///
    /// ```
    /// let sign_in = archon_mcp::SignIn::person().with_scopes(["tickets:read"]);
    /// ```
    pub fn with_scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the authorization server, by its issuer address. Another authorization server is refused. Default:
    /// any that the MCP server names.
    ///
    /// ```
    /// let sign_in = archon_mcp::SignIn::person().with_issuer("https://login.example.com");
    /// ```
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}
