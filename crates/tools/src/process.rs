//! Processes of tool calls: started so that no crash leaves one unseen, and gone when their call is.
//!
//! A tool that starts a process does it with [`spawn_group`], or puts it into a process group of its own and
//! hands it to [`register_process`](ToolContext::register_process). From then on the engine sees to it: whatever
//! the processes of a call left running when it returned, was cancelled or ran out of time gets SIGTERM, and
//! SIGKILL 150 ms later; when the call is dropped, SIGKILL at once. Whoever takes up a run whose process died ends
//! what is left of its groups first, as far as `process/table.rs` and `process/mark.rs` can prove that they are the
//! run's.

mod call;
#[cfg(target_os = "linux")]
mod mark;
mod table;

use std::{
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::Duration,
};

use archon_types::{Clock, ProcessGroup, RunId, ToolContext, ToolError};
use rustix::process::{Pid, Signal};

pub(crate) use call::CallProcesses;
#[cfg(target_os = "linux")]
pub(crate) use mark::mark;
pub(crate) use table::Table;
#[cfg(all(target_os = "linux", feature = "bash"))]
pub(crate) use {
    mark::kill_if,
    table::{members, start_ticks},
};

/// The variable by which a process knows the run that started it, and by which its run knows it again.
pub const RUN_VARIABLE: &str = "ARCHON_RUN";

/// Variables of ours that are passed on: none of them is a secret.
const PASSED_ON: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TERM",
    "USER",
    "LOGNAME",
    "SHELL",
];

/// Beside them for processes that are not held within a scratch folder.
const FOLDERS: &[&str] = &["HOME", "TMPDIR"];

/// From SIGTERM to SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_millis(150);
/// How long the system may take to remove what got SIGKILL. It takes milliseconds.
const REMOVAL: Duration = Duration::from_secs(2);
/// How often is looked whether a group is gone.
const LOOK: Duration = Duration::from_millis(5);

/// Starts a command in a process group of its own, which is in the run's log before the command does anything
/// and ends with the call at the latest.
///
/// The program, its arguments, directory and added variables are taken from `command`. Of our own environment it has
/// `PATH`, the language, the time zone, the terminal's kind, the user's name and shell, `HOME` and `TMPDIR`, and
/// nothing else: keys are not passed on, unless `command` adds them. Its input is empty, its two outputs are pipes. A program that is not there exits with code 127, as in a shell.
///
/// # Errors
/// [`ToolError::Resource`] when no process can be started, [`ToolError::Cancelled`] when the call is over.
pub async fn spawn_group(
    command: &Command,
    context: &ToolContext,
) -> Result<tokio::process::Child, ToolError> {
    let failed = |e: std::io::Error| {
        ToolError::Resource(format!("{} cannot be started: {e}", command.get_program().display()))
    };
    let mut held = tokio::process::Command::from(held(command, context));
    let mut child = held.spawn().map_err(failed)?;
    let gone = || ToolError::Resource("the process ended at once".to_owned());
    let go = child.stdin.take().ok_or_else(gone)?.into_owned_fd().map_err(failed)?;
    context.register_process(child.id().ok_or_else(gone)?).await?;
    File::from(go).write_all(b"\n").map_err(failed)?;
    Ok(child)
}

/// The command behind a shell that waits for a word from us. When we die before we said it, so does the shell.
fn held(command: &Command, context: &ToolContext) -> Command {
    let mut held = Command::new("/bin/sh");
    held.args(["-c", "read -r _ && exec \"$0\" \"$@\" </dev/null"]);
    held.arg(command.get_program()).args(command.get_args());
    held.env_clear().envs(passed_on());
    held.envs(FOLDERS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => held.env(name, value),
            None => held.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        held.current_dir(directory);
    }
    held.env(RUN_VARIABLE, context.run.run.as_str()).process_group(0);
    held.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    held
}

/// What every process of a tool has of our environment.
pub(crate) fn passed_on() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

/// Kills the groups that `run` started before its process died, as far as they are the run's beyond doubt, and
/// returns those that are there all the same.
pub(crate) async fn end_left(groups: &[ProcessGroup], run: &RunId, clock: &dyn Clock) -> Vec<ProcessGroup> {
    let mut ours: Vec<_> = groups.iter().filter(|group| table::is_of(group, run)).cloned().collect();
    for group in &ours {
        tracing::info!(target: "archon::tools", %run, group = group.id, "processes of before are ended");
        signal(group, Signal::KILL);
    }
    until_gone(&mut ours, REMOVAL, clock, &Table::default()).await;
    #[cfg(target_os = "linux")]
    for group in mark::end_strays(groups, clock).await {
        if !ours.contains(&group) {
            ours.push(group);
        }
    }
    ours
}

/// Waits until the groups are gone, `limit` at most, and leaves those in the list that are not.
async fn until_gone(groups: &mut Vec<ProcessGroup>, limit: Duration, clock: &dyn Clock, table: &Table) {
    let end = clock.now() + limit;
    let mut seen = table.newest();
    for round in 1u32.. {
        let now = clock.now();
        // Telling the living from the dead that nobody has buried yet takes a look at all processes, so it is
        // done more and more seldom.
        if now >= end || (round > 1 && round.is_power_of_two()) {
            let mut look = None;
            groups.retain(|group| {
                table::is_alive_by(group, || look.get_or_insert_with(|| table.after(seen)).has_member(group))
            });
            seen = look.map_or(seen, |look| look.number);
        } else {
            groups.retain(table::is_there);
        }
        if groups.is_empty() || now >= end {
            return;
        }
        clock.sleep_until(end.min(now + LOOK)).await;
    }
}

/// A group that is gone takes no signal, which is as well.
fn signal(group: &ProcessGroup, signal: Signal) {
    if let Some(id) = number(group.id) {
        let _ = rustix::process::kill_process_group(id, signal);
    }
}

/// A number that can be a process group's. 1 is everybody's ancestor; 0 would mean our own group.
fn number(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().filter(|id| *id > 1).and_then(Pid::from_raw)
}
