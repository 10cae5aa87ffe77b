//! What a program has used, and whether it has to end. Interpreters ask at each of their steps.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Why a program was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nobody waits for it any more.
    Cancelled,
    /// It used up its time.
    Time,
    /// Its values took more than they may.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    Memory,
}

/// The word to stop, from any thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Belongs to the thread that the program runs on.
#[derive(Debug)]
pub(crate) struct Meter {
    stop: Stop,
    time: Duration,
    memory: usize,
    began: Instant,
    steps: Cell<u32>,
    /// No sooner can the time be used up.
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

    /// Asked at each step, so it is cheap: the clock is looked at now and then, and what the thread used only when the
    /// time that passed would be enough.
    pub(crate) fn step(&self) -> Result<(), Stopped> {
        if let Some(stopped) = self.stopped.get() {
            return Err(stopped);
        }
        if self.stop.0.load(Ordering::Relaxed) {
            return self.end(Stopped::Cancelled);
        }
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if !steps.is_multiple_of(STEPS_PER_LOOK) {
            return Ok(());
        }
        self.look()
    }

    /// The same for steps that take long.
    pub(crate) fn look(&self) -> Result<(), Stopped> {
        if let Some(stopped) = self.stopped.get() {
            return Err(stopped);
        }
        if self.stop.0.load(Ordering::Relaxed) {
            return self.end(Stopped::Cancelled);
        }
        let now = Instant::now();
        if now < self.look_at.get() {
            return Ok(());
        }
        match self.time.checked_sub(self.processor_time()) {
            None | Some(Duration::ZERO) => self.end(Stopped::Time),
            Some(left) => {
                self.look_at.set(now + left);
                Ok(())
            }
        }
    }

    /// So many bytes more.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Stopped> {
        self.fits(bytes)?;
        self.used.set(self.used.get() + bytes);
        Ok(())
    }

    /// Whether there is room for so many bytes more; if not, the program ends.
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

    /// What the program's thread has worked.
    #[cfg(unix)]
    pub(crate) fn processor_time(&self) -> Duration {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(used).unwrap_or_else(|_| self.began.elapsed())
    }

    /// What has passed, for want of a better clock.
    #[cfg(not(unix))]
    pub(crate) fn processor_time(&self) -> Duration {
        self.began.elapsed()
    }

    /// A program that is to end does so for one reason, whatever happens on its way out.
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
    fn memory_counts_what_came_and_what_went() {
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
        stop.say();
        assert_eq!((meter.step(), meter.grow(1_000)), (Err(Stopped::Cancelled), Err(Stopped::Cancelled)));
    }

    #[test]
    fn time_that_passes_without_work_is_free() {
        let meter = Meter::new(Stop::default(), Duration::from_millis(50), 100);
        let began = meter.began;
        let other = std::thread::spawn(move || while began.elapsed() < Duration::from_millis(100) {});
        other.join().unwrap();
        assert_eq!(meter.look().is_ok(), cfg!(unix), "{:?}", meter.processor_time());
    }

    #[test]
    fn work_uses_the_time_up() {
        let meter = Meter::new(Stop::default(), Duration::from_millis(20), 100);
        while meter.step().is_ok() {}
        assert_eq!(meter.stopped(), Some(Stopped::Time));
        assert!(meter.processor_time() >= Duration::from_millis(20));
    }
}
