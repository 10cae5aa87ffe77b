//! The bus: what agents say to each other.

use std::{
    fmt,
    task::{self, Poll, ready},
};

use futures_core::{future::BoxFuture, stream::BoxStream};
use serde::{Deserialize, Serialize};

use crate::{AgentId, Clock, Ids, Json, RunId, Timestamp, iso8601};

/// The receiver that means every agent.
pub const BROADCAST: &str = "broadcast";

/// Carries messages between agents.
///
/// A message reaches each subscription it is meant for once, in the order in which it was published.
pub trait Bus: Send + Sync {
    /// Hands a message over.
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>>;

    /// The messages from now on that are for `agent` or for everybody, and those of the types in
    /// `also` whoever they are for. Dropping the stream ends the subscription.
    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>>;

    /// Publishes a request and waits for the message that answers it, until `deadline`.
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
            // Subscribed before the request is out, so that a quick answer is not missed.
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

/// Whether a broadcast reaches its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Only the others hear it.
    #[default]
    Others,
    /// Everybody hears it.
    Everybody,
}

/// What one agent says to another, or to all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BusMessage {
    /// Who says it.
    pub sender_id: AgentId,
    /// Who is meant; [`BROADCAST`] or `*` for everybody.
    pub receiver_id: AgentId,
    /// What kind of message it is; decides what `content` holds.
    pub message_type: MessageType,
    /// The message itself.
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub content: serde_json::Map<String, Json>,
    /// When it was said; ISO-8601 in JSON.
    #[serde(with = "iso8601")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The run in which it was said; with it, log lines, tool calls and messages of one run are found together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Ties an answer to its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Its place among the messages of its bus, from 1, given by the bus; 0 until then. Messages are put in
    /// order by this, never by their timestamps.
    #[serde(default, skip_serializing_if = "is_not_numbered")]
    pub seq: u64,
    /// How long it is of use, milliseconds; as long as its bus keeps messages unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_not_numbered(seq: &u64) -> bool {
    *seq == 0
}

impl BusMessage {
    /// A message that expects no answer.
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

    /// The same message, said in this run.
    pub fn of_run(mut self, run: RunId) -> Self {
        self.run_id = Some(run);
        self
    }

    /// The same message as a request: with a fresh correlation id.
    pub fn into_request(mut self, ids: &dyn Ids) -> Self {
        self.correlation_id = Some(ids.fresh("req"));
        self
    }

    /// An answer to this message, from its receiver to its sender, under the same correlation id and
    /// of the same run.
    ///
    /// After a broadcast set `sender_id` to the agent that answers.
    pub fn response(
        &self,
        message_type: MessageType,
        content: serde_json::Map<String, Json>,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            sender_id: self.receiver_id.clone(),
            receiver_id: self.sender_id.clone(),
            message_type,
            content,
            timestamp,
            run_id: self.run_id.clone(),
            correlation_id: self.correlation_id.clone(),
            seq: 0,
            ttl_ms: None,
        }
    }

    /// What its answer will bear.
    ///
    /// # Errors
    /// [`BusError::NotARequest`].
    pub fn correlation(&self) -> Result<&str, BusError> {
        let not_a_request = || BusError::NotARequest { message_type: self.message_type.clone() };
        self.correlation_id.as_deref().ok_or_else(not_a_request)
    }

    /// Whether everybody is meant.
    pub fn is_broadcast(&self) -> bool {
        matches!(self.receiver_id.as_str(), BROADCAST | "*")
    }

    fn answers(&self, request: &Self) -> bool {
        self.correlation_id == request.correlation_id && self.receiver_id == request.sender_id
            // An agent that asks itself or everybody hears its own request first.
            && !self.is_same(request)
    }

    /// Whether it is the same message, wherever it is on its way.
    fn is_same(&self, other: &Self) -> bool {
        (&self.sender_id, &self.message_type, self.timestamp, &self.content)
            == (&other.sender_id, &other.message_type, other.timestamp, &other.content)
    }
}

/// What kind of message a [`BusMessage`] is. In JSON it is the name as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum MessageType {
    /// Please do this.
    TaskRequest,
    /// This came of it.
    TaskResponse,
    /// This is how far it is.
    StatusUpdate,
    /// Something went wrong.
    Error,
    /// Something that others may want to know.
    InformationShare,
    /// What do you know about this?
    ContextRequest,
    /// The shared context changed.
    ContextUpdate,
    /// I cannot go on alone.
    HelpRequest,
    /// Nobody has to answer this.
    Notification,
    /// Who can do this?
    CapabilityQuery,
    /// I have a tool that others may use.
    ToolOffer,
    /// May I use your tool?
    ToolRequest,
    /// You may, until then.
    ToolLease,
    /// A type that this version does not know; passed on as it is.
    Other(String),
}

/// Every known type with its name.
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
    /// The type's name in lower snake case.
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

/// Why a message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// Nobody listens where the message was to go.
    #[error("nobody receives messages for {receiver}")]
    Undeliverable {
        /// Who was meant.
        receiver: AgentId,
    },
    /// The receiver takes messages more slowly than they come, and its queue is full.
    #[error("the queue of {receiver} is full")]
    Full {
        /// Who was meant.
        receiver: AgentId,
    },
    /// The answer did not come in time.
    #[error("{receiver} did not answer the {message_type} in time")]
    TimedOut {
        /// Who was asked.
        receiver: AgentId,
        /// What was asked.
        message_type: MessageType,
    },
    /// The answer came when nobody waited for it any more.
    #[error("the {message_type} of {sender} came after the deadline of its request")]
    Late {
        /// Who answered.
        sender: AgentId,
        /// With what.
        message_type: MessageType,
    },
    /// A request needs a correlation id.
    #[error("a {message_type} without a correlation id cannot be answered")]
    NotARequest {
        /// What was asked.
        message_type: MessageType,
    },
    /// The bus was shut down.
    #[error("the bus is closed")]
    Closed,
    /// What carries the messages failed.
    #[error("the bus failed: {0}")]
    Transport(String),
}

impl BusError {
    /// What can be done about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Undeliverable { .. } => "check the agent's id, and that it has subscribed",
            Self::Full { .. } => "send more slowly, or give the receiver a larger queue",
            Self::TimedOut { .. } => "ask again, wait longer, or ask another agent",
            Self::Late { .. } => "answer sooner, or ask for a later deadline",
            Self::NotARequest { .. } => "make it a request with `into_request`",
            Self::Closed => "start the bus again",
            Self::Transport(_) => "check that the message broker can be reached",
        }
    }
}
