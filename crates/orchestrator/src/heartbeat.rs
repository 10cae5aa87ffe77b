//! Heartbeats: the time of a member's last sign of life.
//!
//! The team's driver polls the runs of all members, in one async task. The time in which a member is ready
//! and waits for the driver, from the wake of its run to the next poll, does not count as silence. A run that
//! waits for a slow tool or model emits no events; a timer then sends the heartbeats, unless the team counts
//! events only.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use archon_types::{BoxFuture, Clock, Event, Sink, Timestamp};

/// The time of a member's last heartbeat. Clones share the time.
#[derive(Clone)]
pub(crate) struct HeartbeatState(Arc<State>);

struct State {
    /// Time of the last heartbeat, in ms.
    heard: AtomicU64,
    /// Time in ms since which the run is ready but not polled; [`NOT_WAITING`] if the run is not ready.
    waits_since: AtomicU64,
    clock: Arc<dyn Clock>,
}

const NOT_WAITING: u64 = u64::MAX;

impl HeartbeatState {
    /// Creates a heartbeat state with a heartbeat now, for a run that waits for its first poll.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now().as_millis();
        Self(Arc::new(State { heard: now.into(), waits_since: now.into(), clock }))
    }

    pub(crate) fn beat(&self) {
        self.0.heard.fetch_max(self.0.now(), Ordering::Relaxed);
    }

    fn after(&self, time: Duration) -> BoxFuture<'static, ()> {
        let clock = &self.0.clock;
        clock.sleep_until(clock.now() + time)
    }

    /// Returns the time of the last heartbeat, plus the time for which the run has waited to be polled.
    pub(crate) fn last_seen(&self) -> Timestamp {
        let since = self.0.waits_since.load(Ordering::Relaxed);
        Timestamp::from_millis(self.0.seen_after(since))
    }

    /// Records that the run is polled now.
    fn polled(&self) {
        let since = self.0.waits_since.swap(NOT_WAITING, Ordering::Relaxed);
        self.0.heard.fetch_max(self.0.seen_after(since), Ordering::Relaxed);
    }
}

impl State {
    fn now(&self) -> u64 {
        self.clock.now().as_millis()
    }

    fn seen_after(&self, since: u64) -> u64 {
        let (heard, now) = (self.heard.load(Ordering::Relaxed), self.now());
        heard.saturating_add(now.saturating_sub(since)).min(now.max(heard))
    }
}

/// A member's run as a future that measures how long it is ready before it is polled, and sends heartbeats by
/// a timer.
pub(crate) struct Attended<T> {
    run: BoxFuture<'static, T>,
    heartbeat: HeartbeatState,
    timer: Option<Timer>,
    /// The waker of the last poll, and the waker around it that notes when the run becomes ready.
    wakers: Option<(Waker, Waker)>,
}

impl<T> Attended<T> {
    /// Wraps a member's run. With `every`, a timer sends a heartbeat in that interval as long as the run lives.
    pub(crate) fn new(
        run: BoxFuture<'static, T>,
        heartbeat: HeartbeatState,
        every: Option<Duration>,
    ) -> Self {
        let timer = every.map(|every| Timer { every, next: heartbeat.after(every) });
        Self { run, heartbeat, timer, wakers: None }
    }
}

struct Timer {
    every: Duration,
    next: BoxFuture<'static, ()>,
}

impl<T> Future for Attended<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        this.heartbeat.polled();
        if let Some(timer) = &mut this.timer {
            while timer.next.as_mut().poll(task).is_ready() {
                this.heartbeat.beat();
                timer.next = this.heartbeat.after(timer.every);
            }
        }
        let (_, own) = match this.wakers.take().filter(|(theirs, _)| theirs.will_wake(task.waker())) {
            Some(wakers) => this.wakers.insert(wakers),
            None => {
                let theirs = task.waker().clone();
                let own = Arc::new(Woken { heartbeat: this.heartbeat.clone(), waker: theirs.clone() });
                this.wakers.insert((theirs, own.into()))
            }
        };
        this.run.as_mut().poll(&mut Context::from_waker(own))
    }
}

struct Woken {
    heartbeat: HeartbeatState,
    waker: Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let (state, order) = (&self.heartbeat.0, Ordering::Relaxed);
        // Only the first wake since the last poll counts.
        let _ = state.waits_since.compare_exchange(NOT_WAITING, state.now(), order, order);
        self.waker.wake_by_ref();
    }
}

/// A sink that counts every event of a member's run as a heartbeat, and passes the event on.
pub(crate) struct HeartbeatSink {
    pub(crate) heartbeat: HeartbeatState,
    pub(crate) inner: Arc<dyn Sink>,
}

impl Sink for HeartbeatSink {
    fn emit(&self, event: Event) {
        self.heartbeat.beat();
        self.inner.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use archon_testkit::VirtualClock;

    use super::*;

    // spec: MA-22
    #[test]
    fn heartbeat_waiting_for_the_executor_does_not_count_as_silence() {
        let clock = VirtualClock::new();
        let heartbeat = HeartbeatState::new(Arc::new(clock.clone()));
        let start = clock.now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        clock.advance(Duration::from_millis(100));
        assert_eq!(heartbeat.last_seen(), after(100), "it had no turn yet");
        let (waker_out, waker_in) = std::sync::mpsc::channel();
        let run = Box::pin(poll_fn(move |task: &mut Context<'_>| -> Poll<()> {
            waker_out.send(task.waker().clone()).unwrap();
            Poll::Pending
        }));
        let mut run = Attended::new(run, heartbeat.clone(), None);
        let mut poll = || {
            assert!(Pin::new(&mut run).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            waker_in.recv().unwrap()
        };
        let waker = poll();
        clock.advance(Duration::from_millis(50));
        assert_eq!(heartbeat.last_seen(), after(100), "it had its turn, and said nothing");
        waker.wake_by_ref();
        clock.advance(Duration::from_millis(7));
        waker.wake_by_ref();
        clock.advance(Duration::from_millis(3));
        assert_eq!(heartbeat.last_seen(), after(110), "it waits");
        poll();
        clock.advance(Duration::from_millis(5));
        assert_eq!(heartbeat.last_seen(), after(110));
        heartbeat.beat();
        assert_eq!(heartbeat.last_seen(), after(165));
    }
}
