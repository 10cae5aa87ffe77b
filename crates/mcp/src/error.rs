//! The failures of a server: which server, in which phase, why, and what a person can do.

use std::{fmt, time::Duration};

use archon_types::Redactor;

/// A failure of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpError {
    /// The server, by its configured name.
    pub server: String,
    /// The phase that failed.
    pub phase: Phase,
    /// The problem.
    pub problem: McpProblem,
    /// The last lines that the server wrote to its error output. Untrusted text.
    pub output: Option<String>,
}

/// A phase of the work with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The settings are read.
    Settings,
    /// The process is started.
    Start,
    /// The sign-in: the authorization server is found, and a token is got, renewed or refused.
    SignIn,
    /// The handshake.
    Initialize,
    /// The tools are listed.
    List,
    /// A tool is called.
    Call,
    /// Resources or prompts are listed or read.
    Read,
}

/// The reason why a server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpProblem {
    /// The settings of the server are wrong, for this reason.
    Invalid(String),
    /// The server's process cannot be started, or reading from the server or writing to it failed.
    Io(String),
    /// The server's process cannot be sandboxed, for this reason; the process was not started.
    Sandbox(String),
    /// The server ended or closed its output; the exit code, if it is known.
    ConnectionClosed(Option<i32>),
    /// The server refuses a request without a sign-in, or refuses the `Authorization` header of the
    /// settings. The settings have no sign-in (`McpServer::with_sign_in`).
    SignIn,
    /// A person has to log in to the server, for this reason.
    LogIn(String),
    /// The server refuses a request without this scope, so a person has to log in again. The text is empty
    /// if the server does not name the scope.
    Scope(String),
    /// The server did not answer within this time limit.
    Timeout(Duration),
    /// The server answered with an error of JSON-RPC. The text is untrusted.
    JsonRpc {
        /// The code of the error, such as -32602 for invalid parameters.
        code: i32,
        /// The text of the error.
        message: String,
    },
    /// The server answered with something that the protocol does not allow here.
    Protocol(String),
    /// The server is not connected; the next attempt follows after `retry_in`.
    NotConnected {
        /// The time until the next attempt; zero if the attempt is under way.
        retry_in: Duration,
        /// The failure of the last attempt.
        because: Box<McpError>,
    },
    /// The tool is held back until a person agrees to its definition, for this reason.
    HeldBack(String),
    /// The tool is held back because the pins of its server cannot be read or stored, for this reason.
    UnreadablePins(String),
    /// The server does not offer this tool any more.
    NoSuchTool(String),
    /// The servers were closed.
    Closed,
}

impl McpError {
    pub(crate) fn new(server: &str, phase: Phase, problem: McpProblem) -> Self {
        Self { server: server.to_owned(), phase, problem, output: None }
    }

    pub(crate) fn with_output(mut self, output: Option<String>) -> Self {
        self.output = output;
        self
    }

    /// Removes the secrets from the texts of the server.
    pub(crate) fn cleaned(mut self, redactor: &Redactor) -> Self {
        self.output = self.output.map(|output| redactor.clean(output));
        match &mut self.problem {
            McpProblem::Invalid(text)
            | McpProblem::Io(text)
            | McpProblem::Sandbox(text)
            | McpProblem::Protocol(text)
            | McpProblem::LogIn(text)
            | McpProblem::Scope(text)
            | McpProblem::JsonRpc { message: text, .. } => *text = redactor.clean(std::mem::take(text)),
            _ => {}
        }
        self
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> String {
        match (&self.problem, self.phase) {
            (McpProblem::Invalid(_), _) => "Correct the settings of the server.".to_owned(),
            (McpProblem::Sandbox(_), _) => {
                "Correct the grants of the server's sandbox, on Linux 6.2 or later with Landlock. Without the \
                 sandbox, the server can do what you can do."
                    .to_owned()
            }
            (McpProblem::ConnectionClosed(Some(126)), _) => {
                "The server's command cannot be executed: check its rights, and that its sandbox can read it."
                    .to_owned()
            }
            (McpProblem::ConnectionClosed(Some(127)), _) => {
                "The server's command was not found: install it, or set its path.".to_owned()
            }
            (McpProblem::Timeout(_), phase) => format!(
                "If the server is only slow, raise its time limit `{}`; otherwise check that the server works, \
                 for instance by starting it by hand.",
                phase.limit()
            ),
            (McpProblem::SignIn, _) => {
                "Set a valid `Authorization` header in the server's settings, or a sign-in (`McpServer::with_sign_in`)."
                    .to_owned()
            }
            (McpProblem::LogIn(_), _) => "Log in to the server (`Login::begin`).".to_owned(),
            (McpProblem::Scope(_), _) => "Log in to the server again (`Login::begin`), for more scopes.".to_owned(),
            (McpProblem::NotConnected { because, .. }, _) => because.advice(),
            (McpProblem::HeldBack(_), _) => {
                "Read the difference, and approve the tool if you agree with its definition.".to_owned()
            }
            (McpProblem::UnreadablePins(_), _) => {
                "Repair the server's pins or the access to them, or delete them: the server's tools are then treated \
                 as at its first use."
                    .to_owned()
            }
            (McpProblem::NoSuchTool(_), _) => "Go on without the tool.".to_owned(),
            (McpProblem::Closed, _) => "Start the servers again.".to_owned(),
            (_, Phase::Call) => "Check the arguments, or go on without the tool.".to_owned(),
            (_, Phase::Read) => "Check the name or the address of the resource or prompt, or go on without it.".to_owned(),
            (McpProblem::Io(_) | McpProblem::Protocol(_), Phase::SignIn) => {
                "Check the sign-in in the server's settings, and that its authorization server can be reached."
                    .to_owned()
            }
            (McpProblem::Io(_), _) => "Check the server's command or address, and that the server can be reached.".to_owned(),
            _ => "Check the server's command or address, or start the server by hand and read its output.".to_owned(),
        }
    }
}

impl Phase {
    /// Returns the name of the setting with the phase's time limit.
    fn limit(self) -> &'static str {
        match self {
            Self::Settings | Self::Start | Self::SignIn | Self::Initialize => "initialize",
            Self::List => "list",
            Self::Call | Self::Read => "call",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settings => "settings",
            Self::Start => "start",
            Self::SignIn => "sign-in",
            Self::Initialize => "handshake",
            Self::List => "list of tools",
            Self::Call => "call",
            Self::Read => "resources and prompts",
        })
    }
}

impl fmt::Display for McpProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) | Self::Io(why) | Self::Protocol(why) => f.write_str(why),
            Self::Sandbox(why) => write!(f, "the server's process cannot be sandboxed: {why}"),
            Self::ConnectionClosed(Some(code)) => write!(f, "the server ended with exit code {code}"),
            Self::ConnectionClosed(None) => f.write_str("the server closed the connection"),
            Self::SignIn => f.write_str("the server requires a sign-in"),
            Self::LogIn(why) => write!(f, "the server requires a sign-in: {why}"),
            Self::Scope(scope) if scope.is_empty() => {
                f.write_str("the server refuses the request, because the sign-in lacks a scope")
            }
            Self::Scope(scope) => write!(f, "the server refuses the request without the scope '{scope}'"),
            Self::Timeout(limit) => write!(f, "the server did not answer within {} s", limit.as_secs_f64()),
            Self::JsonRpc { code, message } => write!(f, "the server answered with error {code}: {message}"),
            Self::NotConnected { retry_in, because } => {
                let next = match retry_in.is_zero() {
                    true => "under way".to_owned(),
                    false => format!("in {} s", retry_in.as_secs_f64().ceil()),
                };
                let (phase, problem) = (because.phase, &because.problem);
                write!(
                    f,
                    "the server is not connected, and the next attempt is {next}; the last attempt failed in the \
                     phase {phase}: {problem}"
                )
            }
            Self::HeldBack(why) | Self::UnreadablePins(why) => write!(f, "the tool is held back: {why}"),
            Self::NoSuchTool(tool) => write!(f, "the server no longer offers the tool '{tool}'"),
            Self::Closed => f.write_str("the MCP servers of this program were closed"),
        }
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP server '{}', phase {}: {}. {}", self.server, self.phase, self.problem, self.advice())?;
        match &self.output {
            Some(output) => write!(f, " The server's error output ended with:\n{output}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for McpError {}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MC-08
    #[test]
    fn mcp_error_names_server_phase_limit_and_advice() {
        let late = McpProblem::Timeout(Duration::from_millis(1_500));
        let error =
            McpError::new("files", Phase::Initialize, late).with_output(Some("npm ERR! 404".to_owned()));
        assert_eq!(
            error.to_string(),
            "MCP server 'files', phase handshake: the server did not answer within 1.5 s. If the server is \
             only slow, raise its time limit `initialize`; otherwise check that the server works, for instance \
             by starting it by hand. The server's error output ended with:\nnpm ERR! 404"
        );
        let because = Box::new(McpError::new("files", Phase::Start, McpProblem::ConnectionClosed(Some(127))));
        let down = McpProblem::NotConnected { retry_in: Duration::from_millis(3_100), because };
        assert_eq!(
            McpError::new("files", Phase::Call, down).to_string(),
            "MCP server 'files', phase call: the server is not connected, and the next attempt is in 4 s; \
             the last attempt failed in the phase start: the server ended with exit code 127. The server's command \
             was not found: install it, or set its path."
        );
    }
}
