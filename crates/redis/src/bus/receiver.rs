//! A reader of an inbox, which holds partitions by leases and confirms each message.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use archon_types::{AgentId, BoxStream, BusError, BusMessage, DeathCause, MessageType, Timestamp};
use futures_util::stream;
use redis::{Value, aio::ConnectionManager};
use tokio::{runtime::Handle, task::JoinHandle};

use super::{RedisBus, failed, message_of};
use crate::server::connect;

/// The inbox of a single reader is removed when the reader has not renewed its lease for this many lease
/// times.
const MISSED_LEASES: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All readers of the agent share the inbox.
    Group,
    /// The reader has its own inbox.
    Alone,
}

pub(super) fn group_inbox(agent: &AgentId) -> String {
    format!("g:{agent}")
}

/// Reads messages one after the other: the next message comes after the last delivery was confirmed or
/// dropped. Needs a Tokio runtime, on which a task renews the leases.
pub struct RedisReceiver {
    member: Arc<Member>,
    /// The connection that waits for new messages. It is separate from the other connection, since waiting
    /// blocks it.
    bell: ConnectionManager,
    parts: BTreeMap<u32, Part>,
    /// The partition that was read last. The search for the next message begins after it, so that all
    /// partitions get their turn.
    last: u32,
    keeper: JoinHandle<()>,
}

/// One reader in the group of readers of an inbox, and the leases that it holds.
struct Member {
    bus: RedisBus,
    inbox: String,
    name: String,
    /// The time in ms without a renewed lease after which the inbox is removed; empty for never.
    alive: String,
    sharing: Sharing,
    agent: AgentId,
    also: Vec<MessageType>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    share: usize,
    leases: BTreeMap<u32, Lease>,
    epochs: u64,
}

#[derive(Clone, Copy)]
struct Lease {
    until: Instant,
    /// A number that changes whenever the partition is acquired again: messages read under an older epoch may belong
    /// to another reader now.
    epoch: u64,
}

/// The messages that were read in advance from a partition, and the id of the last one.
struct Part {
    epoch: u64,
    read: String,
    items: VecDeque<Item>,
    /// True while it is unknown if a message was confirmed, because a call got no answer or an error.
    unsure: bool,
}

struct Item {
    id: String,
    message: BusMessage,
    expires: Timestamp,
    failures: u32,
    /// True if the last delivery was not confirmed and the server has not counted that failure yet.
    uncounted: bool,
}

impl RedisReceiver {
    pub(super) async fn open(
        bus: RedisBus,
        agent: &AgentId,
        also: &[MessageType],
        sharing: Sharing,
    ) -> Result<Self, BusError> {
        let mut count = redis::cmd("INCR");
        count.arg(format!("{}readers", bus.0.prefix));
        let n: u64 = count.query_async(&mut bus.0.connection.clone()).await.map_err(failed("write to"))?;
        let name = format!("{}-{n}", std::process::id());
        let lease = bus.0.options.lease;
        let (inbox, alive) = match sharing {
            Sharing::Group => (group_inbox(agent), String::new()),
            Sharing::Alone => (format!("s:{name}"), (lease * MISSED_LEASES).as_millis().to_string()),
        };
        let (agent, also) = (agent.clone(), also.to_vec());
        let member = Member { bus, inbox, name, alive, sharing, agent, also, held: Mutex::default() };
        member.subscribe().await?;
        let bell = connect(&member.bus.0.client).await.map_err(failed("connect to"))?;
        let member = Arc::new(member);
        member.tend().await?;
        let keeper = tokio::spawn(keep(member.clone()));
        Ok(Self { member, bell, parts: BTreeMap::new(), last: 0, keeper })
    }

    /// Returns the next message; waits until there is one.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the server fails; the next call retries.
    pub async fn next(&mut self) -> Result<RedisDelivery<'_>, BusError> {
        loop {
            self.release_excess().await?;
            self.drop_lost_parts();
            if let Some((part, item)) = self.take_item() {
                if let Some(item) = self.look_at(part, item).await? {
                    return Ok(RedisDelivery { receiver: self, part, item: Some(item) });
                }
            } else if !self.fetch().await? {
                self.wait().await?;
            }
        }
    }

    /// Turns the reader into a stream that confirms each message when it is read.
    pub(super) fn into_stream(self) -> BoxStream<'static, BusMessage> {
        Box::pin(stream::unfold(self, |mut receiver| async move {
            loop {
                let confirmed = match receiver.next().await {
                    Ok(delivery) => {
                        let message = delivery.message().clone();
                        delivery.ack().await.map(|()| message)
                    }
                    Err(error) => Err(error),
                };
                match confirmed {
                    Ok(message) => return Some((message, receiver)),
                    Err(error) => breathe(&error).await,
                }
            }
        }))
    }

    /// Releases the partitions beyond this member's share, after other members have joined. No message of
    /// these partitions is being handled at this moment.
    async fn release_excess(&mut self) -> Result<(), BusError> {
        let excess = self.member.excess();
        if excess.is_empty() {
            return Ok(());
        }
        self.parts.retain(|part, _| !excess.contains(part));
        let mut call = self.member.call(&self.member.bus.0.scripts.release);
        call.arg(excess);
        self.member.bus.run::<i64>(&call).await.map(drop)
    }

    /// Drops messages of partitions that are no longer held. A partition that was acquired again is read
    /// from its oldest unconfirmed message.
    fn drop_lost_parts(&mut self) {
        let held = self.member.leases();
        self.parts.retain(|part, read| {
            held.get(part).is_some_and(|lease| lease.epoch == read.epoch) && !read.unsure
        });
        for (part, lease) in held {
            self.parts.entry(part).or_insert_with(|| Part {
                epoch: lease.epoch,
                read: "0".to_owned(),
                items: VecDeque::new(),
                unsure: false,
            });
        }
    }

    fn take_item(&mut self) -> Option<(u32, Item)> {
        let after = self.parts.range_mut(self.last.saturating_add(1)..);
        let next = after.filter(|(_, part)| !part.items.is_empty()).map(|(n, _)| *n).next();
        let first = || self.parts.iter().find(|(_, part)| !part.items.is_empty()).map(|(n, _)| *n);
        self.last = next.or_else(first)?;
        let item = self.parts.get_mut(&self.last)?.items.pop_front()?;
        Some((self.last, item))
    }

    /// Checks a message before its delivery. If its last delivery failed, counts the failure on the server. Returns
    /// the message if it may be delivered; a message that expired or failed too often becomes a dead letter.
    async fn look_at(&mut self, part: u32, mut item: Item) -> Result<Option<Item>, BusError> {
        let member = self.member.clone();
        if item.uncounted {
            self.set_unsure(part, true);
            let mut call = member.call(&member.bus.0.scripts.failed);
            call.arg(part).arg(&item.id);
            let failures: i64 = member.bus.run(&call).await?;
            let Ok(failures) = u32::try_from(failures) else { return Ok(None) };
            self.set_unsure(part, false);
            (item.failures, item.uncounted) = (failures, false);
        }
        let cause = if item.expires <= member.bus.0.clock.now() {
            DeathCause::Expired
        } else if item.failures > member.bus.0.options.retries {
            DeathCause::Unconfirmed
        } else {
            return Ok(Some(item));
        };
        tracing::debug!(seq = item.message.seq, ?cause, "a message is a dead letter");
        self.settle(part, &item.id, cause.as_str()).await?;
        Ok(None)
    }

    /// Confirms a message, or makes it a dead letter with a cause. Until the server has answered, it is
    /// unknown if the message was confirmed.
    async fn settle(&mut self, part: u32, id: &str, cause: &str) -> Result<(), BusError> {
        self.set_unsure(part, true);
        let mut call = self.member.call(&self.member.bus.0.scripts.settle);
        call.arg(part).arg(id).arg(cause);
        let settled: i64 = self.member.bus.run(&call).await?;
        if settled == 0 {
            let inbox = &self.member.inbox;
            return Err(BusError::Transport(format!(
                "partition {part} of {inbox} was taken over by another reader before the confirmation"
            )));
        }
        self.set_unsure(part, false);
        Ok(())
    }

    fn set_unsure(&mut self, part: u32, unsure: bool) {
        if let Some(read) = self.parts.get_mut(&part) {
            read.unsure = unsure;
        }
    }

    /// Reads messages in advance. Returns true if there were messages.
    async fn fetch(&mut self) -> Result<bool, BusError> {
        if self.parts.is_empty() {
            return Ok(false);
        }
        let member = self.member.clone();
        let mut call = member.call(&member.bus.0.scripts.fetch);
        call.arg(member.bus.0.options.batch);
        for (part, read) in &self.parts {
            call.arg(part).arg(&read.read);
        }
        let found: Vec<Vec<String>> = member.bus.run(&call).await?;
        for entry in &found {
            let Some(part) = entry.first().and_then(|part| part.parse().ok()) else { continue };
            let [_, id, seq, expires, body, failures] = entry.as_slice() else {
                member.lose(part);
                continue;
            };
            let Some(read) = self.parts.get_mut(&part) else { continue };
            read.read.clone_from(id);
            let Some(mut message) = message_of(body) else {
                self.settle(part, id, DeathCause::Other.as_str()).await?;
                continue;
            };
            message.seq = seq.parse().unwrap_or_default();
            read.items.push_back(Item {
                id: id.clone(),
                message,
                expires: Timestamp::from_millis(expires.parse().unwrap_or_default()),
                failures: failures.parse().unwrap_or_default(),
                uncounted: false,
            });
        }
        Ok(!found.is_empty())
    }

    /// Waits until a held partition has a new message, or until it is time to check for free partitions.
    async fn wait(&mut self) -> Result<(), BusError> {
        let most = self.member.bus.0.options.lease / 6;
        if self.parts.is_empty() {
            tokio::time::sleep(most).await;
            return Ok(());
        }
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(1).arg("BLOCK").arg(most.as_millis().clamp(1, 1_000) as u64).arg("STREAMS");
        for part in self.parts.keys() {
            read.arg(format!("{}in:{}:{part}", self.member.bus.0.prefix, self.member.inbox));
        }
        for part in self.parts.values() {
            read.arg(&part.read);
        }
        read.query_async::<Value>(&mut self.bell).await.map(|_| ()).map_err(failed("read"))
    }
}

impl Drop for RedisReceiver {
    /// Releases the partitions. Without a runtime they become free when their leases end.
    fn drop(&mut self) {
        self.keeper.abort();
        let member = self.member.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = member.leave().await {
                    tracing::debug!(%error, "a reader could not release its partitions");
                }
            });
        }
    }
}

/// A message that waits for its confirmation. Dropping it without a confirmation counts as a failure, like
/// [`retry`](Self::retry).
pub struct RedisDelivery<'a> {
    receiver: &'a mut RedisReceiver,
    part: u32,
    item: Option<Item>,
}

impl RedisDelivery<'_> {
    /// Returns the message.
    pub fn message(&self) -> &BusMessage {
        // It is `Some` until `ack` or the drop, which both end the delivery.
        match &self.item {
            Some(item) => &item.message,
            None => unreachable!("a delivery that is over cannot be looked at"),
        }
    }

    /// Returns the number of earlier deliveries that were not confirmed. If a reader died, the first of its
    /// messages counts as such a delivery, even if the reader had not begun to handle the message.
    pub fn failures(&self) -> u32 {
        self.item.as_ref().map_or(0, |item| item.failures)
    }

    /// Confirms the message, so that it is not delivered again.
    ///
    /// # Errors
    /// [`BusError::Transport`] if the confirmation fails: the message may be delivered again, to this reader
    /// or to the reader that holds the partition now.
    pub async fn ack(mut self) -> Result<(), BusError> {
        let Some(item) = self.item.take() else { return Ok(()) };
        self.receiver.settle(self.part, &item.id, "").await
    }

    /// Ends the delivery as failed. The message is delivered again, or becomes a dead letter after too many
    /// failures.
    pub fn retry(self) {}
}

impl Drop for RedisDelivery<'_> {
    fn drop(&mut self) {
        if let Some(mut item) = self.item.take()
            && let Some(part) = self.receiver.parts.get_mut(&self.part)
        {
            item.uncounted = true;
            part.items.push_front(item);
            // This partition is read first, so the message comes again before any other.
            self.receiver.last = self.part.wrapping_sub(1);
        }
    }
}

async fn keep(member: Arc<Member>) {
    loop {
        tokio::time::sleep(member.bus.0.options.lease / 3).await;
        if let Err(error) = member.tend().await {
            tracing::warn!(inbox = member.inbox, %error, "leases could not be renewed");
        }
    }
}

/// Waits 100 ms after an error that may pass.
pub(super) async fn breathe(error: &BusError) {
    tracing::warn!(%error, "reading from the bus failed, and is tried again");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

impl Member {
    /// Creates the inbox if it does not exist.
    async fn subscribe(&self) -> Result<(), BusError> {
        let parts = match self.sharing {
            Sharing::Group => self.bus.0.options.partitions,
            Sharing::Alone => 1,
        };
        let mut call = self.bus.call(&self.bus.0.scripts.subscribe);
        call.arg(&self.inbox).arg(self.agent.as_str()).arg(parts).arg(&self.alive);
        for kind in &self.also {
            call.arg(kind.as_str());
        }
        self.bus.run::<u32>(&call).await.map(|_| ())
    }

    /// Renews the leases and acquires free partitions. A subscription whose inbox was removed after missed
    /// leases gets a new inbox; the messages in the old one are dead letters.
    async fn tend(&self) -> Result<(), BusError> {
        if self.tend_once().await? || self.sharing == Sharing::Group {
            return Ok(());
        }
        tracing::warn!(inbox = self.inbox, agent = %self.agent, "the inbox of a subscription was removed after missed leases, and is created again");
        self.subscribe().await?;
        self.tend_once().await.map(|_| ())
    }

    /// Renews and acquires leases once. Returns false if the inbox does not exist.
    async fn tend_once(&self) -> Result<bool, BusError> {
        let lease = self.bus.0.options.lease;
        let until = Instant::now() + lease;
        let mut call = self.call(&self.bus.0.scripts.tend);
        call.arg(lease.as_millis() as u64).arg(&self.alive);
        let found: Vec<Vec<u32>> = self.bus.run(&call).await?;
        let mut held = self.lock_held();
        let before = std::mem::take(&mut held.leases);
        let is_there = found.first().is_some_and(|share| share[..] != [0]);
        for answer in found {
            match answer[..] {
                [share] => held.share = share as usize,
                [part, taken] => {
                    held.epochs += 1;
                    let known = before.get(&part).filter(|_| taken == 0).map(|lease| lease.epoch);
                    let epoch = known.unwrap_or(held.epochs);
                    held.leases.insert(part, Lease { until, epoch });
                }
                _ => {}
            }
        }
        Ok(is_there)
    }

    async fn leave(&self) -> Result<(), BusError> {
        let scripts = &self.bus.0.scripts;
        let call = match self.sharing {
            Sharing::Alone => self.call(&scripts.forget),
            Sharing::Group => {
                let mut call = self.call(&scripts.release);
                call.arg("*");
                call
            }
        };
        self.bus.run::<i64>(&call).await.map(|_| ())
    }

    /// Removes the leases beyond this member's share and returns their partitions.
    fn excess(&self) -> Vec<u32> {
        let mut held = self.lock_held();
        match held.leases.keys().nth(held.share).copied() {
            Some(first) => held.leases.split_off(&first).into_keys().collect(),
            None => Vec::new(),
        }
    }

    fn leases(&self) -> BTreeMap<u32, Lease> {
        let mut leases = self.lock_held().leases.clone();
        leases.retain(|_, lease| lease.until > Instant::now());
        leases
    }

    fn lose(&self, part: u32) {
        self.lock_held().leases.remove(&part);
    }

    fn call<'a>(&'a self, script: &'a redis::Script) -> redis::ScriptInvocation<'a> {
        let mut call = self.bus.call(script);
        call.arg(&self.inbox).arg(&self.name);
        call
    }

    fn lock_held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
