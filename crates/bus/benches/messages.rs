//! Measures the cost of a message: `cargo bench -p archon-bus`. One topic, one subscription, one sender; the goal of a
//! million messages a second is checked for one thread: it fails below. With two threads the figure is the machine's more
//! than the bus's. Each figure is the best of five.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use archon_bus::{BusAudit, BusOptions, Fate, InMemoryAudit, InMemoryBus};
use archon_types::{AgentId, BoxFuture, Bus, BusMessage, Clock, MessageType, Timestamp};
use futures_util::StreamExt;

const MESSAGES: u64 = 1_000_000;

struct System;

impl Clock for System {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap())
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Counts and forgets.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicU64);

impl BusAudit for Counting {
    fn note(&self, _: &BusMessage, _: Fate) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

fn main() {
    type Audit = fn() -> Option<Arc<dyn BusAudit>>;
    let audits: [(&str, Audit); 3] = [
        ("no audit log", || None),
        ("audit log that counts", || Some(Arc::new(Counting::default()))),
        ("audit log in memory, the last 10,000", || Some(Arc::new(InMemoryAudit::new(10_000)))),
    ];
    let mut missed = Vec::new();
    for threads in [1, 2] {
        for (name, audit) in audits {
            let best = (0..5).map(|_| run(threads, audit())).fold(f64::MAX, f64::min);
            let rate = MESSAGES as f64 / best / 1e6;
            println!("{threads} thread(s), {name}: {rate:.2} million messages/s");
            if threads == 1 && rate < 1.0 {
                missed.push(name);
            }
        }
    }
    assert!(missed.is_empty(), "missed: a million messages/s with {missed:?}");
}

/// Seconds from the first message sent to the last one read.
fn run(threads: usize, audit: Option<Arc<dyn BusAudit>>) -> f64 {
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().build(),
        n => tokio::runtime::Builder::new_multi_thread().worker_threads(n).build(),
    };
    runtime.unwrap().block_on(async {
        let mut options = BusOptions::default();
        options.audit = audit;
        let bus = InMemoryBus::with_options(Arc::new(System), options);
        let reader = AgentId::new("reader");
        let mut messages = bus.subscribe(&reader, &[]).await.unwrap();
        let content = serde_json::json!({ "progress": 1 }).as_object().cloned().unwrap();
        let message =
            BusMessage::new("sender", "reader", MessageType::StatusUpdate, content, Timestamp::default());
        let all: Vec<_> = (0..MESSAGES).map(|_| message.clone()).collect();
        let begun = Instant::now();
        let sender = tokio::spawn(async move {
            for message in all {
                bus.publish(message).await.unwrap();
            }
        });
        let reading = tokio::spawn(async move {
            for seq in 1..=MESSAGES {
                assert_eq!(messages.next().await.unwrap().seq, seq);
            }
        });
        sender.await.unwrap();
        reading.await.unwrap();
        begun.elapsed().as_secs_f64()
    })
}
