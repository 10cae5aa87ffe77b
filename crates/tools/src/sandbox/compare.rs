//! Compares control files before and after a command. A changed file is restored; a new one is renamed, so
//! that nothing is lost and no program runs it. After a command in the background, which may run for hours,
//! both are only reported: a person may have made them.
//!
//! If mounts protect the existing files, this handles only new ones, because nothing can be mounted on a name
//! that does not exist. Without mounts it handles all of them, and a command's change is in effect until the
//! command ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Cage,
    control::{Denied, Places, find},
};
use crate::{
    beneath::{Missing, Place, open_regular},
    control::control,
};

/// Maximum size, in bytes, of a protected file whose content is kept so that the file can be restored.
const FILE: u64 = 1 << 20;
/// Maximum number of bytes that are kept of all files below one protected path together.
const ALL: u64 = 32 << 20;
/// Maximum number of files and folders that are read below one protected path.
const ENTRIES: usize = 10_000;
/// Maximum number of files and folders that are searched for protected ones after a command. It is so high
/// that a command cannot hide a file among others that it made.
const AFTER: usize = 1_000_000;
/// Maximum number of forbidden changes that are described to the model; of further ones only their number is
/// given.
const MOST_NOTES: usize = 20;

/// Control files as they were before a command.
#[derive(Debug)]
pub(super) struct Before {
    places: Places,
    trees: BTreeMap<PathBuf, Tree>,
    /// Time when the search for protected places began, in seconds since 1970.
    since: i64,
    /// True if mounts protect the existing control files.
    is_held: bool,
}

/// A file, or a folder with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tree {
    id: (u64, u64),
    holder: Option<Holder>,
    /// Entries by their path relative to the protected path, which is itself the entry with an empty path.
    /// Empty if a mount protects the path, because then there is nothing to restore.
    entries: BTreeMap<PathBuf, Entry>,
}

/// The id of the folder that contains a protected path (for a path within `.git`, the folder that contains
/// `.git`), and the path relative to that folder.
type Holder = ((u64, u64), PathBuf);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    File { content: Content, mode: u32 },
    Folder,
    Link(PathBuf),
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Known(Vec<u8>),
    /// A file that is too large to keep: its size, and the seconds and nanoseconds of its last change.
    Large(u64, i64, i64),
}

impl Before {
    pub(super) fn new(places: Places, since: SystemTime, is_held: bool) -> Self {
        let noted = |path: &PathBuf| {
            let of = path.symlink_metadata().ok()?;
            // A mount cannot protect a link, and protects only one name of a file that has two.
            let is_loose = of.is_symlink() || (of.is_file() && of.nlink() > 1);
            match is_held && !is_loose {
                true => Some(Tree { id: id(&of), holder: holder(path), entries: BTreeMap::new() }),
                false => Tree::of(path),
            }
        };
        let trees = places.fixed.iter().filter_map(|path| Some((path.clone(), noted(path)?))).collect();
        let since = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).cast_signed();
        Self { places, trees, since, is_held }
    }

    /// Restores the control files that the command changed. Returns sentences for the model that describe the
    /// changes.
    pub(super) fn settle(&self, cage: &Cage, denied: &Denied) -> Vec<String> {
        let (after, opened) = find_all(cage, denied, &self.places.closed);
        let mut settling = self.comparison(&after, cage, denied);
        for folder in opened {
            let name = settling.name(&folder);
            let note =
                format!("the command removed the right to list '{name}'; its owner has this right again");
            settling.notes.push(note);
        }
        settling.compare()
    }

    /// Returns sentences for the model about the changes of control files since the command began. Nothing is
    /// restored, because somebody else may have made the changes.
    pub(super) fn report(&self, cage: &Cage, denied: &Denied) -> Vec<String> {
        let after = find(cage, denied, AFTER);
        let mut settling = self.comparison(&after, cage, denied);
        settling.is_report = true;
        for folder in after.closed.difference(&self.places.closed) {
            let name = settling.name(folder);
            let note = format!("a command ran in the background, and '{name}' cannot be listed since then");
            settling.notes.push(warn(note));
        }
        settling.compare()
    }

    fn comparison<'s>(&'s self, after: &'s Places, cage: &'s Cage, denied: &'s Denied) -> Settling<'s> {
        Settling { before: self, after, cage, denied, is_report: false, notes: Vec::new() }
    }
}

/// Searches for protected places again after a command. Returns these places, and the folders whose mode had
/// to be restored to list them. Folders in `closed`, which could not be listed before the command, stay as
/// they are.
fn find_all(cage: &Cage, denied: &Denied, closed: &BTreeSet<PathBuf>) -> (Places, BTreeSet<PathBuf>) {
    let mut opened = BTreeSet::new();
    loop {
        let after = find(cage, denied, AFTER);
        let before = opened.len();
        opened.extend(after.closed.difference(closed).filter(|folder| give_back(folder)).cloned());
        if opened.len() == before {
            return (after, opened);
        }
    }
}

/// Returns the text for the model, and also logs it as a warning for the person, because the model may not
/// pass it on.
fn warn(note: String) -> String {
    tracing::warn!(target: "archon::tools", "{note}");
    note
}

/// Restores the owner's rights to list and change a folder if the folder's mode lacks them. Returns whether
/// the mode was changed.
fn give_back(folder: &Path) -> bool {
    let Ok(of) = folder.symlink_metadata() else { return false };
    let mode = of.mode() & 0o7777;
    of.is_dir()
        && mode & 0o700 != 0o700
        && fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700)).is_ok()
}

struct Settling<'s> {
    before: &'s Before,
    after: &'s Places,
    cage: &'s Cage,
    denied: &'s Denied,
    /// True if changes are described and not undone.
    is_report: bool,
    /// Sentences for the model that describe the changes.
    notes: Vec<String>,
}

impl Settling<'_> {
    /// Compares all control files, and returns the notes.
    fn compare(mut self) -> Vec<String> {
        let (before, after) = (self.before, self.after);
        let trees = &before.trees;
        let moved: Vec<&PathBuf> =
            trees.iter().filter(|(_, tree)| self.is_moved(tree)).map(|(path, _)| path).collect();
        for path in after.fixed.iter().filter(|path| moved.contains(path) || !trees.contains_key(*path)) {
            self.appeared(path);
        }
        for (path, tree) in trees.iter().filter(|(path, _)| !moved.contains(path)) {
            self.stayed(path, tree);
        }
        if before.places.is_partial || after.is_partial {
            self.notes.push(
                "the workspace has so many files that control files and what rules deny were looked for in a \
                 part of it only"
                    .to_owned(),
            );
        }
        let mut notes = self.notes;
        let more = notes.len().saturating_sub(MOST_NOTES);
        notes.truncate(MOST_NOTES);
        notes.extend((more > 0).then(|| format!("and {more} more of this kind")));
        notes
    }

    /// Returns whether a protected file or folder moved together with the folder that contains it.
    fn is_moved(&self, tree: &Tree) -> bool {
        let new = self.after.fixed.iter().filter(|now| !self.before.trees.contains_key(*now));
        new.into_iter().any(|now| self.is_moved_to(tree, now))
    }

    /// Returns whether `now` is a protected file or folder that moved with its folder and is otherwise
    /// unchanged.
    fn is_moved_to(&self, tree: &Tree, now: &Path) -> bool {
        now.symlink_metadata().is_ok_and(|of| id(&of) == tree.id)
            && tree.holder.is_some()
            && holder(now) == tree.holder
            && (self.before.is_held && tree.entries.is_empty()
                || Tree::of(now).is_some_and(|now| now.entries == tree.entries))
    }

    fn appeared(&mut self, path: &Path) {
        // In a part that was not searched before, it may have existed already.
        let is_old = self.before.places.is_partial
            && path.symlink_metadata().is_ok_and(|of| of.ctime() < self.before.since);
        let is_moved = || self.before.trees.values().any(|tree| self.is_moved_to(tree, path));
        if is_old || is_moved() || self.is_harmless(path) {
            return;
        }
        let advice = ". Use write_file to make such a file: a person is asked";
        self.put_away(path, Path::new(""), advice);
    }

    fn stayed(&mut self, path: &Path, tree: &Tree) {
        let now = Tree::of(path);
        if self.before.is_held && tree.entries.is_empty() {
            if now.is_none_or(|now| now.id != tree.id) {
                self.notes.push(warn(format!(
                    "'{}' was replaced from outside while the command ran, so that it was not held any more. \
                     Tell the person to look at it",
                    self.name(path)
                )));
            }
            return;
        }
        let nothing = BTreeMap::new();
        let entries = now.as_ref().map_or(&nothing, |now| &now.entries);
        let mut aside: Option<PathBuf> = None;
        for below in entries.keys().filter(|below| !tree.entries.contains_key(*below)) {
            if !aside.as_ref().is_some_and(|aside| below.starts_with(aside)) {
                aside = Some(below.clone());
                self.put_away(path, below, "");
            }
        }
        for (below, entry) in &tree.entries {
            if entries.get(below) != Some(entry) {
                self.put_back(path, below, entry);
            }
        }
    }

    /// Sets a forbidden new file aside and adds a note about that for the model; `advice` ends the note.
    fn put_away(&mut self, path: &Path, below: &Path, advice: &str) {
        if self.is_report {
            return self.leave(&at(path, below), "is new since then");
        }
        let (why, name) = (self.why(path), self.name(&at(path, below)));
        self.notes.push(match self.set_aside(path, below) {
            Ok(aside) => format!(
                "the command made '{name}', which it may not ({why}). It was set aside and is now '{}'{advice}",
                self.name(&aside)
            ),
            Err(e) => warn(format!(
                "the command made '{name}', which it may not ({why}), and it cannot be set aside: {e}. \
                     Tell the person"
            )),
        });
    }

    fn put_back(&mut self, path: &Path, below: &Path, entry: &Entry) {
        let place = at(path, below);
        if self.is_report {
            return self.leave(&place, "was changed or removed since then");
        }
        let (why, name) = (self.why(path), self.name(&place));
        let aside = match place.symlink_metadata() {
            Ok(of) if !(of.is_dir() && *entry == Entry::Folder) => self.set_aside(path, below).map(Some),
            _ => Ok(None),
        };
        let done = aside.and_then(|aside| self.restore(&place, entry).map(|()| aside));
        self.notes.push(match done {
            Ok(None) => format!("the command removed '{name}', which it may not ({why}). It was put back"),
            Ok(Some(aside)) => format!(
                "the command changed '{name}', which it may not ({why}). It was put back, and what the \
                 command made of it is now '{}'",
                self.name(&aside)
            ),
            Err(e) => warn(format!(
                "the command changed '{name}', which it may not ({why}), and it cannot be put back: {e}. \
                     Tell the person"
            )),
        });
    }

    /// Adds a note about a change that stays: `how` follows the name.
    fn leave(&mut self, place: &Path, how: &str) {
        self.notes.push(warn(format!(
            "a command ran in the background, and '{}' {how} ({}). It was left as it is, because it is not known \
             who did that. Tell the person to look at it",
            self.name(place),
            self.why(place)
        )));
    }

    fn restore(&self, place: &Path, entry: &Entry) -> io::Result<()> {
        self.with_rights(place, || self.write_back(place, entry))
    }

    fn write_back(&self, place: &Path, entry: &Entry) -> io::Result<()> {
        let (root, relative) = self.split(place)?;
        let at = Place::find(root, relative, Missing::Create)?;
        match entry {
            Entry::File { content: Content::Known(content), mode } => {
                let file = at.replace(content, None)?;
                file.set_permissions(fs::Permissions::from_mode(*mode))
            }
            Entry::File { .. } => Err(io::Error::other("it was too large to be kept")),
            Entry::Folder => Place::find(root, &relative.join("x"), Missing::Create).map(|_| ()),
            Entry::Link(target) => at.make_link(target),
            Entry::Other => Err(io::Error::other("it was no file, folder or link")),
        }
    }

    /// Makes a change; if that is denied, restores the rights of the folders above, which a command may have
    /// removed, and tries again.
    fn with_rights<T>(&self, path: &Path, change: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match change() {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let (root, _) = self.split(path)?;
                let above: Vec<&Path> =
                    path.ancestors().skip(1).take_while(|above| above.starts_with(root)).collect();
                above.into_iter().rev().for_each(|folder| _ = give_back(folder));
                change()
            }
            done => done,
        }
    }

    /// Renames a forbidden new file, so that no program uses it, and returns its new path.
    fn set_aside(&self, path: &Path, below: &Path) -> io::Result<PathBuf> {
        self.with_rights(&at(path, below), || self.rename_aside(path, below))
    }

    fn rename_aside(&self, path: &Path, below: &Path) -> io::Result<PathBuf> {
        let from = at(path, below);
        let names = path.file_name().into_iter().chain(below);
        let name = names.map(|name| name.to_string_lossy()).collect::<Vec<_>>().join("-");
        let (root, relative) = self.split(&from)?;
        let old = Place::find(root, relative, Missing::Refuse)?;
        for number in 0..1_000 {
            let end = if number == 0 { String::new() } else { format!("-{number}") };
            let aside = path.with_file_name(format!("{name}.set-aside{end}"));
            let (root, relative) = self.split(&aside)?;
            match old.move_to(&Place::find(root, relative, Missing::Refuse)?) {
                Ok(()) => return Ok(aside),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::other("no name for it is free"))
    }

    /// Returns whether a new file or folder is harmless: no program would run anything new because of it.
    fn is_harmless(&self, path: &Path) -> bool {
        let (Some(name), Some(folder)) = (path.file_name().and_then(|name| name.to_str()), path.parent())
        else {
            return false;
        };
        if self.denied_writing(path) {
            return false;
        }
        let is_git = self.after.pinned.contains(folder) || self.cage.roots.iter().any(|root| root == folder);
        let content = || self.content(path);
        let leads_to_git =
            |to: &str| folder.join(to.trim()).canonicalize().is_ok_and(|to| self.is_held_git(&to));
        let is_fine = match name {
            "config" | "config.worktree" if is_git => {
                content().is_some_and(|content| is_plain_config(&content))
            }
            "hooks" if is_git => Tree::of(path).is_some_and(|tree| tree.is_samples()),
            "commondir" if is_git => {
                content().is_some_and(|content| leads_to_git(&content)) && self.is_held_git(folder)
            }
            ".git" => {
                content().is_some_and(|content| content.strip_prefix("gitdir:").is_some_and(leads_to_git))
            }
            _ => false,
        };
        is_fine || self.is_copy(path, name)
    }

    /// Returns whether a folder is a `.git` folder that existed before the command, one of its subfolders
    /// `worktrees` and `modules`, or a folder within these two. The settings of any other git folder were not
    /// approved.
    fn is_held_git(&self, folder: &Path) -> bool {
        let is_held = |git: &&Path| {
            git.file_name().is_some_and(|name| name == ".git") && self.before.places.pinned.contains(*git)
        };
        let Some(git) = folder.ancestors().find(is_held) else { return false };
        let mut below = folder.strip_prefix(git).into_iter().flat_map(Path::components);
        below
            .next()
            .is_none_or(|first| ["worktrees", "modules"].iter().any(|known| first.as_os_str() == *known))
    }

    /// Returns whether a new file or folder has the same content as an earlier one with the same name, as
    /// in a second worktree.
    fn is_copy(&self, path: &Path, name: &str) -> bool {
        let Some(copy) = Tree::of(path) else { return false };
        self.before.trees.iter().filter(|(old, _)| old.file_name().is_some_and(|old| old == name)).any(
            |(old, tree)| {
                let held;
                let entries = match self.before.is_held && tree.entries.is_empty() {
                    true => {
                        held = Tree::of(old).filter(|now| now.id == tree.id);
                        held.as_ref().map(|held| &held.entries)
                    }
                    false => Some(&tree.entries),
                };
                entries.is_some_and(|old| {
                    copy.entries
                        .iter()
                        .all(|(below, entry)| old.get(below).is_some_and(|old| old.says(entry)))
                })
            },
        )
    }

    fn content(&self, path: &Path) -> Option<String> {
        let (root, relative) = self.split(path).ok()?;
        let file = Place::find(root, relative, Missing::Refuse).and_then(|place| place.open()).ok()?;
        let mut content = String::new();
        file.take(FILE).read_to_string(&mut content).ok()?;
        Some(content)
    }

    fn denied_writing(&self, path: &Path) -> bool {
        self.split(path).is_ok_and(|(_, relative)| control(relative).is_none()) && self.denied.writing(path)
    }

    fn why(&self, path: &Path) -> &'static str {
        let why = self.split(path).ok().and_then(|(_, relative)| control(relative));
        why.unwrap_or(if self.denied.writing(path) {
            "a rule denies it"
        } else {
            "git can run commands from it"
        })
    }

    fn split<'p>(&self, path: &'p Path) -> io::Result<(&Path, &'p Path)> {
        let root =
            self.cage.roots.iter().find(|root| path.starts_with(root)).ok_or(io::ErrorKind::NotFound)?;
        Ok((root, path.strip_prefix(root).map_err(io::Error::other)?))
    }

    fn name(&self, path: &Path) -> String {
        let relative = self.cage.roots.first().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        crate::workspace::printable_path(&relative.to_string_lossy())
    }
}

impl Tree {
    fn of(path: &Path) -> Option<Self> {
        let of = path.symlink_metadata().ok()?;
        let mut entries = BTreeMap::new();
        let (mut room, mut queue) = (ALL, vec![PathBuf::new()]);
        while let Some(below) = queue.pop() {
            let place = at(path, &below);
            let Ok(of) = place.symlink_metadata() else { continue };
            if of.is_dir() {
                let names = fs::read_dir(&place).into_iter().flatten().flatten().take(ENTRIES);
                queue.extend(names.map(|entry| below.join(entry.file_name())));
            }
            entries.insert(below, Entry::of(&place, &of, &mut room));
            if entries.len() > ENTRIES {
                break;
            }
        }
        Some(Self { id: id(&of), holder: holder(path), entries })
    }

    /// Returns whether these are the sample hooks of a new repository, which git does not run.
    fn is_samples(&self) -> bool {
        self.entries.iter().all(|(below, entry)| match entry {
            Entry::Folder => below.as_os_str().is_empty(),
            Entry::File { .. } => below.extension().is_some_and(|end| end == "sample"),
            _ => false,
        })
    }
}

impl Entry {
    fn of(at: &Path, of: &fs::Metadata, room: &mut u64) -> Self {
        if of.is_symlink() {
            return fs::read_link(at).map_or(Self::Other, Self::Link);
        }
        if of.is_dir() {
            return Self::Folder;
        }
        if !of.is_file() {
            return Self::Other;
        }
        let most = FILE.min(*room);
        let read = || {
            let mut content = Vec::new();
            open_regular(at).and_then(|file| file.take(most + 1).read_to_end(&mut content)).ok()?;
            Some(content).filter(|content| content.len() as u64 <= most)
        };
        let known = if of.len() <= most { read() } else { None };
        let content = match known {
            Some(content) => {
                *room = room.saturating_sub(content.len() as u64);
                Content::Known(content)
            }
            None => Content::Large(of.len(), of.mtime(), of.mtime_nsec()),
        };
        Self::File { content, mode: of.mode() & 0o7777 }
    }

    /// Returns whether two entries have the same content, whatever their modes.
    fn says(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { content: Content::Known(a), .. },
                Self::File { content: Content::Known(b), .. },
            ) => a == b,
            (Self::Folder, Self::Folder) => true,
            (Self::Link(a), Self::Link(b)) => a == b,
            _ => false,
        }
    }
}

/// Returns the holder of a path, which shows whether a file or folder moved together with the folder that
/// contains it.
fn holder(path: &Path) -> Option<Holder> {
    let of_git = path.ancestors().find(|parent| parent.file_name().is_some_and(|name| name == ".git"));
    let folder = of_git.unwrap_or(path).parent()?;
    Some((id(&folder.symlink_metadata().ok()?), path.strip_prefix(folder).ok()?.to_owned()))
}

/// Returns the path of an entry below a protected path; the entry with an empty path is the protected path
/// itself, to which `join` would add a slash.
fn at(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

fn id(of: &fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

/// Returns whether the settings of a new repository have only harmless keys, which git does not run.
fn is_plain_config(text: &str) -> bool {
    const PLAIN: &[(&str, &str)] = &[
        (
            "core",
            "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks \
             worktree",
        ),
        ("remote", "url fetch"),
        ("branch", "remote merge rebase"),
        ("submodule", "url active"),
        ("extensions", "objectformat refstorage worktreeconfig"),
        ("user", "name email"),
    ];
    let mut section = "";
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']').filter(|header| !header.contains([']', '\\'])) else {
                return false;
            };
            section = header.split_once(' ').map_or(header, |(name, _)| name);
            return PLAIN.iter().any(|(known, _)| section.eq_ignore_ascii_case(known));
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let is_known = |keys: &str| keys.split(' ').any(|known| key.trim().eq_ignore_ascii_case(known));
        // A backslash continues the line, and `::` names a program that fetches.
        !value.contains('\\')
            && !value.contains("::")
            && PLAIN.iter().any(|(known, keys)| section.eq_ignore_ascii_case(known) && is_known(keys))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_plain_config_is_false_for_settings_that_run_programs() {
        for plain in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
            "# a\n[remote \"origin\"]\n url = https://example.org/a\n fetch = +refs/heads/*:refs/remotes/origin/*\n",
        ] {
            assert!(is_plain_config(plain), "{plain}");
        }
        for other in [
            "[core]\n fsmonitor = touch x",
            "[core] fsmonitor = touch x",
            "[core]\n bare = false \\\n[core]\n",
            "[CORE]\n FSMonitor = x",
            "[include]\n path = x",
            "[remote \"a\"]\n url = ext::sh -c x",
            "[remote \"a\"]\n uploadpack = x",
            "[core]]\n",
            "url = x",
            "[user]\n[alias \"core\"]\n x = !y",
        ] {
            assert!(!is_plain_config(other), "{other}");
        }
    }
}
