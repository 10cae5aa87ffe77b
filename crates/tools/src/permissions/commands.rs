//! Applies rules about commands to a command line.

use std::path::{Component, Path, PathBuf};

use super::{
    resolved,
    shell::{self, Line, Part, harmless::Effect, known_word::KnownWord},
};

/// Returns whether the text in brackets of a deny or ask rule matches any command of a command line. A line
/// that cannot be parsed is matched too.
pub(super) fn may_hold(of: &str, line: &str) -> bool {
    let words = words(of);
    shell::analyse(line).is_none_or(|line| line.holds(&words))
}

/// Returns whether rules allow every command of a command line by the command's first words, and every file
/// of a redirection. `file` returns whether a file may be read (`false`) or written (`true`).
pub(super) fn are_allowed(of: &[&str], line: &str, file: impl Fn(&Path, bool) -> bool, root: &Path) -> bool {
    let rules: Vec<Vec<&str>> = of.iter().filter(|of| of.ends_with(":*")).map(|of| words(of)).collect();
    // Only at the very beginning: within a loop, for instance, `cd` may run again and in another place.
    let begins = line.trim_start().starts_with("cd ");
    let Some(line) = (!rules.is_empty()).then(|| shell::analyse(line)).flatten() else { return false };
    let effect = |part: &Part| rules.iter().find_map(|rule| part.allowed_by(rule)).map(|row| row.effect);
    let Some(effects) = line.parts.iter().map(effect).collect::<Option<Vec<Effect>>>() else { return false };
    // The rest may run in that folder or, after a pipe for instance, where the line began; the rules must
    // allow both.
    let start = line.parts.first().filter(|_| begins).and_then(|first| goes_to(first, root));
    let rest = if start.is_some() { &line.parts[1..] } else { &line.parts[..] };
    let folders: Vec<&Path> = start.iter().map(PathBuf::as_path).chain([root]).collect();
    let moves = rest.iter().any(|part| moves(part, folders[0]));
    let is_allowed = |path: &KnownWord, writes| match path.known() {
        Some(path) if path == "/dev/null" => true,
        // After another change of folder, the target of a relative path is not known.
        Some(path) if !moves || path.starts_with('/') => {
            let mut places = folders.iter().map(|folder| resolved(folder, &path));
            places.all(|place| place.is_some_and(|place| file(&place, writes)))
        }
        _ => false,
    };
    let is_by_folder = |effect: &Effect| matches!(effect, Effect::ReadsProject | Effect::RunsProject);
    if effects.is_empty() || (moves || is_bare(root)) && effects.iter().any(is_by_folder) {
        return false;
    }
    // Links and moves can change the target of a redirection.
    let changes = |effect: &Effect| matches!(effect, Effect::Writes | Effect::RunsProject);
    if writes_files(&line) && effects.iter().any(changes) {
        return false;
    }
    line.writes.iter().all(|path| is_allowed(path, true))
        && line.reads.iter().all(|path| is_allowed(path, false))
}

/// Splits the text in brackets of a rule about commands into words, without the `:*` at its end.
fn words(of: &str) -> Vec<&str> {
    of.strip_suffix(":*").unwrap_or(of).split_whitespace().collect()
}

/// Returns the workspace folder to which a command line changes with its first command, as in `cd crates/core
/// && cargo test`. The folder must exist, have no links in its path, and not be within a bare repository.
fn goes_to(first: &Part, root: &Path) -> Option<PathBuf> {
    let [cd, folder] = &first.words[..] else { return None };
    let said = folder.known().filter(|said| cd.is("cd") && !said.starts_with('-'))?;
    let folder = root.join(said.strip_prefix("./").unwrap_or(&said));
    let is_plain = folder.components().all(|part| !matches!(part, Component::ParentDir));
    let is_here =
        is_plain && folder.starts_with(root) && folder.canonicalize().is_ok_and(|real| real == folder);
    let mut above = folder.ancestors().take_while(|above| above.starts_with(root));
    (is_here && folder.is_dir() && !above.any(is_bare)).then(|| folder.clone())
}

/// Returns whether a command may change to a folder other than the one where its command line begins.
fn moves(part: &Part, root: &Path) -> bool {
    let Some(program) = part.words[0].known() else { return true };
    let stays =
        |word: &KnownWord| word.known().is_some_and(|folder| folder == "." || Path::new(&folder) == root);
    match (&*program, &part.words[1..]) {
        ("cd", [folder]) => !stays(folder),
        ("cd" | "pushd" | "popd", _) => true,
        _ => false,
    }
}

/// Returns whether git may use the folder itself as a repository, whose settings would be ordinary files.
/// Such a folder has a `HEAD`; the other parts may be elsewhere.
fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
}

fn writes_files(line: &Line) -> bool {
    line.writes.iter().any(|path| !path.is("/dev/null"))
}
