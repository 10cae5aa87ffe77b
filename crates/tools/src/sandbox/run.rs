//! Runs a command to its end, and returns the kept output and how it ended.

use std::{
    collections::VecDeque,
    future::poll_fn,
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::{Command, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    task::{self, Poll},
    time::Duration,
};

use archon_types::{Clock, ToolContext, ToolError};
use futures_util::{
    FutureExt,
    future::{FusedFuture, join, select},
};
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{
    Cage,
    guarded::{Guarded, Owner},
    start::{Started, kill, start, terminate},
    watch::{self, Beyond, Watch},
};

/// Time to wait for buffered output after all processes of a command were killed.
const DRAIN: Duration = Duration::from_secs(1);
/// Time between SIGTERM and SIGKILL for a command that its owner stops.
const GRACE: Duration = Duration::from_secs(1);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) end: End,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
}

/// The end of a command, and the state that was found then.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) ended: Ended,
    /// True if a process of the command was killed for lack of memory.
    pub(crate) out_of_memory: bool,
    /// Sentences about forbidden changes and their restoration, and about files that could not be
    /// protected.
    pub(crate) notes: Vec<String>,
}

/// The way in which a command ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Exited(ExitStatus),
    /// The command reached its time limit.
    TimedOut,
    /// The owner of the command stopped it.
    Stopped,
    /// The command wrote too much output.
    Flooded,
    /// A disk was nearly full: less than this many bytes were free.
    DiskFull(u64),
}

impl Ended {
    /// Returns the exit code as a shell reports it: 128 plus the signal if a signal ended the program.
    pub(crate) fn code(&self) -> Option<i32> {
        match self {
            Self::Exited(status) => status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
            _ => None,
        }
    }
}

/// The kept part of a command's standard output or standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) text: String,
    /// Number of bytes that the command wrote, kept or not.
    pub(crate) bytes: u64,
    pub(crate) truncated: bool,
}

/// Runs the command for at most `limit`. All processes that the command started end with it.
pub(crate) async fn run(
    command: &Command,
    cage: &Cage,
    context: &ToolContext,
    limit: Duration,
) -> Result<Finished, ToolError> {
    let clock = context.run.clock.clone();
    let mut time_up = clock.sleep_until(clock.now() + limit);
    let guarded = guarded(cage, context, Owner::Call).await?;
    let mut started = start(command, cage, &guarded, Owner::Call, context).await?;
    let outputs = [Capture::new(cage.options.max_output), Capture::new(cage.options.max_output)];
    let (stdout, stderr) = (started.child.stdout.take(), started.child.stderr.take());
    let pumps =
        join(pump(stdout, |bytes| outputs[0].add(bytes)), pump(stderr, |bytes| outputs[1].add(bytes)));
    let mut reported = 0;
    let is_over = |task: &mut task::Context<'_>| {
        let total: u64 = outputs.iter().map(Capture::bytes).sum();
        // Each partial result has all of the output, so they are sent less and less often.
        if total > 2 * reported {
            reported = total;
            context.on_update(outputs[0].output().text.into());
        }
        if total > cage.options.max_flood {
            return Poll::Ready(Ended::Flooded);
        }
        time_up.as_mut().poll(task).map(|()| Ended::TimedOut)
    };
    let end = attend(started, guarded, pumps, cage, &*clock, is_over).await?;
    Ok(Finished { end, stdout: outputs[0].output(), stderr: outputs[1].output() })
}

/// Attends to a command until it exits, exceeds a limit, or `is_over` returns a reason to end it. Then ends its
/// processes and restores what it must not have changed.
pub(super) async fn attend(
    mut started: Started,
    mut guarded: Guarded,
    pumps: impl Future,
    cage: &Cage,
    clock: &dyn Clock,
    mut is_over: impl FnMut(&mut task::Context<'_>) -> Poll<Ended>,
) -> Result<End, ToolError> {
    let mut pumps = pin!(pumps.fuse());
    let watch = started.watch(cage);
    let mut next_look = clock.sleep_until(clock.now() + watch::EVERY);
    let group = started.group;
    let mut had_too_much = TooMuch(false);
    let ended = {
        let mut exit = pin!(started.child.wait());
        poll_fn(|task| {
            let _ = pumps.as_mut().poll(task);
            if let Poll::Ready(status) = exit.as_mut().poll(task) {
                return Poll::Ready(status.map(Ended::Exited));
            }
            while next_look.as_mut().poll(task).is_ready() {
                if let Some(spared) = had_too_much.check_limits(&watch, group) {
                    return Poll::Ready(Ok(Ended::DiskFull(spared)));
                }
                next_look = clock.sleep_until(clock.now() + watch::EVERY);
            }
            is_over(task).map(Ok)
        })
        .await
    };
    if matches!(ended, Ok(Ended::Stopped)) {
        terminate(group);
        // The outputs are closed as soon as all processes have ended.
        let _ = select(pumps.as_mut(), clock.sleep_until(clock.now() + GRACE)).await;
    }
    // Background processes would keep the outputs open.
    started.kill();
    if !pumps.is_terminated() {
        let _ = select(pumps, clock.sleep_until(clock.now() + DRAIN)).await;
    }
    let out_of_memory = had_too_much.0 || started.ran_out_of_memory();
    started.finish().await;
    until_gone(group, clock).await;
    let notes = tokio::task::spawn_blocking(move || guarded.settle()).await.unwrap_or_default();
    let ended = ended.map_err(|e| ToolError::Failed(format!("the wait for the command failed: {e}")))?;
    Ok(End { ended, out_of_memory, notes })
}

/// True once the command was killed because it used too much memory.
struct TooMuch(bool);

impl TooMuch {
    /// Checks the command's memory and the free space of its disks. A command with too much memory is killed,
    /// and ends like one that the kernel kills for lack of memory. If a disk is nearly full, returns the
    /// number of bytes that must stay free.
    fn check_limits(&mut self, watch: &Watch, group: Pid) -> Option<u64> {
        match watch.check()? {
            Beyond::Disk(spared) => Some(spared),
            Beyond::Memory => {
                self.0 = true;
                kill(group);
                None
            }
        }
    }
}

/// Waits until the killed processes are gone, about 100 ms at most. They are not our children and may still
/// be in a system call.
async fn until_gone(group: Pid, clock: &dyn Clock) {
    for _ in 0..50 {
        if rustix::process::test_kill_process_group(group).is_err() {
            return;
        }
        clock.sleep_until(clock.now() + Duration::from_millis(2)).await;
    }
}

/// Finds the places in the workspace that the command may not change or see; that may take a moment.
pub(super) async fn guarded(cage: &Cage, context: &ToolContext, owner: Owner) -> Result<Guarded, ToolError> {
    if let Some(refusal) = cage.refusal() {
        return Err(ToolError::PermissionDenied(refusal));
    }
    let (cage, context) = (cage.clone(), context.clone());
    let looking = tokio::task::spawn_blocking(move || Guarded::new(&cage, &context, owner));
    looking.await.map_err(|e| {
        ToolError::Failed(format!("the search for protected files in the workspace failed: {e}"))
    })?
}

/// Passes all output to `add`, until the output is closed.
pub(super) async fn pump(from: Option<impl AsyncRead + Unpin>, mut add: impl FnMut(&[u8])) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        add(&buffer[..read]);
    }
}

/// Keeps the beginning and the end of a command's output, each of at most this number of bytes.
struct Capture(Mutex<Halves>, usize);

#[derive(Default)]
struct Halves {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl Capture {
    fn new(limit: usize) -> Self {
        Self(Mutex::default(), limit / 2)
    }

    fn add(&self, bytes: &[u8]) {
        let mut halves = self.halves();
        halves.bytes += bytes.len() as u64;
        let room = self.1 - halves.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        halves.head.extend_from_slice(head);
        halves.tail.extend(rest);
        let over = halves.tail.len().saturating_sub(self.1);
        halves.tail.drain(..over);
    }

    fn bytes(&self) -> u64 {
        self.halves().bytes
    }

    fn output(&self) -> Output {
        let halves = self.halves();
        let left_out = halves.bytes - (halves.head.len() + halves.tail.len()) as u64;
        let tail: Vec<u8> = halves.tail.iter().copied().collect();
        let text = if left_out == 0 {
            String::from_utf8_lossy(&[halves.head.as_slice(), &tail].concat()).into_owned()
        } else {
            format!(
                "{}\n[... {left_out} bytes left out ...]\n{}",
                String::from_utf8_lossy(&halves.head),
                String::from_utf8_lossy(&tail)
            )
        };
        Output { text, bytes: halves.bytes, truncated: left_out > 0 }
    }

    fn halves(&self) -> MutexGuard<'_, Halves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // spec: TE-39
        #[test]
        fn command_output_over_the_limit_keeps_its_beginning_and_end(pieces in prop::collection::vec("[a-z]{0,9}", 0..20), limit in 0_usize..40) {
            let capture = Capture::new(limit);
            pieces.iter().for_each(|piece| capture.add(piece.as_bytes()));
            let (all, half) = (pieces.concat(), limit / 2);
            let output = capture.output();
            prop_assert_eq!(output.bytes, all.len() as u64);
            prop_assert_eq!(output.truncated, all.len() > 2 * half);
            if output.truncated {
                let left_out = all.len() - 2 * half;
                let expected = format!("{}\n[... {left_out} bytes left out ...]\n{}", &all[..half], &all[all.len() - half..]);
                prop_assert_eq!(output.text, expected);
            } else {
                prop_assert_eq!(output.text, all);
            }
        }
    }
}
