//! The system's clock, and the clock of one run. The clock of a run starts at the wall-clock time, and counts
//! only the time in which the process could work: steps of the system's clock, sleep of the computer and
//! stops of the process do not count.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use archon_types::{BoxFuture, Clock, Timestamp};

/// The clock of the system, with the timers of tokio.
///
/// A run reads this clock once, when the run begins or is resumed. From then on, the run counts only the time
/// in which its process could work. If somebody sets the clock, the computer sleeps, or the process is stopped for
/// more than ten seconds, this time does not count against the time limit, and no wait becomes longer. Later times
/// in the run's log then differ from the wall clock.
///
/// ```
/// use archon::{SystemClock, types::Clock};
///
/// assert!(SystemClock.now().as_millis() > 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        to_timestamp(since_epoch())
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = deadline.since(self.now()).min(LONGEST_SLEEP);
        Box::pin(async move { tokio::time::sleep(wait).await })
    }

    fn for_run(&self) -> Option<Arc<dyn Clock>> {
        // In this order, so that a process that loses its processor in between does not fall behind the wall clock.
        let since = Instant::now();
        Some(Arc::new(RunClock::new(since, since_epoch())))
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn to_timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// A clock that advances only while this process can work. See [`SystemClock`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    /// The wall-clock time at `since`, exact: a start rounded down would date each record of the run up to a
    /// millisecond too early, before the time of a file that was written before it.
    wall: Duration,
    since: Instant,
    /// The total time that the process had been stopped when the clock was created.
    stopped: Duration,
}

impl RunClock {
    /// Creates a clock that reads `wall` at `since`.
    fn new(since: Instant, wall: Duration) -> Self {
        Self { wall, since, stopped: pulse().stopped_by(since) }
    }

    fn reads(&self, now: Instant, stopped: Duration) -> Timestamp {
        let passed = now.saturating_duration_since(self.since);
        to_timestamp(self.wall + passed.saturating_sub(stopped.saturating_sub(self.stopped)))
    }
}

impl Clock for RunClock {
    fn now(&self) -> Timestamp {
        let now = Instant::now();
        self.reads(now, pulse().stopped_by(now))
    }

    fn now_for_others(&self) -> Timestamp {
        self.now().max(SystemClock.now())
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let clock = *self;
        Box::pin(async move {
            let _sleeper = Sleeper::new();
            let mut stopped = pulse().stopped_by(Instant::now());
            let mut wait = deadline.since(clock.now());
            // Timers run on while the process is stopped, so the stopped time is waited for again.
            while !wait.is_zero() {
                tokio::time::sleep(wait.min(LONGEST_SLEEP)).await;
                let now = pulse().stopped_by(Instant::now());
                wait = now.saturating_sub(stopped);
                stopped = now;
            }
        })
    }
}

/// The maximum duration of a single sleep, since timers have a maximum. After it the clock is read again.
const LONGEST_SLEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// The interval of heartbeats while any clock sleeps.
const BEAT: Duration = Duration::from_secs(1);
/// The maximum time without a heartbeat, after which the process counts as stopped: no load delays a thread
/// for so long.
const STOPPED_AFTER: Duration = Duration::from_secs(10);

/// The heartbeats of this process.
#[derive(Debug)]
struct Pulse {
    last: Option<Instant>,
    /// True if a thread gives a heartbeat each [`BEAT`], so that a missing heartbeat means that the process
    /// was stopped.
    is_beating: bool,
    sleepers: usize,
    stopped: Duration,
}

static PULSE: Mutex<Pulse> =
    Mutex::new(Pulse { last: None, is_beating: false, sleepers: 0, stopped: Duration::ZERO });

fn pulse() -> MutexGuard<'static, Pulse> {
    PULSE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pulse {
    /// Gives a heartbeat, and returns the total time for which the process was stopped.
    fn stopped_by(&mut self, now: Instant) -> Duration {
        let silence = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        if self.is_beating && silence > STOPPED_AFTER {
            self.stopped += silence.saturating_sub(BEAT);
        }
        self.last = self.last.max(Some(now));
        self.stopped
    }
}

/// A sleep under way. While there is a sleep, the thread gives heartbeats.
struct Sleeper;

impl Sleeper {
    fn new() -> Self {
        let mut pulse = pulse();
        pulse.stopped_by(Instant::now());
        pulse.sleepers += 1;
        if !pulse.is_beating {
            let thread = thread::Builder::new().name("archon-clock".to_owned()).spawn(beat);
            // Without a thread the time of a stopped process counts like any other.
            pulse.is_beating = thread.is_ok();
        }
        Self
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        pulse().sleepers -= 1;
    }
}

fn beat() {
    loop {
        thread::sleep(BEAT);
        let mut pulse = pulse();
        pulse.stopped_by(Instant::now());
        if pulse.sleepers == 0 {
            pulse.is_beating = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn beating(last: Instant) -> Pulse {
        Pulse { last: Some(last), is_beating: true, sleepers: 1, stopped: Duration::ZERO }
    }

    // spec: R-14
    #[test]
    fn run_clock_of_a_process_that_was_stopped_stands_still_meanwhile() {
        let since = Instant::now();
        let clock = RunClock { wall: SECOND, since, stopped: Duration::ZERO };
        let mut pulse = beating(since);
        let mut read = |at: u32| {
            let now = since + at * SECOND;
            let stopped = pulse.stopped_by(now);
            clock.reads(now, stopped).as_millis()
        };
        assert_eq!(read(1), 2_000);
        assert_eq!(read(9), 10_000, "a busy machine");
        assert_eq!(read(9 + 615), 11_000, "stopped for 615 s, of which a beat counts");
        assert_eq!(read(9 + 616), 12_000);
        assert_eq!(read(9 + 616 + 3_600), 13_000);
    }

    #[test]
    fn run_clock_without_heartbeats_counts_the_silence() {
        let since = Instant::now();
        let mut pulse = Pulse { is_beating: false, ..beating(since) };
        assert_eq!(pulse.stopped_by(since + 3_600 * SECOND), Duration::ZERO);
    }

    #[test]
    fn run_clock_that_began_after_a_stop_does_not_count_it_twice() {
        let since = Instant::now();
        let mut pulse = beating(since);
        let stopped = pulse.stopped_by(since + 100 * SECOND);
        let clock = RunClock { wall: Duration::ZERO, since: since + 100 * SECOND, stopped };
        let now = since + 101 * SECOND;
        assert_eq!(clock.reads(now, pulse.stopped_by(now)).as_millis(), 1_000);
    }

    #[test]
    fn run_clock_that_began_within_a_millisecond_ends_it_with_the_wall_clock() {
        let since = Instant::now();
        let wall = Duration::from_micros(5_900);
        let clock = RunClock { wall, since, stopped: Duration::ZERO };
        assert_eq!(clock.reads(since, Duration::ZERO).as_millis(), 5);
        assert_eq!(clock.reads(since + Duration::from_micros(200), Duration::ZERO).as_millis(), 6);
    }

    #[test]
    fn run_clock_dates_for_others_by_the_later_of_its_time_and_the_walls() {
        let wall = SystemClock.now();
        let behind = RunClock::new(Instant::now(), Duration::ZERO);
        assert!(behind.now() < wall && behind.now_for_others() >= wall);
        let ahead = RunClock::new(Instant::now(), since_epoch() + 3_600 * SECOND);
        assert!(ahead.now_for_others() >= wall + 3_600 * SECOND);
    }

    #[test]
    fn context_of_the_system_clock_has_a_clock_of_its_own() {
        // A context that kept the system's clock would follow its steps.
        assert!(SystemClock.for_run().is_some_and(|clock| clock.for_run().is_none()));
    }

    #[tokio::test]
    async fn sleep_until_a_time_that_is_past_or_near_ends_when_the_clock_reads_it() {
        let clock = RunClock::new(Instant::now(), 5 * SECOND);
        clock.sleep_until(Timestamp::from_millis(0)).await;
        let deadline = clock.now() + Duration::from_millis(3);
        clock.sleep_until(deadline).await;
        assert!(clock.now() >= deadline);
    }
}
