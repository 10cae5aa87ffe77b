//! The rules of `.gitignore` files, on disk or in a snapshot: they tell which files git would ignore.

use std::{
    collections::HashMap,
    ffi::OsStr,
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

/// The rules of a folder and of those above it, the outermost first.
#[derive(Default)]
pub(crate) struct Rules(Vec<Rule>);

struct Rule {
    /// The length of the folder's path with the slash at its end.
    below: usize,
    matcher: Gitignore,
}

impl Rules {
    /// Adds the rules of a folder, whose path with a slash at its end has the length `below`.
    pub(crate) fn enter(&mut self, folder: &Folder, below: usize) {
        let mut text = Vec::new();
        // A file with rules that cannot be read has no effect, as in git.
        if let Ok(file) = folder.open_file(OsStr::new(NAME)) {
            let _ = file.take(LARGEST).read_to_end(&mut text);
        }
        self.0.push(Rule { below, matcher: parse(&text) });
    }

    /// Removes the rules that were added last.
    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    /// Returns true if the rules ignore the path. Those of inner folders are stronger.
    pub(crate) fn ignore(&self, path: &[u8], is_folder: bool) -> bool {
        for rule in self.0.iter().rev() {
            let relative = path.get(rule.below..).unwrap_or_default();
            match rule.matcher.matched(Path::new(OsStr::from_bytes(relative)), is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// The rules of all folders of a snapshot.
pub(crate) struct RulesOfSnapshot<'a> {
    files: &'a Files,
    objects: &'a Objects,
    parsed: HashMap<PathBuf, Gitignore>,
}

impl<'a> RulesOfSnapshot<'a> {
    pub(crate) fn new(files: &'a Files, objects: &'a Objects) -> Self {
        Self { files, objects, parsed: HashMap::new() }
    }

    /// Returns true if the rules ignore the path, or a folder that it is in.
    pub(crate) fn ignore(&mut self, path: &Path, is_folder: bool) -> bool {
        let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
        folders.reverse();
        let mut rules = Rules::default();
        let mut steps =
            folders.iter().skip(1).copied().map(|folder| (folder, true)).chain([(path, is_folder)]);
        for folder in &folders {
            let length = folder.as_os_str().len();
            let below = if length == 0 { 0 } else { length + 1 };
            rules.0.push(Rule { below, matcher: self.of(folder) });
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
