//! Processes of tools: what they see of our environment, and that they do not outlive us. Both need another process
//! whose tools they are, which is this program once more.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use archon_tools::{
    Ask, EngineOptions, Workspace,
    builtin::{Bash, BashOptions, GitStatus},
    process::spawn_group,
    sandbox::{self, SandboxOptions},
};
use archon_types::{Json, Tool, ToolCall, ToolError, ToolResult};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::{
    fixture::{engine, run_call, spec, tool},
    sandbox::{Watch, processes_with, run},
};

/// Starts one of the ignored tests below in a process of its own.
fn other(test: &str, root: &Path) -> Command {
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", &format!("processes::{test}"), "--ignored", "--nocapture"]);
    other.env("OTHER_ROOT", root).env("TMPDIR", root).stdout(Stdio::piped());
    other
}

fn root() -> PathBuf {
    std::env::var_os("OTHER_ROOT").expect("started by another test").into()
}

fn granted() -> EngineOptions {
    EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired)
}

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn other_with_a_secret() {
    assert!(std::env::var_os("SOME_API_KEY").is_some());
    let workspace = Workspace::new(root()).unwrap();
    let environment = tool(spec("spawned"), |context| async move {
        let mut command = Command::new("env");
        command.env("ADDED", "on purpose");
        let mut child = spawn_group(&command, &context).await?;
        let mut said = String::new();
        let read = child.stdout.take().unwrap().read_to_string(&mut said).await;
        read.map_err(|e| ToolError::Failed(e.to_string()))?;
        Ok(ToolResult::success(said))
    });
    // Or the system's git would go first.
    let mut own_git = SandboxOptions::default();
    own_git.env.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
    let tools: [Arc<dyn Tool>; 4] = [
        environment,
        Arc::new(Bash::new(workspace.clone(), BashOptions::default())),
        Arc::new(Bash::read_only(workspace.clone(), BashOptions::default())),
        // The git of these tests says what its environment is.
        Arc::new(GitStatus::new(workspace, own_git)),
    ];
    let engine = engine(tools).with_options(granted());
    for (name, arguments) in [
        ("spawned", json!({})),
        ("bash", json!({ "command": "env" })),
        ("bash_readonly", json!({ "command": "env" })),
        ("git_status", json!({})),
    ] {
        let held = name != "spawned";
        if held && sandbox::missing().is_some() {
            continue;
        }
        let said = run_call(&engine, &ToolCall::new("c", name, arguments), &run()).await.text();
        println!("\n> {name}\n{said}\n> end");
    }
}

// spec: TE-39, TE-48
#[test]
fn no_process_of_a_tool_sees_a_secret_of_ours() {
    let folder = TempDir::new().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let git = bin.join("git");
    fs::write(&git, "#!/bin/sh\nexec env\n").unwrap();
    let mut executable = fs::metadata(&git).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut executable, 0o755);
    fs::set_permissions(&git, executable).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let done = other("other_with_a_secret", folder.path())
        .env("PATH", path)
        .env("SOME_API_KEY", "the treasure")
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}");
    let mut names = Vec::new();
    for part in said.split("\n> ").skip(1).filter(|part| !part.starts_with("end")) {
        let (name, environment) = part.split_once('\n').unwrap();
        names.push(name);
        assert!(
            environment.contains("PATH=") && environment.contains("ARCHON_RUN=run"),
            "{name}: {environment}"
        );
        assert!(
            !environment.contains("SECRET") && !environment.contains("the treasure"),
            "{name}: {environment}"
        );
        assert_eq!(environment.contains("ADDED=on purpose"), name == "spawned", "{name}: {environment}");
    }
    let all: &[&str] = &["spawned", "bash", "bash_readonly", "git_status"];
    assert_eq!(names, if sandbox::missing().is_none() { all } else { &all[..1] });
}

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn other_that_dies() {
    let workspace = Workspace::new(root()).unwrap();
    let bash: Arc<dyn Tool> = Arc::new(Bash::new(workspace, BashOptions::default()));
    let engine = engine([bash]).with_options(granted());
    let mut context = run();
    context.sink = Arc::new(Watch(Box::new(|_| println!("\n> begun"))));
    let command: Json =
        json!({ "command": "trap '' TERM; env -i sleep 76.5 & (sleep 76.5 &); echo begun; wait" });
    run_call(&engine, &ToolCall::new("c", "bash", command), &context).await;
}

/// Folders of cgroups that the process of this number made.
fn cgroups_of(process: u32) -> Vec<PathBuf> {
    let ours = fs::read_to_string("/proc/self/cgroup").unwrap();
    let paths: Vec<_> = ours.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    let trees = ["", "pids", "memory"].map(|tree| Path::new("/sys/fs/cgroup").join(tree));
    let parents =
        trees.iter().flat_map(|tree| paths.iter().map(|path| tree.join(path.trim_start_matches('/'))));
    let entries = parents.flat_map(|parent| fs::read_dir(parent).into_iter().flatten().flatten());
    let part = format!("-{process}-");
    entries
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.starts_with("archon-") && name.contains(&part))
        })
        .map(|entry| entry.path())
        .collect()
}

/// The command ignores what asks it to end and has no environment; who takes up the run needs no proof of whose it is.
// spec: TE-39, TE-58
#[test]
fn when_we_are_killed_a_command_ends_and_the_next_process_of_ours_takes_its_cgroup_away() {
    if sandbox::missing().is_some() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut dying = other("other_that_dies", folder.path()).spawn().unwrap();
    let mut said = BufReader::new(dying.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "> begun"), "it did not start");
    assert!(processes_with("sleep 76.5") >= 2);
    let made = cgroups_of(dying.id());
    dying.kill().unwrap();
    dying.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while processes_with("sleep 76.5") > 0 {
        assert!(Instant::now() < end, "the command goes on");
        std::thread::yield_now();
    }
    if rustix::process::geteuid().is_root() {
        assert!(!made.is_empty() && cgroups_of(dying.id()).len() == made.len(), "nobody took them away");
    }
    let next = other("other_with_a_secret", folder.path()).env("SOME_API_KEY", "x").output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stdout));
    while !cgroups_of(dying.id()).is_empty() {
        assert!(Instant::now() < end, "{:?}", cgroups_of(dying.id()));
        std::thread::yield_now();
    }
}
