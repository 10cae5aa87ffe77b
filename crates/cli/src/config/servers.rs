//! MCP servers in settings.

#![cfg_attr(
    not(all(unix, feature = "mcp")),
    allow(dead_code, reason = "without servers only the syntax is checked")
)]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Span, variables};

/// `[mcp.NAME]` of a settings file: an MCP server, whose tools the agent gets as `NAME__TOOL`. It has a
/// `command` or a `url`. In their texts `${VAR}` is replaced by a variable, and `${VAR:-TEXT}` by a variable
/// with a default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerSettings {
    /// The program that is started: a name on the `PATH`, or a path.
    pub(crate) command: Option<String>,
    /// The arguments of the program.
    pub(crate) args: Vec<String>,
    /// The variables of the program's environment. The program gets these, few of yours, and no key that
    /// is not set here.
    pub(crate) env: BTreeMap<String, String>,
    /// The working folder; by default the current one.
    pub(crate) cwd: Option<String>,
    /// The address of a server that is already running: `https`, or `http` on this machine.
    pub(crate) url: Option<String>,
    /// The headers of each request to the server, such as `Authorization`.
    pub(crate) headers: BTreeMap<String, String>,
    /// The sign-in at a server with a `url`, for tokens that expire; by default none.
    pub(crate) sign_in: Option<SignInSettings>,
    /// The sandbox of a server with a `command`; by default none: the server can do what you can do.
    pub(crate) sandbox: Option<SandboxSettings>,
    /// Tools that change nothing, by the server's names; `"*"` means all. Calls of all other tools need an
    /// approval.
    pub(crate) read_only: Vec<String>,
    /// Tools whose changes can be undone, by the server's names; `"*"` means all.
    pub(crate) reversible: Vec<String>,
    /// The treatment of the first tools of the server: `trust` (they are pinned unseen) or `hold-back` (each
    /// waits for `archon mcp approve`); by default `trust`.
    pub(crate) first_use: Option<FirstTools>,
    /// The timeouts of the server.
    pub(crate) timeouts: Option<ServerTimeouts>,
    /// False leaves the server out; by default true.
    pub(crate) enabled: Option<bool>,
}

/// `[mcp.NAME.sign_in]` of a settings file: the sign-in at the authorization server that the server names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SignInSettings {
    /// The party that signs in: `person` (with `archon mcp login`) or `program` (with `client_id` and
    /// `client_secret`); by default `person`.
    pub(crate) by: Option<SignInParty>,
    /// The id of a client that somebody registered at the authorization server.
    pub(crate) client_id: Option<String>,
    /// The secret of that client, as `"${VAR}"`.
    pub(crate) client_secret: Option<String>,
    /// The address of a client ID metadata document of yours.
    pub(crate) client_document: Option<String>,
    /// The scopes to ask for; by default those that the server names.
    pub(crate) scopes: Vec<String>,
    /// The only authorization server that is accepted; by default the one that the server names.
    pub(crate) issuer: Option<String>,
}

/// `[mcp.NAME.sandbox]` of a settings file: the only files and the network that the server's process can use,
/// besides the system's programs and the server's own. The table alone turns the sandbox on (Linux).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxSettings {
    /// The files and folders that can be read.
    pub(crate) read: Vec<String>,
    /// The folders that can be read and written.
    pub(crate) write: Vec<String>,
    /// True grants the network; by default false.
    pub(crate) network: bool,
}

/// The party that signs in at an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SignInParty {
    /// A person with a browser, once
    #[default]
    Person,
    /// This program, with the id and the secret of a client
    Program,
}

/// The treatment of the first tools of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FirstTools {
    /// The tools are pinned unseen
    Trust,
    /// Each tool waits for a person
    HoldBack,
}

/// `[mcp.NAME.timeouts]` of a settings file: the timeouts of a server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerTimeouts {
    /// The timeout from the start to the end of the handshake; by default `"30s"`.
    pub(crate) initialize: Option<Span>,
    /// The timeout for the list of tools; by default `"30s"`.
    pub(crate) list: Option<Span>,
    /// The timeout for a call; by default `"120s"`.
    pub(crate) call: Option<Span>,
    /// The timeout for the end of the process, used again after SIGTERM; by default `"2s"`.
    pub(crate) close: Option<Span>,
}

/// Servers by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, ServerSettings>")]
pub(crate) struct Servers(BTreeMap<String, ServerSettings>);

impl Servers {
    /// Adds another layer, which takes precedence for a server that both have.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Returns the servers, ordered by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &ServerSettings)> {
        self.0.iter()
    }

    /// Returns true if there is a server with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl TryFrom<BTreeMap<String, ServerSettings>> for Servers {
    type Error = String;

    fn try_from(servers: BTreeMap<String, ServerSettings>) -> Result<Self, String> {
        let problem = |(name, server): (&String, &ServerSettings)| {
            server.problem(name).map(|problem| format!("[mcp.{name}]: {problem}"))
        };
        match servers.iter().find_map(problem) {
            Some(problem) => Err(problem),
            None => Ok(Self(servers)),
        }
    }
}

impl SignInSettings {
    /// Returns `true` if the secret would go to an authorization server that the MCP server chooses.
    fn lacks_issuer(&self) -> bool {
        self.client_secret.is_some() && (self.issuer.is_none() || self.client_id.is_none())
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let single = [&self.client_id, &self.client_secret, &self.client_document, &self.issuer];
        single.into_iter().flatten().chain(&self.scopes).map(String::as_str)
    }

    fn lacks_client(&self) -> bool {
        self.by == Some(SignInParty::Program) && (self.client_id.is_none() || self.client_secret.is_none())
    }
}

impl ServerSettings {
    /// Returns the first problem that can be found without a connection and without the environment.
    pub(crate) fn problem(&self, name: &str) -> Option<String> {
        if let Some(why) = name_problem(name) {
            return Some(format!("a server cannot have this name: {why}"));
        }
        let problem = match (&self.command, &self.url) {
            (None, None) => "it has neither a `command` nor a `url`",
            (Some(_), Some(_)) => "it has a `command` and a `url`; remove one of them",
            (Some(_), None) if !self.headers.is_empty() => "`headers` are for a server with a `url`",
            (Some(_), None) if self.sign_in.is_some() => "`sign_in` is for a server with a `url`",
            (_, Some(_)) if self.sign_in.as_ref().is_some_and(SignInSettings::lacks_client) => {
                "a `sign_in` by `program` needs a `client_id` and a `client_secret`"
            }
            (_, Some(_)) if self.sign_in.as_ref().is_some_and(SignInSettings::lacks_issuer) => {
                "a `sign_in` with a `client_secret` needs a `client_id`, and the `issuer` that may get the secret"
            }
            (None, Some(_)) if self.sandbox.is_some() => "`sandbox` is for a server with a `command`",
            (None, Some(_)) if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() => {
                "`args`, `env` and `cwd` are for a server with a `command`"
            }
            (Some(text), _) | (_, Some(text)) if text.trim().is_empty() => "its `command` or `url` is empty",
            _ => {
                return self
                    .texts()
                    .find_map(|(part, text)| Some(format!("`{part}`: {}", variables::problem(text)?)));
            }
        };
        Some(problem.to_owned())
    }

    /// Returns the texts that may contain variables, each with the name of its setting.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let single = [("command", &self.command), ("cwd", &self.cwd), ("url", &self.url)];
        let single = single.into_iter().filter_map(|(part, text)| Some((part, text.as_deref()?)));
        let args = self.args.iter().map(|text| ("args", text.as_str()));
        let env = self.env.values().map(|text| ("env", text.as_str()));
        let headers = self.headers.values().map(|text| ("headers", text.as_str()));
        let sign_in = self.sign_in.iter().flat_map(SignInSettings::texts).map(|text| ("sign_in", text));
        let granted = self.sandbox.iter().flat_map(|sandbox| sandbox.read.iter().chain(&sandbox.write));
        let granted = granted.map(|text| ("sandbox", text.as_str()));
        single.chain(sign_in).chain(args).chain(env).chain(headers).chain(granted)
    }
}

/// Returns the problem with the name of a server, if there is one and this build supports servers.
fn name_problem(name: &str) -> Option<&'static str> {
    #[cfg(all(unix, feature = "mcp"))]
    return archon::mcp::server_name_problem(name);
    #[cfg(not(all(unix, feature = "mcp")))]
    {
        let _ = name;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_a_server_is_named_with_its_setting() {
        for (text, expected) in [
            ("command = 'npx'\nargs = ['-y', '${PACKAGE:-files}']\nenv = { KEY = '${KEY}' }", None),
            ("url = 'https://example.com/mcp'\nheaders = { Authorization = 'Bearer ${TOKEN}' }", None),
            ("", Some("it has neither a `command` nor a `url`")),
            ("command = 'a'\nurl = 'https://b'", Some("it has a `command` and a `url`; remove one of them")),
            ("command = ' '", Some("its `command` or `url` is empty")),
            ("command = 'a'\nheaders = { X = 'y' }", Some("`headers` are for a server with a `url`")),
            (
                "url = 'https://b'\ncwd = '/'",
                Some("`args`, `env` and `cwd` are for a server with a `command`"),
            ),
            ("command = 'a'\nsandbox = { read = ['${HOME}/notes'], network = true }", None),
            ("command = 'a'\nsandbox = {}", None),
            ("url = 'https://b'\nsandbox = {}", Some("`sandbox` is for a server with a `command`")),
            ("command = 'a'\nsandbox = { write = ['${'] }", Some("`sandbox`: `${` has no `}`")),
            ("command = 'a'\nargs = ['${', 'b']", Some("`args`: `${` has no `}`")),
        ] {
            let server: ServerSettings = toml::from_str(text).unwrap();
            assert_eq!(server.problem("files").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn time_limits_and_first_use_are_read_as_they_are_written() {
        let text = "command = 'a'\nfirst_use = 'hold-back'\ntimeouts = { call = '5m' }\nenabled = false";
        let server: ServerSettings = toml::from_str(text).unwrap();
        assert_eq!(server.first_use, Some(FirstTools::HoldBack));
        assert_eq!(server.timeouts.and_then(|limits| limits.call), Some(Span(300_000)));
        assert!(toml::from_str::<ServerSettings>("comand = 'a'").is_err());
    }
}
