//! The state of a bus. The lock around the state gives all messages one order.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::Hash,
    task::Waker,
    time::Duration,
};

use archon_types::{AgentId, BusError, BusMessage, DeadLetter, DeathCause, Echo, MessageType, Timestamp};
use tokio::sync::oneshot;

use super::{BusOptions, Fate};

/// The maximum number of requests without an answer that are remembered, so that a late answer is recognised.
const MAX_UNANSWERED: usize = 4_096;

#[derive(Default)]
pub(super) struct State {
    next_seq: u64,
    next_subscription: u64,
    queues: BTreeMap<u64, Queue>,
    by_agent: HashMap<AgentId, Vec<u64>>,
    by_type: HashMap<MessageType, Vec<u64>>,
    expected: HashMap<String, (AgentId, oneshot::Sender<BusMessage>)>,
    /// The correlation ids of the requests whose wait ended without an answer, oldest first.
    unanswered: VecDeque<String>,
    is_unanswered: HashSet<String>,
    /// The senders that wait for room in a queue.
    blocked: Vec<Waker>,
    pub(super) dead: VecDeque<DeadLetter>,
    closed: bool,
    targets: Vec<u64>,
}

struct Queue {
    agent: AgentId,
    also: Vec<MessageType>,
    items: VecDeque<Item>,
    /// The number of messages that the reader took and that do not count as read or confirmed yet.
    taken: usize,
    reader: Option<Waker>,
}

/// A queued message.
pub(super) struct Item {
    pub(super) message: BusMessage,
    pub(super) expires: Timestamp,
    /// The number of deliveries that were not confirmed.
    pub(super) failures: u32,
}

/// The result of [`State::offer`].
pub(super) enum Offered {
    Done(Result<(), BusError>),
    /// The queue of this agent is full, and no subscription has got the message.
    Full(BusMessage, AgentId),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    Plain,
    /// A request. Its correlation id is that of the awaited answer, but it is not the answer.
    Request,
}

/// The result of reading a queue.
pub(super) enum Found<T> {
    Some(T),
    Nothing,
    Closed,
}

impl State {
    pub(super) fn subscribe(&mut self, agent: &AgentId, also: &[MessageType]) -> Result<u64, BusError> {
        if self.closed {
            return Err(BusError::Closed);
        }
        let id = self.next_subscription;
        self.next_subscription += 1;
        self.by_agent.entry(agent.clone()).or_default().push(id);
        for kind in also {
            let subscribed = self.by_type.entry(kind.clone()).or_default();
            if !subscribed.contains(&id) {
                subscribed.push(id);
            }
        }
        let (items, also) = (VecDeque::new(), also.to_vec());
        self.queues.insert(id, Queue { agent: agent.clone(), also, items, taken: 0, reader: None });
        Ok(id)
    }

    /// Ends a subscription. The messages in `unread`, and then the queued ones, become dead letters.
    pub(super) fn unsubscribe(&mut self, id: u64, unread: VecDeque<Item>, options: &BusOptions) {
        let Some(queue) = self.queues.remove(&id) else { return };
        remove_from(&mut self.by_agent, &queue.agent, id);
        queue.also.iter().for_each(|kind| remove_from(&mut self.by_type, kind, id));
        for item in unread.into_iter().chain(queue.items) {
            self.bury(item.message, DeathCause::Unsubscribed, options);
        }
        self.wake_blocked();
    }

    /// Queues a message for all its subscriptions, or for none of them.
    pub(super) fn offer(
        &mut self,
        message: BusMessage,
        sending: Sending,
        sender: Option<&Waker>,
        now: Timestamp,
        options: &BusOptions,
    ) -> (Offered, Vec<Waker>) {
        let mut wake = Vec::new();
        if self.closed {
            return (Offered::Done(Err(BusError::Closed)), wake);
        }
        let mut message = match self.answer(message, sending, options) {
            Ok(result) => return (Offered::Done(result), wake),
            Err(message) => *message,
        };
        self.find_targets(&message, options.echo);
        let is_meant = |queue: &Queue| message.is_broadcast() || queue.agent == message.receiver_id;
        let mut is_heard = false;
        for id in &self.targets {
            let Some(queue) = self.queues.get(id) else { continue };
            if queue.items.len() + queue.taken >= options.capacity {
                let agent = queue.agent.clone();
                if let Some(sender) = sender
                    && !self.blocked.iter().any(|blocked| blocked.will_wake(sender))
                {
                    self.blocked.push(sender.clone());
                }
                return (Offered::Full(message, agent), wake);
            }
            is_heard |= is_meant(queue);
        }
        self.next_seq += 1;
        message.seq = self.next_seq;
        if let MessageType::Other(name) = &message.message_type {
            tracing::debug!(name, seq = message.seq, "a message of an unknown type is passed on as it is");
        }
        if let Some(audit) = options.audit.as_deref().filter(|_| is_heard) {
            audit.note(&message, Fate::Accepted(self.targets.len()));
        }
        let expires = now + message.ttl_ms.map_or(options.ttl, Duration::from_millis);
        if !is_heard {
            let receiver = message.receiver_id.clone();
            self.push_all(message.clone(), expires, &mut wake);
            self.bury(message, DeathCause::Undeliverable, options);
            return (Offered::Done(Err(BusError::Undeliverable { receiver })), wake);
        }
        self.push_all(message, expires, &mut wake);
        (Offered::Done(Ok(())), wake)
    }

    fn push_all(&mut self, message: BusMessage, expires: Timestamp, wake: &mut Vec<Waker>) {
        let Some((last, others)) = self.targets.split_last() else { return };
        for id in others {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.push(Item { message: message.clone(), expires, failures: 0 }, wake);
            }
        }
        // The last subscription gets the message itself, so one subscription costs no copy.
        if let Some(queue) = self.queues.get_mut(last) {
            queue.push(Item { message, expires, failures: 0 }, wake);
        }
    }

    /// Passes an answer to the request that waits for it. Any other message is returned as the error.
    fn answer(
        &mut self,
        mut message: BusMessage,
        sending: Sending,
        options: &BusOptions,
    ) -> Result<Result<(), BusError>, Box<BusMessage>> {
        let Some(correlation) = message.correlation_id.as_ref().filter(|_| sending == Sending::Plain) else {
            return Err(Box::new(message));
        };
        if self.is_unanswered.contains(correlation) {
            tracing::warn!(sender = %message.sender_id, correlation, "an answer came too late");
            let (sender, message_type) = (message.sender_id.clone(), message.message_type.clone());
            self.bury(message, DeathCause::Late, options);
            return Ok(Err(BusError::Late { sender, message_type }));
        }
        let is_awaited = |(asker, _): &(AgentId, _)| *asker == message.receiver_id;
        if !self.expected.get(correlation).is_some_and(is_awaited) {
            return Err(Box::new(message));
        }
        let Some((_, answer)) = self.expected.remove(correlation) else { return Err(Box::new(message)) };
        self.next_seq += 1;
        message.seq = self.next_seq;
        if let Some(audit) = &options.audit {
            audit.note(&message, Fate::Answered);
        }
        let _ = answer.send(message);
        Ok(Ok(()))
    }

    fn find_targets(&mut self, message: &BusMessage, echo: Echo) {
        self.targets.clear();
        if message.is_broadcast() {
            let is_meant = |queue: &Queue| echo == Echo::Everybody || queue.agent != message.sender_id;
            let others = self.queues.iter().filter(|(_, queue)| is_meant(queue));
            self.targets.extend(others.map(|(id, _)| *id));
            return;
        }
        if let Some(of_agent) = self.by_agent.get(&message.receiver_id) {
            self.targets.extend(of_agent);
        }
        if self.by_type.is_empty() {
            return;
        }
        for id in self.by_type.get(&message.message_type).into_iter().flatten() {
            if !self.targets.contains(id) {
                self.targets.push(*id);
            }
        }
    }

    /// Takes up to `most` messages. The messages of the previous call then count as read.
    pub(super) fn take(&mut self, id: u64, most: usize, reader: &Waker) -> Found<VecDeque<Item>> {
        let closed = self.closed;
        let Some(queue) = self.queues.get_mut(&id) else { return Found::Closed };
        let had = std::mem::take(&mut queue.taken);
        if queue.items.is_empty() {
            queue.reader = Some(reader.clone());
        }
        let items: VecDeque<Item> = match queue.items.len() <= most {
            true => std::mem::take(&mut queue.items),
            false => queue.items.drain(..most).collect(),
        };
        queue.taken = items.len();
        if had > 0 {
            self.wake_blocked();
        }
        match items.is_empty() {
            false => Found::Some(items),
            true if closed => Found::Closed,
            true => Found::Nothing,
        }
    }

    /// Takes one message until it is confirmed or put back. Other messages may be taken at the same time.
    pub(super) fn claim(&mut self, id: u64, reader: &Waker) -> Found<Item> {
        let closed = self.closed;
        let Some(queue) = self.queues.get_mut(&id) else { return Found::Closed };
        match queue.items.pop_front() {
            Some(item) => {
                queue.taken += 1;
                Found::Some(item)
            }
            None if closed => Found::Closed,
            None => {
                queue.reader = Some(reader.clone());
                Found::Nothing
            }
        }
    }

    /// Confirms a message that was taken.
    pub(super) fn confirm(&mut self, id: u64) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.taken = queue.taken.saturating_sub(1);
            self.wake_blocked();
        }
    }

    /// Puts back an unconfirmed message, to be delivered next; after the last retry it is a dead letter.
    pub(super) fn put_back(&mut self, id: u64, mut item: Item, options: &BusOptions) {
        item.failures += 1;
        if item.failures > options.retries {
            self.confirm(id);
            return self.bury(item.message, DeathCause::Unconfirmed, options);
        }
        match self.queues.get_mut(&id) {
            Some(queue) => {
                queue.taken = queue.taken.saturating_sub(1);
                queue.items.push_front(item);
            }
            None => self.bury(item.message, DeathCause::Unsubscribed, options),
        }
    }

    pub(super) fn bury(&mut self, message: BusMessage, cause: DeathCause, options: &BusOptions) {
        tracing::debug!(seq = message.seq, receiver = %message.receiver_id, ?cause, "a message is a dead letter");
        if let Some(audit) = &options.audit {
            audit.note(&message, Fate::Dead(cause));
        }
        while self.dead.len() >= options.dead_letters.max(1) {
            self.dead.pop_front();
        }
        self.dead.push_back(DeadLetter::new(message, cause));
    }

    pub(super) fn expect(
        &mut self,
        correlation: String,
        asker: AgentId,
        answer: oneshot::Sender<BusMessage>,
    ) {
        // A new request with the same correlation id waits again.
        if self.is_unanswered.remove(&correlation) {
            self.unanswered.retain(|other| *other != correlation);
        }
        self.expected.insert(correlation, (asker, answer));
    }

    /// Ends the wait for an answer. If the answer has come, later copies of it do not count as late answers.
    pub(super) fn end_wait(&mut self, correlation: &str) {
        if self.expected.remove(correlation).is_none() {
            return;
        }
        if self.unanswered.len() == MAX_UNANSWERED
            && let Some(oldest) = self.unanswered.pop_front()
        {
            self.is_unanswered.remove(&oldest);
        }
        self.unanswered.push_back(correlation.to_owned());
        self.is_unanswered.insert(correlation.to_owned());
    }

    pub(super) fn depth(&self, agent: &AgentId) -> usize {
        let queues = self.by_agent.get(agent).into_iter().flatten().filter_map(|id| self.queues.get(id));
        queues.map(|queue| queue.items.len() + queue.taken).sum()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.expected.clear();
        self.queues.values_mut().filter_map(|queue| queue.reader.take()).for_each(Waker::wake);
        self.wake_blocked();
    }

    fn wake_blocked(&mut self) {
        self.blocked.drain(..).for_each(Waker::wake);
    }
}

/// Removes a subscription from those of a topic.
fn remove_from<K: Eq + Hash>(topics: &mut HashMap<K, Vec<u64>>, topic: &K, id: u64) {
    if let Some(subscribed) = topics.get_mut(topic) {
        subscribed.retain(|other| *other != id);
        if subscribed.is_empty() {
            topics.remove(topic);
        }
    }
}

impl Queue {
    fn push(&mut self, item: Item, wake: &mut Vec<Waker>) {
        self.items.push_back(item);
        wake.extend(self.reader.take());
    }
}
