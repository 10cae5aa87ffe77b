//! Runs the command of a hook, and ends all of its processes.

use std::{path::Path, pin::pin, process::Command, time::Duration};

use archon_process::{ProcessSandbox, ServerProcess};
use archon_types::{Clock, Timestamp};
use futures_util::future::{Either, join3, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::answer::{MOST_BYTES, Output};

/// The time to read the rest of the outputs after the process ended. All of its processes are dead by then, so the
/// pipes are closed.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Runs a command line in `folder` with `input` as its standard input. Returns `None` if it did not end before the
/// deadline. All processes that it started are ended when this function returns, or when its future is dropped.
///
/// # Errors
/// No process can be started, or one of them cannot be ended and may still print.
pub(crate) async fn run(
    line: &str,
    folder: &Path,
    input: &[u8],
    deadline: Timestamp,
    (clock, sandbox): (&dyn Clock, Option<&dyn ProcessSandbox>),
) -> Result<Option<Output>, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(folder);
    for name in ["ARCHON_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
        command.env(name, folder);
    }
    let started = match sandbox {
        Some(sandbox) => ServerProcess::spawn_sandboxed(&command, sandbox),
        None => ServerProcess::spawn(&command),
    };
    let mut process = started.map_err(|e| format!("cannot be started: {e}"))?;
    let (stdin, stdout, stderr) = process.take_pipes();
    let (mut output, mut is_over) = (Output::default(), false);
    {
        let write = async {
            if let Some(mut stdin) = stdin {
                // A hook need not read its input.
                let _ = stdin.write_all(input).await;
            }
        };
        let mut pipes =
            pin!(join3(write, read(stdout, &mut output.stdout), read(stderr, &mut output.stderr)));
        let ended = {
            let mut both = pin!(async {
                // The outputs may be closed before the process ends, or held open after it.
                match select(pin!(process.exited()), pipes.as_mut()).await {
                    Either::Left((code, _)) => (code, false),
                    Either::Right((_, exited)) => (exited.await, true),
                }
            });
            clock.before(deadline, |task| both.as_mut().poll(task)).await
        };
        // What is left of the group, and would hold the outputs open.
        process.end(Duration::ZERO, clock).await;
        if let Some((code, are_read)) = ended {
            let is_whole = are_read
                || clock.before(clock.now() + LEFTOVERS, |task| pipes.as_mut().poll(task)).await.is_some();
            if !is_whole {
                // Half an answer may be a no that was not read.
                return Err("ended, but a process that it started keeps its outputs open".to_owned());
            }
            (output.code, is_over) = (code, true);
        }
    }
    Ok(is_over.then_some(output))
}

/// Reads to the end of a pipe, and keeps one byte more than an answer may have.
async fn read(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = [0; 8 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut piece).await {
        let room = (MOST_BYTES + 1).saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..length.min(room)]);
    }
}
