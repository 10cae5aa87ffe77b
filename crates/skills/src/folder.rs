//! The files of a skill's folder: listed, read by a relative path, and hashed. Symbolic links are never followed, so
//! that a skill cannot show files that are not its own.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use crate::{SkillError, skill_file};

/// The most files and folders of a skill that are looked at.
const MOST_ENTRIES: usize = 5_000;
/// The most bytes of a skill's files that are hashed.
const MOST_BYTES: u64 = 200 * 1024 * 1024;
/// The folders inside of each other that are looked at.
const DEEPEST: usize = 16;
/// Folders that are written by tools and have nothing for a model.
pub(crate) const SKIPPED: [&str; 4] = [".git", "node_modules", "__pycache__", ".venv"];

/// Something in a folder.
struct Entry {
    /// The path below the folder, with `/`.
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

/// Returns the paths of a skill's files below its folder, in order and without `SKILL.md`.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut entries = Vec::new();
    // What cannot be listed cannot be read either; the instructions are useful without it.
    let _ = walk(folder, "", 0, &SKIPPED, &mut entries);
    let files = entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    files.map(|entry| entry.name).filter(|name| name != skill_file::SKILL_FILE).collect()
}

/// Returns the path of a file that a relative path names.
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

/// Returns the SHA-256 of a folder in hexadecimal digits: of the path and the content of each file, and of the path
/// and the target of each symbolic link. It changes with every change that a skill could make use of.
///
/// # Errors
/// A file cannot be read, or the folder has more than 5,000 files or more than 200 MB.
pub fn folder_hash(folder: &Path) -> io::Result<String> {
    let mut entries = Vec::new();
    walk(folder, "", 0, &[], &mut entries)?;
    let mut hash = hmac_sha256::Hash::new();
    // The length before each part makes sure that different folders give different input.
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(b"archon skill folder 1");
    let mut bytes = 0;
    for entry in entries {
        bytes += entry.path.symlink_metadata()?.len();
        if bytes > MOST_BYTES {
            return Err(io::Error::other(format!("the folder has more than {MOST_BYTES} bytes")));
        }
        let (kind, content) = match entry.kind {
            EntryKind::File => ("file", fs::read(&entry.path)?),
            EntryKind::Link => ("link", fs::read_link(&entry.path)?.into_os_string().into_encoded_bytes()),
            EntryKind::Other => ("other", Vec::new()),
        };
        [kind.as_bytes(), entry.name.as_bytes(), &content].into_iter().for_each(&mut add);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds the files of a folder, in the order of their names.
fn walk(
    folder: &Path,
    below: &str,
    depth: usize,
    skipped: &[&str],
    entries: &mut Vec<Entry>,
) -> io::Result<()> {
    let mut found = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    found.sort_by_key(fs::DirEntry::file_name);
    for item in found {
        if entries.len() >= MOST_ENTRIES {
            return Err(io::Error::other(format!("the folder has more than {MOST_ENTRIES} files")));
        }
        let part = item.file_name();
        let part = part.to_str().ok_or_else(|| io::Error::other("a file's name is not UTF-8"))?;
        let name = if below.is_empty() { part.to_owned() } else { format!("{below}/{part}") };
        let kind = item.file_type()?;
        if kind.is_dir() {
            if skipped.contains(&part) {
                continue;
            }
            if depth == DEEPEST {
                return Err(io::Error::other(format!(
                    "more than {DEEPEST} folders are inside of each other"
                )));
            }
            walk(&item.path(), &name, depth + 1, skipped, entries)?;
            continue;
        }
        let kind = match (kind.is_file(), kind.is_symlink()) {
            (true, _) => EntryKind::File,
            (_, true) => EntryKind::Link,
            _ => EntryKind::Other,
        };
        entries.push(Entry { name, path: item.path(), kind });
    }
    Ok(())
}
