//! Changes files of a workspace: only within it, and only versions that the session has read.

use std::{
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use archon_types::{Json, Preview, SessionId, ToolContext, ToolError, ToolResult};

use crate::{
    Workspace,
    control::control,
    permissions::plain,
    seen::{Seen, Version},
    workspace::printable_path,
};
#[cfg(unix)]
use crate::{
    beneath::{Missing, Place},
    git_settings,
};

/// A file that a session wants to change.
pub(crate) struct Target {
    /// The canonical path of the file.
    real: PathBuf,
    root: PathBuf,
    /// The file's name in results.
    pub(crate) name: String,
    /// The existing file, if there is one.
    pub(crate) existing: Option<Existing>,
    /// The reason why the file is a control file, if it is one.
    control: Option<&'static str>,
}

/// An existing file.
pub(crate) struct Existing {
    file: File,
    version: Version,
    pub(crate) bytes: u64,
}

/// Maximum number of new folders that one call creates for its file.
const MOST_NEW_FOLDERS: usize = 64;

/// Returns the reason why a file is a control file, or `None` if it is not one. The reason can be the name of
/// the file, the name of the workspace's folder, or git's use of the file.
fn control_of(root: &Path, real: &Path) -> Option<&'static str> {
    let by_name = real.strip_prefix(root).ok().and_then(control);
    let of_root = || control(Path::new(root.file_name()?));
    #[cfg(unix)]
    let of_git = || git_settings::decides(root, real).then_some("git can run commands from it");
    #[cfg(not(unix))]
    let of_git = || None;
    by_name.or_else(of_root).or_else(of_git)
}

/// Maximum length of a path in bytes: Linux allows 4,095, and a file has a longer name while it is written.
const LONGEST_PATH: usize = 4_000;

impl Workspace {
    /// Like [`target`](Self::target), for a call that was allowed: the path must still lead to the target
    /// that was allowed.
    pub(crate) fn target_for(&self, path: &str, context: &ToolContext) -> Result<Target, ToolError> {
        let target = self.target(path)?;
        self.check_place(path, &target.real, context)?;
        Ok(target)
    }

    /// Resolves a path for writing. Creates nothing.
    ///
    /// # Errors
    /// The path leads outside, or to something that is not a regular file.
    pub(crate) fn target(&self, path: &str) -> Result<Target, ToolError> {
        let real = self.future_path(path)?;
        let Some(root) = self.roots.iter().find(|root| real.starts_with(root)).cloned() else {
            return Err(self.outside(path));
        };
        if real == root || path.ends_with('/') {
            return Err(is_directory(path));
        }
        let control = control_of(&root, &real);
        // A person agrees to the path that is shown, so a control file cannot be named by a link.
        if let Some(why) = control
            && plain(self.root(), path) != real
        {
            return Err(ToolError::PermissionDenied(format!(
                "'{}' leads to '{}', and {why}. Such a file is written by its own path only, after a person has \
                 agreed.",
                printable_path(path),
                self.display(&real)
            )));
        }
        let existing = match self.open_resolved(&real) {
            Ok(file) => {
                let of = file.metadata().map_err(|e| unusable(path, &e))?;
                Some(Existing { version: Version::of(&of), bytes: of.len(), file })
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => return Err(is_directory(path)),
            Err(e) => return Err(unusable(path, &e)),
        };
        Ok(Target { name: self.display(&real), real, root, existing, control })
    }

    /// Checks that the session has read the version of the file that it is about to change.
    pub(crate) fn check_seen(&self, session: &SessionId, target: &Target) -> Result<(), ToolError> {
        match &target.existing {
            Some(existing) => self.seen.check(session, &target.real, existing.version, &target.name),
            None => Ok(()),
        }
    }

    /// Returns the metadata that record the version of an open file in a call's result.
    pub(crate) fn version_of(&self, real: &Path, file: &File) -> Json {
        file.metadata().map_or(Json::Null, |of| Seen::metadata(real, Version::of(&of)))
    }

    /// Records the files that an earlier call of the session has read or written.
    pub(crate) fn recall(&self, session: &SessionId, result: &ToolResult) {
        self.seen.recall(session, result);
    }

    /// Writes the content in one step, creating folders, and records that the session knows the new version.
    /// Returns the metadata for the result.
    pub(crate) fn replace(
        &self,
        session: &SessionId,
        target: &Target,
        content: &[u8],
    ) -> Result<Json, ToolError> {
        let file = self.put(target, content).map_err(|e| {
            let text = format!("'{}' cannot be written: {e}", target.name);
            match e.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ToolError::Resource(text),
                _ => ToolError::Failed(text),
            }
        })?;
        let Ok(of) = file.metadata() else { return Ok(Json::Null) };
        let version = Version::of(&of);
        self.seen.note(session, &target.real, version);
        Ok(Seen::metadata(&target.real, version))
    }

    #[cfg(unix)]
    fn put(&self, target: &Target, content: &[u8]) -> io::Result<File> {
        let relative = target.real.strip_prefix(&target.root).map_err(io::Error::other)?;
        let place = Place::find(&target.root, relative, Missing::Create)?;
        let there = match place.open() {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // Only the version that was checked is replaced.
        let same = match (&there, &target.existing) {
            (None, None) => true,
            (Some(now), Some(before)) => Version::of(&now.metadata()?) == before.version,
            _ => false,
        };
        if !same {
            return Err(io::Error::other("it was changed at the same moment; read it again"));
        }
        place.replace(content, there.as_ref())
    }

    #[cfg(not(unix))]
    fn put(&self, target: &Target, content: &[u8]) -> io::Result<File> {
        let folder = target.real.parent().ok_or(io::ErrorKind::NotFound)?;
        std::fs::create_dir_all(folder)?;
        if !self.contains(&folder.canonicalize()?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let temporary = folder.join(format!(".archon-{}.tmp", std::process::id()));
        std::fs::write(&temporary, content)?;
        std::fs::rename(&temporary, &target.real)?;
        File::open(&target.real)
    }

    /// Returns the canonical form of a path that may not exist yet: its existing part is resolved, and plain
    /// names follow.
    fn future_path(&self, path: &str) -> Result<PathBuf, ToolError> {
        let joined = self.root().join(path);
        short_enough(path, &joined)?;
        match joined.canonicalize() {
            Ok(real) if self.contains(&real) => return Ok(real),
            Ok(_) => return Err(self.outside(path)),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(e) => return Err(unusable(path, &e)),
        }
        let mut there = joined.clone();
        let mut behind = Vec::new();
        let real = loop {
            // A dangling link exists, and its target must not be created.
            if there.symlink_metadata().is_ok() {
                break there.canonicalize().map_err(|e| unusable(path, &e))?;
            }
            match there.components().next_back() {
                Some(Component::Normal(name)) => behind.push(name.to_owned()),
                _ => return Err(self.outside(path)),
            }
            if !there.pop() {
                return Err(self.outside(path));
            }
        };
        if !self.contains(&real) {
            return Err(self.outside(path));
        }
        if !real.is_dir() {
            return Err(ToolError::InvalidArgs(format!(
                "'{}' is a file, not a directory. Take another path.",
                self.display(&real)
            )));
        }
        // The last one is the file's name.
        let folders = behind.len() - 1;
        if folders > MOST_NEW_FOLDERS {
            return Err(ToolError::InvalidArgs(format!(
                "'{}' needs {folders} new folders in each other; a call makes at most {MOST_NEW_FOLDERS}. Take a path with \
                 fewer folders.",
                printable_path(path)
            )));
        }
        let all = behind.iter().rev().fold(real, |real, name| real.join(name));
        short_enough(path, &all)?;
        if self.contains(&all) { Ok(all) } else { Err(self.outside(path)) }
    }
}

impl Target {
    /// Makes a preview without a diff; its summary begins with `verb`.
    pub(crate) fn preview(&self, verb: &str, workspace: &Workspace) -> Preview {
        let mut preview = Preview::new(format!("{verb} '{}'", self.name));
        // Outside of the first folder, which is the working directory.
        preview.outside_cwd = !self.real.starts_with(workspace.root());
        if let Some(why) = self.control {
            let warning = format!("{why}, so a change can start programs outside the sandbox");
            preview.summary.push_str(&format!(" ({warning}; needs approval each time)"));
            preview.warning = Some(warning);
        }
        preview
    }
}

impl Existing {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// The file has more than `max` bytes, or is not UTF-8.
    pub(crate) fn text(&self, name: &str, max: u64) -> Result<String, ToolError> {
        if self.bytes > max {
            return Err(ToolError::Resource(format!(
                "'{name}' has {} bytes; files of at most {max} can be edited.",
                self.bytes
            )));
        }
        let mut bytes = Vec::new();
        (&self.file)
            .take(max + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| ToolError::Failed(format!("'{name}' cannot be read: {e}")))?;
        String::from_utf8(bytes)
            .map_err(|_| ToolError::InvalidArgs(format!("'{name}' is not a text file in UTF-8.")))
    }
}

fn short_enough(path: &str, whole: &Path) -> Result<(), ToolError> {
    let bytes = whole.as_os_str().len();
    if bytes <= LONGEST_PATH {
        return Ok(());
    }
    Err(ToolError::InvalidArgs(format!(
        "'{}' is too long: {bytes} bytes from the root of the file system, but at most {LONGEST_PATH} are allowed. Take a shorter \
         path.",
        printable_path(path)
    )))
}

fn unusable(path: &str, why: &io::Error) -> ToolError {
    ToolError::Failed(format!("'{}' cannot be used: {why}", printable_path(path)))
}

fn is_directory(path: &str) -> ToolError {
    ToolError::InvalidArgs(format!(
        "'{}' is a directory, not a file. Use the path of a file in it, or another name.",
        printable_path(path)
    ))
}
