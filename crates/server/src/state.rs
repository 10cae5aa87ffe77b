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
    /// The number of requests that changed a run, for streams of runs that rest.
    pub(crate) changes: watch::Sender<u64>,
}

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the path and query of a link that signs a browser in, once, as the token with this index; and the end of its
    /// time.
    pub(crate) fn create_link(&self, token: usize) -> Result<(String, Timestamp), getrandom::Error> {
        let end = self.now() + self.options.link_time;
        let code = self.codes.create(token, end)?;
        Ok((format!("{SIGN_IN}?code={code}"), end))
    }

    /// Wakes the streams of runs that rest.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}
