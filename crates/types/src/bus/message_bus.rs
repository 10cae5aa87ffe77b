//! The bus, which carries messages between agents.

use std::{
    fmt,
    task::{self, Poll, ready},
    time::Duration,
};

use futures_core::{future::BoxFuture, stream::BoxStream};
use serde::{Deserialize, Serialize};

use crate::{
    Json,
    values::{AgentId, Clock, Ids, RunId, Timestamp, iso8601},
};

/// The receiver id of a message to every agent.
pub const BROADCAST: &str = "broadcast";

/// The time that [`Bus::ask`] waits for an answer: 60 s.
pub const REQUEST_WAIT: Duration = Duration::from_secs(60);

/// Carries messages between agents.
///
/// A subscription gets each matching message once, in the order of publication.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
///
/// use archon_types::{AgentId, BoxFuture, BoxStream, Bus, BusError, BusMessage, MessageType};
///
/// /// Counts the messages of another bus.
/// struct Counted {
///     bus: Arc<dyn Bus>,
///     messages: AtomicU64,
/// }
///
/// impl Bus for Counted {
///     fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
///         self.messages.fetch_add(1, Ordering::Relaxed);
///         self.bus.publish(message)
///     }
///
///     fn subscribe<'a>(
///         &'a self,
///         agent: &'a AgentId,
///         also: &'a [MessageType],
///     ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
///         self.bus.subscribe(agent, also)
///     }
/// }
/// ```
pub trait Bus: Send + Sync {
    /// Sends a message to all subscriptions that match it; fails if the receiver has no subscription.
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>>;

    /// Subscribes to all later messages for `agent` or for everybody, and to all later messages of the types
    /// in `also`, whoever their receiver is. Dropping the stream ends the subscription.
    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>>;

    /// Publishes a request and waits up to [`REQUEST_WAIT`] for its answer.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    fn ask<'a>(
        &'a self,
        request: BusMessage,
        clock: &'a dyn Clock,
    ) -> BoxFuture<'a, Result<BusMessage, BusError>> {
        self.request(request, clock, clock.now() + REQUEST_WAIT)
    }

    /// Publishes a request and waits for its answer until `deadline`.
    ///
    /// # Errors
    /// [`BusError::NotARequest`] without a correlation id, [`BusError::TimedOut`] without an answer.
    fn request<'a>(
        &'a self,
        request: BusMessage,
        clock: &'a dyn Clock,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<BusMessage, BusError>> {
        Box::pin(async move {
            request.correlation()?;
            // Subscribe before publishing, so that a fast answer is not missed.
            let mut inbox = self.subscribe(&request.sender_id, &[]).await?;
            self.publish(request.clone()).await?;
            let next = |cx: &mut task::Context<'_>| {
                loop {
                    match ready!(inbox.as_mut().poll_next(cx)) {
                        Some(message) if message.answers(&request) => return Poll::Ready(Ok(message)),
                        Some(_) => {}
                        None => return Poll::Ready(Err(BusError::Closed)),
                    }
                }
            };
            let answer = clock.before(deadline, next).await;
            answer.unwrap_or(Err(BusError::TimedOut {
                receiver: request.receiver_id.clone(),
                message_type: request.message_type.clone(),
            }))
        })
    }
}

/// An option of a bus: decides if an agent that sends a broadcast gets the broadcast too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// The sender does not get its own broadcast.
    #[default]
    Others,
    /// The sender gets its own broadcast too.
    Everybody,
}

/// A message of one agent to another agent, or to all agents.
///
/// ```
/// use archon_types::{BusMessage, Ids, MessageType, RunId, Timestamp};
///
/// /// The question of `ann` to `bob`, from her run.
/// fn question(run: RunId, ids: &dyn Ids, now: Timestamp) -> BusMessage {
///     let content = serde_json::Map::from_iter([("text".to_owned(), "Is there tea?".into())]);
///     BusMessage::new("ann", "bob", MessageType::HelpRequest, content, now).of_run(run).into_request(ids)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BusMessage {
    /// The sender.
    pub sender_id: AgentId,
    /// The receiver; [`BROADCAST`] or `*` for everybody.
    pub receiver_id: AgentId,
    /// The type of the message, which decides the fields of `content`.
    pub message_type: MessageType,
    /// The content of the message.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub content: serde_json::Map<String, Json>,
    /// The time of sending, in ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The run in which the message was sent, to correlate messages with log lines and tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The id that an answer shares with its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The sequence number, from 1, which the bus assigns when it accepts the message; 0 before that.
    /// Messages are ordered by this number, never by their timestamps.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub seq: u64,
    /// The time in milliseconds after which the bus no longer delivers the message; `None` for the default of
    /// the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

impl BusMessage {
    /// Creates a message that expects no answer; [`into_request`](Self::into_request) makes the message a request.
    pub fn new(
        sender: impl Into<AgentId>,
        receiver: impl Into<AgentId>,
        message_type: MessageType,
        content: serde_json::Map<String, Json>,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            sender_id: sender.into(),
            receiver_id: receiver.into(),
            message_type,
            content,
            timestamp,
            run_id: None,
            correlation_id: None,
            seq: 0,
            ttl_ms: None,
        }
    }

    /// Creates an answer from the receiver to the sender of this message, with the correlation id and the run
    /// of this message.
    ///
    /// For an answer to a broadcast, set `sender_id` to the agent that answers.
    pub fn response(
        &self,
        message_type: MessageType,
        content: serde_json::Map<String, Json>,
        timestamp: Timestamp,
    ) -> Self {
        let (sender, receiver) = (self.receiver_id.clone(), self.sender_id.clone());
        Self {
            run_id: self.run_id.clone(),
            correlation_id: self.correlation_id.clone(),
            ..Self::new(sender, receiver, message_type, content, timestamp)
        }
    }

    /// Returns the correlation id that an answer to this message must have.
    ///
    /// # Errors
    /// [`BusError::NotARequest`] for a message without a correlation id.
    pub fn correlation(&self) -> Result<&str, BusError> {
        let not_a_request = || BusError::NotARequest { message_type: self.message_type.clone() };
        self.correlation_id.as_deref().ok_or_else(not_a_request)
    }

    /// Returns true if the message is for all agents: the receiver is [`BROADCAST`] or `*`.
    pub fn is_broadcast(&self) -> bool {
        matches!(self.receiver_id.as_str(), BROADCAST | "*")
    }

    fn answers(&self, request: &Self) -> bool {
        self.correlation_id == request.correlation_id && self.receiver_id == request.sender_id
            // An agent that asks itself or everybody receives its own request first.
            && !self.is_same(request)
    }

    /// Returns true if both values are the same message; the sequence numbers may differ.
    fn is_same(&self, other: &Self) -> bool {
        (&self.sender_id, &self.message_type, self.timestamp, &self.content)
            == (&other.sender_id, &other.message_type, other.timestamp, &other.content)
    }
}

crate::setters! {
impl BusMessage {
    /// Sets the run in which the message was sent. Default none.
    pub fn of_run(self, run: RunId) -> Self { self.run_id = Some(run) }

    /// Makes the message a request, with a new correlation id.
    pub fn into_request(self, ids: &dyn Ids) -> Self { self.correlation_id = Some(ids.fresh("req")) }
}
}

/// The type of a [`BusMessage`]. In JSON the type is its name as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum MessageType {
    /// A request to do a task.
    TaskRequest,
    /// The result of a task.
    TaskResponse,
    /// The progress of a task.
    StatusUpdate,
    /// A report of an error.
    Error,
    /// Information that may interest other agents.
    InformationShare,
    /// A request for information.
    ContextRequest,
    /// A change of the shared context.
    ContextUpdate,
    /// A request for help.
    HelpRequest,
    /// A notification that needs no answer.
    Notification,
    /// A question for agents with a certain ability.
    CapabilityQuery,
    /// An offer of a tool to other agents.
    ToolOffer,
    /// A request to use another agent's tool.
    ToolRequest,
    /// A permission to use a tool for some time.
    ToolLease,
    /// A type, by its name, that this version of Archon does not know. The bus delivers the message unchanged.
    Other(String),
}

/// All known message types with their names.
const NAMES: [(MessageType, &str); 13] = [
    (MessageType::TaskRequest, "task_request"),
    (MessageType::TaskResponse, "task_response"),
    (MessageType::StatusUpdate, "status_update"),
    (MessageType::Error, "error"),
    (MessageType::InformationShare, "information_share"),
    (MessageType::ContextRequest, "context_request"),
    (MessageType::ContextUpdate, "context_update"),
    (MessageType::HelpRequest, "help_request"),
    (MessageType::Notification, "notification"),
    (MessageType::CapabilityQuery, "capability_query"),
    (MessageType::ToolOffer, "tool_offer"),
    (MessageType::ToolRequest, "tool_request"),
    (MessageType::ToolLease, "tool_lease"),
];

impl MessageType {
    /// Returns the name of the type, in lower snake case.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => NAMES.iter().find(|(t, _)| t == known).map_or("", |(_, name)| name),
        }
    }
}

impl From<&str> for MessageType {
    fn from(name: &str) -> Self {
        let known = NAMES.iter().find(|(_, n)| *n == name).map(|(t, _)| t.clone());
        known.unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl From<String> for MessageType {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<MessageType> for String {
    fn from(t: MessageType) -> Self {
        t.as_str().to_owned()
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for MessageType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageType".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The reason why a message was not delivered or not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The receiver has no subscription.
    #[error("no agent receives messages for {receiver}")]
    Undeliverable {
        /// The receiver.
        receiver: AgentId,
    },
    /// The queue of the receiver is full, because the receiver reads too slowly.
    #[error("the message queue of {receiver} is full")]
    Full {
        /// The receiver.
        receiver: AgentId,
    },
    /// The answer did not come in time.
    #[error("{receiver} did not answer the {message_type} in time")]
    TimedOut {
        /// The receiver of the request.
        receiver: AgentId,
        /// The type of the request.
        message_type: MessageType,
    },
    /// The answer came after the deadline of its request.
    #[error("the {message_type} of {sender} came after the deadline of its request")]
    Late {
        /// The sender of the answer.
        sender: AgentId,
        /// The type of the answer.
        message_type: MessageType,
    },
    /// The message has no correlation id, so it is not a request.
    #[error("a {message_type} without a correlation id cannot be answered")]
    NotARequest {
        /// The type of the message.
        message_type: MessageType,
    },
    /// The bus was shut down.
    #[error("the bus is closed")]
    Closed,
    /// The transport of the bus failed, for instance its message broker.
    #[error("the transport of the bus failed: {0}")]
    Transport(String),
}

impl BusError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Undeliverable { .. } => {
                "check the id of the receiver, and that the receiver has subscribed"
            }
            Self::Full { .. } => "send more slowly, or give the receiver a larger queue",
            Self::TimedOut { .. } => "ask again, wait longer, or ask another agent",
            Self::Late { .. } => "answer sooner, or ask for a later deadline",
            Self::NotARequest { .. } => "make it a request with `into_request`",
            Self::Closed => "start the bus again",
            Self::Transport(_) => "check that the message broker can be reached",
        }
    }
}
