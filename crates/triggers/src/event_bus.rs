//! Callbacks for events, over a bus.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{AgentId, BoxStream, Bus, BusError, BusMessage, CancellationToken, Json, MessageType};
use futures_util::{FutureExt as _, StreamExt as _};

use crate::event::{EventPattern, TriggerEvent};

/// The receiver of events on the bus.
const RECEIVER: &str = "events";

/// The type of messages with events.
const EVENT: &str = "event";

/// Carries events between the parts of a program over any [`Bus`]. Over a bus that several programs share, such as
/// Redis, it also carries events between these programs. Clones share the subscriptions; the last one ends them when it
/// is dropped.
///
/// A callback gets the events of all tenants ([`TriggerEvent::tenant`]). Events are not kept: a later subscription does
/// not get them. To start runs by events, publish them at the engine; a callback can do that.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_triggers::{EventBus, TriggerEngine, TriggerEvent};
/// use archon_types::{Bus, BusError};
/// use serde_json::json;
///
/// /// Starts the tasks that match the orders of other programs.
/// async fn forward(bus: Arc<dyn Bus>, engine: TriggerEngine) -> Result<EventBus, BusError> {
///     let events = EventBus::new(bus);
///     events
///         .subscribe("shop.order.*", move |event| {
///             let engine = engine.clone();
///             async move {
///                 if let Err(error) = engine.publish(&event).await {
///                     eprintln!("the event {} is lost: {error}", event.id);
///                 }
///             }
///         })
///         .await?;
///     Ok(events)
/// }
///
/// async fn order(events: &EventBus) -> Result<(), BusError> {
///     events.publish(&TriggerEvent::new("o-17", "shop", "order.created", json!({ "sum": 120 }))).await
/// }
/// ```
#[derive(Clone)]
pub struct EventBus(Arc<Inner>);

struct Inner {
    bus: Arc<dyn Bus>,
    /// The patterns, each with the token that ends its subscription.
    subscriptions: Mutex<Vec<(EventPattern, CancellationToken)>>,
}

impl EventBus {
    /// Creates an event bus over a bus, on which messages with events have the receiver `events` and the type `event`.
    pub fn new(bus: Arc<dyn Bus>) -> Self {
        Self(Arc::new(Inner { bus, subscriptions: Mutex::default() }))
    }

    /// Publishes an event. Each subscription whose pattern matches the event gets it once, in the order of publication.
    /// It is no error if there is no such subscription.
    ///
    /// # Errors
    /// The bus is closed or full, or fails.
    pub async fn publish(&self, event: &TriggerEvent) -> Result<(), BusError> {
        let content = match serde_json::to_value(event) {
            Ok(Json::Object(content)) => content,
            Ok(_) => return Err(BusError::Transport("an event is no JSON object".to_owned())),
            Err(error) => return Err(BusError::Transport(format!("an event cannot be written: {error}"))),
        };
        let kind = MessageType::from(EVENT);
        let message = BusMessage::new(event.source.as_str(), RECEIVER, kind, content, event.at);
        match self.0.bus.publish(message).await {
            Err(BusError::Undeliverable { .. }) => Ok(()),
            published => published,
        }
    }

    /// Calls `callback` for each later event that matches a pattern on `SOURCE.TYPE` ([`EventPattern`]), one after the
    /// other, until [`unsubscribe`](Self::unsubscribe). A slow callback delays only its own events, until its queue of
    /// the bus is full. If the callback panics, it still gets the next event. It runs in a task of the tokio runtime.
    ///
    /// # Errors
    /// The bus takes no subscription.
    pub async fn subscribe<C, F>(&self, pattern: impl Into<String>, callback: C) -> Result<(), BusError>
    where
        C: Fn(TriggerEvent) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (pattern, end) = (EventPattern::new(pattern), CancellationToken::new());
        let messages = self.0.bus.subscribe(&AgentId::new(RECEIVER), &[]).await?;
        self.subscriptions().push((pattern.clone(), end.clone()));
        tokio::spawn(serve(messages, pattern, end, callback));
        Ok(())
    }

    /// Ends all subscriptions with exactly this pattern. A callback that is working goes on to its end. Returns false if there
    /// is no such subscription.
    pub fn unsubscribe(&self, pattern: &str) -> bool {
        let mut subscriptions = self.subscriptions();
        let before = subscriptions.len();
        subscriptions.retain(|(other, end)| {
            let is_kept = other.as_str() != pattern;
            if !is_kept {
                end.cancel();
            }
            is_kept
        });
        subscriptions.len() < before
    }

    fn subscriptions(&self) -> MutexGuard<'_, Vec<(EventPattern, CancellationToken)>> {
        // A panic cannot leave the list half-changed: nothing in the change of an entry panics.
        self.0.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let subscriptions = self.subscriptions.get_mut().unwrap_or_else(PoisonError::into_inner);
        subscriptions.iter().for_each(|(_, end)| end.cancel());
    }
}

/// Calls the callback of a subscription until its end, or until the bus closes.
async fn serve<C, F>(
    mut messages: BoxStream<'static, BusMessage>,
    pattern: EventPattern,
    end: CancellationToken,
    callback: C,
) where
    C: Fn(TriggerEvent) -> F,
    F: Future<Output = ()>,
{
    loop {
        let message = tokio::select! {
            biased;
            () = end.cancelled() => return,
            message = messages.next() => message,
        };
        let Some(message) = message else { return };
        let Some(event) = event_of(message).filter(|event| pattern.matches(&event.source, &event.kind))
        else {
            continue;
        };
        let id = event.id.clone();
        let note = |called: Result<(), Box<dyn Any + Send>>| {
            if called.is_err() {
                tracing::warn!(pattern = pattern.as_str(), id, "a callback for an event panicked");
            }
        };
        let mut call = pin!(AssertUnwindSafe(async { callback(event).await }).catch_unwind());
        let called = tokio::select! {
            biased;
            called = &mut call => Some(called),
            () = end.cancelled() => None,
        };
        match called {
            Some(called) => note(called),
            None => {
                // A bus waits for its slowest subscription, and this one takes no more.
                drop(messages);
                return note(call.await);
            }
        }
    }
}

/// Returns the event of a message; `None` for a message without one.
fn event_of(message: BusMessage) -> Option<TriggerEvent> {
    // A broadcast between agents comes here, too.
    if message.message_type.as_str() != EVENT {
        return None;
    }
    let seq = message.seq;
    let read = serde_json::from_value(Json::Object(message.content));
    read.map_err(|error| tracing::warn!(seq, "a message of the bus is no event: {error}")).ok()
}
