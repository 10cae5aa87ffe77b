//! Progress notifications of a call, for a client that asked for them.

use archon_types::{Delta, DeltaKind, Event, RecordBody};
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};

use crate::server::What;

/// Maximum number of characters of a progress message that are sent.
const SHOWN: usize = 200;

/// Sends the progress of one call.
pub(crate) struct Progress {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    is_agent: bool,
    sent: u32,
}

impl Progress {
    pub(crate) fn new(context: &RequestContext<RoleServer>, what: &What) -> Self {
        let (peer, token) = (context.peer.clone(), context.meta.get_progress_token());
        Self { peer, token, is_agent: matches!(what, What::Agent), sent: 0 }
    }

    /// Sends a notification, if the client asked for progress and the event has a text for it.
    pub(crate) async fn report(&mut self, event: &Event) {
        let Some(token) = &self.token else { return };
        let Some(message) = message(event, self.is_agent) else { return };
        self.sent += 1;
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(self.sent))
            .with_message(message.chars().take(SHOWN).collect::<String>());
        if let Err(error) = self.peer.notify_progress(progress).await {
            tracing::debug!(target: "archon::mcp", %error, "a client did not get the progress of its call");
        }
    }
}

/// Returns the progress text of an event: the progress of a tool, or the next step of an agent.
fn message(event: &Event, is_agent: bool) -> Option<String> {
    match event {
        Event::Delta(Delta { kind: DeltaKind::ToolProgress { text, .. }, .. }) => Some(text.clone()),
        Event::Record { record, .. } if is_agent => match &record.body {
            RecordBody::ModelCallStarted { turn, .. } => Some(format!("turn {}", turn + 1)),
            RecordBody::ModelCallFinished { message, .. } => {
                let names: Vec<_> = message.tool_calls().map(|call| call.target().name).collect();
                (!names.is_empty()).then(|| format!("calls {}", names.join(", ")))
            }
            RecordBody::ApprovalRequested { request, .. } => {
                Some(format!("waits for a person: {}", request.action_summary))
            }
            _ => None,
        },
        _ => None,
    }
}
