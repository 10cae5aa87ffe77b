//! The rules of `.gitignore` files, on disk or in a snapshot, and of `info/exclude`: they tell which files git would
//! ignore.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::{
    beneath::Folder,
    objects::Objects,
    tree::{Files, Kind},
};

/// The name of files with rules.
pub(crate) const NAME: &str = ".gitignore";

/// Maximum size in bytes of a file with rules that is read.
const LARGEST: u64 = 1 << 20;

/// The ignore rules of a folder and of the folders above it, outermost first.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// The path of the workspace in its git repository, with a slash at its end; empty if the workspace is the root
    /// of the repository, or in no repository.
    base: Vec<u8>,
    rules: Vec<Rule>,
}

#[derive(Clone)]
struct Rule {
    /// The length of the path of the rule's folder in the repository, in bytes, including the final slash.
    below: usize,
    matcher: Gitignore,
}

impl Rules {
    /// Returns the rules above a workspace: those of `info/exclude` of its git repository, and those of the folders
    /// from the root of the repository down to the parent of the workspace. Returns no rules if they ignore the
    /// workspace itself: they would exclude all of its files.
    pub(crate) fn above(workspace: &Path) -> Self {
        let root = workspace.ancestors().find(|folder| folder.join(".git").exists());
        let inside = root.and_then(|root| workspace.strip_prefix(root).ok());
        let (Some(root), Some(inside)) = (root, inside) else { return Self::default() };
        let mut own = Self::default();
        own.add(0, &read(&exclude_file(root)));
        let mut folder = root.to_owned();
        for step in inside {
            own.add(own.base.len(), &read(&folder.join(NAME)));
            folder.push(step);
            own.base.extend(step.as_bytes());
            if own.ignore_in_repository(&own.base, true) {
                return Self::default();
            }
            own.base.push(b'/');
        }
        own
    }

    /// Adds the rules of a folder. `below` is the length of the folder's path in the workspace, including the final
    /// slash.
    pub(crate) fn enter(&mut self, folder: &Folder, below: usize) {
        let mut text = Vec::new();
        // A file with rules that cannot be read has no effect, as in git.
        if let Ok(file) = folder.open_file(OsStr::new(NAME)) {
            let _ = file.take(LARGEST).read_to_end(&mut text);
        }
        self.add(self.base.len() + below, &text);
    }

    /// Removes the rules that were added last.
    pub(crate) fn leave(&mut self) {
        self.rules.pop();
    }

    /// Returns true if the rules ignore the path, which is relative to the workspace. Rules of inner folders take
    /// precedence.
    pub(crate) fn ignore(&self, path: &[u8], is_folder: bool) -> bool {
        match self.base.is_empty() {
            true => self.ignore_in_repository(path, is_folder),
            false => self.ignore_in_repository(&[&self.base[..], path].concat(), is_folder),
        }
    }

    fn ignore_in_repository(&self, path: &[u8], is_folder: bool) -> bool {
        for rule in self.rules.iter().rev() {
            let relative = path.get(rule.below..).unwrap_or_default();
            match rule.matcher.matched(Path::new(OsStr::from_bytes(relative)), is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn add(&mut self, below: usize, text: &[u8]) {
        self.rules.push(Rule { below, matcher: parse(text) });
    }
}

/// Returns the path of `info/exclude`, the file with the local rules of a repository. In a linked worktree, `.git` is
/// a file that contains the path of the git folder.
fn exclude_file(root: &Path) -> PathBuf {
    let git = root.join(".git");
    let named = read(&git);
    let folder = String::from_utf8_lossy(&named)
        .trim()
        .strip_prefix("gitdir: ")
        .map_or_else(|| git.clone(), |path| root.join(path));
    // All worktrees of a repository have the same rules.
    let shared = read(&folder.join("commondir"));
    folder.join(String::from_utf8_lossy(&shared).trim()).join("info/exclude")
}

/// Reads a file outside of the workspace; returns no bytes if it is not a regular file or cannot be read.
fn read(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        let _ = file.take(LARGEST).read_to_end(&mut text);
    }
    text
}

/// The ignore rules of all folders of a snapshot, and the current rules above the workspace.
pub(crate) struct RulesOfSnapshot<'a> {
    above: Rules,
    files: &'a Files,
    objects: &'a Objects,
    parsed: HashMap<PathBuf, Gitignore>,
}

impl<'a> RulesOfSnapshot<'a> {
    pub(crate) fn new(above: Rules, files: &'a Files, objects: &'a Objects) -> Self {
        Self { above, files, objects, parsed: HashMap::new() }
    }

    /// Returns true if the rules ignore the path, or a folder that it is in.
    pub(crate) fn ignore(&mut self, path: &Path, is_folder: bool) -> bool {
        let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
        folders.reverse();
        let mut rules = self.above.clone();
        let base = rules.base.len();
        let mut steps =
            folders.iter().skip(1).copied().map(|folder| (folder, true)).chain([(path, is_folder)]);
        for folder in &folders {
            let length = folder.as_os_str().len();
            let below = if length == 0 { 0 } else { length + 1 };
            rules.rules.push(Rule { below: base + below, matcher: self.of(folder) });
            let Some((step, is_folder)) = steps.next() else { break };
            if rules.ignore(step.as_os_str().as_bytes(), is_folder) {
                return true;
            }
        }
        false
    }

    fn of(&mut self, folder: &Path) -> Gitignore {
        if let Some(known) = self.parsed.get(folder) {
            return known.clone();
        }
        let entry = self.files.get(&folder.join(NAME)).filter(|entry| entry.kind == Kind::File);
        let text = entry.and_then(|entry| self.objects.read(&entry.hash));
        let matcher = text.map_or_else(Gitignore::empty, |text| parse(&text));
        self.parsed.insert(folder.to_owned(), matcher.clone());
        matcher
    }
}

fn parse(text: &[u8]) -> Gitignore {
    // Without a root, because paths are given relative to the folder of the rules.
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(text).trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern has no effect, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
