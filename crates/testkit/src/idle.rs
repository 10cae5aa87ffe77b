//! Runs a future without a runtime, and moves the time when everything in the future waits.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use archon_types::Clock;

use crate::VirtualClock;

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs a future to its end. When everything in the future waits, moves the clock to the next deadline.
///
/// # Panics
/// If the future waits, but not for the clock.
pub fn drive<F: Future>(clock: &VirtualClock, future: F) -> F::Output {
    let mut future = Box::pin(future);
    loop {
        if let Some(done) = poll_until_idle(&mut future) {
            return done;
        }
        let Some(next) = clock.next_deadline() else { panic!("the future waits, but not for the clock") };
        clock.advance(next.since(clock.now()));
    }
}

/// Polls a future until it is done, or until it waits for the clock or for another thread.
pub fn poll_until_idle<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    while woken.0.swap(false, Ordering::SeqCst) {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn drive_moves_the_time_to_each_deadline_and_no_further() {
        let clock = VirtualClock::new();
        let begun = clock.now();
        let mut waits = Box::pin(clock.sleep_until(begun + Duration::from_secs(5)));
        assert!(poll_until_idle(&mut waits).is_none());
        drive(&clock, async {
            waits.await;
            clock.sleep_until(begun + Duration::from_secs(7)).await;
        });
        assert_eq!(clock.now(), begun + Duration::from_secs(7));
    }
}
