//! The message bus of one process, which delivers each message once to each subscription, in one order.
//!
//! A message goes to all subscriptions of its receiver (of all agents, if it is a broadcast), and to the
//! subscriptions to its type. The bus numbers its messages when it accepts them, and every subscription
//! gets them in that order. A full queue makes the sender wait.

mod audit;
mod receiver;
mod state;
mod subscription;

use std::{
    collections::VecDeque,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use archon_types::{
    AgentId, BoxFuture, BoxStream, Bus, BusError, BusMessage, CancellationToken, Clock, DeadLetter,
    DeathCause, Echo, MessageType, Timestamp,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::oneshot;

pub use audit::{BusAudit, Fate, InMemoryAudit};
pub use receiver::{Delivery, Receiver};
use state::{Offered, Sending, State};
use subscription::Subscription;

/// A bus for the agents of one process. Clones share the same bus.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use archon_bus::{BusOptions, InMemoryAudit, InMemoryBus};
/// use archon_testkit::VirtualClock;
///
/// let mut options = BusOptions::default();
/// options.ttl = Duration::from_secs(60);
/// options.audit = Some(Arc::new(InMemoryAudit::new(1_000))); // messages
/// let bus = InMemoryBus::with_options(Arc::new(VirtualClock::new()), options);
/// ```
#[derive(Clone)]
pub struct InMemoryBus(Arc<Inner>);

/// Options of an [`InMemoryBus`].
#[derive(Clone)]
#[non_exhaustive]
pub struct BusOptions {
    /// The maximum number of messages in the queue of one subscription, including those that are being read.
    /// Default 1,024; 0 counts as 1.
    pub capacity: usize,
    /// The maximum time that a sender waits for room in a queue before it gets an error. Default 30 s.
    pub patience: Duration,
    /// The time to live of a message that sets none itself. Default 5 minutes.
    pub ttl: Duration,
    /// The maximum number of times that an unconfirmed message is delivered again. Default 3.
    pub retries: u32,
    /// Says if an agent also gets its own broadcasts. Default [`Echo::Others`]: no.
    pub echo: Echo,
    /// The maximum number of dead letters that are kept; the oldest are removed first. Default 1,024.
    pub dead_letters: usize,
    /// The audit that records every message. Default: none.
    pub audit: Option<Arc<dyn BusAudit>>,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            patience: Duration::from_secs(30),
            ttl: Duration::from_secs(300),
            retries: 3,
            echo: Echo::default(),
            dead_letters: 1_024,
            audit: None,
        }
    }
}

struct Inner {
    clock: Arc<dyn Clock>,
    options: BusOptions,
    state: Mutex<State>,
}

impl InMemoryBus {
    /// Creates a bus with the default options.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_options(clock, BusOptions::default())
    }

    /// Creates a bus with these options.
    pub fn with_options(clock: Arc<dyn Clock>, mut options: BusOptions) -> Self {
        options.capacity = options.capacity.max(1);
        Self(Arc::new(Inner { clock, options, state: Mutex::new(State::default()) }))
    }

    /// Subscribes like [`subscribe`](Bus::subscribe), for a reader that confirms each message. An unconfirmed
    /// message is delivered again, up to [`BusOptions::retries`] times; then it becomes a dead letter.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the bus is closed.
    pub fn receiver(&self, agent: &AgentId, also: &[MessageType]) -> Result<Receiver, BusError> {
        Ok(Receiver::new(self.clone(), self.state().subscribe(agent, also)?))
    }

    /// Passes each message to `handler`, one after the other, until `stop` is cancelled or the bus closes. If
    /// the handler fails or panics, it gets the message again, up to [`BusOptions::retries`] times. Other
    /// subscriptions are not affected.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the bus is closed.
    pub async fn serve<F: Future<Output = Result<(), String>>>(
        &self,
        agent: &AgentId,
        also: &[MessageType],
        stop: &CancellationToken,
        handler: impl Fn(BusMessage) -> F,
    ) -> Result<(), BusError> {
        self.serve_with(1, agent, also, stop, handler).await
    }

    /// Does the same as [`serve`](Self::serve), with up to `workers` messages at a time. An idle worker takes
    /// the oldest waiting message, so a slow message blocks one worker and no sender.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the bus is closed.
    pub async fn serve_with<F: Future<Output = Result<(), String>>>(
        &self,
        workers: usize,
        agent: &AgentId,
        also: &[MessageType],
        stop: &CancellationToken,
        handler: impl Fn(BusMessage) -> F,
    ) -> Result<(), BusError> {
        let receiver = self.receiver(agent, also)?;
        let handler = &handler;
        let mut working = FuturesUnordered::new();
        let mut stopped = pin!(stop.cancelled());
        let mut is_stopped = false;
        loop {
            let next = poll_fn(|task| {
                is_stopped = is_stopped || stopped.as_mut().poll(task).is_ready();
                while let Poll::Ready(Some(())) = working.poll_next_unpin(task) {}
                let is_over = is_stopped || working.len() >= workers.max(1);
                let next = if is_over { Poll::Ready(None) } else { receiver.poll_claim(task) };
                match next {
                    // Messages that are being handled may still come again.
                    Poll::Ready(None) if !working.is_empty() => Poll::Pending,
                    next => next,
                }
            });
            let Some(claim) = next.await else { return Ok(()) };
            working.push(async move {
                let message = claim.message().clone();
                let seq = message.seq;
                match AssertUnwindSafe(async { handler(message).await }).catch_unwind().await {
                    Ok(Ok(())) => claim.confirm(),
                    Ok(Err(problem)) => tracing::warn!(%agent, seq, problem, "a handler failed"),
                    Err(_) => tracing::warn!(%agent, seq, "a handler panicked"),
                }
            });
        }
    }

    /// Returns the dead letters (messages that could not be delivered), oldest first, without removing them.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.state().dead.iter().cloned().collect()
    }

    /// Removes and returns the dead letters, oldest first.
    pub fn take_dead_letters(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.state().dead).into()
    }

    /// Returns the number of messages that wait for an agent, including those being read.
    pub fn depth(&self, agent: &AgentId) -> usize {
        self.state().depth(agent)
    }

    /// Closes the bus: no message is accepted any more, and subscriptions end after their queued messages.
    pub fn close(&self) {
        self.state().close();
    }

    async fn send(&self, message: BusMessage, sending: Sending) -> Result<(), BusError> {
        let mut message = match self.offer(message, sending, None) {
            Offered::Done(result) => return result,
            Offered::Full(message, _) => Some(message),
        };
        let clock = &self.0.clock;
        let mut patience = clock.sleep_until(clock.now() + self.0.options.patience);
        poll_fn(|task| {
            let Some(offered) = message.take() else { return Poll::Ready(Err(BusError::Closed)) };
            match self.offer(offered, sending, Some(task.waker())) {
                Offered::Done(result) => Poll::Ready(result),
                Offered::Full(back, receiver) if patience.as_mut().poll(task).is_ready() => {
                    self.bury(back, DeathCause::Full);
                    Poll::Ready(Err(BusError::Full { receiver }))
                }
                Offered::Full(back, _) => {
                    message = Some(back);
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn offer(&self, message: BusMessage, sending: Sending, waker: Option<&std::task::Waker>) -> Offered {
        let now = self.0.clock.now();
        let (offered, wake) = self.state().offer(message, sending, waker, now, &self.0.options);
        wake.into_iter().for_each(std::task::Waker::wake);
        offered
    }

    fn bury(&self, message: BusMessage, cause: DeathCause) {
        self.state().bury(message, cause, &self.0.options);
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for InMemoryBus {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        Box::pin(self.send(message, Sending::Plain))
    }

    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        Box::pin(async move {
            let id = self.state().subscribe(agent, also)?;
            Ok(Box::pin(Subscription { bus: self.clone(), id, taken: VecDeque::new() }) as BoxStream<'_, _>)
        })
    }

    /// Publishes a request and waits for its answer. Only this caller gets the answer, and no subscription. A late
    /// answer is refused and becomes a dead letter.
    fn request<'a>(
        &'a self,
        request: BusMessage,
        clock: &'a dyn Clock,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<BusMessage, BusError>> {
        Box::pin(async move {
            let correlation = request.correlation()?.to_owned();
            let (receiver, message_type) = (request.receiver_id.clone(), request.message_type.clone());
            let (answer, mut answered) = oneshot::channel();
            self.state().expect(correlation.clone(), request.sender_id.clone(), answer);
            // Whatever ends the wait, an answer after it is late.
            let _wait = AnswerWait { bus: self, correlation };
            self.send(request, Sending::Request).await?;
            let answer = clock.before(deadline, |task| answered.poll_unpin(task)).await;
            let answer = answer.ok_or(BusError::TimedOut { receiver, message_type })?;
            answer.map_err(|_| BusError::Closed)
        })
    }
}

/// The wait of a request for its answer. The wait ends when this value is dropped.
struct AnswerWait<'a> {
    bus: &'a InMemoryBus,
    correlation: String,
}

impl Drop for AnswerWait<'_> {
    fn drop(&mut self) {
        self.bus.state().end_wait(&self.correlation);
    }
}

archon_types::debug_fields!(InMemoryBus);
