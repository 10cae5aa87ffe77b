//! The store keeps what the kept snapshots need, and nothing else.

use std::fs;

use archon_snapshots::{SnapshotError, SnapshotLimits, UndoStep};

use crate::world::{State, World, states};

#[test]
fn prune_keeps_the_latest_snapshots_and_what_they_need() {
    let world = World::new();
    world.write("same", "in all of them");
    let ids: Vec<_> = (0..10)
        .map(|number| {
            world.write("a", &format!("content {number}"));
            world.take()
        })
        .collect();
    world.open(SnapshotLimits::default().with_kept(3)).prune().unwrap();
    for (number, id) in ids.iter().enumerate() {
        let diff = world.snapshots.diff(id, &ids[9]);
        assert_eq!(diff.is_ok(), number >= 7, "{number}");
        assert!(diff.is_ok() || matches!(diff, Err(SnapshotError::Missing { .. })));
    }
    world.undo(&[UndoStep::new("1", ids[7], Some(ids[9]))]);
    assert_eq!((world.text("a"), world.text("same")), ("content 7".into(), "in all of them".into()));
}

#[test]
fn prune_keeps_what_the_index_relies_on() {
    let world = World::new();
    world.write("a", "1");
    let id = world.later().take().unwrap();
    world.open(SnapshotLimits::default().with_kept(0)).prune().unwrap();
    assert_eq!(world.later().take().unwrap(), id);
    world.write("a", "2");
    world.undo(&[UndoStep::new("1", id, None)]);
    assert_eq!(world.text("a"), "1");
}

#[test]
fn take_beyond_twice_the_size_of_a_workspace_prunes_the_oldest() {
    let world = World::new();
    let small = world.open(SnapshotLimits::default().with_bytes(10_000));
    let ids: Vec<_> = (0..30)
        .map(|number| {
            world.write("a", &format!("{number:04000}"));
            small.take().unwrap()
        })
        .collect();
    let size: usize = states(&world.store())
        .values()
        .map(|state| if let State::File(_, content) = state { content.len() } else { 0 })
        .sum();
    assert!(size < 25_000, "{size}");
    assert!(matches!(small.diff(&ids[0], &ids[29]), Err(SnapshotError::Missing { .. })));
    assert!(small.diff(&ids[27], &ids[29]).is_ok());
}

#[test]
fn undo_that_fills_the_store_has_what_it_restores() {
    let world = World::new();
    let small = world.open(SnapshotLimits::default().with_bytes(10_000));
    let text = |letter: &str| letter.repeat(4_000);
    world.write("a", &text("1"));
    let before = small.take().unwrap();
    world.write("a", &text("2"));
    let after = small.take_after(&before).unwrap();
    for letter in ["3", "4"] {
        world.write("b", &letter.repeat(5_950));
        small.preview(&[]).unwrap();
    }
    small.undo("session", &[UndoStep::new("1", before, Some(after))]).unwrap();
    assert_eq!(world.text("a"), text("1"));
}

#[test]
fn prune_removes_files_that_were_never_finished() {
    let world = World::new();
    world.take();
    let folder = fs::read_dir(world.store()).unwrap().next().unwrap().unwrap().path();
    fs::write(folder.join("unfinished/.tmp1"), "half").unwrap();
    world.snapshots.prune().unwrap();
    assert!(states(&folder.join("unfinished")).is_empty());
}

#[test]
fn take_beyond_the_number_of_kept_snapshots_prunes_the_store() {
    let world = World::new();
    let few = world.open(SnapshotLimits::default().with_kept(1));
    for number in 0..60 {
        world.write("a", &format!("content {number}"));
        few.take().unwrap();
    }
    let contents = states(&world.store()).len();
    assert!(contents < 40, "{contents}");
}
