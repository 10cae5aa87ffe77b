//! The settings of a server: its transport, its time limits, and the effects of its tools.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use archon_process::ProcessSandbox;
use archon_types::{Redactor, Secret};

use crate::{McpProblem, SignIn};

/// A server: its transport, its time limits, and the effects of its tools as a person declares them.
///
/// ```
/// use std::time::Duration;
///
/// use archon_mcp::{McpServer, McpTimeouts, SignIn};
///
/// let mut timeouts = McpTimeouts::default();
/// timeouts.call = Duration::from_secs(30);
/// let tickets = McpServer::stdio("tickets-mcp", ["--key", "key-12345678"])
///     .with_secret("TICKETS_TOKEN", "token-12345678")
///     .with_variable("TICKETS_PROJECT", "shop")
///     .with_hidden("key-12345678")
///     .with_identity("tickets")
///     .with_read_only(["find_ticket"])
///     .with_timeouts(timeouts);
/// let reports = McpServer::http("https://reports.example.com/mcp").with_sign_in(SignIn::person());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// The transport: a process, or an address.
    pub transport: Transport,
    /// The time limits.
    pub timeouts: McpTimeouts,
    /// The tools that change nothing, by their names on the server; `*` means all tools. Only this setting
    /// counts, not the server's own description. A call of such a tool needs no approval, and is repeated
    /// after a crash.
    pub read_only: Vec<String>,
    /// The tools whose changes can be undone; `*` means all tools. By default, calls of such tools need no
    /// approval; a program can require approval for every change.
    pub reversible: Vec<String>,
    /// The treatment of the server's tools while it has no pins. Default: the treatment in
    /// [`McpOptions::first_use`](crate::McpOptions::first_use).
    pub first_use: Option<FirstUse>,
    /// The maximum size of a message in bytes; a longer message is an error. Default 8 MiB.
    pub max_message: usize,
    /// The sign-in at a server at a web address. It needs the feature `sign-in`.
    pub sign_in: Option<SignIn>,
    /// Further secrets that are removed from the server's texts, for instance a key in an argument or in the
    /// address.
    pub hidden: Vec<Secret>,
    /// The identity in pins, if it is not the command line or the address.
    pub(crate) identity: Option<String>,
    /// The sandbox of the process of a server that is started with a command.
    pub(crate) sandbox: Option<Sandbox>,
}

/// A sandbox; two are equal if they are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox(pub(crate) Arc<dyn ProcessSandbox>);

impl PartialEq for Sandbox {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Sandbox {}

impl McpServer {
    /// Creates a server that is started with a command.
    pub fn stdio<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        Self::over(Transport::Stdio(StdioServer {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            plain_env: BTreeMap::new(),
            folder: None,
        }))
    }

    /// Creates a server at a web address. It needs the feature `http`.
    pub fn http(url: impl Into<String>) -> Self {
        Self::over(Transport::Http(HttpServer { url: url.into(), headers: BTreeMap::new() }))
    }

    fn over(transport: Transport) -> Self {
        Self {
            transport,
            timeouts: McpTimeouts::default(),
            read_only: Vec::new(),
            reversible: Vec::new(),
            first_use: None,
            max_message: 8 << 20,
            sign_in: None,
            hidden: Vec::new(),
            identity: None,
            sandbox: None,
        }
    }

    /// Sets an environment variable of a server that is started with a command, or a header of each request to a
    /// server at a web address. The value is a secret: it is removed from the server's texts.
    pub fn with_secret(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.secrets().insert(name.into(), value.into());
        self
    }

    /// Sets an environment variable whose value is not a secret, such as a folder: the value is not removed
    /// from the server's texts. A server at a web address has no environment, so nothing is set.
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Stdio(stdio) = &mut self.transport {
            stdio.plain_env.insert(name.into(), value.into());
        }
        self
    }

    /// Adds a secret that is removed from the server's texts, for instance a key in an argument or in the
    /// address. A secret of fewer than 8 bytes is ignored.
    pub fn with_hidden(mut self, secret: impl Into<Secret>) -> Self {
        self.hidden.push(secret.into());
        self
    }

    /// Sets the text by which the pins recognise the server; see [`identity`](Self::identity) for the default. Use
    /// it if the command line or the address contains a key: the key is then not stored in the pins, and a new key
    /// holds no tool back. Different servers must have different identities.
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    fn secrets(&mut self) -> &mut BTreeMap<String, Secret> {
        match &mut self.transport {
            Transport::Stdio(stdio) => &mut stdio.env,
            Transport::Http(http) => &mut http.headers,
        }
    }

    /// Sets the OAuth sign-in at a server at a web address. It needs the feature `sign-in`. Default: none.
    pub fn with_sign_in(mut self, sign_in: SignIn) -> Self {
        self.sign_in = Some(sign_in);
        self
    }

    /// Starts the server's process in a sandbox, for instance `sandbox::ServerSandbox` of `archon-tools`. A
    /// server that cannot be sandboxed is not started. A server at a web address has no process, so it fails.
    /// Default: the server's process can do what this process can do.
    ///
    /// ```
    /// use archon_mcp::McpServer;
    /// use archon_process::ProcessSandbox;
    ///
    /// fn in_sandbox(sandbox: impl ProcessSandbox + 'static) -> McpServer {
    ///     McpServer::stdio("tickets-mcp", ["--stdio"]).with_sandbox(sandbox)
    /// }
    /// ```
    pub fn with_sandbox(mut self, sandbox: impl ProcessSandbox + 'static) -> Self {
        self.sandbox = Some(Sandbox(Arc::new(sandbox)));
        self
    }

    /// Returns a redactor of the secret values in texts of the server.
    pub(crate) fn redactor(&self) -> Redactor {
        let values = match &self.transport {
            Transport::Stdio(stdio) => &stdio.env,
            Transport::Http(http) => &http.headers,
        };
        let redactor = Redactor::default();
        for value in values.values() {
            redactor.add(value);
            // Of `Bearer TOKEN` the token.
            if let Some((_, token)) = value.expose().split_once(' ') {
                redactor.add(&Secret::from(token));
            }
        }
        self.hidden.iter().for_each(|secret| redactor.add(secret));
        if let Some(secret) = self.sign_in.as_ref().and_then(|sign_in| sign_in.client_secret.as_ref()) {
            redactor.add(secret);
        }
        redactor
    }

    /// Returns the web address for the sign-in. Fails if the server has no web address, or has a header
    /// `Authorization`.
    pub(crate) fn signed_in_address(&self) -> Result<&HttpServer, McpProblem> {
        let refused = |why: &str| Err(McpProblem::Invalid(why.to_owned()));
        match &self.transport {
            Transport::Stdio(_) => refused(
                "the server is started with a command, but only a server at a web address can have a sign-in",
            ),
            Transport::Http(http)
                if http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) =>
            {
                refused("the server has both a sign-in and a header `Authorization`; remove one of them")
            }
            Transport::Http(http) => Ok(http),
        }
    }

    /// Sets the tools that change nothing, by their names on the server; `*` means all tools. Calls of these tools
    /// need no approval. Default: none.
    pub fn with_read_only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.read_only = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limits; see [`McpTimeouts`] for the defaults.
    pub fn with_timeouts(mut self, timeouts: McpTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Returns the server's identity in pins: the identity that [`with_identity`](Self::with_identity) set, or
    /// else the web address, or the command line without the environment. A server with another identity is
    /// another server, so its tools must be agreed to again.
    pub fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(|| self.address())
    }

    /// Returns the command line without the environment, or the web address.
    pub(crate) fn address(&self) -> String {
        match &self.transport {
            Transport::Stdio(stdio) => {
                let words = std::iter::once(&stdio.command).chain(&stdio.args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            Transport::Http(http) => http.url.clone(),
        }
    }
}

/// The treatment of a server's tools while the server has no pins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstUse {
    /// The tools are pinned and can be used without a person's agreement (trust on first use). Later
    /// changes are held back.
    #[default]
    Trust,
    /// Each tool is held back until a person agrees to it.
    HoldBack,
}

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// A child process, over its standard input and output.
    Stdio(StdioServer),
    /// A web address, over the protocol's Streamable HTTP.
    Http(HttpServer),
}

/// A server that runs as a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioServer {
    /// The program: a name on the `PATH`, or a path.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Secret environment variables of the server; their values are removed from results. From this process the
    /// server also gets `PATH`, the language, the time zone, the type of the terminal, the user's name and shell,
    /// `HOME` and `TMPDIR`, but no other variable, so no API keys.
    pub env: BTreeMap<String, Secret>,
    /// Further variables, whose values are not secret. If a variable is also in `env`, the value in `env` is
    /// used.
    pub plain_env: BTreeMap<String, String>,
    /// The server's working folder. Default: the folder of this process.
    pub folder: Option<PathBuf>,
}

/// A server at a web address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpServer {
    /// The address: `https`, or `http` on this machine.
    pub url: String,
    /// Headers of each request, for instance `Authorization`. They are sent to this server only, also after
    /// a redirect. The values are removed from results.
    pub headers: BTreeMap<String, Secret>,
}

/// Returns a word as it would be written in a shell, so that two different commands never look alike.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The time limits of the phases of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpTimeouts {
    /// Maximum time from the start of the process to the end of the handshake; for a server at a web address, for
    /// the handshake. A sign-in before that has the same time again. Default 30 s, because many servers are
    /// installed when they are first started.
    pub initialize: Duration,
    /// Maximum time for the list of tools, with all of its pages. Default 30 s.
    pub list: Duration,
    /// Maximum time for a call of a tool, or for a request of resources or prompts. The time in which a person is
    /// asked does not count. Default 120 s.
    pub call: Duration,
    /// Time for the server's process to end by itself, and the same time again after SIGTERM; for a server at a web
    /// address, the time to tell it that its session ends. Default 2 s.
    pub close: Duration,
}

impl Default for McpTimeouts {
    fn default() -> Self {
        Self {
            initialize: Duration::from_secs(30),
            list: Duration::from_secs(30),
            call: Duration::from_secs(120),
            close: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_of_different_commands_differs() {
        let identity = |words: &[&str]| McpServer::stdio(words[0], words[1..].iter().copied()).identity();
        assert_eq!(identity(&["npx", "-y", "@scope/files@1.2"]), "npx -y @scope/files@1.2");
        assert_eq!(identity(&["npx", "-y files", "it's"]), r"npx '-y files' 'it'\''s'");
        assert_ne!(identity(&["a", "b c"]), identity(&["a", "b", "c"]));
        assert_ne!(identity(&["a", ""]), identity(&["a"]));
    }

    #[test]
    fn identity_that_is_set_replaces_the_command_line_and_not_the_address() {
        let server = McpServer::http("https://example.com/sk-hidden").with_identity("example.com/${KEY}");
        assert_eq!(server.identity(), "example.com/${KEY}");
        // Tokens of a login belong to the real address.
        assert_eq!(server.address(), "https://example.com/sk-hidden");
    }

    #[test]
    fn redactor_of_a_server_removes_its_hidden_texts() {
        let server = McpServer::stdio("files", ["--key", "sk-hidden"]).with_hidden("sk-hidden");
        assert_eq!(server.redactor().clean("it is sk-hidden".to_owned()), "it is ****");
        assert!(!format!("{:?}", server.hidden).contains("sk-hidden"));
    }

    #[test]
    fn debug_of_a_server_hides_its_variables_and_headers() {
        for server in [McpServer::stdio("files", [""; 0]), McpServer::http("https://example.com/mcp")] {
            let server = server.with_secret("KEY", "sk-hidden");
            assert!(!format!("{server:?}").contains("sk-hidden"));
        }
    }
}
