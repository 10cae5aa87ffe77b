//! Servers in a sandbox: the kernel limits them to what is granted, and they end with their group.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use archon_process::{ServerProcess, start_ticks};
use archon_tools::{
    Workspace,
    sandbox::{Network, SandboxOptions, ServerSandbox},
};
use archon_types::Clock;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::{
    sandbox::{can_be_held, run},
    users::{User, as_user, has_mounts},
};

/// A folder with `granted/a`, `writable` and `secret`; the sandbox grants the first two.
struct Place(TempDir, SandboxOptions);

impl Place {
    fn new() -> Self {
        let outer = TempDir::new().unwrap();
        for folder in ["granted", "writable", "settings"] {
            fs::create_dir(outer.path().join(folder)).unwrap();
        }
        fs::write(outer.path().join("granted/a"), "inside\n").unwrap();
        fs::write(outer.path().join("secret"), "the treasure\n").unwrap();
        let mut options = SandboxOptions::default();
        options.read.push(outer.path().join("granted"));
        options.write.push(outer.path().join("writable"));
        Self(outer, options)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn sandbox(&self) -> ServerSandbox {
        let workspace = Workspace::new(self.0.path()).unwrap().without(self.at("settings"), "the settings");
        ServerSandbox::new(&workspace, self.1.clone())
    }

    fn start(&self, script: &str) -> ServerProcess {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(self.0.path());
        ServerProcess::spawn_sandboxed(&command, &self.sandbox()).unwrap()
    }

    /// Returns what a script prints, whose errors are printed too.
    async fn output(&self, script: &str) -> String {
        let mut server = self.start(&format!("exec 2>&1; {script}"));
        let (_, output, _) = server.take_pipes();
        let mut text = String::new();
        output.unwrap().read_to_string(&mut text).await.unwrap();
        assert!(server.end(Duration::ZERO, &*clock()).await);
        text
    }

    fn refusal(&self, command: &Command) -> String {
        ServerProcess::spawn_sandboxed(command, &self.sandbox()).unwrap_err().to_string()
    }
}

fn clock() -> std::sync::Arc<dyn Clock> {
    run().clock
}

#[tokio::test]
async fn server_reaches_only_the_files_that_are_granted() {
    if !can_be_held() {
        return;
    }
    let place = Place::new();
    assert_eq!(place.output("cat granted/a").await, "inside\n");
    assert_eq!(place.output("echo new > writable/b && cat writable/b").await, "new\n");
    assert_eq!(place.output("cat secret").await, "cat: secret: Permission denied\n");
    for script in ["echo x > granted/b", "echo x > c", "rm granted/a", "mkdir d", "ls"] {
        let said = place.output(&format!("({script}) || echo refused")).await;
        assert!(said.ends_with("refused\n"), "{script}: {said}");
    }
    assert_eq!(fs::read_to_string(place.at("granted/a")).unwrap(), "inside\n");
    let modes = place.output("(chmod 777 secret) || echo refused").await;
    assert!(modes.ends_with("refused\n") || has_mounts() == Some(false), "{modes}");
    let said = place.output("echo x > $HOME/x && echo x > $TMPDIR/y && ls $HOME && echo $HOME").await;
    let (files, home) = said.trim().rsplit_once('\n').unwrap();
    assert_eq!(files, "x\ny");
    assert!(!Path::new(home).exists(), "{home} is left");
}

#[tokio::test]
async fn server_reaches_the_network_only_if_it_is_granted() {
    if !can_be_held() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let mut place = Place::new();
    let said = place.output(&connect).await;
    assert!(said.contains("socket: Operation not permitted"), "{said}");
    place.1.network = Network::Granted;
    assert_eq!(place.output(&connect).await, "connected\n");
}

#[tokio::test]
async fn children_of_a_server_cannot_leave_its_group_and_end_with_it() {
    if !can_be_held() {
        return;
    }
    let place = Place::new();
    let said = place.output("setsid --wait true || echo refused").await;
    assert!(said.ends_with("refused\n"), "{said}");
    let mut server = place.start("(trap '' TERM HUP; while :; do sleep 1; done) & echo $!; wait");
    let (_, output, _) = server.take_pipes();
    let mut line = String::new();
    BufReader::new(output.unwrap()).read_line(&mut line).await.unwrap();
    let child: u32 = line.trim().parse().unwrap();
    assert!(start_ticks(child).is_some());
    assert!(server.end(Duration::from_millis(50), &*clock()).await);
    let end = Instant::now() + Duration::from_secs(10);
    while start_ticks(child).is_some() {
        assert!(Instant::now() < end, "the child runs");
        std::thread::yield_now();
    }
}

/// Mounts are made in another way for a user who is not root, and not at all without namespaces.
#[test]
fn server_of_an_ordinary_user_is_sandboxed_too() {
    if !can_be_held() {
        return;
    }
    for user in [User::Ordinary, User::WithoutNamespaces] {
        as_user(
            user,
            &[
                "server_sandbox::server_reaches_only_the_files_that_are_granted",
                "server_sandbox::server_reaches_the_network_only_if_it_is_granted",
                "server_sandbox::children_of_a_server_cannot_leave_its_group_and_end_with_it",
            ],
        );
    }
}

#[tokio::test]
async fn program_of_a_server_and_its_python_environment_can_be_read() {
    if !can_be_held() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.at("venv/bin")).unwrap();
    fs::write(place.at("venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    std::os::unix::fs::symlink("/bin/sh", place.at("venv/bin/python")).unwrap();
    fs::write(place.at("tool"), "#!/bin/sh\ncat venv/pyvenv.cfg || echo it ran\n").unwrap();
    fs::set_permissions(place.at("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (program, args, expected) in [
        ("./tool", &[][..], "it ran\n"),
        ("venv/bin/python", &["-c", "cat venv/pyvenv.cfg"][..], "home = /usr/bin\n"),
    ] {
        let mut command = Command::new(program);
        command.args(args).current_dir(place.0.path());
        let mut server = ServerProcess::spawn_sandboxed(&command, &place.sandbox()).unwrap();
        let (_, output, _) = server.take_pipes();
        let mut text = String::new();
        output.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, expected, "{program}");
    }
}

#[tokio::test]
async fn server_whose_grants_cannot_hold_is_refused() {
    if !can_be_held() {
        return;
    }
    let command = Command::new("true");
    let mut place = Place::new();
    place.1.read.push(place.at("nowhere"));
    let refused = place.refusal(&command);
    assert!(refused.ends_with("nowhere' does not exist"), "{refused}");
    for granted in ["", "settings"] {
        let mut place = Place::new();
        place.1.write = vec![place.at(granted)];
        let refused = place.refusal(&command);
        assert!(refused.contains("which no server may reach (the settings)"), "{granted}: {refused}");
    }
}
