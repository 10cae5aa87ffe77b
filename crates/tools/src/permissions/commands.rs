//! Rules about commands held against a command line.

use std::path::Path;

use super::{
    resolved,
    shell::{self, Line, Part, harmless::Effect, said::Said},
};

/// Whether a rule that denies or asks speaks of a command in the line. What cannot be taken apart may be any.
pub(super) fn may_hold(of: &str, line: &str) -> bool {
    let words = words(of);
    shell::analyse(line).is_none_or(|line| line.holds(&words))
}

/// Whether rules allow every command of a line by its first words, and every file that it redirects to;
/// `file` says that of one that is read, or written.
pub(super) fn are_allowed(of: &[&str], line: &str, file: impl Fn(&Path, bool) -> bool, root: &Path) -> bool {
    let rules: Vec<Vec<&str>> = of.iter().filter(|of| of.ends_with(":*")).map(|of| words(of)).collect();
    let Some(line) = (!rules.is_empty()).then(|| shell::analyse(line)).flatten() else { return false };
    let moves = line.parts.iter().any(|part| moves(part, root));
    let effect = |part: &Part| rules.iter().find_map(|rule| part.allowed_by(rule)).map(|row| row.effect);
    let Some(effects) = line.parts.iter().map(effect).collect::<Option<Vec<Effect>>>() else { return false };
    let is_allowed = |path: &Said, writes| match path.known() {
        Some(path) if path == "/dev/null" => true,
        // Where a relative path leads after a change of folder is not known here.
        Some(path) if !moves || path.starts_with('/') => {
            resolved(root, &path).is_some_and(|path| file(&path, writes))
        }
        _ => false,
    };
    let is_by_folder = |effect: &Effect| matches!(effect, Effect::ReadsProject | Effect::RunsProject);
    if effects.is_empty() || (moves || is_bare(root)) && effects.iter().any(is_by_folder) {
        return false;
    }
    // What makes links or moves files first changes where the path of a redirection leads.
    let changes = |effect: &Effect| matches!(effect, Effect::Writes | Effect::RunsProject);
    if writes_files(&line) && effects.iter().any(changes) {
        return false;
    }
    line.writes.iter().all(|path| is_allowed(path, true))
        && line.reads.iter().all(|path| is_allowed(path, false))
}

/// The words of a rule about commands.
fn words(of: &str) -> Vec<&str> {
    of.strip_suffix(":*").unwrap_or(of).split_whitespace().collect()
}

/// Whether a command may change to another folder than the one that the line begins in.
fn moves(part: &Part, root: &Path) -> bool {
    let Some(program) = part.words[0].known() else { return true };
    let stays = |word: &Said| word.known().is_some_and(|folder| folder == "." || Path::new(&folder) == root);
    match (&*program, &part.words[1..]) {
        ("cd", [folder]) => !stays(folder),
        ("cd" | "pushd" | "popd", _) => true,
        _ => false,
    }
}

/// Whether a folder looks like a repository of git itself, whose settings are ordinary files.
fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists())
}

fn writes_files(line: &Line) -> bool {
    line.writes.iter().any(|path| !path.is("/dev/null"))
}
