//! The bus: what the bus inside one process promises, over Redis, and that readers share an inbox.

use std::{sync::Arc, time::Duration};

use archon_redis::{RedisBus, RedisBusOptions};
use archon_testkit::{SeededIds, Trial, VirtualClock, trial};
use archon_types::{
    AgentId, Bus, BusError, BusMessage, CancellationToken, Clock, DeathCause, MessageType, Timestamp,
};
use futures_util::{StreamExt, future::join};

use crate::server::{REDIS, Server};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(each_subscription_gets_each_message_once_and_in_order).needs(&REDIS),
    trial!(subscriptions_of_one_agent_in_two_processes_get_all_of_its_messages).needs(&REDIS),
    trial!(bus_undelivered_or_expired_message_becomes_a_dead_letter).needs(&REDIS),
    trial!(bus_publish_to_a_full_inbox_waits_then_fails).needs(&REDIS),
    trial!(bus_failed_handler_is_retried_without_blocking_others).needs(&REDIS),
    trial!(a_request_gets_its_answer_and_a_late_one_is_refused).needs(&REDIS),
    trial!(a_message_goes_to_the_next_owner_and_the_last_one_cannot_confirm_it).needs(&REDIS),
    trial!(redis_subscription_declared_dead_receives_messages_again).needs(&REDIS),
];

pub(crate) fn message(from: &str, to: &str, kind: MessageType, n: u64) -> BusMessage {
    let content = serde_json::json!({ "n": n }).as_object().cloned().unwrap();
    BusMessage::new(from, to, kind, content, Timestamp::default())
}

fn n(message: &BusMessage) -> u64 {
    message.content["n"].as_u64().unwrap()
}

async fn bus(server: &Server, change: impl FnOnce(&mut RedisBusOptions)) -> (RedisBus, VirtualClock) {
    let clock = VirtualClock::new();
    let mut options = RedisBusOptions::default();
    change(&mut options);
    (RedisBus::connect(&server.url, Arc::new(clock.clone()), options).await.unwrap(), clock)
}

async fn deaths(bus: &RedisBus) -> Vec<(u64, DeathCause)> {
    bus.take_dead_letters().await.unwrap().iter().map(|dead| (n(&dead.message), dead.cause)).collect()
}

// spec: MA-04, MA-05, MA-06, ER-17
async fn each_subscription_gets_each_message_once_and_in_order() {
    let server = Server::start();
    let (bus, _) = bus(&server, |_| {}).await;
    let (ann, bob) = (AgentId::new("ann"), AgentId::new("bob"));
    // Ann is meant twice: by name, and by kind.
    let to_ann = bus.subscribe(&ann, &[MessageType::StatusUpdate]).await.unwrap();
    let to_bob = bus.subscribe(&bob, &[]).await.unwrap();
    bus.publish(message("bob", "ann", MessageType::StatusUpdate, 1)).await.unwrap();
    bus.publish(message("ann", "bob", MessageType::StatusUpdate, 2)).await.unwrap();
    bus.publish(message("ann", "broadcast", MessageType::Notification, 3)).await.unwrap();
    bus.publish(message("bob", "*", "made_up".into(), 4)).await.unwrap();
    let seen = |m: BusMessage| (m.seq, n(&m), m.message_type.to_string());
    let update = "status_update".to_owned();
    assert_eq!(
        to_ann.map(seen).take(3).collect::<Vec<_>>().await,
        [(1, 1, update.clone()), (2, 2, update.clone()), (4, 4, "made_up".to_owned())]
    );
    assert_eq!(
        to_bob.map(seen).take(2).collect::<Vec<_>>().await,
        [(2, 2, update), (3, 3, "notification".to_owned())]
    );
}

/// Events have one receiver, for which each process has a subscription.
// spec: TR-08
async fn subscriptions_of_one_agent_in_two_processes_get_all_of_its_messages() {
    let server = Server::start();
    let ((first, _), (second, _)) = (bus(&server, |_| {}).await, bus(&server, |_| {}).await);
    let event = |number| message("shop", "events", "event".into(), number);
    let nobody = first.publish(event(0)).await;
    assert_eq!(nobody, Err(BusError::Undeliverable { receiver: "events".into() }));
    let mut streams = Vec::new();
    for bus in [&first, &first, &second] {
        streams.push(bus.subscribe(&"events".into(), &[]).await.unwrap());
    }
    for number in 1..=3 {
        first.publish(event(number)).await.unwrap();
    }
    for stream in streams {
        assert_eq!(stream.map(|message| n(&message)).take(3).collect::<Vec<_>>().await, [1, 2, 3]);
    }
}

// spec: MA-07
async fn bus_undelivered_or_expired_message_becomes_a_dead_letter() {
    let server = Server::start();
    let (bus, clock) = bus(&server, |_| {}).await;
    let nobody = bus.publish(message("ann", "nobody", MessageType::TaskRequest, 1)).await;
    assert_eq!(nobody, Err(BusError::Undeliverable { receiver: "nobody".into() }));
    let mut to_ann = bus.receiver(&"ann".into(), &[]).await.unwrap();
    let mut short = message("bob", "ann", MessageType::Notification, 2);
    short.ttl_ms = Some(1_000);
    bus.publish(short).await.unwrap();
    bus.publish(message("bob", "ann", MessageType::Notification, 3)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    let delivery = to_ann.next().await.unwrap();
    assert_eq!(n(delivery.message()), 3);
    delivery.ack().await.unwrap();
    bus.publish(message("bob", "ann", MessageType::Notification, 4)).await.unwrap();
    assert_eq!(bus.depth(&"ann".into()).await, Ok(1));
    bus.forget(&"ann".into()).await.unwrap();
    let expected = [(1, DeathCause::Undeliverable), (2, DeathCause::Expired), (4, DeathCause::Unsubscribed)];
    assert_eq!(deaths(&bus).await, expected);
    assert!(deaths(&bus).await.is_empty());
}

// spec: MA-07
async fn bus_publish_to_a_full_inbox_waits_then_fails() {
    let server = Server::start();
    let (bus, clock) = bus(&server, |options| options.capacity = 2).await;
    let ann = AgentId::new("ann");
    let mut to_ann = bus.subscribe(&ann, &[]).await.unwrap();
    for n in 1..=2 {
        bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
    }
    let third = message("bob", "ann", MessageType::Notification, 3);
    let patience = async {
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(30));
    };
    let (full, ()) = join(bus.publish(third), patience).await;
    assert_eq!(full, Err(BusError::Full { receiver: ann }));
    // Room lets who waits go on, and nothing is lost or turned round.
    let sender = async {
        for n in 4..=20 {
            bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
        }
    };
    let reader = to_ann.by_ref().take(19).map(|m| n(&m)).collect::<Vec<_>>();
    let (seen, ()) = join(reader, sender).await;
    assert_eq!(seen, [1, 2].into_iter().chain(4..=20).collect::<Vec<_>>());
}

// spec: MA-06, MA-07
async fn bus_failed_handler_is_retried_without_blocking_others() {
    let server = Server::start();
    let (bus, _) = bus(&server, |_| {}).await;
    let (ann, stop) = (AgentId::new("ann"), CancellationToken::new());
    drop(bus.receiver(&ann, &[]).await.unwrap());
    for n in 1..=3 {
        bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
    }
    let seen = std::sync::Mutex::new(Vec::new());
    let handler = |message: BusMessage| {
        let n = n(&message);
        let times = {
            let mut seen = seen.lock().unwrap();
            seen.push(n);
            seen.iter().filter(|other| **other == n).count()
        };
        if n == 3 {
            stop.cancel();
        }
        async move {
            assert!(n != 2, "it panics");
            if n == 1 && times < 3 { Err("not yet".to_owned()) } else { Ok(()) }
        }
    };
    bus.serve(&ann, &[], &stop, handler).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 1, 1, 2, 2, 2, 2, 3]);
    assert_eq!(deaths(&bus).await, [(2, DeathCause::Unconfirmed)]);
    assert_eq!(bus.depth(&ann).await, Ok(0), "the last was confirmed before the end");
}

// spec: MA-08
async fn a_request_gets_its_answer_and_a_late_one_is_refused() {
    let server = Server::start();
    let ((bus, clock), ids) = (bus(&server, |_| {}).await, SeededIds::new(1));
    let mut to_bob = bus.subscribe(&"bob".into(), &[]).await.unwrap();
    let ask = |n| message("ann", "bob", MessageType::CapabilityQuery, n).into_request(&ids);
    let deadline = clock.now() + Duration::from_secs(60);
    let answering = async {
        let asked = to_bob.next().await.unwrap();
        let answer = asked.response(MessageType::Notification, asked.content.clone(), Timestamp::default());
        bus.publish(answer).await.unwrap();
    };
    let (answer, ()) = join(bus.request(ask(1), &clock, deadline), answering).await;
    assert_eq!(n(&answer.unwrap()), 1);
    // Nobody answers this one in time: the time is over once it is there.
    let waiting = async {
        let asked = to_bob.next().await.unwrap();
        clock.advance(Duration::from_secs(60));
        asked
    };
    let (answer, asked) = join(bus.request(ask(2), &clock, deadline), waiting).await;
    assert!(matches!(answer, Err(BusError::TimedOut { .. })));
    let late = asked.response(MessageType::TaskResponse, asked.content.clone(), Timestamp::default());
    let refused = bus.publish(late).await;
    let expected = BusError::Late { sender: "bob".into(), message_type: MessageType::TaskResponse };
    assert_eq!(refused, Err(expected));
    assert_eq!(deaths(&bus).await, [(2, DeathCause::Late)]);
    let no_request = bus.request(message("a", "bob", MessageType::Error, 3), &clock, deadline).await;
    assert!(matches!(no_request, Err(BusError::NotARequest { .. })));
}

/// Who lost its lease cannot confirm, and who has the part now gets the message.
// spec: MA-07
async fn a_message_goes_to_the_next_owner_and_the_last_one_cannot_confirm_it() {
    let server = Server::start();
    let (bus, _) = bus(&server, |_| {}).await;
    let ann = AgentId::new("ann");
    let mut first = bus.receiver(&ann, &[]).await.unwrap();
    for n in 1..=2 {
        bus.publish(message("bob", "ann", MessageType::Notification, n)).await.unwrap();
    }
    let in_hand = first.next().await.unwrap();
    assert_eq!(n(in_hand.message()), 1);
    // As the server does when nothing was heard of an owner.
    let client = redis::Client::open(&*server.url).unwrap();
    let mut behind = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("DEL").arg("{archon}:own:g:ann:0").query_async(&mut behind).await.unwrap();
    let mut second = bus.receiver(&ann, &[]).await.unwrap();
    let again = second.next().await.unwrap();
    assert_eq!((n(again.message()), again.failures()), (1, 1), "it may have killed its reader");
    assert!(matches!(in_hand.ack().await, Err(BusError::Transport(_))));
    again.ack().await.unwrap();
    let next = second.next().await.unwrap();
    assert_eq!((n(next.message()), next.failures()), (2, 0));
    next.ack().await.unwrap();
    assert_eq!(bus.depth(&ann).await, Ok(0));
}

/// Takes the signs of life of all subscriptions away, as if their processes had stood still for long.
async fn stall(server: &Server) -> (redis::aio::MultiplexedConnection, Vec<String>) {
    let client = redis::Client::open(&*server.url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*alive:*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 1);
    let _: u32 = redis::cmd("DEL").arg(&keys).query_async(&mut connection).await.unwrap();
    (connection, keys)
}

// spec: MA-04, MA-07, ER-17
async fn redis_subscription_declared_dead_receives_messages_again() {
    let server = Server::start();
    let (bus, _) = bus(&server, |options| options.lease = Duration::from_millis(300)).await;
    let ann = AgentId::new("ann");
    let mut to_ann = bus.subscribe(&ann, &[MessageType::StatusUpdate]).await.unwrap();
    bus.publish(message("bob", "ann", MessageType::Notification, 1)).await.unwrap();
    assert_eq!(n(&to_ann.next().await.unwrap()), 1);
    // Somebody else finds it dead in between: what is for it then is a dead letter, and what comes later arrives.
    let (mut dead, mut sent) = (0, 1);
    for _ in 0..5 {
        stall(&server).await;
        sent += 1;
        match bus.publish(message("bob", "ann", MessageType::Notification, sent)).await {
            Err(BusError::Undeliverable { .. }) => dead += 1,
            other => assert_eq!(other, Ok(()), "its keeper was faster"),
        }
        let began = std::time::Instant::now();
        loop {
            sent += 1;
            match bus.publish(message("bob", "eve", MessageType::StatusUpdate, sent)).await {
                // Nobody is eve, but who asked for this kind is told.
                Err(BusError::Undeliverable { .. }) => {}
                other => panic!("{other:?}"),
            }
            if bus.publish(message("bob", "ann", MessageType::Notification, sent)).await.is_ok() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it stays deaf");
        }
        while n(&to_ann.next().await.unwrap()) < sent {}
    }
    assert!(dead > 0, "nobody ever found it dead");
    // And where nobody noticed, it goes on to live.
    let (mut connection, keys) = stall(&server).await;
    let began = std::time::Instant::now();
    loop {
        let remaining: i64 = redis::cmd("PTTL").arg(&keys[0]).query_async(&mut connection).await.unwrap();
        if remaining > 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "its sign of life does not come back");
    }
    bus.publish(message("bob", "ann", MessageType::Notification, sent + 1)).await.unwrap();
    while n(&to_ann.next().await.unwrap()) < sent + 1 {}
}
