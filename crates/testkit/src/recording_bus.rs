//! A bus that keeps published messages, for tests of code that publishes.

use std::sync::{Arc, Mutex, PoisonError};

use archon_types::{AgentId, BoxFuture, BoxStream, Bus, BusError, BusMessage, MessageType};

/// A bus that keeps every message in order, and has no subscribers. Clones share one list.
///
/// ```
/// use archon_testkit::RecordingBus;
/// use archon_types::MessageType;
///
/// let bus = RecordingBus::new();
/// assert!(bus.messages(&[MessageType::StatusUpdate]).is_empty());
/// ```
#[derive(Clone, Default)]
pub struct RecordingBus(Arc<Mutex<Vec<BusMessage>>>);

impl RecordingBus {
    /// Creates a bus without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the messages of these types so far.
    pub fn messages(&self, kinds: &[MessageType]) -> Vec<BusMessage> {
        let messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.iter().filter(|message| kinds.contains(&message.message_type)).cloned().collect()
    }
}

impl Bus for RecordingBus {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        Box::pin(async { Ok(()) })
    }

    /// Always fails, since this bus delivers nothing.
    fn subscribe<'a>(
        &'a self,
        _: &'a AgentId,
        _: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        Box::pin(async { Err(BusError::Closed) })
    }
}
