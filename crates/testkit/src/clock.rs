//! A clock that changes only when the test advances it: a test of a timeout does not wait, and gives the same result
//! each time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use archon_types::{BoxFuture, Clock, Timestamp};
use tokio::sync::{oneshot, watch};

/// A clock that changes only when a test advances it. Clones share one time.
///
/// Before a test advances the clock, the task that should wake must be asleep:
/// [`until_asleep`](Self::until_asleep) waits for that.
///
/// ```
/// use std::time::Duration;
///
/// use archon_testkit::VirtualClock;
/// use archon_types::Clock;
///
/// let clock = VirtualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(before), Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct VirtualClock(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// The number of tasks that sleep now.
    asleep: watch::Sender<usize>,
}

struct State {
    now: Timestamp,
    /// The sleepers, by deadline and then by the order in which they fell asleep.
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    next: u64,
    jumps: bool,
}

impl VirtualClock {
    /// Creates a clock that reads 2026-01-01T00:00:00Z and moves with [`advance`](Self::advance) only.
    pub fn new() -> Self {
        Self::starting_at(Timestamp::from_millis(1_767_225_600_000))
    }

    /// Creates a clock that reads `now` and moves with [`advance`](Self::advance) only.
    pub fn starting_at(now: Timestamp) -> Self {
        let state = State { now, sleepers: BTreeMap::new(), next: 0, jumps: false };
        Self(Arc::new(Inner { state: Mutex::new(state), asleep: watch::Sender::new(0) }))
    }

    /// Creates a clock for one task: every sleep ends at once and moves the time to its deadline.
    pub fn jumping() -> Self {
        let clock = Self::new();
        clock.lock().jumps = true;
        clock
    }

    /// Moves the time forward and wakes the sleepers whose deadline has come, in order.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        let target = state.now + by;
        let mut woken = Vec::new();
        while let Some(first) = state.sleepers.first_entry().filter(|s| s.key().0 <= target) {
            woken.push(first.remove());
        }
        state.now = target;
        self.announce(&mut state);
        drop(state);
        // The lock is released first, since a woken task may read the clock at once.
        for sleeper in woken {
            let _ = sleeper.send(());
        }
    }

    /// Returns the earliest deadline of a sleeper.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        state.forget_dropped();
        state.sleepers.keys().next().map(|(deadline, _)| *deadline)
    }

    /// Waits until at least `n` tasks sleep on this clock.
    pub async fn until_asleep(&self, n: usize) {
        let mut asleep = self.0.asleep.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = asleep.wait_for(|now| *now >= n).await;
    }

    /// Registers a sleeper. Returns `None` if the deadline is past.
    fn sleep(&self, deadline: Timestamp) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        if state.jumps {
            state.now = state.now.max(deadline);
        }
        if deadline <= state.now {
            return None;
        }
        let (wake, woken) = oneshot::channel();
        let place = state.next;
        state.next += 1;
        state.sleepers.insert((deadline, place), wake);
        self.announce(&mut state);
        Some(woken)
    }

    fn announce(&self, state: &mut State) {
        state.forget_dropped();
        self.0.asleep.send_replace(state.sleepers.len());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes sleepers whose future was dropped.
    fn forget_dropped(&mut self) {
        self.sleepers.retain(|_, sleeper| !sleeper.is_closed());
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        // The sleep begins with the first poll. The clone keeps the sender alive: only `advance` ends it.
        let clock = self.clone();
        Box::pin(async move {
            if let Some(woken) = clock.sleep(deadline) {
                let _ = woken.await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn sleepers_wake_in_the_order_of_their_deadlines() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for n in [3, 1, 2, 9] {
            let sleep = clock.sleep_until(start + SECOND * n);
            let woken = woken.clone();
            tasks.push(tokio::spawn(async move {
                sleep.await;
                woken.lock().unwrap().push(n);
            }));
        }
        clock.until_asleep(4).await;
        assert_eq!(clock.next_deadline(), Some(start + SECOND));
        clock.advance(SECOND * 5);
        let last = tasks.pop().unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), [1, 2, 3]);
        assert!(!last.is_finished());
        last.abort();
        let _ = last.await;
        assert_eq!(clock.next_deadline(), None);
        assert_eq!(clock.now(), start + SECOND * 5);
    }

    #[tokio::test]
    async fn a_jumping_clock_never_waits() {
        let clock = VirtualClock::jumping();
        let later = clock.now() + SECOND * 3600;
        clock.sleep_until(later).await;
        assert_eq!(clock.now(), later);
    }
}
