//! The files of a skill's folder: listed, read by a relative path, and hashed. Symbolic links are never followed, so
//! that a skill cannot show files that are not its own.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use crate::{SkillError, skill_file};

/// The maximum number of files and folders of a skill that are listed.
const MOST_LISTED: usize = 5_000;
/// The maximum number of files and folders in a folder that is hashed.
const MOST_HASHED: usize = 1_000;
/// The maximum total size of the files in a folder that is hashed, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The maximum depth of nested folders.
const DEEPEST: usize = 16;
/// The names of folders that development tools write. They have nothing for a model to read, so they are skipped.
pub(crate) const SKIPPED: [&str; 4] = [".git", "node_modules", "__pycache__", ".venv"];

/// A file, a symbolic link, or anything else in a folder except a subfolder.
struct Entry {
    /// The path relative to the folder, with `/` between its parts.
    name: String,
    path: PathBuf,
    kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq)]
enum EntryKind {
    File,
    Link,
    Other,
}

/// A hashed folder, with the contents of its files in memory. Whoever reads them here gets exactly the contents that
/// were hashed.
pub(crate) struct HashedFolder {
    pub(crate) hash: String,
    /// The content of each file by its path below the folder, with `/`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// The paths of symbolic links, each with its target in bytes.
    pub(crate) links: BTreeMap<String, Vec<u8>>,
}

/// Returns the paths of a skill's files below its folder, in order and without `SKILL.md`.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut walk = Walk { skipped: &SKIPPED, most: MOST_LISTED, count: 0, entries: Vec::new() };
    // What cannot be listed cannot be read either; the instructions are useful without it.
    let _ = walk.add(folder, "", 0);
    let files = walk.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    files.map(|entry| entry.name).filter(|name| name != skill_file::SKILL_FILE).collect()
}

/// Returns the full path of the file `name` in a folder. Fails if the path leads out of the folder or through a
/// symbolic link, or if nothing exists at the path.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf, SkillError> {
    let outside = || SkillError::Outside(name.to_owned());
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    if !parts.iter().all(|part| matches!(part, Component::CurDir | Component::Normal(_))) {
        return Err(outside());
    }
    let mut path = folder.to_owned();
    for part in parts {
        path.push(part);
        let entry = fs::symlink_metadata(&path);
        let entry = entry
            .map_err(|error| SkillError::Unreadable { file: path.clone(), problem: error.to_string() })?;
        if entry.is_symlink() {
            return Err(outside());
        }
    }
    Ok(path)
}

/// Returns the path of a file relative to the folder, with `/` between its parts, like the keys of
/// `HashedFolder::files`.
pub(crate) fn name_below(folder: &Path, file: &Path) -> String {
    let parts = file.strip_prefix(folder).unwrap_or(file).components();
    let names: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    names.join("/")
}

/// Returns the SHA-256 of a folder's content in hexadecimal digits. It covers the path and the content of each file,
/// and the path and the target of each symbolic link, so it changes with every change that could affect the skill.
///
/// # Errors
/// A file cannot be read, or the folder has more than 1,000 files and folders, or files of more than 16 MiB.
pub fn folder_hash(folder: &Path) -> io::Result<String> {
    Ok(load(folder)?.hash)
}

/// Reads a folder and hashes what was read.
///
/// # Errors
/// As [`folder_hash`].
pub(crate) fn load(folder: &Path) -> io::Result<HashedFolder> {
    let mut walk = Walk { skipped: &[], most: MOST_HASHED, count: 0, entries: Vec::new() };
    walk.add(folder, "", 0)?;
    let mut loaded = HashedFolder { hash: String::new(), files: BTreeMap::new(), links: BTreeMap::new() };
    let mut hash = hmac_sha256::Hash::new();
    // The length before each part makes sure that different folders give different input.
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(b"archon skill folder 1");
    let mut room = MOST_BYTES;
    for Entry { name, path, kind } in walk.entries {
        let (label, content) = match kind {
            EntryKind::File => ("file", read_within(&path, &mut room)?),
            EntryKind::Link => ("link", fs::read_link(&path)?.into_os_string().into_encoded_bytes()),
            EntryKind::Other => ("other", Vec::new()),
        };
        [label.as_bytes(), name.as_bytes(), &content].into_iter().for_each(&mut add);
        match kind {
            EntryKind::File => drop(loaded.files.insert(name, content)),
            EntryKind::Link => drop(loaded.links.insert(name, content)),
            EntryKind::Other => {}
        }
    }
    loaded.hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(loaded)
}

/// Reads a file, and subtracts its size from `room`, the number of bytes that may still be read. Fails if the file is
/// larger than `room`.
fn read_within(file: &Path, room: &mut u64) -> io::Result<Vec<u8>> {
    let (content, is_whole) = skill_file::read(file, *room)?;
    if !is_whole {
        return Err(io::Error::other(format!("its files have more than {} MiB", MOST_BYTES >> 20)));
    }
    *room -= content.len() as u64;
    Ok(content)
}

/// The files of a folder and of those below it, in the order of their names.
struct Walk<'w> {
    skipped: &'w [&'w str],
    /// The maximum number of files and folders; more are an error.
    most: usize,
    count: usize,
    entries: Vec<Entry>,
}

impl Walk<'_> {
    fn add(&mut self, folder: &Path, below: &str, depth: usize) -> io::Result<()> {
        // One more than there may be is enough to see that there are too many.
        let room = self.most.saturating_sub(self.count) + 1;
        let mut found = fs::read_dir(folder)?.take(room).collect::<io::Result<Vec<_>>>()?;
        found.sort_by_key(fs::DirEntry::file_name);
        for item in found {
            self.count += 1;
            if self.count > self.most {
                return Err(io::Error::other(format!("it has more than {} files and folders", self.most)));
            }
            let part = item.file_name();
            let part = part.to_str().ok_or_else(|| io::Error::other("a file's name is not UTF-8"))?;
            let name = if below.is_empty() { part.to_owned() } else { format!("{below}/{part}") };
            let kind = item.file_type()?;
            if kind.is_dir() {
                if self.skipped.contains(&part) {
                    continue;
                }
                if depth == DEEPEST {
                    let text = format!("more than {DEEPEST} folders are inside of each other");
                    return Err(io::Error::other(text));
                }
                self.add(&item.path(), &name, depth + 1)?;
                continue;
            }
            let kind = match (kind.is_file(), kind.is_symlink()) {
                (true, _) => EntryKind::File,
                (_, true) => EntryKind::Link,
                _ => EntryKind::Other,
            };
            self.entries.push(Entry { name, path: item.path(), kind });
        }
        Ok(())
    }
}
