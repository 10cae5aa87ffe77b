//! Handles the messages that a server sends by itself: the progress of calls, and changes of its tools.
//!
//! We offer a server nothing: no models, no folders, no questions to a person. Such requests are refused by the
//! library.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
        ProtocolVersion,
    },
    service::NotificationContext,
};
use tokio::sync::Notify;

use crate::text::plain;

/// Maximum number of characters of a progress message that are shown.
const SHOWN: usize = 200;

/// Receives the texts of one call's progress.
pub(crate) type OnProgress = Arc<dyn Fn(String) + Send + Sync>;

/// The client's end of a connection.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    progress: Arc<Mutex<HashMap<ProgressToken, OnProgress>>>,
    changed: Arc<Notify>,
}

impl Handler {
    /// Passes the progress of the call with this token to `on_progress` until the returned value is
    /// dropped.
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

/// A call whose progress is passed on.
pub(crate) struct Listening {
    handler: Handler,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("archon", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
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
