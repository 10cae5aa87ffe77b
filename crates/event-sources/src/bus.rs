//! Messages of a bus.

use std::sync::Arc;

use archon_triggers::{TriggerEngine, TriggerEvent};
use archon_types::{
    AgentId, Bus, BusError, BusMessage, CancellationToken, ContentHash, MessageType, TenantId,
};
use futures_util::StreamExt as _;
use serde_json::json;

/// Publishes the messages of a bus as events. An event has the name of the source and the type of the message, as in
/// `office.help_request`. Its data has `sender`, `receiver` and `content`.
///
/// It works with every [`Bus`], in one process or over Redis.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_event_sources::BusSource;
/// use archon_triggers::{EventFilter, TriggerEngine, TriggerTask};
/// use archon_types::{Bus, CancellationToken, MessageType};
///
/// /// An agent helps whoever asks for help on the bus.
/// async fn help(engine: TriggerEngine, bus: Arc<dyn Bus>) -> Result<(), Box<dyn std::error::Error>> {
///     engine.create_task(TriggerTask::new("help", EventFilter::new("office.help_*"), "Help.")).await?;
///     let source = BusSource::new("office", "triggers").also(MessageType::HelpRequest);
///     Ok(source.serve(&engine, bus, CancellationToken::new()).await?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct BusSource {
    name: String,
    agent: AgentId,
    also: Vec<MessageType>,
    tenant: Option<TenantId>,
}

impl BusSource {
    /// Creates a source whose events have the source `name`. It takes the messages to `agent`, the id by which agents
    /// reach the tasks on the bus, and the messages to everybody.
    pub fn new(name: impl Into<String>, agent: impl Into<AgentId>) -> Self {
        Self { name: name.into(), agent: agent.into(), also: Vec::new(), tenant: None }
    }

    /// Also takes all messages of this type, whoever their receiver is.
    #[must_use]
    pub fn also(mut self, message_type: MessageType) -> Self {
        self.also.push(message_type);
        self
    }

    /// Sets the tenant whose tasks get the events; by default `local`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Publishes messages until `stop` is cancelled or the bus closes. A message that cannot be stored is lost, with a warning:
    /// a bus does not keep it.
    ///
    /// # Errors
    /// The bus takes no subscription.
    pub async fn serve(
        &self,
        engine: &TriggerEngine,
        bus: Arc<dyn Bus>,
        stop: CancellationToken,
    ) -> Result<(), BusError> {
        let mut messages = bus.subscribe(&self.agent, &self.also).await?;
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = stop.cancelled() => return Ok(()),
            };
            let Some(message) = message else { return Ok(()) };
            if let Err(error) = engine.publish(&self.event(&message)).await {
                tracing::warn!(
                    source = self.name,
                    seq = message.seq,
                    "a message of the bus is lost: {error}"
                );
            }
        }
    }

    fn event(&self, message: &BusMessage) -> TriggerEvent {
        // A bus numbers its messages anew after a restart, so the number alone is no id.
        let id = format!("{:016x}", ContentHash::of(message));
        let data = json!({
            "sender": message.sender_id, "receiver": message.receiver_id, "content": message.content,
        });
        let kind = message.message_type.as_str();
        let mut event = TriggerEvent::new(id, &self.name, kind, data).at(message.timestamp);
        event.tenant.clone_from(&self.tenant);
        event
    }
}
