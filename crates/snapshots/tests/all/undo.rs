//! Undo and redo, case by case.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use archon_snapshots::{SnapshotError, SnapshotLimits, UndoStep};

use crate::world::{World, paths_that_stay, states};

#[test]
fn undo_of_every_kind_of_change_restores_the_files() {
    let world = World::new();
    world.write("edited", "1");
    world.write("deleted/deep/file", "1");
    world.write("renamed", "1");
    world.write("script", "1");
    world.write("to_folder", "1");
    world.write("to_file/x", "1");
    world.link("link", "edited");
    let (all, before) = (world.states(), world.take());
    let step = world.turn("1", |world| {
        world.write("edited", "2");
        fs::remove_dir_all(world.workspace.join("deleted")).unwrap();
        fs::rename(world.workspace.join("renamed"), world.workspace.join("moved")).unwrap();
        world.chmod("script", 0o755);
        world.remove("to_folder");
        world.write("to_folder/x", "2");
        fs::remove_dir_all(world.workspace.join("to_file")).unwrap();
        world.write("to_file", "2");
        world.remove("link");
        world.link("link", "elsewhere");
        world.write("new/deep/file", "2");
        fs::create_dir(world.workspace.join("empty")).unwrap();
    });
    let after = world.states();
    let preview = world.snapshots.preview(std::slice::from_ref(&step)).unwrap();
    assert_eq!(world.states(), after, "a preview changes nothing");
    let restored = world.undo(&[step]);
    assert_eq!(restored, preview);
    assert_eq!((world.states(), world.take()), (all, before));
    assert!(!world.has("empty") && !world.has("new"));
    assert!(world.snapshots.redo("session").unwrap().left.is_empty());
    assert_eq!(world.states(), after);
    assert!(world.has("empty"));
}

#[test]
fn undo_after_an_edit_of_the_person_leaves_the_file() {
    let world = World::new();
    world.write("theirs", "1");
    world.write("ours", "1");
    let step = world.turn("1", |world| {
        world.write("theirs", "2");
        world.write("ours", "2");
        world.write("new/by_tool", "2");
    });
    world.write("theirs", "3");
    world.write("new/by_person", "3");
    let restored = world.undo(&[step]);
    assert_eq!((world.text("theirs"), world.text("ours")), ("3".into(), "1".into()));
    assert_eq!(world.text("new/by_person"), "3");
    assert!(!world.has("new/by_tool"));
    assert_eq!(paths_that_stay(&restored), ["new", "theirs"]);
    assert_eq!(restored.left.last().unwrap().why, "it was changed after that");
}

#[test]
fn undo_after_the_person_undid_it_writes_nothing() {
    let world = World::new();
    world.write("a", "1");
    let step = world.turn("1", |world| world.write("a", "2"));
    world.write("a", "1");
    let restored = world.undo(&[step]);
    assert!(restored.is_empty() && restored.left.is_empty());
}

#[test]
fn undo_of_two_turns_keeps_what_the_person_did_between_them() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let first = world.turn("1", |world| {
        world.write("a", "2");
        world.write("b", "2");
    });
    world.write("a", "by the person");
    let second = world.turn("2", |world| world.write("c", "2"));
    let restored = world.undo(&[first, second]);
    assert_eq!((world.text("a"), world.text("b")), ("by the person".into(), "1".into()));
    assert!(!world.has("c"));
    assert_eq!(paths_that_stay(&restored), ["a"]);
}

#[test]
fn undo_of_one_turn_after_the_other_is_redone_in_the_other_order() {
    let world = World::new();
    let turns: Vec<UndoStep> = ["1", "2"].map(|turn| world.turn(turn, |world| world.write("a", turn))).into();
    let open = || world.snapshots.open_steps("session", &turns).unwrap();
    world.undo(&open()[1..]);
    assert_eq!(world.text("a"), "1");
    assert_eq!(open(), turns[..1]);
    world.undo(&open());
    assert!(!world.has("a"));
    assert!(matches!(world.snapshots.undo("session", &open()), Err(SnapshotError::Nothing { .. })));
    for text in ["1", "2"] {
        world.snapshots.redo("session").unwrap();
        assert_eq!(world.text("a"), text);
    }
    assert_eq!(open(), turns);
    assert!(matches!(world.snapshots.redo("session"), Err(SnapshotError::Nothing { .. })));
    assert!(matches!(world.snapshots.redo("another"), Err(SnapshotError::Nothing { .. })));
}

#[test]
fn undo_is_noted_with_the_snapshot_that_it_makes() {
    let world = World::new();
    for path in ["a", "b/c", "b.d", "b/e/f"] {
        world.write(path, "1");
    }
    world.chmod("b/e", 0o700);
    let (all, step) = (
        world.states(),
        world.turn("1", |world| {
            fs::remove_dir_all(world.workspace.join("b")).unwrap();
            world.write("new/x", "2");
        }),
    );
    let before = step.before;
    world.undo(&[step]);
    assert_eq!(world.states(), all);
    let noted = world.snapshots.undo_stack("session").unwrap()[0].step();
    assert_eq!((noted.after, world.take()), (Some(before), before));
}

/// A process that is killed has restored some of the files.
#[test]
fn redo_of_an_undo_that_was_cut_off_takes_back_what_it_did() {
    let world = World::new();
    let step = world.turn("1", |world| ["a", "b"].iter().for_each(|path| world.write(path, "2")));
    world.undo(&[step]);
    world.write("b", "2");
    let restored = world.snapshots.redo("session").unwrap();
    assert_eq!((world.text("a"), world.text("b")), ("2".into(), "2".into()));
    assert!(restored.left.is_empty());
}

#[test]
fn undo_that_cannot_be_noted_changes_nothing() {
    let world = World::new();
    let step = world.turn("1", |world| world.write("a", "2"));
    let folder = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path();
    // A folder is in the place of the file.
    fs::create_dir(folder.join("undone")).unwrap();
    world.snapshots.undo("session", &[step]).unwrap_err();
    assert!(world.has("a"));
}

#[test]
fn redo_with_a_damaged_note_says_so_and_names_the_file() {
    let world = World::new();
    let step = world.turn("1", |world| world.write("a", "2"));
    world.undo(std::slice::from_ref(&step));
    let path = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path().join("undone");
    let text = fs::read_to_string(&path).unwrap();
    for damaged in ["{", &text.replace(&step.before.to_string(), "ba78")] {
        fs::write(&path, damaged).unwrap();
        let error = world.snapshots.redo("session").unwrap_err();
        assert!(matches!(&error, SnapshotError::Damaged { path: of } if *of == path), "{error}");
    }
    fs::write(&path, text).unwrap();
    world.snapshots.redo("session").unwrap();
    assert!(world.has("a"));
}

#[test]
fn undo_of_a_turn_that_was_cut_off_takes_the_state_of_now() {
    let world = World::new();
    world.write("a", "1");
    let before = world.take();
    world.write("a", "2");
    world.undo(&[UndoStep::new("1", before, None)]);
    assert_eq!(world.text("a"), "1");
}

#[test]
fn undo_of_a_turn_that_was_cut_off_leaves_later_changes() {
    let world = World::new();
    for path in ["ours", "theirs", "deleted"] {
        world.write(path, "1");
    }
    let before = world.take();
    world.write("ours", "2");
    world.remove("deleted");
    let ended = SystemTime::now();
    for path in ["theirs", "new"] {
        world.write(path, "by the person");
        world.set_time(path, ended + Duration::from_secs(60));
    }
    let restored = world.undo(&[UndoStep::new("1", before, None).with_end(ended)]);
    assert_eq!((world.text("ours"), world.text("deleted")), ("1".into(), "1".into()));
    assert_eq!(world.text("theirs"), "by the person");
    assert_eq!(paths_that_stay(&restored), ["new", "theirs"]);
    assert!(restored.left[0].why.contains("cut off"), "{restored:?}");
}

#[test]
fn undo_of_a_new_gitignore_restores_what_it_ignores() {
    let world = World::new();
    world.write("a.tmp", "1");
    let step = world.turn("1", |world| {
        world.write(".gitignore", "*.tmp\n");
        world.write("a.tmp", "2");
        world.write("b.tmp", "2");
    });
    let restored = world.undo(&[step]);
    assert_eq!(world.text("a.tmp"), "1");
    assert!(!world.has(".gitignore"));
    assert_eq!(paths_that_stay(&restored), ["b.tmp"], "no snapshot has it, and it is ignored no longer");
}

#[test]
fn undo_of_a_removed_gitignore_leaves_what_was_ignored() {
    let world = World::new();
    world.write(".gitignore", "*.tmp\n/build/\n");
    world.write("a.tmp", "1");
    world.write("build/x", "1");
    let step = world.turn("1", |world| world.remove(".gitignore"));
    let restored = world.undo(&[step]);
    assert!(world.has("a.tmp") && world.has("build/x") && world.has(".gitignore"));
    assert_eq!(paths_that_stay(&restored), ["a.tmp", "build", "build/x"]);
}

#[test]
fn undo_of_a_file_that_was_moved_from_an_ignored_place_leaves_it() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    for path in [".env", "known"] {
        world.write(path, path);
        world.set_time(path, SystemTime::now() - Duration::from_secs(3_600));
    }
    let step = world.turn("1", |world| {
        world.rename(".env", "env.bak");
        world.rename("known", "moved");
        world.write("new", "2");
    });
    let restored = world.undo(&[step]);
    assert_eq!(paths_that_stay(&restored), ["env.bak"]);
    assert!(restored.left[0].why.contains("moved here"), "{restored:?}");
    assert_eq!((world.text("env.bak"), world.text("known")), (".env".into(), "known".into()));
    assert!(!world.has("moved") && !world.has("new"));
}

#[test]
fn undo_of_a_folder_with_ignored_files_keeps_the_folder() {
    let world = World::new();
    world.write(".gitignore", "*.log\n");
    let step = world.turn("1", |world| {
        world.write("new/a", "1");
        world.write("new/a.log", "1");
    });
    let restored = world.undo(&[step]);
    assert!(!world.has("new/a") && world.has("new/a.log"));
    assert_eq!(paths_that_stay(&restored), ["new"]);
}

#[test]
fn undo_through_a_link_that_took_the_place_of_a_folder_writes_nothing_outside() {
    let world = World::new();
    world.write("folder/a", "1");
    let step = world.turn("1", |world| world.write("folder/a", "2"));
    fs::rename(world.workspace.join("folder"), world.outside.join("folder")).unwrap();
    world.link("folder", "../outside/folder");
    let outside = states(&world.outside);
    let restored = world.undo(&[step]);
    assert_eq!(states(&world.outside), outside);
    assert_eq!(paths_that_stay(&restored), ["folder/a"]);
}

#[test]
fn undo_of_a_link_to_a_folder_removes_the_link_only() {
    let world = World::new();
    fs::write(world.outside.join("file"), "1").unwrap();
    let step = world.turn("1", |world| world.link("link", "../outside"));
    world.undo(&[step]);
    assert!(!world.has("link"));
    assert!(world.outside.join("file").exists());
}

/// Damages a content in the store. Its size stays the same.
fn damage(world: &World, text: &str) {
    for (path, state) in states(&world.store()) {
        if matches!(state, crate::world::State::File(_, content) if content == text.as_bytes()) {
            fs::write(world.store().join(path), "x".repeat(text.len())).unwrap();
        }
    }
}

#[test]
fn undo_after_a_content_was_damaged_and_found_has_it_again() {
    let world = World::new();
    for path in ["a", "b"] {
        world.write(path, "the same content");
    }
    let later = world.later();
    let undo_of_removed = |path: &str| {
        let before = later.take().unwrap();
        world.remove(path);
        let after = later.take_after(&before).unwrap();
        damage(&world, if path == "a" { "the same content" } else { "none" });
        later.undo("session", &[UndoStep::new(path, before, Some(after))]).unwrap()
    };
    assert_eq!(paths_that_stay(&undo_of_removed("a")), ["a"]);
    assert!(undo_of_removed("b").left.is_empty());
    assert_eq!(world.text("b"), "the same content");
}

#[test]
fn undo_with_a_damaged_content_leaves_the_file() {
    let world = World::new();
    world.write("a", "first content");
    let step = world.turn("1", |world| world.write("a", "2"));
    damage(&world, "first content");
    let restored = world.undo(&[step]);
    assert_eq!(world.text("a"), "2");
    assert_eq!(paths_that_stay(&restored), ["a"]);
}

#[test]
fn undo_restores_permissions_and_large_files() {
    let world = World::new();
    let large = "0123456789abcdef".repeat(200_000);
    world.write("large", &large);
    world.write("secret", "1");
    world.chmod("secret", 0o600);
    let all = world.states();
    let step = world.turn("1", |world| {
        world.remove("large");
        world.remove("secret");
    });
    world.undo(&[step]);
    assert_eq!(world.states(), all);
}

#[test]
fn undo_leaves_git_as_it_is() {
    let world = World::new();
    let step = world.turn("1", |world| {
        world.write("a", "1");
        world.write(".git/HEAD", "ref: refs/heads/other\n");
    });
    let git = states(&world.workspace.join(".git"));
    world.undo(&[step]);
    assert_eq!(states(&world.workspace.join(".git")), git);
}

#[test]
fn undo_beyond_the_limits_fails_and_changes_nothing() {
    let world = World::new();
    let step = world.turn("1", |world| world.write("a", "1"));
    world.write("b", "1");
    let error = world.open(SnapshotLimits::default().with_entries(1)).undo("session", &[step]).unwrap_err();
    assert!(matches!(error, SnapshotError::TooLarge { .. }));
    assert!(world.has("a"));
}
