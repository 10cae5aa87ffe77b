//! Handles the messages that a server sends by itself: the progress of calls, changes of its tools, and questions
//! during a call.
//!
//! We offer a server no models and no folders. Such requests are refused by the library.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::BoxFuture;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::Notify;

use crate::{input, text::plain};

/// Maximum number of characters of a progress message that are shown.
const SHOWN: usize = 200;

/// Callback that receives the progress messages of one call.
pub(crate) type OnProgress = Arc<dyn Fn(String) + Send + Sync>;

/// Callback that answers the questions of a server during one call.
pub(crate) type OnQuestion =
    Arc<dyn Fn(ElicitRequestParams) -> BoxFuture<'static, ElicitResult> + Send + Sync>;

/// Handles the messages that a server sends by itself. Clones share one state.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    progress: Arc<Mutex<HashMap<ProgressToken, OnProgress>>>,
    /// The last assigned id, and the callbacks of the calls during which the server may ask questions, by id.
    talks: Arc<Mutex<(u64, HashMap<u64, OnQuestion>)>>,
    changed: Arc<Notify>,
    /// True if the handshake tells servers of revisions before 2026-07-28 that they may ask during a call.
    announces: bool,
}

impl Handler {
    /// Creates a handler. `announces` is true if the handshake tells servers that they may ask during a call.
    pub(crate) fn new(announces: bool) -> Self {
        Self { announces, ..Self::default() }
    }

    /// Registers the callback that answers the server's questions during a call, until the returned value is
    /// dropped.
    pub(crate) fn talk(&self, on_question: OnQuestion) -> Talking {
        let mut talks = self.talks();
        talks.0 += 1;
        let number = talks.0;
        talks.1.insert(number, on_question);
        drop(talks);
        Talking { handler: self.clone(), number }
    }

    fn talks(&self) -> MutexGuard<'_, (u64, HashMap<u64, OnQuestion>)> {
        self.talks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the callback for progress messages with this token, until the returned value is dropped.
    pub(crate) fn listen(&self, token: ProgressToken, on_progress: OnProgress) -> Listening {
        self.calls().insert(token.clone(), on_progress);
        Listening { handler: self.clone(), token }
    }

    /// Waits until the server reports that its tools changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, OnProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the callback for the progress messages of one call registered until this value is dropped.
pub(crate) struct Listening {
    handler: Handler,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

/// Keeps the callback for the server's questions during one call registered until this value is dropped.
pub(crate) struct Talking {
    handler: Handler,
    number: u64,
}

impl Drop for Talking {
    fn drop(&mut self) {
        self.handler.talks().1.remove(&self.number);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("archon", env!("CARGO_PKG_VERSION"));
        let capabilities = if self.announces { input::asking() } else { ClientCapabilities::default() };
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Answers a server's request for input during a call. The request does not name its call, so it is
    /// answered only if one call is under way: with several, the person of another run could be asked.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let only = {
            let talks = self.talks();
            let mut calls = talks.1.values();
            calls.next().filter(|_| talks.1.len() == 1).cloned()
        };
        Ok(match only {
            Some(on_question) => on_question(request).await,
            None => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let listener = self.calls().get(&progress.progress_token).cloned();
        if let Some(listener) = listener {
            listener(written(&progress));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

fn written(progress: &ProgressNotificationParam) -> String {
    let count = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{}: {count}", plain(message, SHOWN)),
        None => count,
    }
}
