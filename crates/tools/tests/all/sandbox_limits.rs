//! Limits of commands: processes, memory, disks, output, processor time.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_tools::{
    Ask, EngineOptions, Workspace,
    builtin::{Bash, BashOptions},
};
use archon_types::{Tool, ToolCall};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{engine, run_call},
    sandbox::{can_be_held, fixture, processes_with, run},
    users::{User, as_user},
};

// spec: TE-58
#[tokio::test]
async fn a_fork_bomb_has_no_more_processes_than_it_may() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|options| {
        options.sandbox.max_processes = 40;
        // The shell waits long between its tries to fork.
        options.timeout = Duration::from_secs(4);
    });
    // Another number for another user, so that two runs do not count each other's.
    let sleep = format!("sleep 74.{}", rustix::process::geteuid().as_raw());
    // It stops by itself after 500 forks, should nothing hold it.
    let bomb = format!("for i in $(seq 500); do {sleep} & done 2>/dev/null; jobs -r | wc -l");
    let looked_for = sleep.clone();
    let most = Arc::new(Mutex::new(0));
    let (stop, counted) = (Arc::new(std::sync::atomic::AtomicBool::new(false)), most.clone());
    let stopped = stop.clone();
    let counting = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::SeqCst) {
            let now = processes_with(&looked_for);
            let mut most = counted.lock().unwrap();
            *most = now.max(*most);
        }
    });
    let result = fixture.call("bash", &bomb).await;
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    counting.join().unwrap();
    // The shells whose command line holds the loop count as well.
    let most = *most.lock().unwrap();
    assert!((20..=50).contains(&most), "{most} at a time: {}", result.text());
    assert_eq!(processes_with(&sleep), 0);
}

/// Root is counted by a cgroup, everybody else by a limit of theirs: the test above again, as nobody.
// spec: TE-58
#[test]
fn a_fork_bomb_of_an_ordinary_user_is_held_by_a_limit_of_theirs() {
    if can_be_held() {
        as_user(User::Ordinary, &["sandbox_limits::a_fork_bomb_has_no_more_processes_than_it_may"]);
    }
}

/// Returns whether a cgroup limits memory on this system: then the address space of a command is not
/// limited.
async fn memory_is_counted() -> bool {
    let version_1 = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    let root = rustix::process::geteuid().is_root();
    root && (version_1 || fixture(|_| ()).say("bash", "ulimit -v").await.contains("unlimited"))
}

/// Takes memory that is no process's own: mapped and shared, and in a file without a name.
#[cfg(target_arch = "x86_64")]
const SHARED: [&str; 2] = [
    // mmap, then madvise with MADV_POPULATE_WRITE.
    "$at = syscall(9, 0, SIZE, 3, 0x21, -1, 0); $r = syscall(28, $at, SIZE, 23); print \"took \", \"all\" if $r == 0;",
    // memfd_create
    "open(F, q(>&=), syscall(319, my $name = q(x), 0)) or die $!; \
     print F q(x) x (1 << 20) for 1..(SIZE >> 20); print \"took \", \"all\";",
];

// spec: TE-58
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn memory_that_processes_share_is_limited_too() {
    if !can_be_held() || !memory_is_counted().await {
        println!("SKIP: no cgroup can be made here");
        return;
    }
    for script in SHARED {
        for (size, fits) in [("(16 << 20)", true), ("(300 << 20)", false)] {
            let fixture = fixture(|options| options.sandbox.max_memory = 100 << 20);
            let result =
                fixture.call("bash", &format!("perl -e '{}'; echo end", script.replace("SIZE", size))).await;
            let text = result.text();
            assert!(text.contains("end\n"), "{script}: {text}");
            assert_eq!(text.contains("took all"), fits, "{script}: {text}");
            let told = "[a program was ended: the command used more than its 104857600 bytes of memory]";
            assert_eq!(text.ends_with(told), !fits, "{script}: {text}");
            assert_eq!(result.metadata.contains_key("out_of_memory"), !fits);
        }
    }
}

/// Without a cgroup what a process can address is limited, which is more than it may have.
// spec: TE-58
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn addresses_are_limited_where_memory_is_not_counted() {
    if !can_be_held() || memory_is_counted().await {
        println!("SKIP: memory is counted here");
        return;
    }
    let fixture = fixture(|options| options.sandbox.max_memory = 100 << 20);
    // 8 GiB is what programs set aside, 16 GiB is too much; neither is touched (MAP_NORESERVE).
    for (size, fits) in [(8_u64 << 30, true), (16 << 30, false)] {
        let script =
            format!("$! = 0; $at = syscall(9, 0, {size}, 3, 0x4021, -1, 0); print $at == -1 ? $! : 'mapped'");
        let text = fixture.say("bash", &format!("perl -e '{script}'")).await;
        assert_eq!(text.contains("mapped"), fits, "{size}: {text}");
        assert_eq!(text.contains("Cannot allocate memory"), !fits, "{size}: {text}");
    }
}

// spec: TE-58
#[cfg(target_arch = "x86_64")]
#[test]
fn addresses_of_an_ordinary_user_are_limited() {
    if can_be_held() {
        as_user(User::Ordinary, &["sandbox_limits::addresses_are_limited_where_memory_is_not_counted"]);
    }
}

/// Each of them has less than it may have, all of them have more.
// spec: TE-58
#[tokio::test]
async fn the_memory_of_all_processes_is_limited() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|options| options.sandbox.max_memory = 200 << 20);
    let told = "[a program was ended: the command used more than its 209715200 bytes of memory]";
    // Once as processes that do not let others look at them: prctl(PR_SET_DUMPABLE, 0) of x86-64.
    for hidden in ["", "syscall(157, 4, 0, 0, 0, 0);"] {
        let taken = format!("perl -e '{hidden} $x = \"x\" x (60 << 20); sleep 60'");
        let command = format!("for i in 1 2 3 4 5 6; do {taken} & done; wait -n; echo end");
        let result = fixture.call("bash", &command).await;
        assert!(result.text().ends_with(told), "{}", result.text());
    }
    // What is shared counts once.
    let command = "perl -e '$x = \"x\" x (60 << 20); fork for 1..3; sleep 1; print \"end\\n\"'";
    let result = fixture.call("bash", command).await;
    assert!(result.text().ends_with("end\n") && !result.text().contains("memory"), "{}", result.text());
}

// spec: TE-58
#[test]
fn the_memory_of_all_processes_of_an_ordinary_user_is_limited() {
    if can_be_held() {
        as_user(User::Ordinary, &["sandbox_limits::the_memory_of_all_processes_is_limited"]);
    }
}

/// A small disk.
struct Disk(TempDir);

impl Disk {
    fn new(bytes: u64) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(folder.path());
        mount.output().is_ok_and(|made| made.status.success()).then_some(Self(folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

// spec: TE-58
#[tokio::test]
async fn a_command_that_fills_a_disk_is_stopped_before_it_is_full() {
    let Some(disk) = Disk::new(64 << 20).filter(|_| can_be_held()) else {
        println!("SKIP: no small disk can be made here");
        return;
    };
    let bash: Arc<dyn Tool> =
        Arc::new(Bash::new(Workspace::new(disk.0.path()).unwrap(), BashOptions::default()));
    let engine = engine([bash])
        .with_options(EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired));
    let command = "for i in $(seq 8); do head -c 5M /dev/zero > f$i; done; sleep 5; echo end";
    let call = ToolCall::new("c", "bash", json!({ "command": command }));
    let text = run_call(&engine, &call, &run()).await.text();
    let stopped = "[stopped: fewer than 33554432 bytes are free on a disk that it writes to; remove what it wrote before it \
                   runs again]";
    assert_eq!(text, stopped);
}

// spec: TE-58
#[tokio::test]
async fn a_flood_a_huge_file_and_a_spin_end_at_their_limits() {
    if !can_be_held() {
        return;
    }
    let fixture = fixture(|options| {
        options.sandbox.max_flood = 4 << 20;
        options.sandbox.max_file_size = 1 << 20;
        options.sandbox.max_cpu_time = Duration::from_secs(1);
        options.sandbox.max_memory = 64 << 20;
    });
    let flood = fixture.call("bash", "yes").await;
    assert!(flood.text().ends_with("[stopped: it wrote more than 4194304 bytes]"), "{}", flood.text().len());
    assert_eq!(processes_with("yes "), 0);
    let writer = fixture.say("bash", "head -c 10000000000 /dev/zero > big.bin").await;
    assert!(
        writer.contains("153: a file grew beyond the limit") || writer.contains("File too large"),
        "{writer}"
    );
    let written = fs::metadata(fixture.outer.path().join("ws/big.bin")).unwrap().len();
    assert!(written <= 1 << 20, "{written}");
    let spin = fixture.say("bash", "ulimit -t unlimited; while :; do :; done").await;
    assert!(spin.contains("Success 137") || spin.contains("Success 152"), "{spin}");
    let memory = fixture.say("bash", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}").await;
    assert!(!memory.contains("200000000"), "{memory}");
}
