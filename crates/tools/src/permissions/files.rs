//! Patterns of paths in rules, made ready once: a walk asks about thousands of paths.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// The paths that a rule speaks of.
#[derive(Clone, Debug)]
pub(super) struct Files {
    is_absolute: bool,
    paths: GlobMatcher,
    /// The folder that they are all of, where it is said so.
    folder: Option<GlobMatcher>,
}

impl Files {
    /// None if it is no pattern.
    pub(super) fn new(of: &str) -> Option<Self> {
        let of = of.strip_prefix("./").unwrap_or(of);
        let folder = of.strip_suffix("/**").filter(|folder| !folder.is_empty());
        Some(Self {
            is_absolute: Path::new(of).is_absolute(),
            paths: matcher(of)?,
            folder: folder.and_then(matcher),
        })
    }

    pub(super) fn mean(&self, root: &Path, path: &Path) -> bool {
        self.is_match(&self.paths, root, path)
    }

    /// Whether this is one of them, lies in a folder that is, or is the folder that they are all of.
    pub(super) fn hold(&self, root: &Path, path: &Path) -> bool {
        self.mean(root, path)
            || self.folder.as_ref().is_some_and(|folder| self.is_match(folder, root, path))
            // Nobody who writes `*` means the workspace itself.
            || path.ancestors().skip(1).any(|folder| folder != root && self.mean(root, folder))
    }

    fn is_match(&self, glob: &GlobMatcher, root: &Path, path: &Path) -> bool {
        match self.is_absolute {
            true => glob.is_match(path),
            false => path.strip_prefix(root).is_ok_and(|inside| glob.is_match(inside)),
        }
    }
}

fn matcher(of: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(of).literal_separator(true).backslash_escape(true).build();
    Some(glob.ok()?.compile_matcher())
}
