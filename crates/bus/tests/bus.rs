//! The bus: once to each, in order, never lost in silence.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::{collections::HashMap, sync::Arc, time::Duration};

use archon_bus::{BusOptions, Fate, InMemoryAudit, InMemoryBus};
use archon_testkit::{Chance, SeededIds, VirtualClock, cases, drive, first_seed};
use archon_types::{
    AgentId, Bus, BusError, BusMessage, CancellationToken, Clock, DeathCause, Echo, MessageType, Timestamp,
};
use futures_util::{FutureExt, StreamExt, future::join};

fn message(from: &str, to: &str, kind: MessageType, n: u64) -> BusMessage {
    let content = serde_json::json!({ "n": n }).as_object().cloned().unwrap();
    BusMessage::new(from, to, kind, content, Timestamp::default())
}

fn bus(change: impl FnOnce(&mut BusOptions)) -> (InMemoryBus, VirtualClock) {
    let clock = VirtualClock::new();
    let mut options = BusOptions::default();
    change(&mut options);
    (InMemoryBus::with_options(Arc::new(clock.clone()), options), clock)
}

// spec: MA-04, MA-05, MA-06, ER-17
#[test]
fn each_subscription_gets_each_message_once_and_in_order() {
    let (bus, clock) = bus(|_| {});
    drive(&clock, async {
        let (ann, bob) = (AgentId::new("ann"), AgentId::new("bob"));
        // Ann is meant twice: by name, and by kind.
        let mut to_ann = bus.subscribe(&ann, &[MessageType::StatusUpdate]).await.unwrap();
        let mut to_bob = bus.subscribe(&bob, &[]).await.unwrap();
        bus.publish(message("bob", "ann", MessageType::StatusUpdate, 1)).await.unwrap();
        bus.publish(message("ann", "bob", MessageType::StatusUpdate, 2)).await.unwrap();
        bus.publish(message("ann", "broadcast", MessageType::Notification, 3)).await.unwrap();
        bus.publish(message("bob", "*", "made_up".into(), 4)).await.unwrap();
        bus.close();
        let seqs = |m: BusMessage| (m.seq, m.content["n"].as_u64().unwrap(), m.message_type.to_string());
        let update = "status_update".to_owned();
        assert_eq!(
            to_ann.by_ref().map(seqs).collect::<Vec<_>>().await,
            [(1, 1, update.clone()), (2, 2, update.clone()), (4, 4, "made_up".to_owned())]
        );
        assert_eq!(
            to_bob.by_ref().map(seqs).collect::<Vec<_>>().await,
            [(2, 2, update), (3, 3, "notification".to_owned())]
        );
        assert_eq!(bus.publish(message("a", "ann", MessageType::Error, 5)).await, Err(BusError::Closed));
    });
}

// spec: MA-05
#[test]
fn a_broadcast_comes_back_to_its_sender_if_that_is_wanted() {
    let (bus, clock) = bus(|options| options.echo = Echo::Everybody);
    drive(&clock, async {
        let ann = AgentId::new("ann");
        let mut to_ann = bus.subscribe(&ann, &[]).await.unwrap();
        bus.publish(message("ann", "broadcast", MessageType::Notification, 1)).await.unwrap();
        assert_eq!(to_ann.next().await.unwrap().seq, 1);
    });
}

// spec: MA-07
#[test]
fn bus_undelivered_or_expired_message_becomes_a_dead_letter() {
    let audit = Arc::new(InMemoryAudit::new(100));
    let (bus, clock) = bus(|options| options.audit = Some(audit.clone()));
    drive(&clock, async {
        let ann = AgentId::new("ann");
        let nobody = bus.publish(message("ann", "nobody", MessageType::TaskRequest, 1)).await;
        assert_eq!(nobody, Err(BusError::Undeliverable { receiver: "nobody".into() }));
        let alone = bus.publish(message("ann", "broadcast", MessageType::TaskRequest, 2)).await;
        assert!(matches!(alone, Err(BusError::Undeliverable { .. })));
        let mut to_ann = bus.subscribe(&ann, &[]).await.unwrap();
        let mut short = message("bob", "ann", MessageType::Notification, 3);
        short.ttl_ms = Some(1_000);
        bus.publish(short).await.unwrap();
        bus.publish(message("bob", "ann", MessageType::Notification, 4)).await.unwrap();
        clock.advance(Duration::from_secs(1));
        assert_eq!(to_ann.next().await.unwrap().content["n"], 4);
        bus.publish(message("bob", "ann", MessageType::Notification, 5)).await.unwrap();
        clock.advance(Duration::from_secs(299));
        assert_eq!(to_ann.next().await.unwrap().content["n"], 5);
        bus.publish(message("bob", "ann", MessageType::Notification, 6)).await.unwrap();
        drop(to_ann);
    });
    let dead: Vec<_> = bus
        .take_dead_letters()
        .into_iter()
        .map(|d| (d.message.content["n"].as_u64().unwrap(), d.cause))
        .collect();
    assert_eq!(
        dead,
        [
            (1, DeathCause::Undeliverable),
            (2, DeathCause::Undeliverable),
            (3, DeathCause::Expired),
            (6, DeathCause::Unsubscribed)
        ]
    );
    assert!(bus.dead_letters().is_empty());
    // Every message is in the list, and what became of it.
    let fates: Vec<_> =
        audit.messages().into_iter().map(|(m, fate)| (m.content["n"].as_u64().unwrap(), fate)).collect();
    for n in 1..=6 {
        assert!(fates.iter().any(|(of, _)| *of == n), "{n} is in no list");
    }
    assert!(fates.contains(&(4, Fate::Accepted(1))));
}

// spec: MA-07
#[test]
fn bus_publish_to_a_full_queue_waits_then_fails() {
    let (bus, clock) = bus(|options| {
        options.capacity = 2;
        options.patience = Duration::from_secs(5);
    });
    let begun = clock.now();
    drive(&clock, async {
        let ann = AgentId::new("ann");
        let mut to_ann = bus.subscribe(&ann, &[]).await.unwrap();
        for n in 1..=2 {
            bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
        }
        assert_eq!(bus.depth(&ann), 2);
        let full = bus.publish(message("bob", "ann", MessageType::Notification, 3)).await;
        assert_eq!(full, Err(BusError::Full { receiver: "ann".into() }));
        assert_eq!(clock.now().since(begun), Duration::from_secs(5));
        // Room wakes who waits, and nothing is lost or turned round.
        let sender = async {
            for n in 4..=20 {
                bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
            }
        };
        let reader = async {
            let mut seen = Vec::new();
            for _ in 0..19 {
                seen.push(to_ann.next().await.unwrap().content["n"].as_u64().unwrap());
            }
            seen
        };
        let (seen, ()) = join(reader, sender).await;
        assert_eq!(seen, [1, 2].into_iter().chain(4..=20).collect::<Vec<_>>());
    });
    assert_eq!(bus.take_dead_letters()[0].cause, DeathCause::Full);
}

// spec: MA-06, MA-07
#[test]
fn bus_failed_handler_is_retried_without_blocking_others() {
    let (bus, clock) = bus(|_| {});
    drive(&clock, async {
        let ann = AgentId::new("ann");
        let stop = CancellationToken::new();
        let seen = std::sync::Mutex::new(Vec::new());
        let handler = |message: BusMessage| {
            let n = message.content["n"].as_u64().unwrap();
            let times = {
                let mut seen = seen.lock().unwrap();
                seen.push(n);
                seen.iter().filter(|other| **other == n).count()
            };
            async move {
                assert!(n != 2, "it panics");
                if n == 1 && times < 3 { Err("not yet".to_owned()) } else { Ok(()) }
            }
        };
        let serving = bus.serve(&ann, &[], &stop, handler);
        let sending = async {
            for n in 1..=3 {
                bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
            }
            bus.close();
        };
        join(serving, sending).await.0.unwrap();
        assert_eq!(*seen.lock().unwrap(), [1, 1, 1, 2, 2, 2, 2, 3]);
    });
    let dead = bus.take_dead_letters();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].cause, dead[0].message.content["n"].as_u64()), (DeathCause::Unconfirmed, Some(2)));
}

// spec: MA-27
#[test]
fn serve_with_two_workers_processes_messages_behind_a_slow_one() {
    let (bus, clock) = bus(|_| {});
    drive(&clock, async {
        let ann = AgentId::new("ann");
        let stop = CancellationToken::new();
        let (done, depths) = (std::sync::Mutex::new(Vec::new()), std::sync::Mutex::new(Vec::new()));
        let handler = |message: BusMessage| {
            let n = message.content["n"].as_u64().unwrap();
            let (bus, clock, done, depths, ann) = (&bus, &clock, &done, &depths, &ann);
            async move {
                depths.lock().unwrap().push(bus.depth(ann));
                let slow = if n == 1 { Duration::from_secs(10) } else { Duration::from_secs(1) };
                clock.sleep_until(clock.now() + slow).await;
                done.lock().unwrap().push(n);
                Ok(())
            }
        };
        let serving = bus.serve_with(2, &ann, &[], &stop, handler);
        let sending = async {
            for n in 1..=4 {
                bus.publish(message("bob", "ann", MessageType::TaskRequest, n)).await.unwrap();
            }
            bus.close();
        };
        join(serving, sending).await.0.unwrap();
        // Each once; the first, which is slow, is done last.
        assert_eq!(*done.lock().unwrap(), [2, 3, 4, 1]);
        assert_eq!(*depths.lock().unwrap(), [4, 4, 3, 2]);
        assert_eq!(bus.depth(&ann), 0);
    });
}

// spec: MA-08
#[test]
fn a_request_gets_its_answer_and_a_late_one_is_refused() {
    let (bus, clock) = bus(|_| {});
    let ids = SeededIds::new(1);
    drive(&clock, async {
        let bob = AgentId::new("bob");
        let mut to_bob = bus.subscribe(&bob, &[]).await.unwrap();
        let ask = |n| message("ann", "bob", MessageType::CapabilityQuery, n).into_request(&ids);
        let deadline = clock.now() + Duration::from_secs(60);
        let answering = async {
            let asked = to_bob.next().await.unwrap();
            let answer =
                asked.response(MessageType::Notification, asked.content.clone(), Timestamp::default());
            bus.publish(answer).await.unwrap();
        };
        let (answer, ()) = join(bus.request(ask(1), &clock, deadline), answering).await;
        assert_eq!(answer.unwrap().content["n"], 1);
        // Nobody answers this one in time, which is a minute unless the sender says otherwise.
        let answer = bus.ask(ask(2), &clock).await;
        assert!(matches!(answer, Err(BusError::TimedOut { .. })));
        assert_eq!(clock.now(), deadline);
        let asked = to_bob.next().await.unwrap();
        let late = asked.response(MessageType::TaskResponse, asked.content.clone(), Timestamp::default());
        let refused = bus.publish(late).await.unwrap_err();
        assert_eq!(refused, BusError::Late { sender: "bob".into(), message_type: MessageType::TaskResponse });
        assert!(!refused.advice().is_empty());
        assert_eq!(bus.take_dead_letters()[0].cause, DeathCause::Late);
        // Asked again under the same name, it can be answered.
        let again = ask(4);
        let answer = bus.request(again.clone(), &clock, clock.now() + Duration::from_secs(1)).await;
        assert!(matches!(answer, Err(BusError::TimedOut { .. })));
        to_bob.next().await.unwrap();
        let answering = async {
            let asked = to_bob.next().await.unwrap();
            let answer =
                asked.response(MessageType::Notification, asked.content.clone(), Timestamp::default());
            bus.publish(answer).await.unwrap();
        };
        let (answer, ()) =
            join(bus.request(again, &clock, clock.now() + Duration::from_secs(1)), answering).await;
        assert_eq!(answer.unwrap().content["n"], 4);
        let no_request = bus.request(message("a", "bob", MessageType::Error, 3), &clock, deadline).await;
        assert!(matches!(no_request, Err(BusError::NotARequest { .. })));
    });
}

/// Random senders, readers, queue sizes and readers that go away: each message is read once by each who is meant, or
/// is a dead letter, and each reader sees the numbers grow.
// spec: MA-05, MA-06, MA-07, ER-17
#[test]
fn bus_random_operations_deliver_each_message_exactly_once() {
    for seed in 0..cases(300, 10_000) {
        let seed = seed + first_seed();
        let mut chance = Chance(seed);
        let (bus, clock) = bus(|options| {
            options.capacity = 1 + chance.below(5) as usize;
            options.dead_letters = 10_000;
        });
        let agents = 1 + chance.below(4);
        let id = |n: u64| AgentId::new(format!("a{n}"));
        let mut inboxes: Vec<_> =
            (0..agents).map(|n| bus.subscribe(&id(n), &[]).now_or_never().unwrap().ok()).collect();
        let mut accepted: HashMap<(u64, u64), u32> = HashMap::new();
        let mut last = vec![0; agents as usize];
        for n in 0..60 {
            let to = chance.below(agents + 1);
            let name = if to == agents { "*".to_owned() } else { format!("a{to}") };
            let sent = bus.publish(message("s", &name, MessageType::Notification, n));
            // A full queue: whoever gives up has sent nothing.
            if let Some(Ok(())) = sent.now_or_never() {
                for a in (0..agents).filter(|a| to == agents || to == *a) {
                    if inboxes[a as usize].is_some() {
                        accepted.insert((a, n), 0);
                    }
                }
            }
            let reader = chance.below(agents) as usize;
            if chance.percent(2) {
                inboxes[reader] = None;
            }
            for _ in 0..chance.below(4) {
                let Some(inbox) = &mut inboxes[reader] else { break };
                let Some(Some(read)) = inbox.next().now_or_never() else { break };
                assert!(read.seq > last[reader], "seed {seed}");
                last[reader] = read.seq;
                let of = (reader as u64, read.content["n"].as_u64().unwrap());
                *accepted.get_mut(&of).expect("it was not for this one") += 1;
            }
        }
        bus.close();
        for (reader, inbox) in inboxes.iter_mut().enumerate() {
            while let Some(Some(read)) = inbox.as_mut().and_then(|inbox| inbox.next().now_or_never()) {
                *accepted.get_mut(&(reader as u64, read.content["n"].as_u64().unwrap())).unwrap() += 1;
            }
        }
        let read: u32 = accepted.values().sum();
        assert!(accepted.values().all(|times| *times <= 1), "seed {seed}: delivered twice");
        let unread = bus.take_dead_letters().iter().filter(|d| d.cause == DeathCause::Unsubscribed).count();
        assert_eq!(read as usize + unread, accepted.len(), "seed {seed}: lost");
        let _ = clock;
    }
}
