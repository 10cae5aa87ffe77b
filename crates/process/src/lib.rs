//! Process groups that are recorded in a log before they do anything, and that end with their owner.
//!
//! Use this crate in a tool of your own that starts programs, so that none of them outlives its call.
//!
//! | owner | how |
//! |---|---|
//! | a tool call | [`spawn_group`], or a group of the tool's own that it passes to [`register_process`](ToolContext::register_process) |
//! | this process, over many calls | [`ServerProcess`], for servers of tools; a [`ProcessSandbox`] limits it |
//! | this process, over many calls | a group of the tool's own that is a [`KeptGroup`], for commands in the background |
//!
//! When a call returns, is cancelled or times out, processes that are still running get SIGTERM, and SIGKILL 150 ms
//! later; when the call is dropped, SIGKILL at once. If the process of a run died, resuming the run first ends the
//! remaining processes of the run's groups ([`end_surviving`]), if `owner.rs` can prove that they belong to the run.
//! Processes of servers that outlived our process are ended before the next server starts (`orphans.rs`).
//!
//! # Example
//!
//! ```no_run
//! use std::process::Command;
//!
//! use archon_types::{ToolContext, ToolError};
//!
//! async fn count_lines(context: &ToolContext) -> Result<String, ToolError> {
//!     let mut command = Command::new("wc");
//!     command.args(["-l", "notes.txt"]);
//!     let child = archon_process::spawn_group(&command, context).await?;
//!     let output = child.wait_with_output().await.map_err(|e| ToolError::Resource(e.to_string()))?;
//!     Ok(String::from_utf8_lossy(&output.stdout).into_owned())
//! }
//! ```

#![cfg(unix)]

mod call;
mod kept_group;
#[cfg(target_os = "linux")]
mod mark;
#[cfg(target_os = "linux")]
mod orphans;
mod owner;
mod process_sandbox;
#[cfg(all(test, target_os = "linux"))]
mod real_clock;
mod server_process;
mod table;

use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::Duration,
};

use archon_types::{Clock, ProcessGroup, RunId, ToolContext, ToolError};
use rustix::process::{Pid, Signal};

pub use call::CallProcesses;
pub use kept_group::KeptGroup;
pub use process_sandbox::{ProcessSandbox, Restrict, SandboxedStart};
pub use server_process::ServerProcess;
pub use table::Table;
#[cfg(target_os = "linux")]
pub use {
    mark::{kill_if, mark},
    table::{members, start_ticks},
};

/// The environment variable with the id of the run that started a process. When the run is resumed, the process is
/// found by this variable.
pub const RUN_VARIABLE: &str = "ARCHON_RUN";

/// The environment variable of a server's process that identifies its keeper, the process that started it.
#[cfg(target_os = "linux")]
const KEEPER_VARIABLE: &str = "ARCHON_KEEPER";

/// Variables that commands get from the environment of this process; none of them is secret.
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

/// Further variables from the environment of this process, for commands without a scratch folder.
const FOLDERS: &[&str] = &["HOME", "TMPDIR"];

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(150);
/// Maximum wait for killed processes to disappear. Usually they need milliseconds.
const REMOVAL: Duration = Duration::from_secs(2);
/// Interval between checks whether a group is gone.
const LOOK: Duration = Duration::from_millis(5);

/// Starts a command in a process group of its own. The group is in the run's log before the command does
/// anything, and ends with the call at the latest.
///
/// Program, arguments, folder and added variables are taken from `command`. Of our environment the command
/// gets only `PATH`, the language, the time zone, the terminal's kind, the user's name and shell, `HOME`
/// and `TMPDIR`: API keys are not passed on, unless `command` adds them. The command's standard input is empty,
/// its two outputs are pipes. A program that does not exist exits with code 127, as in a shell.
///
/// # Errors
/// [`ToolError::Resource`] if no process can be started, [`ToolError::Cancelled`] if the call is over.
pub async fn spawn_group(
    command: &Command,
    context: &ToolContext,
) -> Result<tokio::process::Child, ToolError> {
    let failed = |e: std::io::Error| {
        ToolError::Resource(format!("{} cannot be started: {e}", command.get_program().display()))
    };
    let mut held = waiting_shell(command, "read -r _ && exec \"$0\" \"$@\" </dev/null", Vec::new());
    held.env(RUN_VARIABLE, context.run.run.as_str()).process_group(0);
    let mut held = tokio::process::Command::from(held);
    let mut child = held.spawn().map_err(failed)?;
    let gone = || ToolError::Resource("the process ended before the command began".to_owned());
    let go = child.stdin.take().ok_or_else(gone)?.into_owned_fd().map_err(failed)?;
    context.register_process(child.id().ok_or_else(gone)?).await?;
    File::from(go).write_all(b"\n").map_err(failed)?;
    Ok(child)
}

/// Wraps the command in a shell with this script, which waits for a line from this process and then executes
/// the command. So the process of the command can be logged and marked before the command does anything. If
/// this process dies before it sends the line, the shell ends.
///
/// `variables` replace variables of our environment, and those of the command replace both.
fn waiting_shell(command: &Command, script: &str, variables: Vec<(OsString, OsString)>) -> Command {
    let mut held = Command::new("/bin/sh");
    held.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    held.env_clear().envs(passed_on());
    held.envs(FOLDERS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(variables);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => held.env(name, value),
            None => held.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        held.current_dir(directory);
    }
    held.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    held
}

/// Returns the variables of our environment that every process of a tool gets.
pub fn passed_on() -> impl Iterator<Item = (&'static str, OsString)> {
    PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

/// Kills the groups that `run` started before the process of the run died, if they certainly belong to the run.
/// Returns the groups that could not be ended. Groups that this process keeps ([`KeptGroup`]), such as those of
/// servers, are not ended, because other runs may use them.
pub async fn end_surviving(groups: &[ProcessGroup], run: &RunId, clock: &dyn Clock) -> Vec<ProcessGroup> {
    let others = |group: &&ProcessGroup| !kept_group::is_kept_here(group);
    let groups: Vec<_> = groups.iter().filter(others).cloned().collect();
    let mut ours: Vec<_> = groups.iter().filter(|group| owner::is_of(group, run)).cloned().collect();
    for group in &ours {
        tracing::info!(target: "archon::process", %run, group = group.id, "processes of before are ended");
        signal(group, Signal::KILL);
    }
    until_gone(&mut ours, REMOVAL, clock, &Table::default()).await;
    #[cfg(target_os = "linux")]
    for group in mark::end_strays(&groups, clock).await {
        if !ours.contains(&group) {
            ours.push(group);
        }
    }
    ours
}

/// Waits until the groups are gone, at most `limit`. Removes the groups that are gone from the list.
async fn until_gone(groups: &mut Vec<ProcessGroup>, limit: Duration, clock: &dyn Clock, table: &Table) {
    let end = clock.now() + limit;
    let mut seen = table.newest();
    for round in 1u32.. {
        let now = clock.now();
        // Running processes and zombies can be distinguished only by reading all processes, so this is done less and
        // less often.
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

/// Sends a signal to a group; if the group is gone, nothing happens.
fn signal(group: &ProcessGroup, signal: Signal) {
    if let Some(id) = number(group.id) {
        let _ = rustix::process::kill_process_group(id, signal);
    }
}

/// Converts a process id. Refuses 1, the ancestor of all processes, and 0, which would mean our own group.
fn number(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().filter(|id| *id > 1).and_then(Pid::from_raw)
}
