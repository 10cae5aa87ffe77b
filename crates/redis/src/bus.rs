//! A message bus across processes: each inbox is a set of Redis Streams, each with one consumer group.
//!
//! The readers of an agent, from [`receiver`](RedisBus::receiver) or [`serve`](RedisBus::serve), share one
//! inbox, which outlives their processes. An inbox has partitions, and a partition has one owner at a time.
//! The owner holds a lease, which ends when the owner's process ends; the next owner first gets the messages
//! that the old owner did not confirm. Without the lease, messages cannot be confirmed. A subscription from
//! [`subscribe`](Bus::subscribe) has its own inbox, which is removed with the subscription.

mod options;
mod receiver;
mod scripts;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use archon_types::{
    AgentId, BoxFuture, BoxStream, Bus, BusError, BusMessage, CancellationToken, Clock, DeadLetter,
    DeathCause, Echo, MessageType, Timestamp,
};
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Script, ScriptInvocation, aio::ConnectionManager,
};

pub use options::{PartitionKey, RedisBusOptions};
pub use receiver::{RedisDelivery, RedisReceiver};
use scripts::Scripts;

use crate::server::{connect, format_of, prefix};

const FORMAT: u32 = 1;
/// The time between two attempts of a sender that waits for room in a full queue.
const LOOK: Duration = Duration::from_millis(5);
/// The time in ms for which Redis keeps the state of a request. A request can wait at most this long for its answer;
/// after the wait has ended, a late answer is recognised for the same time.
const REMEMBERED: u64 = 3_600_000;

/// A message bus for agents in several processes, over one Redis server. Clones share the bus.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_redis::{RedisBus, RedisBusOptions};
/// use archon_types::{BusError, Clock};
///
/// async fn bus(clock: Arc<dyn Clock>) -> Result<RedisBus, BusError> {
///     RedisBus::connect("redis://127.0.0.1:6379", clock, RedisBusOptions::default()).await
/// }
/// ```
#[derive(Clone)]
pub struct RedisBus(Arc<Inner>);

struct Inner {
    client: Client,
    connection: ConnectionManager,
    clock: Arc<dyn Clock>,
    options: RedisBusOptions,
    prefix: String,
    scripts: Scripts,
}

impl RedisBus {
    /// Connects to the Redis server at `url`, such as `redis://127.0.0.1:6379`. The clock determines which
    /// messages have expired; leases are measured by the server's time.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the server cannot be reached, or if a newer version wrote its data.
    pub async fn connect(
        url: &str,
        clock: Arc<dyn Clock>,
        mut options: RedisBusOptions,
    ) -> Result<Self, BusError> {
        options.capacity = options.capacity.max(1);
        options.partitions = options.partitions.max(1);
        options.batch = options.batch.max(1);
        options.lease = options.lease.max(Duration::from_millis(50));
        let prefix = prefix(&options.name);
        let client = Client::open(url).map_err(failed("open"))?;
        let mut connection = connect(&client).await.map_err(failed("connect to"))?;
        let found = format_of(&mut connection, &prefix, FORMAT).await.map_err(failed("open"))?;
        if found > FORMAT {
            return Err(BusError::Transport(format!(
                "{prefix} has bus format {found}, and this version reads up to {FORMAT}: use a newer version"
            )));
        }
        let scripts = Scripts::new();
        Ok(Self(Arc::new(Inner { client, connection, clock, options, prefix, scripts })))
    }

    /// Opens a reader of the inbox of `agent`. All readers of that agent, in every process, share the inbox:
    /// each message goes to one of them, and to another one if the first ends before it confirms the
    /// message. The inbox stays after its readers end; [`forget`](Self::forget) removes it.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the inbox cannot be opened.
    pub async fn receiver(&self, agent: &AgentId, also: &[MessageType]) -> Result<RedisReceiver, BusError> {
        RedisReceiver::open(self.clone(), agent, also, receiver::Sharing::Group).await
    }

    /// Passes each message to `handler`, one after the other, until `stop` is cancelled. If the handler
    /// fails or panics, the message is delivered again, at most [`RedisBusOptions::retries`] times; other
    /// messages are not affected.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the inbox cannot be opened; later failures are retried.
    pub async fn serve<H, F>(
        &self,
        agent: &AgentId,
        also: &[MessageType],
        stop: &CancellationToken,
        handler: H,
    ) -> Result<(), BusError>
    where
        H: Fn(BusMessage) -> F,
        F: Future<Output = Result<(), String>>,
    {
        let mut receiver = self.receiver(agent, also).await?;
        loop {
            let next = match select(Box::pin(stop.cancelled()), Box::pin(receiver.next())).await {
                Either::Left(_) => return Ok(()),
                Either::Right((next, _)) => next,
            };
            let delivery = match next {
                Ok(delivery) => delivery,
                Err(error) => {
                    receiver::breathe(&error).await;
                    continue;
                }
            };
            let (message, seq) = (delivery.message().clone(), delivery.message().seq);
            let done = AssertUnwindSafe(async { handler(message).await }).catch_unwind().await;
            match done {
                Ok(Ok(())) => {
                    if let Err(error) = delivery.ack().await {
                        tracing::warn!(%agent, seq, %error, "a message was handled but not confirmed, so it may be delivered again");
                    }
                }
                // A delivery that is dropped without a confirmation comes again.
                Ok(Err(problem)) => tracing::warn!(%agent, seq, problem, "a handler failed"),
                Err(_) => tracing::warn!(%agent, seq, "a handler panicked"),
            }
        }
    }

    /// Removes the inbox that the readers of `agent` share. The messages that wait in the inbox become dead
    /// letters.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the server fails.
    pub async fn forget(&self, agent: &AgentId) -> Result<(), BusError> {
        let mut call = self.call(&self.0.scripts.forget);
        call.arg(receiver::group_inbox(agent));
        self.run::<i64>(&call).await.map(|_| ())
    }

    /// Removes and returns the dead letters, oldest first.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the server fails.
    pub async fn take_dead_letters(&self) -> Result<Vec<DeadLetter>, BusError> {
        let found: Vec<(String, u64, String)> = self.run(&self.call(&self.0.scripts.dead)).await?;
        let read = |(body, seq, cause): (String, u64, String)| {
            let mut message = message_of(&body)?;
            message.seq = seq;
            Some(DeadLetter::new(message, DeathCause::named(&cause)))
        };
        Ok(found.into_iter().filter_map(read).collect())
    }

    /// Returns the number of messages that wait for an agent, including those that are being read.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the server fails.
    pub async fn depth(&self, agent: &AgentId) -> Result<usize, BusError> {
        let mut call = self.call(&self.0.scripts.depth);
        call.arg(agent.as_str());
        self.run(&call).await
    }

    async fn send(&self, message: BusMessage, correlation: Option<&str>) -> Result<(), BusError> {
        let options = &self.0.options;
        let now = self.0.clock.now();
        let expires = now + message.ttl_ms.map_or(options.ttl, Duration::from_millis);
        let body = serde_json::to_string(&message).map_err(|e| BusError::Transport(e.to_string()))?;
        let mut call = self.call(&self.0.scripts.publish);
        call.arg(body).arg(message.sender_id.as_str()).arg(message.receiver_id.as_str());
        call.arg(message.message_type.as_str()).arg(u8::from(message.is_broadcast()));
        call.arg(options.key.hash(&message)).arg(expires.as_millis()).arg(options.capacity);
        call.arg(u8::from(options.echo == Echo::Everybody)).arg(correlation.unwrap_or_default());
        loop {
            let answer: Vec<String> = self.run(&call).await?;
            let full = match answer.first().map(String::as_str) {
                Some("full") => {
                    answer.get(1).map_or_else(|| message.receiver_id.clone(), |agent| agent.as_str().into())
                }
                Some("late") => {
                    tracing::warn!(sender = %message.sender_id, correlation, "an answer came too late");
                    return Err(BusError::Late {
                        sender: message.sender_id,
                        message_type: message.message_type,
                    });
                }
                Some("undeliverable") => {
                    return Err(BusError::Undeliverable { receiver: message.receiver_id });
                }
                _ => return Ok(()),
            };
            if self.0.clock.now() >= now + options.patience {
                return Err(BusError::Full { receiver: full });
            }
            // Another process makes the room and cannot notify this one, so it polls.
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Publishes a request and waits for its answer. This uses a separate connection, because the wait
    /// blocks the connection.
    async fn exchange(&self, request: BusMessage, correlation: &str) -> Result<BusMessage, BusError> {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let connecting = self.0.client.get_multiplexed_async_connection_with_config(&config);
        let mut waiting = connecting.await.map_err(failed("connect to"))?;
        let expecting = self.set_expectation(correlation, &format!("by {}", request.sender_id));
        let _: () = expecting.query_async(&mut waiting).await.map_err(failed("write to"))?;
        self.send(request, None).await?;
        let mut pop = redis::cmd("BLPOP");
        pop.arg(format!("{}answer:{correlation}", self.0.prefix)).arg(0);
        let (_, answer): (String, String) = pop.query_async(&mut waiting).await.map_err(failed("read"))?;
        let (seq, body) = answer.split_once(' ').unwrap_or_default();
        let unreadable = || BusError::Transport("an answer cannot be read".to_owned());
        let mut message = message_of(body).ok_or_else(unreadable)?;
        message.seq = seq.parse().map_err(|_| unreadable())?;
        Ok(message)
    }

    /// Prepares the command that stores the state of a request: `by AGENT` while the agent waits for an answer, or
    /// `late` when nobody waits any more.
    fn set_expectation(&self, correlation: &str, value: &str) -> Cmd {
        let mut set = redis::cmd("SET");
        set.arg(format!("{}expect:{correlation}", self.0.prefix)).arg(value).arg("PX").arg(REMEMBERED);
        set
    }

    /// Prepares the call of a script with the arguments that all scripts have in common.
    fn call<'a>(&'a self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut call = script.arg(&self.0.prefix);
        call.arg(self.0.options.dead_letters.max(1));
        call
    }

    async fn run<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, BusError> {
        call.invoke_async(&mut self.0.connection.clone()).await.map_err(failed("use"))
    }
}

impl Bus for RedisBus {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        Box::pin(async move {
            let correlation = message.correlation_id.clone();
            self.send(message, correlation.as_deref()).await
        })
    }

    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        let opening = RedisReceiver::open(self.clone(), agent, also, receiver::Sharing::Alone);
        Box::pin(async move { Ok(opening.await?.into_stream()) })
    }

    /// Sends a request. Only this caller gets the answer; an answer after the deadline is refused and
    /// becomes a dead letter.
    fn request<'a>(
        &'a self,
        request: BusMessage,
        clock: &'a dyn Clock,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<BusMessage, BusError>> {
        Box::pin(async move {
            let correlation = request.correlation()?.to_owned();
            let (receiver, message_type) = (request.receiver_id.clone(), request.message_type.clone());
            let mut asking = Box::pin(self.exchange(request, &correlation));
            let answer = clock.before(deadline, |task| asking.as_mut().poll(task)).await;
            if let Some(Ok(answer)) = answer {
                return Ok(answer);
            }
            let late = self.set_expectation(&correlation, "late");
            let _: () = late.query_async(&mut self.0.connection.clone()).await.map_err(failed("write to"))?;
            answer.unwrap_or(Err(BusError::TimedOut { receiver, message_type }))
        })
    }
}

archon_types::debug_fields!(RedisBus: prefix = 0.prefix);

fn message_of(body: &str) -> Option<BusMessage> {
    serde_json::from_str(body)
        .inspect_err(|error| tracing::warn!(%error, "a message on the bus cannot be read"))
        .ok()
}

fn failed(action: &'static str) -> impl FnOnce(redis::RedisError) -> BusError {
    move |error| BusError::Transport(format!("cannot {action} Redis: {error}"))
}
