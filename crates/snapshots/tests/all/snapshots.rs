//! Snapshots are taken and compared.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use archon_snapshots::{Difference, SnapshotError, SnapshotLimits, Snapshots};
use archon_testkit::cases;

use crate::world::{State, World, states};

#[test]
fn take_of_the_same_files_returns_the_same_id() {
    let world = World::new();
    world.write("a/b", "text");
    let first = world.take();
    assert_eq!(world.take(), first);
    world.write("a/b", "TEXT");
    assert_ne!(world.take(), first);
    world.write("a/b", "text");
    assert_eq!(world.take(), first);
}

#[test]
fn diff_of_two_snapshots_names_each_path_that_differs() {
    let world = World::new();
    world.write("same/x", "1");
    world.write("gone/x", "1");
    world.write("edited", "1");
    world.write("mode", "1");
    let a = world.take();
    fs::remove_dir_all(world.workspace.join("gone")).unwrap();
    world.write("new/x", "1");
    world.write("edited", "2");
    world.chmod("mode", 0o755);
    world.link("link", "edited");
    let b = world.take();
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let (mut created, mut removed, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for difference in world.snapshots.diff(&a, &b).unwrap() {
        match difference {
            Difference::Created(path) => created.push(path),
            Difference::Removed(path) => removed.push(path),
            Difference::Changed(path) => changed.push(path),
            _ => unreachable!(),
        }
    }
    assert_eq!(created, paths(&["link", "new", "new/x"]));
    assert_eq!(removed, paths(&["gone", "gone/x"]));
    assert_eq!(changed, paths(&["edited", "mode"]));
}

#[test]
fn take_leaves_out_what_git_ignores_and_git_itself() {
    let world = World::new();
    world.write(".gitignore", "*.log\n/build/\n!kept.log\n");
    world.write("sub/.gitignore", "secret\n");
    world.write("kept.log", "1");
    let before = world.take();
    for path in ["a.log", "build/x", "sub/secret", "sub/deep/secret", ".git/index", "sub/.git/HEAD"] {
        world.write(path, "1");
    }
    let changes = world.snapshots.diff(&before, &world.take()).unwrap();
    assert_eq!(changes, [Difference::Created("sub/deep".into())], "a folder is not ignored with its files");
    world.write("kept.log", "2");
    assert_ne!(world.take(), before);
}

/// The paths that appear in snapshots of the folder `sub` of a repository when each of these files is written.
fn created_in_sub(world: &World, paths: &[&str]) -> Vec<PathBuf> {
    let snapshots =
        Snapshots::open(&world.store(), &world.workspace.join("sub"), SnapshotLimits::default()).unwrap();
    let before = snapshots.take().unwrap();
    paths.iter().for_each(|path| world.write(path, "1"));
    let created = |difference| match difference {
        Difference::Created(path) => path,
        other => panic!("{other:?}"),
    };
    snapshots.diff(&before, &snapshots.take().unwrap()).unwrap().into_iter().map(created).collect()
}

#[test]
fn take_in_a_folder_of_a_repository_follows_the_rules_above_it() {
    let world = World::new();
    world.write(".gitignore", "*.log\n/sub/build/\n");
    world.write(".git/info/exclude", "/sub/notes\n*.tmp\n");
    world.write("sub/.gitignore", "!kept.log\n");
    let ignored = ["sub/a.log", "sub/deep/b.log", "sub/build/c", "sub/notes", "sub/a.tmp"];
    let paths = [&ignored[..], &["sub/kept.log", "sub/deep/notes"]].concat();
    assert_eq!(created_in_sub(&world, &paths), ["deep", "deep/notes", "kept.log"].map(PathBuf::from));

    // In a linked worktree, the file of the repository counts.
    let world = World::new();
    world.write(".git/info/exclude", "*.tmp\n");
    world.write(".git/worktrees/side/commondir", "../..\n");
    world.write("sub/.git", "gitdir: ../.git/worktrees/side\n");
    assert_eq!(created_in_sub(&world, &["sub/a.tmp", "sub/a.txt"]), [PathBuf::from("a.txt")]);
}

#[test]
fn take_in_a_folder_that_its_repository_ignores_has_all_files() {
    for rules in ["*\n", "/sub/\n"] {
        let world = World::new();
        world.write(".gitignore", rules);
        world.write("sub/old", "1");
        assert_eq!(created_in_sub(&world, &["sub/new"]), [PathBuf::from("new")], "{rules}");
    }
}

#[test]
fn take_beside_a_folder_that_cannot_be_entered_has_all_other_files() {
    let world = World::new();
    world.write("closed/x", "1");
    world.write("edited", "1");
    for mode in [0o600, 0o000] {
        world.chmod("closed", mode);
        let before = world.take();
        world.write("edited", &format!("{mode}"));
        let changes = world.snapshots.diff(&before, &world.take()).unwrap();
        world.chmod("closed", 0o700);
        assert_eq!(changes, [Difference::Changed("edited".into())], "{mode:o}");
    }
}

#[test]
fn take_leaves_out_the_store_and_other_folders_of_the_program() {
    let world = World::new();
    let data = world.workspace.join("data");
    fs::create_dir_all(data.join("runs")).unwrap();
    let snapshots = archon_snapshots::Snapshots::open(
        &data.join("snapshots"),
        &world.workspace,
        SnapshotLimits::default(),
    );
    let snapshots = snapshots.unwrap().without(&data.join("runs"));
    let first = snapshots.take().unwrap();
    fs::write(data.join("runs/log"), "1").unwrap();
    assert_eq!(snapshots.take().unwrap(), first);
}

#[test]
fn take_with_an_index_reads_no_unchanged_file() {
    let world = World::new();
    for number in 0..20 {
        world.write(&format!("file{number}"), &number.to_string());
    }
    let later = world.later();
    let first = later.take().unwrap();
    let objects = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path().join("objects");
    fs::remove_dir_all(&objects).unwrap();
    assert_eq!(later.take().unwrap(), first);
    let stored = fs::read_dir(&objects).unwrap().count();
    assert_eq!(stored, 1, "the tree is written again, and no file was read");
}

/// The number of contents and trees in the store.
fn objects_of(world: &World) -> usize {
    states(&world.store()).keys().filter(|path| path.iter().any(|step| step == "objects")).count()
}

#[test]
fn prepare_of_a_large_workspace_that_the_store_does_not_know_copies_nothing() {
    let world = World::new();
    world.write("a", "1");
    let large = fs::File::create(world.workspace.join("large")).unwrap();
    large.set_len(64_000_001).unwrap();
    world.snapshots.prepare().unwrap_err();
    assert_eq!(objects_of(&world), 0);
    large.set_len(1_000).unwrap();
    world.snapshots.prepare().unwrap();
    assert_eq!(objects_of(&world), 3, "two contents and a tree");
}

#[test]
fn take_after_a_long_first_one_that_was_killed_does_not_read_all_files_again() {
    let world = World::new();
    for number in 0..20 {
        world.write(&format!("file{number}"), &number.to_string());
    }
    // Each look at the clock takes a minute, and the process dies at the tenth.
    let (begin, looks) = (SystemTime::now(), AtomicU64::new(0));
    let killed = world.open(SnapshotLimits::default()).with_time(move || {
        let look = looks.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(look < 10, "the process is killed");
        begin + Duration::from_secs(60 * look)
    });
    catch_unwind(AssertUnwindSafe(|| killed.take())).unwrap_err();
    let objects = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path().join("objects");
    fs::remove_dir_all(objects).unwrap();
    world.later().take().unwrap();
    assert_eq!(objects_of(&world), 20 - 8 + 1, "8 files are in the index, and the tree is written again");
}

#[test]
fn take_after_a_change_within_a_tick_of_the_clock_reads_the_file_again() {
    let world = World::new();
    world.write("a", "1");
    let first = world.take();
    // The size is the same, and so may the time be.
    world.write("a", "2");
    assert_ne!(world.take(), first);
}

#[test]
fn take_of_a_workspace_beyond_the_limits_fails_and_says_that_undo_is_off() {
    let world = World::new();
    world.write("a", "12345");
    world.write("b", "12345");
    for limits in [SnapshotLimits::default().with_entries(1), SnapshotLimits::default().with_bytes(9)] {
        let error = world.open(limits).take().unwrap_err();
        assert!(matches!(error, SnapshotError::TooLarge { .. }));
        assert!(error.to_string().starts_with("undo is off"), "{error}");
    }
    world.open(SnapshotLimits::default().with_entries(2).with_bytes(10)).take().unwrap();
}

#[test]
fn take_of_a_new_workspace_beyond_the_limits_stores_nothing() {
    let world = World::new();
    world.write("a", "a content");
    world.write("b", "b");
    world.open(SnapshotLimits::default().with_entries(1)).take().unwrap_err();
    let has_content = |state| matches!(state, State::File(_, content) if content == b"a content");
    assert!(!states(&world.store()).into_values().any(has_content));
}

/// A process that is killed has written some of the contents, as one that meets a limit in the middle.
#[test]
fn take_after_one_that_was_cut_off_anywhere_is_whole() {
    for entries in 1..13 {
        let world = World::new();
        world.write("first", "1");
        world.later().take().unwrap();
        for number in 0..6 {
            world.write(&format!("folder{number}/file"), &number.to_string());
        }
        world.open(SnapshotLimits::default().with_entries(entries)).take().unwrap_err();
        let unfinished =
            fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path().join("unfinished");
        fs::write(unfinished.join(".tmp"), "half").unwrap();
        let all = world.states();
        let step = world.turn("1", |world| fs::remove_dir_all(world.workspace.join("folder3")).unwrap());
        world.undo(&[step]);
        assert_eq!(world.states(), all);
    }
}

#[test]
fn take_by_several_at_once_gives_each_the_same_snapshot() {
    let world = World::new();
    for number in 0..50 {
        world.write(&format!("{number}"), &number.to_string());
    }
    let ids: Vec<_> = thread::scope(|scope| {
        let takes: Vec<_> =
            (0..4).map(|_| scope.spawn(|| world.open(SnapshotLimits::default()).take().unwrap())).collect();
        takes.into_iter().map(|take| take.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == world.take()), "{ids:?}");
}

#[test]
fn take_while_another_process_works_on_the_workspace_fails_after_the_wait() {
    let world = World::new();
    let lock = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path().join("lock");
    let lock = fs::File::create(lock).unwrap();
    lock.lock().unwrap();
    let hasty = world.open(SnapshotLimits::default().with_lock_wait(Duration::ZERO));
    let error = hasty.take().unwrap_err();
    assert!(matches!(error, SnapshotError::Busy { .. }));
    assert!(error.to_string().starts_with("another process works on the snapshots"), "{error}");
    lock.unlock().unwrap();
    hasty.take().unwrap();
}

#[test]
fn take_while_another_thread_takes_one_waits_for_it() {
    let world = World::new();
    (0..50).for_each(|number| world.write(&format!("{number}"), "1"));
    let hasty = world.open(SnapshotLimits::default().with_lock_wait(Duration::ZERO));
    thread::scope(|scope| {
        let takes: Vec<_> = (0..4).map(|_| scope.spawn(|| hasty.take())).collect();
        assert!(takes.into_iter().all(|take| take.join().unwrap().is_ok()));
    });
}

#[test]
fn take_of_a_socket_skips_it() {
    let world = World::new();
    let _socket = std::os::unix::net::UnixListener::bind(world.workspace.join("socket")).unwrap();
    let step = world.turn("1", |world| world.write("a", "1"));
    assert!(world.undo(&[step]).left.is_empty());
    assert!(world.has("socket"));
}

/// With `ARCHON_ACCEPT=full`, in a workspace of 20,000 files: at most 150 ms, the median of three.
#[test]
fn take_of_unchanged_files_returns_the_same_id_within_its_time() {
    let files = cases(200, 20_000);
    let world = World::new();
    world.write(".gitignore", "target/\n*.log\n");
    for number in 0..files {
        world.write(&format!("crate{}/src/file{number}.rs", number % 400), &format!("// {number}\n"));
    }
    let snapshots =
        world.open(SnapshotLimits::default()).with_time(|| SystemTime::now() + Duration::from_secs(60));
    let [(cold, first), mut warm @ ..] = [(); 4].map(|()| {
        let begin = Instant::now();
        let id = snapshots.take().unwrap();
        (begin.elapsed(), id)
    });
    assert!(warm.iter().all(|(_, id)| *id == first));
    warm.sort_unstable_by_key(|(took, _)| *took);
    let warm = warm[1].0;
    eprintln!("a snapshot of {files} files: {cold:.1?} cold, {warm:.1?} warm of 150 ms");
    assert!(cases(0, 1) == 0 || warm <= Duration::from_millis(150), "{warm:?}");
}
