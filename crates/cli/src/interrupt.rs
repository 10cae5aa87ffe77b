//! Ctrl-C: the first press cancels the run, three quick presses end the program.

#[cfg(unix)]
use std::task::Poll;
use std::{sync::Arc, time::Duration};

use archon::types::CancellationToken;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    exit::Exit,
    output::{Look, Output},
};

/// The maximum time between two presses of Ctrl-C; [`FORCE`] presses in such quick succession end the process
/// at once.
const QUICK: Duration = Duration::from_millis(500);
const FORCE: u32 = 3;

/// Cancels the run on Ctrl-C, on a request to terminate, and when the terminal closes, until the returned
/// task is aborted. Signals are caught as soon as this function is called.
pub(crate) fn listen(cancel: CancellationToken, output: Arc<Output>) -> JoinHandle<()> {
    let mut requests = Requests::new();
    tokio::spawn(async move {
        let mut presses = Presses::default();
        while requests.next().await {
            if presses.is_forced(Instant::now()) {
                output.stop_waiting();
                std::process::exit(Exit::Interrupted as i32);
            }
            if !cancel.is_cancelled() {
                cancel.cancel();
                output.note(Look::Dim, "stopping; press Ctrl-C three times quickly to stop at once");
            }
        }
    })
}

/// The signals that request a stop. They are caught as soon as this value is created, not only from the first
/// poll.
#[cfg(unix)]
struct Requests {
    signals: Vec<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Requests {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let hang_up = (!is_hang_up_ignored()).then_some(SignalKind::hangup());
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hang_up);
        Self { signals: kinds.filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// Waits for the next signal; false if no signal can come.
    async fn next(&mut self) -> bool {
        std::future::poll_fn(|task| {
            let mut are_over = true;
            for signal in &mut self.signals {
                match signal.poll_recv(task) {
                    Poll::Ready(Some(())) => return Poll::Ready(true),
                    Poll::Ready(None) => {}
                    Poll::Pending => are_over = false,
                }
            }
            if are_over { Poll::Ready(false) } else { Poll::Pending }
        })
        .await
    }
}

#[cfg(not(unix))]
struct Requests;

#[cfg(not(unix))]
impl Requests {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

/// Returns true if the program must outlive its terminal, as with `nohup`. This is known only on Linux; on
/// other systems SIGHUP has its default effect.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first bit is the first signal, which is SIGHUP.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}

#[derive(Debug, Default)]
struct Presses {
    last: Option<Instant>,
    count: u32,
}

impl Presses {
    fn is_forced(&mut self, now: Instant) -> bool {
        let quick = self.last.is_some_and(|last| now.duration_since(last) <= QUICK);
        self.count = if quick { self.count + 1 } else { 1 };
        self.last = Some(now);
        self.count >= FORCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quick_presses_force_the_end_and_slow_ones_do_not() {
        for (presses, expected) in [
            (&[0, 100, 200][..], true),
            (&[0, 500, 1000], true),
            (&[0, 100, 700], false),
            (&[0, 600, 1200, 1800], false),
            (&[0, 600, 700, 800], true),
            (&[0], false),
        ] {
            let (start, mut counter) = (Instant::now(), Presses::default());
            let forced = presses.iter().map(|ms| counter.is_forced(start + Duration::from_millis(*ms)));
            assert_eq!(forced.last(), Some(expected), "{presses:?}");
        }
    }
}
