//! The state that all requests share.

use std::sync::Arc;

use archon_http_access::AllowedHosts;
use archon_types::{Clock, Timestamp};
use tokio::sync::watch;

use crate::{access::Token, frames::Frames, options::ServerOptions, route::SIGN_IN, sign_in::Codes};

pub(crate) struct State {
    pub(crate) hosts: AllowedHosts,
    pub(crate) tokens: Vec<Arc<Token>>,
    /// The name of the cookies of browsers.
    pub(crate) cookie_name: String,
    pub(crate) codes: Codes,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: ServerOptions,
    pub(crate) frames: Frames,
    /// The number of writes so far. A change wakes the streams of runs that no process works on.
    pub(crate) changes: watch::Sender<u64>,
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Creates a one-time link for the token with this index. Returns its path and query, and its expiry time.
    pub(crate) fn create_link(&self, token: usize) -> Result<(String, Timestamp), getrandom::Error> {
        let end = self.now() + self.options.link_time;
        let code = self.codes.create(token, end)?;
        Ok((format!("{SIGN_IN}?code={code}"), end))
    }

    /// Wakes the streams of runs that are suspended or that no process works on.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}
