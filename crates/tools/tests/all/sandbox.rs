//! Commands: their results, and that the kernel limits them.

use std::{
    fs,
    net::TcpListener,
    os::unix::net::UnixListener,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use archon_testkit::{RealClock, SeededIds};
use archon_tools::{
    Ask, EngineOptions, ToolEngine, Workspace,
    builtin::{Bash, BashOptions},
    sandbox::{self, Isolation, Network, UnixSockets},
};
use archon_types::{Context, DeltaKind, Event, Json, Tool, ToolCall, ToolResult, ToolResultStatus};
use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{engine, run_call},
    users::has_mounts,
};

pub(crate) fn run() -> Context {
    let clock = Arc::new(RealClock::new());
    Context::new("run".into(), "session".into(), clock, Arc::new(SeededIds::new(1)))
}

pub(crate) struct Fixture {
    pub(crate) outer: TempDir,
    engine: ToolEngine,
}

/// A workspace `ws` with a file, beside a secret, and the two shells.
pub(crate) fn fixture(change: impl FnOnce(&mut BashOptions)) -> Fixture {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("ws");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "inside\n").unwrap();
    fs::write(outer.path().join("secret.txt"), "the treasure").unwrap();
    let workspace = Workspace::new(&root).unwrap();
    let mut options = BashOptions::default();
    change(&mut options);
    let tools: [Arc<dyn Tool>; 2] = [
        Arc::new(Bash::new(workspace.clone(), options.clone())),
        Arc::new(Bash::read_only(workspace, options)),
    ];
    let granted = EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired);
    Fixture { outer, engine: engine(tools).with_options(granted) }
}

impl Fixture {
    pub(crate) async fn call(&self, tool: &str, command: &str) -> ToolResult {
        run_call(&self.engine, &ToolCall::new("c", tool, json!({ "command": command })), &run()).await
    }

    pub(crate) async fn say(&self, tool: &str, command: &str) -> String {
        let result = self.call(tool, command).await;
        format!(
            "{:?} {}: {}",
            result.status,
            result.metadata.get("exit_code").unwrap_or(&Json::Null),
            result.text()
        )
    }
}

/// Processes whose command line holds this text, ours left out.
pub(crate) fn processes_with(text: &str) -> usize {
    let ours = std::process::id().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_str() != Some(&ours))
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(text))
        .count()
}

/// Without the kernel's help there is nothing to be tested; `ARCHON_ACCEPT=full` does not let that pass.
pub(crate) fn can_be_held() -> bool {
    let missing = sandbox::missing();
    assert!(missing.is_none() || std::env::var_os("ARCHON_ACCEPT").is_none(), "{missing:?}");
    let open = sandbox::gaps();
    assert!(missing.is_some() || has_mounts().is_none_or(|has| has == open.is_none()), "{open:?}");
    missing.is_none()
}

// spec: TE-39
#[tokio::test]
async fn a_command_returns_its_outputs_and_its_code() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    assert_eq!(fixture.say("bash", "cat a.txt").await, "Success 0: inside\n");
    assert_eq!(fixture.say("bash", "true").await, "Success 0: (no output)");
    assert_eq!(
        fixture.say("bash", "echo out; echo err >&2; exit 3").await,
        "Success 3: out\n[stderr]\nerr\n[exit code 3]"
    );
    assert_eq!(fixture.say("bash", "wc -c").await, "Success 0: 0\n", "its input is empty");
    assert_eq!(
        fixture.say("bash", "kill -9 $$").await,
        "Success 137: [exit code 137: it was killed, perhaps for want of memory]"
    );
    assert_eq!(fixture.say("bash", "echo new > b.txt && cat b.txt").await, "Success 0: new\n");
    let long = fixture.call("bash", "head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(long.metadata["stdout_bytes"], 1_000_000);
    assert_eq!(long.metadata["truncated"], true);
    assert!(long.text().contains("\n[... 737856 bytes left out ...]\n") && long.text().len() < 263_000);
}

// spec: TE-39, TE-08, TE-21
#[tokio::test]
async fn sandbox_timed_out_command_returns_its_output() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|options| options.timeout = Duration::from_millis(700));
    let result = fixture.call("bash", "trap '' TERM; echo begun; while true; do sleep 71.5; done").await;
    assert_eq!(result.status, ToolResultStatus::Timeout);
    assert_eq!(result.text(), "begun\n[stopped after 0.7 seconds]");
    assert_eq!(processes_with("sleep 71.5"), 0, "it ignores SIGTERM, and is gone all the same");
}

// spec: TE-39, TE-30
#[tokio::test]
async fn a_cancelled_command_is_gone_with_all_that_it_started() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let mut context = run();
    let seen = Arc::new(Mutex::new(String::new()));
    let (cancel, said) = (context.cancel.clone(), seen.clone());
    context.sink = Arc::new(Watch(Box::new(move |text| {
        *said.lock().unwrap() = text;
        cancel.cancel();
    })));
    let command = json!({ "command": "sleep 72.5 & (sleep 72.5 &) ; echo begun; wait" });
    let result = run_call(&fixture.engine, &ToolCall::new("c", "bash", command), &context).await;
    assert_eq!((result.status, seen.lock().unwrap().as_str()), (ToolResultStatus::Cancelled, "begun\n"));
    assert_eq!(processes_with("sleep 72.5"), 0);
}

pub(crate) struct Watch(pub(crate) Box<dyn Fn(String) + Send + Sync>);

impl archon_types::Sink for Watch {
    fn emit(&self, event: Event) {
        if let Event::Delta(delta) = event
            && let DeltaKind::ToolPartialResult { result, .. } = delta.kind
        {
            (self.0)(result.text());
        }
    }
}

// spec: TE-39, TE-58
#[tokio::test]
async fn sandbox_background_processes_end_with_the_command() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let started = Instant::now();
    let text = fixture
        .say(
            "bash",
            "(sleep 73.5 &) ; nohup sleep 73.5 & setsid sleep 73.5; echo $?; set -m; sleep 73.5 & echo end",
        )
        .await;
    assert!(started.elapsed() < Duration::from_secs(20), "nobody waits for what holds the output open");
    assert!(text.contains("end\n") && text.contains("Operation not permitted"), "{text}");
    assert_eq!(processes_with("sleep 73.5"), 0);
}

/// Set where a test runs itself once more.
const AGAIN: &str = "ARCHON_TEST_AGAIN";

/// `program`, which runs one of these tests once more, with `said` in [`AGAIN`].
fn again(mut program: std::process::Command, test: &str, said: &std::ffi::OsStr) -> std::process::Command {
    program.args(["--exact", &format!("sandbox::{test}"), "--nocapture"]).env(AGAIN, said);
    program
}

fn passes(mut program: std::process::Command) {
    let run = program.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

fn ourselves() -> std::process::Command {
    std::process::Command::new(std::env::current_exe().unwrap())
}

/// The scratch folders of calls in a folder.
fn scratch_in(folder: &Path) -> Vec<std::path::PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("archon-call-")).collect()
}

// spec: TE-58
#[tokio::test]
async fn the_scratch_folder_of_a_process_that_was_killed_goes_with_the_next_one() {
    const TEST: &str = "the_scratch_folder_of_a_process_that_was_killed_goes_with_the_next_one";
    if !can_be_held() {
        return;
    }
    if let Some(command) = std::env::var_os(AGAIN) {
        fixture(|_| ()).call("bash", command.to_str().unwrap()).await;
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = |command: &str| {
        let mut program = again(ourselves(), TEST, command.as_ref());
        program.env("TMPDIR", folder.path());
        program
    };
    let mut killed = program("touch begun; sleep 76.5").spawn().unwrap();
    // The scratch folder itself may be one that only the command sees.
    let has_begun = || {
        let folders = fs::read_dir(folder.path()).unwrap().flatten();
        folders.map(|entry| entry.path()).any(|outer| outer.join("ws/begun").exists())
    };
    while !has_begun() {
        assert_eq!(killed.try_wait().unwrap(), None, "it ended before it was killed");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(scratch_in(folder.path()).len(), 1);
    passes(program("true"));
    assert_eq!(scratch_in(folder.path()), Vec::<std::path::PathBuf>::new());
}

// spec: TE-39
#[tokio::test]
async fn a_program_of_the_workspace_takes_the_place_of_none_of_the_system_s() {
    if !can_be_held() {
        return;
    }
    let Some(root) = std::env::var_os(AGAIN) else {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["ls", "bash", "only-here"] {
            fs::write(bin.join(name), "#!/bin/sh\necho of the workspace\n").unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        let mut program = ourselves();
        program.env("PATH", format!("{}:bin:{path}", bin.display())).current_dir(folder.path());
        let test = "a_program_of_the_workspace_takes_the_place_of_none_of_the_system_s";
        passes(again(program, test, folder.path().as_os_str()));
        return;
    };
    let say = async |options: BashOptions, command: &str| {
        let bash: Arc<dyn Tool> = Arc::new(Bash::new(Workspace::new(&root).unwrap(), options));
        let engine = engine([bash])
            .with_options(EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired));
        run_call(&engine, &ToolCall::new("c", "bash", json!({ "command": command })), &run()).await.text()
    };
    assert_eq!(say(BashOptions::default(), "ls").await, "bin\n");
    assert_eq!(say(BashOptions::default(), "only-here").await, "of the workspace\n");
    // Whoever says so gets it otherwise.
    let mut options = BashOptions::default();
    let path = std::env::var("PATH").unwrap().replacen(":bin:", ":", 1);
    options.sandbox.env.insert("PATH".to_owned(), path);
    options.shell = "/bin/sh".into();
    assert_eq!(say(options, "ls").await, "of the workspace\n");
}

// spec: TE-39
#[tokio::test]
async fn a_command_has_no_descriptor_that_we_were_started_with() {
    if !can_be_held() {
        return;
    }
    let Some(secret) = std::env::var_os(AGAIN) else {
        let folder = TempDir::new().unwrap();
        let secret = folder.path().join("secret.txt");
        fs::write(&secret, "the treasure\n").unwrap();
        let mut opener = std::process::Command::new("bash");
        opener.args(["-c", r#"exec 3<>"$0" 45<>"$0"; exec "$@""#]).arg(&secret);
        opener.arg(std::env::current_exe().unwrap());
        passes(again(opener, "a_command_has_no_descriptor_that_we_were_started_with", secret.as_os_str()));
        return;
    };
    let here = std::process::Command::new("bash").args(["-c", "cat /proc/self/fd/45"]).output().unwrap();
    assert_eq!(String::from_utf8(here.stdout).unwrap(), "the treasure\n", "it is there to be passed on");
    let fixture = fixture(|_| ());
    for tool in ["bash", "bash_readonly"] {
        for command in ["cat <&3", "cat <&45", "echo x >&3", "echo x >&45"] {
            let text = fixture.say(tool, command).await;
            assert!(text.contains("Bad file descriptor"), "{command}: {text}");
        }
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "the treasure\n");
}

/// Each line is a way to change something outside, or inside without being allowed to.
const CHANGES: &[&str] = &[
    "echo x > FILE",
    "echo x >> FILE",
    ": > FILE",
    "rm -f FILE",
    "mv FILE FILE.moved",
    "ln FILE ws-link",
    "truncate -s 0 FILE",
    "chmod 777 FILE",
    "chown 1234 FILE",
    "touch -d 2001-01-01 FILE",
    "cp a.txt FILE",
    "mkdir FILE.d",
    "mkfifo FILE.p",
    "ln -s /etc/passwd FILE.l",
    "sed -i s/a/b/ FILE",
    "perl -e 'open(F, \">\", \"FILE\") and print F 1'",
    "mount -t tmpfs none $(dirname FILE)",
    "bash -c 'exec 3<>FILE; echo x >&3'",
    "mknod FILE.n c 1 3",
];

/// The content of a folder: names, contents, modes, owners, times.
fn snapshot(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let mut all: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let of = entry.metadata().unwrap();
        let content = fs::read(entry.path()).ok();
        let facts = (of.mode(), of.uid(), of.nlink(), of.mtime(), of.mtime_nsec());
        all.push(format!("{:?} {facts:?} {content:?}", entry.file_name()));
    }
    all.sort();
    all
}

// spec: TE-39, TE-48
#[tokio::test]
async fn sandbox_blocks_files_without_a_grant() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let (outer, inner) = (fixture.outer.path().join("outside"), fixture.outer.path().join("ws"));
    fs::create_dir(&outer).unwrap();
    fs::write(outer.join("f"), "as it was").unwrap();
    let (outside, inside) = (snapshot(&outer), snapshot(&inner));
    for change in CHANGES {
        // Without mounts the mode is among what a command that may write can still change, where its user could.
        let only_mode =
            sandbox::gaps().is_some() && (change.starts_with("chmod") || change.starts_with("touch"));
        let command = change.replace("FILE", outer.join("f").to_str().unwrap());
        if !only_mode {
            let text = fixture.say("bash", &command).await;
            assert_eq!(snapshot(&outer), outside, "{command}: {text}");
        }
        for file in [outer.join("f"), inner.join("a.txt")] {
            let command = change.replace("FILE", file.to_str().unwrap());
            let text = fixture.say("bash_readonly", &command).await;
            assert_eq!(snapshot(&outer), outside, "{command}: {text}");
        }
    }
    // What a change inside made of the folder would show as well: the first shell may write there.
    let _ = fs::remove_file(inner.join("ws-link"));
    assert_eq!(snapshot(&inner), inside);
    for command in ["cat ../secret.txt", "cat /etc/shadow", "ls ..", "cat /proc/$PPID/environ"] {
        for tool in ["bash", "bash_readonly"] {
            let text = fixture.say(tool, command).await;
            assert!(text.contains("ermission denied") && !text.contains("treasure"), "{command}: {text}");
        }
    }
    // A control: the programs themselves do run.
    assert_eq!(
        fixture.say("bash_readonly", "cat a.txt; echo x > $TMPDIR/f && cat $TMPDIR/f").await,
        "Success 0: inside\nx\n"
    );
}

// spec: TE-39, TE-48
#[tokio::test]
async fn the_network_is_reached_only_where_it_was_granted() {
    if !can_be_held() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let text = fixture(|_| ()).say("bash_readonly", &connect).await;
    assert!(!text.contains("connected") && text.contains("Operation not permitted"), "{text}");
    assert!(listener.accept().is_err(), "nobody came");
    let granted = fixture(|options| options.sandbox.network = Network::Granted);
    assert_eq!(granted.say("bash_readonly", &connect).await, "Success 0: connected\n");
    assert!(listener.accept().is_ok());
}

// spec: TE-39
#[tokio::test]
async fn a_granted_network_is_no_way_to_services_of_this_machine() {
    if !can_be_held() {
        return;
    }
    let connect = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) or die \"socket: $!\"; \
                   connect(S, sockaddr_un(\"service\")) or die \"connect: $!\"; print \"connected\"";
    // A pair of datagram sockets could be connected elsewhere, a pair of streams cannot.
    let pair = |kind: &str| {
        format!(
            "perl -e 'use Socket; print socketpair(A, B, AF_UNIX, {kind}, 0) ? \"made\" : \"refused: $!\"'"
        )
    };
    for (network, unix_sockets) in [
        (Network::Denied, UnixSockets::Denied),
        (Network::Granted, UnixSockets::Denied),
        (Network::Denied, UnixSockets::Granted),
        (Network::Granted, UnixSockets::Granted),
    ] {
        let fixture = fixture(|options| {
            (options.sandbox.network, options.sandbox.unix_sockets) = (network, unix_sockets);
        });
        let service = UnixListener::bind(fixture.outer.path().join("ws/service")).unwrap();
        service.set_nonblocking(true).unwrap();
        let granted = unix_sockets == UnixSockets::Granted;
        let text = fixture.say("bash", &format!("perl -e '{connect}'")).await;
        assert_eq!(text.contains("connected"), granted, "{network:?}, {unix_sockets:?}: {text}");
        assert_eq!(service.accept().is_ok(), granted, "{network:?}, {unix_sockets:?}");
        assert!(granted || text.contains("socket: Operation not permitted"), "{text}");
        let streams = fixture.say("bash", &pair("SOCK_STREAM")).await;
        assert!(streams.contains("made"), "{streams}");
        let datagrams = fixture.say("bash", &pair("SOCK_DGRAM")).await;
        assert_eq!(datagrams.contains("made"), granted, "{unix_sockets:?}: {datagrams}");
        let internet = fixture
            .say("bash", "perl -e 'use Socket; print socket(S, AF_INET, SOCK_STREAM, 0) ? 1 : 0'")
            .await;
        assert_eq!(internet.ends_with(": 1"), network == Network::Granted, "{internet}");
        // AF_VSOCK leads to the host of a virtual machine.
        let host =
            fixture.say("bash", "perl -e 'print socket(S, 40, 1, 0) ? \"made\" : \"refused: $!\"'").await;
        assert!(host.contains("refused: Operation not permitted"), "{host}");
    }
    let granted = fixture(|options| options.sandbox.network = Network::Granted);
    let found = granted.say("bash", "getent ahosts localhost").await;
    assert!(found.starts_with("Success 0") && found.contains("localhost"), "names are looked up: {found}");
}

/// Ways to change a file's attributes that are newer than many lists, by their numbers, and with arguments with which the
/// kernel itself would not answer EPERM.
// spec: TE-39
#[tokio::test]
async fn new_system_calls_are_no_way_around_the_old_ones() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    for (call, expected) in [
        // setxattrat, removexattrat, open_tree_attr, file_setattr, mount_setattr, fsopen
        (463, "Operation not permitted"),
        (466, "Operation not permitted"),
        (467, "Operation not permitted"),
        (469, "Operation not permitted"),
        (442, "Operation not permitted"),
        (430, "Operation not permitted"),
        // clone3
        (435, "Function not implemented"),
    ] {
        for tool in ["bash", "bash_readonly"] {
            let text =
                fixture.say(tool, &format!("perl -e 'syscall({call}, -1, 0, 0, 0, 0); print $!'")).await;
            assert!(text.contains(expected), "{call}: {text}");
        }
    }
    // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR of a file that is open for reading.
    for request in ["0x40086602", "0x401c5820"] {
        let script =
            format!("open(F, \"<\", \"a.txt\"); my $f = \"\\0\" x 64; ioctl(F, {request}, $f) or print $!");
        let text = fixture.say("bash_readonly", &format!("perl -e '{script}'")).await;
        assert!(text.contains("Operation not permitted"), "{request}: {text}");
    }
    let threads =
        fixture.say("bash", "perl -e 'exit(fork() ? (wait() > 0 ? 0 : 1) : 0)' && echo forked").await;
    assert_eq!(threads, "Success 0: forked\n");
}

/// A System V segment of ours, which another process of the same user could attach by its number.
struct Segment(String);

impl Segment {
    fn new() -> Self {
        let made = std::process::Command::new("ipcmk").args(["-M", "4096"]).output().unwrap();
        let said = String::from_utf8(made.stdout).unwrap();
        Self(said.rsplit(' ').next().unwrap().trim().to_owned())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ipcrm").args(["-m", &self.0]).status();
    }
}

// spec: TE-39
#[tokio::test]
async fn a_command_reaches_no_shared_memory_by_its_number_and_makes_none() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let segment = Segment::new();
    let attach = format!("perl -e 'shmread({}, my $x, 0, 4) or print $!'", segment.0);
    let outside = std::process::Command::new("sh").args(["-c", &attach]).output().unwrap();
    assert_eq!(String::from_utf8(outside.stdout).unwrap(), "", "it can be read from outside");
    for command in [
        attach.as_str(),
        "perl -e 'defined shmget(0, 64, 0600|01000) or print $!'",
        "perl -e 'defined semget(0, 1, 0600|01000) or print $!'",
        "perl -e 'defined msgget(0, 0600|01000) or print $!'",
    ] {
        let text = fixture.say("bash", command).await;
        assert!(text.contains("Operation not permitted"), "{command}: {text}");
    }
}

// spec: TE-39
#[tokio::test]
async fn sandbox_command_cannot_change_the_scheduling_of_others() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let us = std::process::id();
    for command in [
        format!("renice -n 19 -p {us}"),
        format!("chrt --idle -p 0 {us}"),
        format!("taskset -p 1 {us}"),
        format!("ionice -c 3 -p {us}"),
        "perl -e 'setpriority(2, 0, 19) or print $!'".to_owned(),
    ] {
        let text = fixture.say("bash", &command).await;
        assert!(text.contains("Operation not permitted"), "{command}: {text}");
    }
    for command in ["nice -n 5 echo done", "ionice -c 3 echo done", "taskset 1 echo done"] {
        assert_eq!(fixture.say("bash", command).await, "Success 0: done\n", "{command}");
    }
}

// spec: TE-39
#[tokio::test]
async fn a_command_has_no_namespaces_of_its_own() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    for option in ["--user", "--mount", "--net", "--pid --fork", "--ipc", "--uts", "--cgroup", "--time"] {
        let text = fixture.say("bash", &format!("unshare {option} true")).await;
        assert!(text.contains("Operation not permitted"), "{option}: {text}");
    }
    // clone(CLONE_NEWUSER | SIGCHLD)
    let cloned =
        fixture.say("bash", "perl -e 'syscall(56, 0x10000011, 0, 0, 0, 0) == -1 and print $!'").await;
    if cfg!(target_arch = "x86_64") {
        assert!(cloned.contains("Operation not permitted"), "{cloned}");
    }
}

// spec: TE-39
#[tokio::test]
async fn a_command_cannot_signal_others_raise_its_limits_or_see_our_environment() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|options| {
        options.sandbox.env.insert("GIVEN".to_owned(), "yes".to_owned());
    });
    let us = std::process::id();
    for command in [format!("kill -0 {us}"), "ulimit -f unlimited".to_owned(), "ulimit -c 100".to_owned()] {
        let text = fixture.say("bash", &command).await;
        assert!(text.contains("not permitted") || text.contains("cannot modify"), "{command}: {text}");
    }
    let names = fixture.say("bash", "env | cut -d= -f1 | sort | tr '\\n' ' '; echo $GIVEN").await;
    assert!(names.contains("HOME") && names.ends_with("yes\n"), "{names}");
    assert!(!names.contains("CARGO"), "the environment of this test is not passed on: {names}");
}

// spec: TE-40
#[tokio::test]
async fn denied_words_are_refused_before_anything_runs() {
    let fixture = fixture(|options| options.deny.push("git push".to_owned()));
    for (command, word) in
        [("git push --force", "git push"), ("sudo rm -rf / --no-preserve-root", "rm -rf /")]
    {
        let text = fixture.call("bash", command).await.text();
        if can_be_held() {
            assert_eq!(
                text,
                format!(
                    "Error: Commands with '{word}' are not run here. Use another command, or ask the person to run it."
                )
            );
        }
        assert!(text.starts_with("Error: "));
    }
}

// spec: TE-37, TE-39
#[tokio::test]
async fn a_shell_needs_a_permission() {
    let fixture = fixture(|_| ());
    let engine = fixture.engine.clone().with_options(EngineOptions::default());
    let call = ToolCall::new("c", "bash", json!({ "command": "echo hi" }));
    let text = run_call(&engine, &call, &run()).await.text();
    expect!["Error: Tool 'bash' needs the permission shell_exec, which was not granted. It was not run. Go on without it, or ask the person to grant it."].assert_eq(&text);
}

// spec: TE-39
#[tokio::test]
async fn without_the_kernel_s_help_commands_run_only_where_that_is_known() {
    let fixture = fixture(|options| options.sandbox.isolation = Isolation::WithoutKernel);
    assert_eq!(fixture.say("bash", "cat a.txt").await, "Success 0: inside\n");
}

#[tokio::test]
async fn sandbox_leaves_no_files_or_processes_after_a_call() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|_| ());
    let folder = fixture.call("bash", "echo x > $TMPDIR/f; echo -n $TMPDIR").await.text();
    assert!(folder.contains("archon-call-") && !Path::new(&folder).exists(), "{folder}");
    let group = fixture.call("bash", "cat /proc/self/cgroup").await.text();
    for line in group.lines().filter(|line| line.contains("archon-")) {
        let path = line.rsplit(':').next().unwrap().trim_start_matches('/');
        assert!(!Path::new("/sys/fs/cgroup/pids").join(path).exists(), "{line}");
    }
}
