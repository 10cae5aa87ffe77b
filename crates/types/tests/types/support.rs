//! What the tests share: one check for JSON shapes, a clock and ids that tests decide, and a way to
//! run a future that never waits.

use std::{
    fmt::Debug,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll, Waker},
};

use archon_types::{BoxFuture, Clock, Context, Ids, Json, Timestamp};
use expect_test::Expect;
use serde::{Serialize, de::DeserializeOwned};

/// Pins the JSON of a value, and that reading it back gives the same value.
#[track_caller]
pub(crate) fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, expected: &Expect) {
    let json = serde_json::to_string(value).unwrap();
    expected.assert_eq(&json);
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value, "read back from {json}");
    // Untagged and flattened types buffer what they read; the buffer must lose nothing either.
    let tree: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(&serde_json::from_value::<T>(tree).unwrap(), value, "read back from a tree of {json}");
}

/// Pins the names of a closed set of values, in JSON, joined by spaces.
#[track_caller]
pub(crate) fn names<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T], expected: &str) {
    let names = values.iter().map(|v| {
        let json = serde_json::to_value(v).unwrap();
        assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), v);
        json.as_str().expect("a plain name").to_owned()
    });
    assert_eq!(names.collect::<Vec<_>>().join(" "), expected);
}

/// Pins `from → to` for every pair that `allowed` admits.
#[track_caller]
pub(crate) fn transitions<S: Copy + Debug>(all: &[S], allowed: impl Fn(S, S) -> bool, expected: &Expect) {
    let mut table = String::new();
    for from in all {
        let targets: Vec<_> =
            all.iter().filter(|to| allowed(*from, **to)).map(|s| format!("{s:?}")).collect();
        table.push_str(format!("{from:?} -> {}", targets.join(" ")).trim_end());
        table.push('\n');
    }
    expected.assert_eq(&table);
}

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(crate) fn object(json: Json) -> serde_json::Map<String, Json> {
    match json {
        Json::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// The result of a future that is ready at once.
#[track_caller]
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// A clock that stands still; a deadline in its future never comes.
pub(crate) struct Still(pub(crate) u64);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(self.0)
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        match deadline <= self.now() {
            true => Box::pin(std::future::ready(())),
            false => Box::pin(std::future::pending()),
        }
    }
}

/// `prefix_1`, `prefix_2` and so on.
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

impl Ids for Counted {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

pub(crate) fn context() -> Context {
    Context::new("run_1".into(), "s_1".into(), Arc::new(Still(0)), Arc::new(Counted::default()))
}
