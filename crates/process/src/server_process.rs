//! Servers that tools talk to. Their processes outlive a call, and belong to this process, not to a run.

use std::{
    any::Any,
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use archon_types::{Clock, ProcessGroup};
use rustix::process::Signal;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::{KeptGroup, ProcessSandbox, REMOVAL, Restrict, SandboxedStart, Table, signal, until_gone};

/// A child process with its own process group, for a server that many calls use. The group ends when this value is
/// dropped, when [`end`](Self::end) is called, or when our process dies.
///
/// A shell leads the group and waits. When its input closes, because we closed it or died, it kills the group, so no
/// process of the group outlives us. On Linux a process that left the group has the group's mark, and
/// [`end`](Self::end) finds it. After our death, the next process that starts a server finds such processes by an
/// environment variable that names us.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    leader: Child,
    group: KeptGroup,
    /// A value of the sandbox that must live as long as the process.
    _resources: Option<Box<dyn Any + Send + Sync>>,
}

impl ServerProcess {
    /// Starts the command.
    ///
    /// Program, arguments, folder and added variables are taken from `command`. The child process gets only
    /// the harmless part of our environment, as in [`spawn_group`](crate::spawn_group), without the variables
    /// that `command` removes ([`Command::env_remove`]). Its input and outputs are pipes. A program that does
    /// not exist exits with code 127, as in a shell.
    ///
    /// # Errors
    /// No process can be started.
    pub fn spawn(command: &Command) -> io::Result<Self> {
        Self::start(command, None)
    }

    /// Starts the command in a sandbox. Otherwise like [`spawn`](Self::spawn).
    ///
    /// A separate thread gives up the rights that the process must not have, and then starts the process, which
    /// inherits the restriction. The thread is separate because a thread cannot get rights back. The shell that leads
    /// the group stays outside, so that nothing in the sandbox stops it from killing the group.
    ///
    /// # Errors
    /// The sandbox refuses the command, or no process can be started. The command does not run.
    pub fn spawn_sandboxed(command: &Command, sandbox: &dyn ProcessSandbox) -> io::Result<Self> {
        Self::start(command, Some(sandbox))
    }

    fn start(command: &Command, sandbox: Option<&dyn ProcessSandbox>) -> io::Result<Self> {
        let leader = leader().spawn()?;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let number = leader.id().ok_or_else(gone)?;
        let group = KeptGroup::of(number).map_err(|e| io::Error::other(e.to_string()))?;
        let (mut child, resources) =
            match sandbox.map(|sandbox| sandbox.prepare(command, number)).transpose()? {
                None => (spawn_killed_on_drop(waiting_shell(command, number, Vec::new()))?, None),
                Some(SandboxedStart { variables, restrict, resources }) => {
                    (spawn_restricted(waiting_shell(command, number, variables), restrict)?, Some(resources))
                }
            };
        #[cfg(target_os = "linux")]
        if let Some(process) = child.id().and_then(super::number) {
            super::mark(process, number);
        }
        // The shell reads one line and leaves the rest of the pipe to the command.
        let input = child.stdin.take().ok_or_else(gone)?;
        let mut server = Self { child, leader, group, _resources: resources };
        let input = input.into_owned_fd()?;
        File::from(input.try_clone()?).write_all(b"\n")?;
        server.child.stdin = Some(ChildStdin::from_std(std::process::ChildStdin::from(input))?);
        Ok(server)
    }

    /// Returns the process group.
    pub fn group(&self) -> &ProcessGroup {
        self.group.group()
    }

    /// Returns the process's input, output and error output; `None` for those that were taken before.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the end of the process itself, and returns its exit code. If a signal ended the process, the code is
    /// 128 plus the number of the signal, as in a shell. `None` if the system reports no code.
    pub async fn exited(&mut self) -> Option<i32> {
        let status = self.child.wait().await.ok()?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    /// Ends all processes of the group. Closes the input of the child process, after which a server ends by
    /// itself, and waits `grace`; if the child process still runs, sends it SIGTERM and waits `grace` again.
    /// Then kills the whole group. Returns `false` if a process of the group cannot be ended.
    pub async fn end(mut self, grace: Duration, clock: &dyn Clock) -> bool {
        drop(self.child.stdin.take());
        if !ends_within(&mut self.child, grace, clock).await {
            self.terminate();
            ends_within(&mut self.child, grace, clock).await;
        }
        signal(self.group(), Signal::KILL);
        // Zombies stay in the group until they are waited for.
        for child in [&mut self.child, &mut self.leader] {
            ends_within(child, REMOVAL, clock).await;
        }
        let mut remaining = vec![self.group().clone()];
        until_gone(&mut remaining, REMOVAL, clock, &Table::default()).await;
        #[cfg(target_os = "linux")]
        remaining.extend(super::mark::end_strays(std::slice::from_ref(self.group()), clock).await);
        remaining.is_empty()
    }

    /// Sends SIGTERM to the child process itself, but not to the other processes of its group.
    fn terminate(&self) {
        if let Some(process) = self.child.id().and_then(super::number) {
            let _ = rustix::process::kill_process(process, Signal::TERM);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The leader was not waited for, so its id is not reused and still means the group.
        if self.leader.id().is_some() {
            signal(self.group(), Signal::KILL);
            #[cfg(target_os = "linux")]
            super::mark::kill_strays(std::slice::from_ref(self.group()));
        }
    }
}

/// Waits for the end of a process, at most `limit`; returns whether it ended.
async fn ends_within(child: &mut Child, limit: Duration, clock: &dyn Clock) -> bool {
    let mut ended = pin!(child.wait());
    clock.before(clock.now() + limit, |task| ended.as_mut().poll(task)).await.is_some()
}

/// Returns the command of the group's leader. The leader ignores SIGTERM, so that it ends after all other processes
/// of the group.
fn leader() -> tokio::process::Command {
    let mut leader = Command::new("/bin/sh");
    leader.args(["-c", "trap '' TERM; read -r _; kill -KILL 0"]).env_clear().process_group(0);
    leader.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    tokio::process::Command::from(leader)
}

/// Returns the command within a shell of the group; see [`waiting_shell`](super::waiting_shell).
fn waiting_shell(command: &Command, group: u32, variables: Vec<(OsString, OsString)>) -> Command {
    let mut held = super::waiting_shell(command, "read -r _ && exec \"$0\" \"$@\"", variables);
    held.envs(KeptGroup::variable());
    // A group id is a process id, so it fits.
    held.process_group(group.cast_signed());
    held
}

fn spawn_killed_on_drop(held: Command) -> io::Result<Child> {
    let mut held = tokio::process::Command::from(held);
    held.kill_on_drop(true);
    held.spawn()
}

/// Starts the command on a new thread that first gives up rights. The thread never gets them back, so it does
/// nothing else.
fn spawn_restricted(mut held: Command, restrict: Restrict) -> io::Result<Child> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let thread = std::thread::Builder::new().name("archon-server".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        restrict(&mut held)?;
        spawn_killed_on_drop(held)
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the process panicked")))
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::Mutex;

    use archon_types::RunId;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;
    use crate::{end_surviving, real_clock::RealClock, table};

    fn shell(script: &str) -> ServerProcess {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ServerProcess::spawn(&command).unwrap()
    }

    /// Reads a line that the script prints.
    async fn line(of: &mut ServerProcess) -> String {
        let mut line = String::new();
        BufReader::new(of.child.stdout.as_mut().unwrap()).read_line(&mut line).await.unwrap();
        line.trim().to_owned()
    }

    fn is_alive(process: &str) -> bool {
        table::start_ticks(process.parse().unwrap()).is_some()
    }

    #[tokio::test]
    async fn long_lived_process_reads_its_input_and_ends_at_its_end() {
        let mut server = shell("read -r word; echo \"got $word\"; read -r _; exit 3");
        server.child.stdin.as_mut().unwrap().write_all(b"one\n").await.unwrap();
        assert_eq!(line(&mut server).await, "got one");
        drop(server.child.stdin.take());
        assert_eq!(server.exited().await, Some(3));
        assert!(server.end(Duration::from_secs(5), &RealClock::new()).await);
    }

    #[tokio::test]
    async fn end_kills_processes_that_ignore_signals_or_left_the_group() {
        let script =
            "trap '' TERM; (trap '' TERM; exec setsid sleep 1000) & echo $!; while :; do sleep 1; done";
        let mut server = shell(script);
        let grandchild = line(&mut server).await;
        let group = server.group().clone();
        assert!(is_alive(&grandchild) && table::is_alive(&group));
        assert!(server.end(Duration::from_millis(50), &RealClock::new()).await);
        assert!(!is_alive(&grandchild) && !table::is_alive(&group));
    }

    #[tokio::test]
    async fn a_dropped_process_is_killed() {
        let mut server = shell("echo $$; trap '' TERM; sleep 1000");
        let process = line(&mut server).await;
        drop(server);
        while is_alive(&process) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_process_dies_with_its_keeper() {
        let mut server = shell("echo $$; trap '' TERM; sleep 1000");
        let process = line(&mut server).await;
        // As if we had died: the system closes the leader's input.
        drop(server.leader.stdin.take());
        while is_alive(&process) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A sandbox that notes the names of the threads that it restricts, and a folder that the process has.
    #[derive(Debug, Default)]
    struct NotingSandbox {
        threads: std::sync::Arc<Mutex<Vec<String>>>,
        refuses: bool,
    }

    impl ProcessSandbox for NotingSandbox {
        fn prepare(&self, command: &Command, group: u32) -> io::Result<SandboxedStart> {
            assert_eq!(command.get_program(), "/bin/sh");
            let (threads, refuses) = (self.threads.clone(), self.refuses);
            Ok(SandboxedStart {
                variables: [("HOME", "/scratch"), ("OWN", "of the sandbox"), ("GROUP", &group.to_string())]
                    .map(|(name, value)| (name.into(), value.into()))
                    .into(),
                restrict: Box::new(move |_| {
                    let name = std::thread::current().name().unwrap_or_default().to_owned();
                    threads.lock().unwrap().push(name);
                    if refuses { Err(io::Error::other("no such kernel")) } else { Ok(()) }
                }),
                resources: Box::new(self.threads.clone()),
            })
        }
    }

    #[tokio::test]
    async fn sandboxed_process_starts_on_a_thread_of_its_own_after_the_restrictions() {
        let sandbox = NotingSandbox::default();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $HOME $OWN $GROUP"]).env("OWN", "of-the-command");
        let mut server = ServerProcess::spawn_sandboxed(&command, &sandbox).unwrap();
        let group = server.group().id;
        assert_eq!(line(&mut server).await, format!("/scratch of-the-command {group}"));
        assert_eq!(*sandbox.threads.lock().unwrap(), ["archon-server"]);
        assert_eq!(std::sync::Arc::strong_count(&sandbox.threads), 2, "the process has its folder");
        server.end(Duration::ZERO, &RealClock::new()).await;
        assert_eq!(std::sync::Arc::strong_count(&sandbox.threads), 1);
    }

    #[tokio::test]
    async fn process_whose_sandbox_refuses_does_not_run() {
        let folder = std::env::temp_dir().join(format!("archon-refused-{}", std::process::id()));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("mkdir {}", folder.display())]);
        let sandbox = NotingSandbox { refuses: true, ..NotingSandbox::default() };
        let refused = ServerProcess::spawn_sandboxed(&command, &sandbox).unwrap_err();
        assert_eq!(refused.to_string(), "no such kernel");
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn a_resumed_run_leaves_a_server_alone_that_this_process_keeps() {
        let server = shell("sleep 1000");
        let group = server.group().clone();
        let remaining =
            end_surviving(std::slice::from_ref(&group), &RunId::from("r1"), &RealClock::new()).await;
        assert!(remaining.is_empty() && table::is_alive(&group));
        server.end(Duration::ZERO, &RealClock::new()).await;
        assert!(!table::is_alive(&group));
    }
}
