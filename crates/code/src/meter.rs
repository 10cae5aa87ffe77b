//! Measures a program's processor time and memory, and stops the program at its limits. Interpreters check
//! at each step.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The reason why a program was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The tool call that runs the program was cancelled or dropped.
    Cancelled,
    /// The program used up its processor time.
    Time,
    /// The program's values took more memory than allowed.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    Memory,
}

/// A stop flag that any thread can set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn send(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The meter of one program; it belongs to the program's thread.
#[derive(Debug)]
pub(crate) struct Meter {
    stop: Stop,
    time: Duration,
    memory: usize,
    began: Instant,
    steps: Cell<u32>,
    /// The earliest moment at which the program can have used up its processor time.
    look_at: Cell<Instant>,
    used: Cell<usize>,
    stopped: Cell<Option<Stopped>>,
}

impl Meter {
    pub(crate) fn new(stop: Stop, time: Duration, memory: usize) -> Self {
        let began = Instant::now();
        Self {
            stop,
            time,
            memory,
            began,
            steps: Cell::new(0),
            look_at: Cell::new(began + time),
            used: Cell::new(0),
            stopped: Cell::new(None),
        }
    }

    /// Checks the limits of the program. The interpreter calls this at each step, so it is cheap: the clock
    /// is read at every 16th step, and the thread's processor time only if enough time has passed to use up
    /// the limit.
    pub(crate) fn step(&self) -> Result<(), Stopped> {
        self.check_stop()?;
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if !steps.is_multiple_of(STEPS_PER_LOOK) {
            return Ok(());
        }
        self.check_limits()
    }

    /// Checks the limits of the program and always reads the clock; for steps that may take long.
    pub(crate) fn check_limits(&self) -> Result<(), Stopped> {
        self.check_stop()?;
        let now = Instant::now();
        if now < self.look_at.get() {
            return Ok(());
        }
        match self.time.checked_sub(self.processor_time()) {
            None | Some(Duration::ZERO) => self.end(Stopped::Time),
            Some(remaining) => {
                self.look_at.set(now + remaining);
                Ok(())
            }
        }
    }

    /// Checks whether the program was stopped already, or is cancelled.
    fn check_stop(&self) -> Result<(), Stopped> {
        match self.stopped.get() {
            Some(stopped) => Err(stopped),
            None if self.stop.0.load(Ordering::Relaxed) => self.end(Stopped::Cancelled),
            None => Ok(()),
        }
    }

    /// Counts `bytes` more of used memory. If they do not fit into the limit, the program is stopped.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Stopped> {
        self.fits(bytes)?;
        self.used.set(self.used.get() + bytes);
        Ok(())
    }

    /// Checks that `bytes` more fit into the memory limit; if not, the program is stopped.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub(crate) fn fits(&self, bytes: usize) -> Result<(), Stopped> {
        match self.used.get().saturating_add(bytes) > self.memory {
            true => self.end(Stopped::Memory),
            false => Ok(()),
        }
    }

    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub(crate) fn shrink(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    /// Returns the processor time of the program's thread.
    #[cfg(unix)]
    pub(crate) fn processor_time(&self) -> Duration {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(used).unwrap_or_else(|_| self.began.elapsed())
    }

    /// Returns the time since the start; this system has no clock for each thread.
    #[cfg(not(unix))]
    pub(crate) fn processor_time(&self) -> Duration {
        self.began.elapsed()
    }

    /// Stops the program for the reason `why`. If it was stopped before, the earlier reason stays.
    fn end(&self, why: Stopped) -> Result<(), Stopped> {
        let why = self.stopped.get().unwrap_or(why);
        self.stopped.set(Some(why));
        Err(why)
    }
}

const STEPS_PER_LOOK: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn meter_memory_counts_growth_and_release() {
        let meter = Meter::new(Stop::default(), LONG, 100);
        assert_eq!((meter.grow(60), meter.fits(40)), (Ok(()), Ok(())));
        meter.shrink(20);
        assert_eq!((meter.grow(60), meter.stopped()), (Ok(()), None));
        assert_eq!(meter.grow(usize::MAX), Err(Stopped::Memory));
        assert_eq!((meter.step(), meter.stopped()), (Err(Stopped::Memory), Some(Stopped::Memory)));
    }

    #[test]
    fn the_first_reason_to_stop_stays() {
        let stop = Stop::default();
        let meter = Meter::new(stop.clone(), LONG, 100);
        assert_eq!(meter.step(), Ok(()));
        stop.send();
        assert_eq!((meter.step(), meter.grow(1_000)), (Err(Stopped::Cancelled), Err(Stopped::Cancelled)));
    }

    #[test]
    fn meter_counts_processor_time_and_not_idle_time() {
        let meter = Meter::new(Stop::default(), Duration::from_millis(50), 100);
        let began = meter.began;
        let other = std::thread::spawn(move || while began.elapsed() < Duration::from_millis(100) {});
        other.join().unwrap();
        assert_eq!(meter.check_limits().is_ok(), cfg!(unix), "{:?}", meter.processor_time());
    }

    #[test]
    fn meter_step_fails_once_the_processor_time_is_used_up() {
        let meter = Meter::new(Stop::default(), Duration::from_millis(20), 100);
        while meter.step().is_ok() {}
        assert_eq!(meter.stopped(), Some(Stopped::Time));
        assert!(meter.processor_time() >= Duration::from_millis(20));
    }
}
