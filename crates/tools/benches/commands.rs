//! Measures the time that a command takes in addition to its own work: `cargo bench -p archon-tools
//! --features bash --bench commands`. Each command is `true`, in a workspace with many files; the time is
//! that of two shells, the mounts, and the search for control files before and after. The load of the
//! machine is printed with the results.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_testkit::{SeededIds, VirtualClock};
use archon_tools::{
    Ask, EngineOptions, ToolEngine, ToolRegistry, Workspace,
    builtin::{Bash, BashOptions},
    sandbox,
};
use archon_types::{CallId, CommandId, Context, Executed, Prepared, ToolCall, Toolbox};
use serde_json::json;

const FILES: [usize; 3] = [20, 5_000, 50_000];

const CALLS: usize = 41;

fn main() {
    if let Some(missing) = sandbox::missing() {
        println!("SKIP: {missing}");
        return;
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    println!("load: {}", load.trim());
    println!("mounts: {}", sandbox::gaps().unwrap_or_else(|| "yes".to_owned()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for files in FILES {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path(), files);
        let (least, median) = runtime.block_on(measure(folder.path()));
        println!("{files} files: median {median:.1?}, least {least:.1?} of {CALLS}");
    }
}

/// A hundred files to a folder.
fn fill(root: &Path, files: usize) {
    for n in 0..files {
        let folder = root.join(format!("src{}", n / 100));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{n}.rs")), "").unwrap();
    }
}

async fn measure(root: &Path) -> (Duration, Duration) {
    let registry = ToolRegistry::new();
    let bash = Bash::new(Workspace::new(root).unwrap(), BashOptions::default());
    registry.register(bash).unwrap();
    // A virtual clock stands still, so nothing times out.
    let granted = EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired);
    let engine = ToolEngine::new(registry).with_options(granted);
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let clock = Arc::new(VirtualClock::new());
        let run = Context::new("run".into(), "session".into(), clock, Arc::new(SeededIds::new(1)));
        let call = ToolCall::new("c", "bash", json!({ "command": "true" }));
        let begun = Instant::now();
        let Prepared::Ready(ready) = engine.prepare(CallId::new(CommandId(1), 0), &call, &run).await else {
            panic!("refused")
        };
        let Executed::Done(result) = engine.execute(ready, &run).await else { panic!("it did not end") };
        times.push(begun.elapsed());
        assert!(!result.is_error(), "{}", result.text());
    }
    times.sort();
    (times[0], times[CALLS / 2])
}
