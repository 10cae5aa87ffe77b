//! Random turns with effects of tools and of the shell, and edits of the person after each.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use archon_snapshots::{Restored, UndoStep};
use archon_testkit::{Chance, cases, first_seed, may_skip};

use crate::world::{State, States, World, states};

const FOLDERS: [&str; 6] = ["", "a", "a/b", "c d", "é", "a/b/c"];
/// Rules ignore files with the last two names.
static NAMES: [&str; 6] = ["x", "y", "b", "c", "z.log", "t.tmp"];
const TEXTS: [&str; 4] = ["", "1", "2", "a longer text\n"];

/// Does what is random in one sequence of turns.
struct Hand {
    chance: Chance,
    /// Names for files and links.
    names: &'static [&'static str],
    /// True if `.git` is a repository of `git`.
    has_git: bool,
}

/// A turn as it was: the states before and after, and its snapshots.
struct Turn {
    before: States,
    after: States,
    step: UndoStep,
}

fn any<'a>(chance: &mut Chance, of: &[&'a str]) -> &'a str {
    of[usize::try_from(chance.below(of.len() as u64)).unwrap()]
}

fn any_path(hand: &mut Hand, world: &World) -> PathBuf {
    world.workspace.join(any(&mut hand.chance, &FOLDERS)).join(any(&mut hand.chance, hand.names))
}

/// Does something at random. It may be impossible, such as a file in a file; then nothing happens.
fn act(hand: &mut Hand, world: &World) {
    let path = any_path(hand, world);
    let other = any_path(hand, world);
    let (chance, has_git) = (&mut hand.chance, hand.has_git);
    let _ = match chance.below(12) {
        0..=3 => write(&path, any(chance, &TEXTS)),
        4 => fs::remove_file(&path),
        5 => fs::rename(&path, other),
        6 if path.is_file() && !path.is_symlink() => {
            let mode = [0o644, 0o755, 0o600][usize::try_from(chance.below(3)).unwrap()];
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
        }
        7 => symlink(any(chance, &["x", "nowhere", "../outside", "../outside/file"]), &path),
        8 => fs::create_dir_all(&path),
        9 => fs::remove_dir_all(path.parent().filter(|parent| **parent != *world.workspace).unwrap_or(&path)),
        10 => {
            let rules = world.workspace.join(any(chance, &FOLDERS)).join(".gitignore");
            match chance.percent(50) && rules != world.workspace.join(".gitignore") {
                true => fs::remove_file(rules),
                false if rules == world.workspace.join(".gitignore") => Ok(()),
                false => write(&rules, "*.tmp\n"),
            }
        }
        _ if has_git => {
            world.commit();
            Ok(())
        }
        _ => write(&world.workspace.join(".git/index"), any(chance, &TEXTS)),
    };
}

/// Writes a file in the workspace. A link at its place is replaced, so that the test itself stays inside.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap())?;
    if path.is_symlink() {
        fs::remove_file(path)?;
    }
    fs::write(path, text)
}

fn is_ignored(path: &Path, files: &States) -> bool {
    let has_rules = |folder: &Path| folder != Path::new("") && files.contains_key(&folder.join(".gitignore"));
    let is = |path: &Path, end| path.to_str().is_some_and(|path| path.ends_with(end));
    path.ancestors()
        .any(|step| is(step, ".log") || (is(step, ".tmp") && step.ancestors().skip(1).any(has_rules)))
}

/// Returns the states after an undo, from what was, and the paths that no snapshot can take back.
fn expected(turns: &[Turn], now: &States) -> (States, BTreeSet<PathBuf>) {
    let (mut wanted, mut unknown) = (now.clone(), BTreeSet::new());
    for turn in turns.iter().rev() {
        let paths: BTreeSet<&PathBuf> = turn.before.keys().chain(turn.after.keys()).collect();
        for path in paths {
            let was_ignored = is_ignored(path, &turn.before);
            if was_ignored || (is_ignored(path, &turn.after) && !turn.before.contains_key(path)) {
                unknown.insert(path.clone());
            }
            if wanted.get(path) == turn.after.get(path) && !unknown.contains(path) {
                match turn.before.get(path) {
                    Some(state) => _ = wanted.insert(path.clone(), state.clone()),
                    None => _ = wanted.remove(path),
                }
            }
        }
    }
    (wanted, unknown)
}

/// Checks each path, and returns how many were restored and how many of those that could be were left.
fn check(seed: u64, turns: &[Turn], now: &States, restored: &Restored, actual: &States) -> (u32, u32) {
    let (wanted, unknown) = expected(turns, now);
    let (mut good, mut left) = (0, 0);
    for path in now.keys().chain(wanted.keys()).chain(actual.keys()).collect::<BTreeSet<_>>() {
        let is = |states: &States| states.get(path).cloned();
        let touches = |other: &Path| other.starts_with(path) || path.starts_with(other);
        if unknown.contains(path) || is(&wanted) == is(actual) {
            good += u32::from(is(now) != is(&wanted));
            continue;
        }
        let is_named = restored.left.iter().any(|left| touches(&left.path));
        assert!(
            is_named && is(actual) == is(now),
            "seed {seed}: {}: wanted {:?}, is {:?}, was {:?}; {restored:?}",
            path.display(),
            is(&wanted),
            is(actual),
            is(now)
        );
        left += 1;
    }
    (good, left)
}

fn turn(hand: &mut Hand, world: &World, name: &str) -> Turn {
    let before = world.states();
    let step = world.turn(name, |world| (0..=hand.chance.below(12)).for_each(|_| act(hand, world)));
    Turn { before, after: world.states(), step }
}

/// Plays one sequence. Returns how many paths were restored and how many were left, and whether whole trees were
/// compared.
fn play(seed: u64) -> (u32, u32, bool) {
    let world = World::new();
    let has_git = seed.is_multiple_of(5) && world.init_git();
    // Whole trees can be compared without ignored files and edits only.
    let names = if seed.is_multiple_of(3) { &NAMES[..] } else { &NAMES[..4] };
    let is_edited = !seed.is_multiple_of(2);
    let mut hand = Hand { chance: Chance(seed), names, has_git };
    write(&world.workspace.join(".gitignore"), "*.log\n").unwrap();
    fs::write(world.outside.join("file"), "1").unwrap();
    (0..20).for_each(|_| act(&mut hand, &world));
    let mut turns = Vec::new();
    for number in 0..=hand.chance.below(2) {
        turns.push(turn(&mut hand, &world, &number.to_string()));
        if is_edited {
            (0..hand.chance.below(5)).for_each(|_| act(&mut hand, &world));
        }
    }
    let steps: Vec<UndoStep> = turns.iter().map(|turn| turn.step.clone()).collect();
    let now = world.states();
    let others = || (states(&world.workspace.join(".git")), states(&world.outside));
    let untouched = others();
    let restored = world.undo(&steps);
    let (good, left) = check(seed, &turns, &now, &restored, &world.states());
    assert_eq!(others(), untouched, "seed {seed}");
    // A file that was ignored at some time keeps its later content.
    let is_whole = !is_edited && restored.left.is_empty() && expected(&turns, &now).1.is_empty();
    if is_whole {
        assert_eq!(
            world.take(),
            steps[0].before,
            "seed {seed}: {:?}",
            world.snapshots.diff(&world.take(), &steps[0].before)
        );
    }
    let again = world.snapshots.redo("session").unwrap();
    let visible = |states: &States| -> States {
        let kept = |(path, _): &(&PathBuf, &State)| !is_ignored(path, states);
        states.iter().filter(kept).map(|(path, state)| (path.clone(), state.clone())).collect()
    };
    assert_eq!(visible(&world.states()), visible(&now), "seed {seed}: {again:?}");
    assert_eq!(others(), untouched, "seed {seed}");
    (good, left, is_whole)
}

#[test]
fn undo_of_random_turns_restores_all_but_the_edits_of_the_person() {
    if !World::new().init_git() {
        assert!(may_skip(), "no workspace is a repository of git: install `git`");
        println!("SKIP: no workspace is a repository of git: there is no `git`");
    }
    let (mut restored, mut left, mut whole, seeds) = (0, 0, 0, cases(60, 1_000));
    for seed in first_seed()..first_seed() + seeds {
        let (good, not, is_whole) = play(seed);
        restored += good;
        left += not;
        whole += u64::from(is_whole);
    }
    println!(
        "{restored} restored, {left} left because of other files; {whole} of {seeds} whole trees compared"
    );
    assert!(left * 10 < restored, "{left} of {restored} paths were left");
    assert!(whole * 100 >= seeds * 5, "only {whole} of {seeds} sequences compared whole trees");
}
