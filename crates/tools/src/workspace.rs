//! The folders that tools may see. All paths from a model are resolved here.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_types::{Subject, ToolContext, ToolError};

use crate::{ToolSetupError, arguments::clip, permissions::plain, seen::Seen};

mod listing;
mod places;
mod write;

pub(crate) use listing::Entry;
pub(crate) use places::Places;
pub(crate) use write::Target;

/// Maximum number of files and folders that are searched for a file of the same name if a path does not
/// exist.
const LOOKED_THROUGH: usize = 2_000;

/// One or more folders in which the file tools work; these tools cannot reach files outside of them.
///
/// A path from a model is absolute, or relative to the first folder. All links in it are resolved, and the result must
/// be within a folder. Then the file is opened step by step from that folder without following links, so that a link
/// that was made meanwhile has no effect. Hard links and mounts within a folder belong to the folder.
///
/// ```
/// use archon_tools::Workspace;
///
/// let workspace = Workspace::new(env!("CARGO_MANIFEST_DIR"))?;
/// assert!(workspace.resolve("src/lib.rs").is_ok());
/// assert!(workspace.resolve("../../etc/passwd").is_err());
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The canonical paths of the workspace's folders; there is at least one.
    roots: Arc<Vec<PathBuf>>,
    /// The excluded folders, canonical as far as they exist, each with a description for error texts.
    without: Arc<Vec<(PathBuf, String)>>,
    /// The versions of files that each session has read, for the tools that write.
    seen: Seen,
}

impl Workspace {
    /// Creates a workspace of one existing folder.
    ///
    /// # Errors
    /// The folder does not exist, cannot be read, or is not a folder.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, ToolSetupError> {
        let roots = Arc::new(vec![canonical_folder(root.as_ref())?]);
        Ok(Self { roots, without: Arc::default(), seen: Seen::default() })
    }

    /// Adds a further folder. Tools must name paths in it as absolute paths.
    ///
    /// ```no_run
    /// use archon_tools::Workspace;
    /// let workspace = Workspace::new("projects/shop")?.and("/srv/pictures")?;
    /// # Ok::<(), archon_tools::ToolSetupError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn and(self, root: impl AsRef<Path>) -> Result<Self, ToolSetupError> {
        let mut roots = (*self.roots).clone();
        roots.push(canonical_folder(root.as_ref())?);
        Ok(Self { roots: Arc::new(roots), ..self })
    }

    /// Excludes a folder with everything in it, whether it is inside or outside the workspace's folders. The
    /// folder need not exist yet. `what` describes the folder in refusals, for instance "Archon's settings".
    ///
    /// File tools refuse paths within the excluded folder. Commands do not see the folder; if a granted
    /// folder contains it and the kernel cannot hide it, commands are refused.
    ///
    /// ```no_run
    /// use archon_tools::Workspace;
    /// let workspace = Workspace::new("projects/shop")?.without("projects/shop/keys", "the shop's keys");
    /// # Ok::<(), archon_tools::ToolSetupError>(())
    /// ```
    pub fn without(self, folder: impl AsRef<Path>, what: impl Into<String>) -> Self {
        let folder = std::path::absolute(folder.as_ref()).unwrap_or_else(|_| folder.as_ref().to_owned());
        let folder = crate::permissions::resolved(Path::new("/"), &folder).unwrap_or(folder);
        let mut without = (*self.without).clone();
        without.push((folder, what.into()));
        Self { without: Arc::new(without), ..self }
    }

    /// Returns the path of the first folder, absolute and without links.
    pub fn root(&self) -> &Path {
        &self.roots[0]
    }

    /// Returns the paths of all folders, absolute and without links, the first folder first.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Checks that a path exists within the workspace, and returns it as an absolute path without links.
    ///
    /// # Errors
    /// [`ToolError::PermissionDenied`] for every path outside of the workspace, whether it exists or not.
    /// [`ToolError::NotFound`], with similar names, for a path inside that does not exist.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let joined = self.root().join(path);
        match joined.canonicalize() {
            Ok(real) if self.contains(&real) => Ok(real),
            Ok(_) => Err(self.outside(path)),
            Err(e) => match joined.ancestors().find_map(|parent| parent.canonicalize().ok()) {
                Some(parent) if self.contains(&parent) => Err(self.unusable(path, &parent, &e)),
                _ => Err(self.outside(path)),
            },
        }
    }

    /// Like [`resolve`](Self::resolve), for a call that was allowed: the path must still lead to the target
    /// that was allowed.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and if the path leads elsewhere now.
    pub(crate) fn resolve_for(&self, path: &str, context: &ToolContext) -> Result<PathBuf, ToolError> {
        let real = self.resolve(path)?;
        self.check_place(path, &real, context)?;
        Ok(real)
    }

    /// Checks that a path still leads to the target that rules and people allowed. After this check no link
    /// is followed.
    fn check_place(&self, path: &str, real: &Path, context: &ToolContext) -> Result<(), ToolError> {
        let Some(Subject::Paths { paths, .. }) = context.subject.as_deref() else { return Ok(()) };
        let Some(before) = paths.first().filter(|before| *before != real) else { return Ok(()) };
        Err(ToolError::PermissionDenied(format!(
            "'{}' leads to '{}' now, but led to '{}' when the call was allowed: a link or a folder on the way was changed \
             meanwhile. Nothing was done. Look what is there, and call again if it is what you mean.",
            printable_path(path),
            printable_path(&self.display(real)),
            printable_path(&self.display(before))
        )))
    }

    /// Opens a file for reading, and checks that it is a regular file within the workspace.
    ///
    /// # Errors
    /// As [`resolve_for`](Self::resolve_for), and for folders, devices and files that cannot be read.
    pub(crate) fn open(&self, path: &str, context: &ToolContext) -> Result<(PathBuf, File), ToolError> {
        let real = self.resolve_for(path, context)?;
        let file = self.open_resolved(&real).map_err(|e| match e.kind() {
            io::ErrorKind::IsADirectory => ToolError::InvalidArgs(format!(
                "'{}' is a directory. Use list_files to see what is in it.",
                printable_path(path)
            )),
            _ => ToolError::Failed(format!("'{}' cannot be opened: {e}", printable_path(path))),
        })?;
        Ok((real, file))
    }

    /// Opens a file by its canonical path; fails if the path leads elsewhere by now.
    #[cfg(unix)]
    pub(crate) fn open_resolved(&self, real: &Path) -> io::Result<File> {
        use crate::beneath::{Missing, Place};

        let (root, relative) = self.parts(real).ok_or(io::ErrorKind::NotFound)?;
        Place::find(root, relative, Missing::Refuse)?.open()
    }

    /// Opens a file by its canonical path; fails if the path leads elsewhere by now.
    #[cfg(not(unix))]
    pub(crate) fn open_resolved(&self, real: &Path) -> io::Result<File> {
        let before = fs::symlink_metadata(real)?;
        if before.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !before.is_file() {
            // Opening a pipe or a device could wait for ever.
            return Err(io::Error::other("it is not a regular file"));
        }
        let file = File::open(real)?;
        let same = is_same_file(&file.metadata()?, &before);
        if !same || real.canonicalize()? != real || !self.contains(real) {
            return Err(io::Error::other("it was replaced while it was opened; try again"));
        }
        Ok(file)
    }

    /// Formats a canonical path for a model, which may send it back: relative with `/` in the first folder,
    /// else absolute.
    pub(crate) fn display(&self, real: &Path) -> String {
        match real.strip_prefix(self.root()) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"),
            Err(_) => real.to_string_lossy().into_owned(),
        }
    }

    /// Returns the subject of a call with the argument `path` for permission rules: the path's target,
    /// followed by the path itself if it is a link. A path that cannot be resolved gives `Unknown`; the
    /// tool refuses it.
    pub(crate) fn subject(&self, arguments: &archon_types::Json) -> Subject {
        let path = arguments.get("path").and_then(archon_types::Json::as_str).unwrap_or(".");
        let root = self.root().to_owned();
        match crate::permissions::resolved(&root, path) {
            Some(real) => {
                let named = plain(&root, path);
                let link = Some(named).filter(|named| *named != real && named.starts_with(&root));
                Subject::Paths { root, paths: [real].into_iter().chain(link).collect() }
            }
            None => Subject::Unknown,
        }
    }

    fn contains(&self, real: &Path) -> bool {
        self.parts(real).is_some() && self.excluded(real).is_none()
    }

    /// Splits a canonical path into the workspace folder that contains it and the path relative to that
    /// folder.
    fn parts<'p>(&self, real: &'p Path) -> Option<(&Path, &'p Path)> {
        self.roots.iter().find_map(|root| Some((root.as_path(), real.strip_prefix(root).ok()?)))
    }

    /// Returns the excluded folders, each with a description for error texts.
    #[cfg(all(unix, feature = "bash"))]
    pub(crate) fn all_excluded(&self) -> &[(PathBuf, String)] {
        &self.without
    }

    /// Returns the description of the excluded folder that a path is in, if it is in one.
    pub(crate) fn excluded(&self, real: &Path) -> Option<&str> {
        self.without.iter().find(|(folder, _)| real.starts_with(folder)).map(|(_, what)| what.as_str())
    }

    fn outside(&self, path: &str) -> ToolError {
        if let Some(what) = crate::permissions::resolved(self.root(), path)
            .and_then(|real| self.excluded(&real).map(str::to_owned))
        {
            return ToolError::PermissionDenied(format!(
                "'{}' is in a folder that belongs to no workspace: {what}. Go on without it, or ask the person to do it.",
                printable_path(path)
            ));
        }
        let relative = path.trim_start_matches(['/', '\\']);
        let inside = self.root().join(relative).canonicalize().is_ok_and(|real| self.contains(&real));
        let advice = if inside && !relative.is_empty() && relative != path {
            format!("Did you mean '{}'?", printable_path(relative))
        } else {
            "Use a path inside it, relative to its root; '.' is the root.".to_owned()
        };
        ToolError::PermissionDenied(format!("'{}' is outside the workspace. {advice}", printable_path(path)))
    }

    /// Returns the error for a path within the workspace that cannot be used; `parent` is the existing part
    /// of the path.
    fn unusable(&self, path: &str, parent: &Path, why: &io::Error) -> ToolError {
        if !matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return ToolError::Failed(format!("'{}' cannot be used: {why}", printable_path(path)));
        }
        if !parent.is_dir() {
            return ToolError::NotFound(format!(
                "'{}' not found: '{}' is a file.",
                printable_path(path),
                self.display(parent)
            ));
        }
        let close = self.similar(path, parent);
        let hint = match close.as_slice() {
            [] => String::new(),
            names => format!(" Did you mean '{}'?", names.join("' or '")),
        };
        let place = self.display(parent);
        ToolError::NotFound(format!(
            "'{}' not found.{hint} Use list_files to see what is in '{place}'.",
            printable_path(path)
        ))
    }

    /// Returns up to three paths that may have been meant: similar names in the same folder, the same name
    /// elsewhere.
    fn similar(&self, path: &str, parent: &Path) -> Vec<String> {
        let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else {
            return Vec::new();
        };
        let beside: Vec<String> = self
            .entries(parent)
            .into_iter()
            .flatten()
            .take(LOOKED_THROUGH)
            .filter_map(|entry| entry.path.file_name()?.to_str().map(str::to_owned))
            // A dangling link has exactly this name.
            .filter(|beside| beside != name)
            .collect();
        let like = archon_types::nearest(name, beside.iter().map(String::as_str));
        let mut found: Vec<String> = like.map(|like| self.display(&parent.join(like))).into_iter().collect();
        let elsewhere = self.walk(self.root(), |_| true).take(LOOKED_THROUGH);
        let elsewhere = elsewhere.filter(|entry| self.excluded(&entry.path).is_none());
        for entry in
            elsewhere.filter(|entry| entry.path.file_name() == Some(name.as_ref()) && entry.path.exists())
        {
            let path = self.display(&entry.path);
            if found.len() < 3 && !found.contains(&path) {
                found.push(path);
            }
        }
        found
    }
}

fn canonical_folder(path: &Path) -> Result<PathBuf, ToolSetupError> {
    let failed = |source| ToolSetupError::Workspace { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(failed)?;
    fs::read_dir(&real).map_err(failed)?;
    Ok(real)
}

#[cfg(not(unix))]
fn is_same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.is_file() && b.is_file() && a.created().ok() == b.created().ok()
}

/// Formats a path for a message: limited in length, control characters escaped.
pub(crate) fn printable_path(path: &str) -> String {
    let printed: String = path
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .take(200)
        .collect();
    clip(&printed, 200)
}
