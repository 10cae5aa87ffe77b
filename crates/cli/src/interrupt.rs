//! Ctrl-C: the first press asks the run to stop, three quick ones stop the program.

use std::{sync::Arc, time::Duration};

use archon::types::CancellationToken;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    exit::Exit,
    output::{Look, Output},
};

/// Presses no further apart than this belong together.
const QUICK: Duration = Duration::from_millis(500);
/// So many quick presses end the program as it stands.
const FORCE: u32 = 3;

/// Listens for Ctrl-C, for the request to terminate, and for the end of the terminal, until it is aborted.
pub(crate) fn listen(cancel: CancellationToken, output: Arc<Output>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut presses = Presses::default();
        while asked_to_stop().await {
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

/// Waits for the next request; false if none can come.
async fn asked_to_stop() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return false };
        let mut hang_up = if is_hang_up_ignored() { None } else { signal(SignalKind::hangup()).ok() };
        let hung_up = async {
            match &mut hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed.is_ok(),
            _ = terminate.recv() => true,
            _ = hung_up => true,
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.is_ok()
}

/// Whether whoever started the program wants it to outlive its terminal, as `nohup` does. Only Linux tells; elsewhere the
/// signal is left as it is.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first bit is the first signal, which is SIGHUP.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}

/// Counts presses that follow each other quickly.
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
