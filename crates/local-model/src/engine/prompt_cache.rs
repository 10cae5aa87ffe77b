//! A disk cache for the beginnings of prompts that stay the same (instructions, tools, examples): it keeps
//! the state that the engine computed for them, so that the next process need not compute it again.
//!
//! The cache contains no part of a conversation. A file is named by a hash of everything on which its
//! content depends, including the tokens. The file begins with a hash of the content, which is checked
//! before llama.cpp reads the content. A file that cannot be read or written only costs time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::prebuilt::hex;
use crate::vocabulary::Token;

/// The minimum number of tokens of a cached prefix. A shorter prefix is computed about as fast as a file is
/// read.
const FEWEST: usize = 128;

/// The maximum number of prefixes in the cache; the most recently used ones are kept.
const MOST_FILES: usize = 8;

/// The extension of the files' names.
const ENDING: &str = "prompt";

/// The length of a SHA-256 in bytes.
const HASH: usize = 32;

/// A folder with the computed states of prompt prefixes, for one model file and one configuration of the
/// engine.
pub(super) struct PromptCache {
    folder: PathBuf,
    identity: String,
}

impl PromptCache {
    /// Opens the cache for the file of a model. `engine` describes everything else that the states depend on.
    /// Returns `None` if the properties of the file cannot be read.
    pub(super) fn new(folder: &Path, model: &Path, engine: &str) -> Option<Self> {
        let model = model.canonicalize().ok()?;
        let file = model.metadata().ok()?;
        let changed = file.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let identity = format!("{}\n{}\n{changed}\n{engine}\n", model.display(), file.len());
        Some(Self { folder: folder.to_owned(), identity })
    }

    /// Returns the state of this prefix; `None` if the file is missing or damaged.
    pub(super) fn load(&self, beginning: &[Token]) -> Option<Vec<u8>> {
        let path = self.path(beginning)?;
        let mut bytes = fs::read(&path).ok()?;
        let content = bytes.split_off(HASH.min(bytes.len()));
        if Sha256::digest(&content).as_slice() != bytes {
            let _ = fs::remove_file(&path);
            return None;
        }
        // The time of use decides which files are kept.
        let _ = fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(content)
    }

    /// Returns true if the state of this prefix is cached, or if the prefix is too short for the cache.
    pub(super) fn holds(&self, beginning: &[Token]) -> bool {
        self.path(beginning).is_none_or(|path| path.is_file())
    }

    /// Writes the state of this prefix if the prefix is long enough, and removes the oldest files beyond the
    /// maximum. Returns false if writing failed.
    pub(super) fn store(&self, beginning: &[Token], content: &[u8]) -> bool {
        let Some(path) = self.path(beginning) else { return true };
        let is_written = self.write(&path, content).is_ok();
        self.remove_old();
        is_written
    }

    /// Returns the path of a prefix's file; `None` if the prefix is too short.
    fn path(&self, beginning: &[Token]) -> Option<PathBuf> {
        if beginning.len() < FEWEST {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update(&self.identity);
        beginning.iter().for_each(|token| hash.update(token.to_le_bytes()));
        Some(self.folder.join(format!("{}.{ENDING}", &hex(&hash.finalize())[..32])))
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder)?;
        // Each process has its own temporary name, because two may write the same prefix at once.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let written = fs::write(&new, [Sha256::digest(content).as_slice(), content].concat());
        let named = written.and_then(|()| fs::rename(&new, path));
        if named.is_err() {
            let _ = fs::remove_file(&new);
        }
        named
    }

    fn remove_old(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        // Unfinished files count too: a process that was killed while it wrote leaves one.
        let is_ours =
            |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING || ending == "new");
        let used = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_ours).collect();
        files.sort_by_key(|path| std::cmp::Reverse(used(path)));
        for old in files.into_iter().skip(MOST_FILES) {
            let _ = fs::remove_file(old);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    struct Fixture {
        folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("model"), "weights").unwrap();
            Self { folder }
        }

        fn cache(&self, engine: &str) -> PromptCache {
            PromptCache::new(&self.folder.path().join("cache"), &self.folder.path().join("model"), engine)
                .unwrap()
        }

        fn files(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(self.folder.path().join("cache")).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        }
    }

    fn beginning(first: Token) -> Vec<Token> {
        (first..).take(FEWEST).collect()
    }

    #[test]
    fn prompt_cache_load_needs_equal_tokens_model_and_engine() {
        let fixture = Fixture::new();
        fixture.cache("a").store(&beginning(1), b"content");
        assert_eq!(fixture.cache("a").load(&beginning(1)).as_deref(), Some(&b"content"[..]));
        assert_eq!(fixture.cache("a").load(&beginning(2)), None);
        assert_eq!(fixture.cache("b").load(&beginning(1)), None);
        fs::write(fixture.folder.path().join("model"), "others").unwrap();
        assert_eq!(fixture.cache("a").load(&beginning(1)), None);
    }

    #[test]
    fn load_of_an_altered_or_cut_file_returns_nothing_and_removes_it() {
        for length in [0, 10, HASH, HASH + 3] {
            let fixture = Fixture::new();
            fixture.cache("a").store(&beginning(1), b"content");
            let file = fixture.files().pop().unwrap();
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..length]).unwrap();
            assert_eq!(fixture.cache("a").load(&beginning(1)), None, "{length}");
            assert_eq!(fixture.files(), Vec::<PathBuf>::new());
        }
    }

    #[test]
    fn store_keeps_the_last_used_files_and_no_short_beginning() {
        let fixture = Fixture::new();
        let cache = fixture.cache("a");
        cache.store(&beginning(1)[1..], b"short");
        let at = |file: &Path, seconds| {
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
        };
        for first in 1..=8 {
            cache.store(&beginning(first), b"content");
            at(&cache.path(&beginning(first)).unwrap(), u64::try_from(first).unwrap());
        }
        assert!(cache.load(&beginning(1)).is_some(), "used now");
        cache.store(&beginning(9), b"content");
        assert_eq!(fixture.files().len(), MOST_FILES);
        assert!(cache.load(&beginning(1)).is_some() && cache.load(&beginning(2)).is_none());
    }
}
