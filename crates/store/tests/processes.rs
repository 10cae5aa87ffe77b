//! What the journals on disk promise across processes: one writer, nothing lost with the process, and
//! nothing lost where a directory or a disk refuses.
//!
//! The other processes are this program again, as its ignored test `child`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]
#![allow(clippy::print_stdout, reason = "the other processes say how far they are")]

mod sample;

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use archon_store::{JsonlJournal, SqliteJournal};
use archon_types::{Durability, Journal, JournalError, OpenMode};
use sample::{block_on, log, note, random, records, run, started, write};

const KINDS: [&str; 2] = ["jsonl", "sqlite"];

fn journal(kind: &str, dir: &Path) -> Result<Arc<dyn Journal>, JournalError> {
    Ok(match kind {
        "jsonl" => Arc::new(JsonlJournal::open(dir)?),
        _ => Arc::new(SqliteJournal::open(dir.join("runs.db"))?),
    })
}

/// A long log, of which no two records are alike.
fn long_log() -> Vec<Arc<archon_types::Record>> {
    records(std::iter::once(started("r1")).chain((1..4000).map(|n| note(&format!("{n} ").repeat(n % 50)))))
}

/// Another process, and the lines between it and us.
struct Other {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(mut command: Command, kind: &str, dir: &Path, task: &str) -> Self {
        let mut child = command
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("CHILD_TASK", task)
            .env("CHILD_JOURNAL", kind)
            .env("CHILD_DIR", dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from).lines() }
    }

    /// The next line that the other process says, not the test harness in it.
    fn hear(&mut self) -> String {
        let mine = |line: std::io::Result<String>| line.unwrap().strip_prefix("> ").map(str::to_owned);
        self.from.by_ref().find_map(mine).unwrap_or_else(|| "ended".to_owned())
    }

    fn tell(&mut self) {
        writeln!(self.to, "go").unwrap();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

fn say(line: &str) {
    println!("\n> {line}");
}

fn wait_for_word() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
#[ignore = "the other processes of the tests here"]
fn child() {
    let of =
        |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name}: started by the other tests"));
    let journal = || journal(&of("CHILD_JOURNAL"), Path::new(&of("CHILD_DIR")));
    match of("CHILD_TASK").as_str() {
        "open" => {
            let journal = journal().unwrap();
            say("ready");
            wait_for_word();
            let open = block_on(journal.open(&run("r1"), OpenMode::Existing));
            match &open {
                Ok(_) => say("won"),
                Err(JournalError::Locked { .. }) => say("locked"),
                Err(e) => say(&e.to_string()),
            }
            wait_for_word();
        }
        "create" => {
            say("ready");
            wait_for_word();
            say(&journal().map_or_else(|e| e.to_string(), |_| "made".to_owned()));
        }
        "append" => block_on(async {
            let mut open = journal().unwrap().open(&run("r1"), OpenMode::Create).await.unwrap();
            for (n, record) in long_log().iter().enumerate() {
                let durability = if n % 7 == 6 { Durability::Synced } else { Durability::Buffered };
                match open.writer.append(std::slice::from_ref(record), durability).await {
                    Ok(()) => say(&n.to_string()),
                    Err(e) => return say(&e.to_string()),
                }
            }
        }),
        // As a user whom permissions bind.
        "read only" => match journal() {
            Err(e) => say(&e.to_string()),
            Ok(journal) => {
                say(&block_on(journal.open(&run("r1"), OpenMode::Existing)).unwrap_err().to_string());
                assert_eq!(block_on(journal.read(&run("r1"))).unwrap(), log("r1"));
            }
        },
        other => panic!("{other}?"),
    }
}

#[test]
fn of_processes_that_race_for_a_run_exactly_one_gets_it_and_its_death_frees_it() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let ours = journal(kind, dir.path()).unwrap();
        write(&*ours, "r1", &log("r1"));
        for _ in 0..5 {
            let mut others: Vec<_> =
                (0..4).map(|_| Other::start(this_program(), kind, dir.path(), "open")).collect();
            others.iter_mut().for_each(|o| assert_eq!(o.hear(), "ready"));
            others.iter_mut().for_each(Other::tell);
            let mut said: Vec<_> = others.iter_mut().map(Other::hear).collect();
            said.sort();
            assert_eq!(said, ["locked", "locked", "locked", "won"], "{kind}");
            let e = block_on(ours.open(&run("r1"), OpenMode::Existing)).unwrap_err();
            assert!(matches!(e, JournalError::Locked { .. }), "{kind}: {e}");
            others.into_iter().for_each(Other::kill);
            drop(block_on(ours.open(&run("r1"), OpenMode::Existing)).unwrap());
        }
    }
}

#[test]
fn of_processes_that_make_one_store_at_once_all_succeed() {
    for round in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let mut others: Vec<_> =
            (0..4).map(|_| Other::start(this_program(), "sqlite", dir.path(), "create")).collect();
        others.iter_mut().for_each(|o| assert_eq!(o.hear(), "ready"));
        others.iter_mut().for_each(Other::tell);
        for other in &mut others {
            assert_eq!(other.hear(), "made", "round {round}");
        }
        others.into_iter().for_each(Other::kill);
    }
}

#[test]
fn a_killed_process_takes_no_record_with_it_that_it_had_appended() {
    for kind in KINDS {
        let mut state = 3;
        for _ in 0..15 {
            let dir = tempfile::tempdir().unwrap();
            let mut other = Other::start(this_program(), kind, dir.path(), "append");
            let kill_at = random(&mut state) % 200;
            let mut acknowledged = 0;
            while acknowledged <= kill_at {
                acknowledged = other.hear().parse::<u64>().unwrap() + 1;
            }
            other.kill();
            let ours = journal(kind, dir.path()).unwrap();
            let open = block_on(ours.open(&run("r1"), OpenMode::Existing)).unwrap();
            assert!(open.records.len() as u64 >= acknowledged, "{kind}: of {acknowledged}");
            assert_eq!(open.records, long_log()[..open.records.len()], "{kind}");
        }
    }
}

/// The shell's limit on the size of files stands for the full disk, which it is to a writer.
#[test]
fn full_disk_error_is_reported_and_no_record_is_lost() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 300; exec \"$0\" \"$@\""]);
        command.arg(std::env::current_exe().unwrap());
        let mut other = Other::start(command, kind, dir.path(), "append");
        let mut acknowledged = 0;
        let error = loop {
            let said = other.hear();
            match said.parse::<usize>() {
                Ok(n) => acknowledged = n + 1,
                Err(_) => break said,
            }
        };
        assert!(error.starts_with("cannot write"), "{kind}: {error}");
        other.child.wait().unwrap();
        let ours = journal(kind, dir.path()).unwrap();
        let mut open = block_on(ours.open(&run("r1"), OpenMode::Existing)).unwrap();
        assert!(acknowledged > 10, "{kind}: {acknowledged} until {error}");
        assert_eq!(open.records, long_log()[..acknowledged], "{kind}: {error}");
        block_on(open.writer.append(&long_log()[acknowledged..], Durability::Synced)).unwrap();
        assert_eq!(block_on(ours.read(&run("r1"))).unwrap(), long_log(), "{kind}");
    }
}

#[test]
fn a_read_only_directory_is_an_error_that_names_it_and_nothing_is_lost() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        write(&*journal(kind, dir.path()).unwrap(), "r1", &log("r1"));
        let mut command = this_program();
        let elsewhere = tempfile::tempdir().unwrap();
        if !bound_by_permissions() {
            // The other process is nobody, whom they bind, and who may not look into the folder of this program.
            let copy = elsewhere.path().join("program");
            fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
            for path in [dir.path(), elsewhere.path()] {
                each(path, &|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
            }
            command = Command::new(copy);
            command.current_dir(elsewhere.path()).uid(NOBODY).gid(NOBODY);
        }
        set_writable(dir.path(), false);
        let mut other = Other::start(command, kind, dir.path(), "read only");
        let said = other.hear();
        assert!(other.child.wait().unwrap().success(), "{kind}: {said}");
        set_writable(dir.path(), true);
        let place = dir.path().display().to_string();
        assert!(said.starts_with("cannot ") && said.contains(&place), "{kind}: {said}");
        assert_eq!(block_on(journal(kind, dir.path()).unwrap().read(&run("r1"))).unwrap(), log("r1"));
    }
}

const NOBODY: u32 = 65534;

/// Whether permissions bind us, which they do not if we are root.
fn bound_by_permissions() -> bool {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
    fs::write(dir.path().join("probe"), "").is_err()
}

/// Calls `change` with everything below a directory, and with itself.
fn each(path: &Path, change: &dyn Fn(&Path)) {
    change(path);
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| each(&entry.unwrap().path(), change));
    }
}

fn set_writable(path: &Path, writable: bool) {
    let mode = if writable { 0o700 } else { 0o500 };
    each(path, &|path| {
        if path.is_dir() {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    });
}
