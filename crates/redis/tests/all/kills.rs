//! Readers in four processes, one of which is killed again and again.
//!
//! The other processes are this program again, as [`worker`].

use std::{
    collections::HashMap,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use archon_redis::{PartitionKey, RedisBus, RedisBusOptions};
use archon_testkit::{Chance, Trial, cases, first_seed, trial};
use archon_types::{AgentId, BoxFuture, Bus, BusMessage, Clock, MessageType, Timestamp};
use redis::aio::MultiplexedConnection;

use crate::server::{REDIS, Server};

pub(crate) static TRIALS: &[Trial] =
    &[trial!(redis_bus_random_kills_lose_reorder_and_repeat_no_confirmed_message)
        .needs(&REDIS)
        .on_threads(2)];

/// Variable of a process that is a worker: where Redis is.
pub(crate) const WORKER: &str = "WORKER_REDIS";

const PROCESSES: usize = 4;
const SENDERS: u64 = 8;
const KEYS: u64 = 64;

/// Time that stands still: nothing here expires.
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn sleep_until(&self, _deadline: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

async fn connect(url: &str) -> (RedisBus, MultiplexedConnection) {
    let mut options = RedisBusOptions::default();
    options.partitions = 16;
    options.key = PartitionKey::Field("key".to_owned());
    options.lease = Duration::from_secs(1);
    // A process that dies by chance is no message's fault.
    options.retries = 1_000;
    let bus = RedisBus::connect(url, Arc::new(Standing), options).await.unwrap();
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let client = redis::Client::open(url).unwrap();
    let notes = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
    (bus, notes)
}

async fn note(notes: &mut MultiplexedConnection, what: String) {
    let () = redis::cmd("RPUSH").arg("notes").arg(what).query_async(notes).await.unwrap();
}

fn start(url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap()).env(WORKER, url).stdout(Stdio::null()).spawn().unwrap()
}

/// Does the work of a process that may be killed, over the server that [`WORKER`] names.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn worker(url: &str) {
    let (bus, mut notes) = connect(url).await;
    let mut receiver = bus.receiver(&AgentId::new("worker"), &[]).await.unwrap();
    loop {
        let delivery = receiver.next().await.unwrap();
        let content = &delivery.message().content;
        let which = format!("{} {}", content["key"], content["n"]);
        note(&mut notes, format!("did {which}")).await;
        if delivery.ack().await.is_ok() {
            note(&mut notes, format!("acked {which}")).await;
        }
    }
}

async fn send(bus: RedisBus, sender: u64, each: u64) {
    for n in 1..=each {
        for key in (sender..KEYS).step_by(SENDERS as usize) {
            let content = serde_json::json!({ "key": key, "n": n }).as_object().cloned().unwrap();
            let kind = MessageType::TaskRequest;
            bus.publish(BusMessage::new("boss", "worker", kind, content, Timestamp::default()))
                .await
                .unwrap();
        }
    }
}

/// What each process did and confirmed, in the order of the server.
fn check(notes: &[String], each: u64) -> usize {
    let mut done: HashMap<u64, u64> = HashMap::new();
    let mut acked: HashMap<u64, u64> = HashMap::new();
    let mut repeated = 0;
    for note in notes {
        let words: Vec<&str> = note.split(' ').collect();
        let (key, n): (u64, u64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        if words[0] == "acked" {
            let last = acked.entry(key).or_default();
            *last = n.max(*last);
            continue;
        }
        assert!(acked.get(&key).is_none_or(|last| n > *last), "{key} {n}: again after it was confirmed");
        let last = done.entry(key).or_default();
        assert!(n == *last + 1 || n == *last, "{key} {n} after {last}: out of order, or lost");
        repeated += usize::from(n == *last);
        *last = n;
    }
    assert_eq!(done.len() as u64, KEYS);
    assert!(done.values().all(|last| *last == each), "lost");
    repeated
}

// spec: MA-05, MA-06, MA-07, ER-17
async fn redis_bus_random_kills_lose_reorder_and_repeat_no_confirmed_message() {
    let server = Server::start();
    let each = cases(2_048, 100_032) / KEYS;
    let every = Duration::from_millis(cases(300, 1_000));
    let mut chance = Chance(first_seed());
    let agent = AgentId::new("worker");
    let (bus, mut notes) = connect(&server.url).await;
    drop(bus.receiver(&agent, &[]).await.unwrap());
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| start(&server.url)).collect();
    let begun = Instant::now();
    let senders: Vec<_> = (0..SENDERS).map(|sender| tokio::spawn(send(bus.clone(), sender, each))).collect();
    let mut kills = 0;
    let mut tick = tokio::time::interval(every);
    tick.tick().await;
    while !senders.iter().all(|sender| sender.is_finished()) || bus.depth(&agent).await.unwrap() > 0 {
        tick.tick().await;
        let victim = &mut workers[chance.below(PROCESSES as u64) as usize];
        victim.kill().unwrap();
        victim.wait().unwrap();
        *victim = start(&server.url);
        kills += 1;
        assert!(begun.elapsed() < Duration::from_secs(600), "it does not end");
    }
    let took = begun.elapsed();
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    for sender in senders {
        sender.await.unwrap();
    }
    let all: Vec<String> =
        redis::cmd("LRANGE").arg("notes").arg(0).arg(-1).query_async(&mut notes).await.unwrap();
    let repeated = check(&all, each);
    assert!(kills > 0 && bus.take_dead_letters().await.unwrap().is_empty());
    let messages = each * KEYS;
    let rate = messages as f64 / took.as_secs_f64();
    println!(
        "{messages} messages, {kills} kills, {repeated} done twice before they were confirmed, {took:.1?}: {rate:.0} messages/s"
    );
}
