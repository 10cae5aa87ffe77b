//! The options that all servers of a program share.

use std::{sync::Arc, time::Duration};

use archon_types::Clock;

use crate::{FirstUse, Pins, TokenStore};

/// Options of [`McpServers`](crate::McpServers).
///
/// ```
/// use std::sync::Arc;
///
/// use archon_mcp::{FilePins, McpOptions, TokenStore};
/// use archon_types::Clock;
///
/// fn options(clock: Arc<dyn Clock>, tokens: TokenStore) -> McpOptions {
///     let pins = Arc::new(FilePins::new("settings/mcp-pins"));
///     McpOptions::new(clock, pins).with_tokens(tokens).with_questions_during_calls()
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct McpOptions {
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// The store of the pins: the definitions of tools that may be used.
    pub pins: Arc<dyn Pins>,
    /// The treatment of a server's tools while it has no pins. Default: they are trusted.
    pub first_use: FirstUse,
    /// The pause after the first failure of a server; the pause doubles with each further failure. Default
    /// 1 s.
    pub first_retry: Duration,
    /// The maximum pause. Default 60 s.
    pub longest_retry: Duration,
    /// The time after which a server without calls is asked for its tools, to check that the server answers
    /// and that the tools are the same. Default 60 s.
    pub check_every: Duration,
    /// The token store of sign-ins. A server with the sign-in of a person needs it. Default: none.
    pub tokens: Option<TokenStore>,
    /// True to tell servers of revisions before 2026-07-28 that they may ask a person. Such a server asks while
    /// a call is open, so set this only if the program's approver answers at once, as at a terminal. Default:
    /// false. Servers of revision 2026-07-28 do not need this: each call says if the run can ask a person.
    pub questions_during_calls: bool,
}

impl McpOptions {
    /// Creates options with the defaults.
    pub fn new(clock: Arc<dyn Clock>, pins: Arc<dyn Pins>) -> Self {
        Self {
            clock,
            pins,
            first_use: FirstUse::default(),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(60),
            check_every: Duration::from_secs(60),
            tokens: None,
            questions_during_calls: false,
        }
    }

    /// Lets servers of revisions before 2026-07-28 ask a person while a call is open. Use it only if the
    /// program's approver answers at once. Default: such servers cannot ask.
    pub fn with_questions_during_calls(mut self) -> Self {
        self.questions_during_calls = true;
        self
    }

    /// Sets the store for the tokens of people's logins. Default: none; then the sign-in of a person fails.
    pub fn with_tokens(mut self, tokens: TokenStore) -> Self {
        self.tokens = Some(tokens);
        self
    }
}
