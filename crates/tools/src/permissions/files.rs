//! Compiled path patterns of rules, because a walk matches thousands of paths.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// The paths that a rule matches.
#[derive(Clone, Debug)]
pub(super) struct Files {
    is_absolute: bool,
    paths: GlobMatcher,
    /// For a pattern that ends with `/**`: the folder itself.
    folder: Option<GlobMatcher>,
}

impl Files {
    /// Compiles a pattern; `None` if it is not valid.
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

    /// Returns whether the path matches, is within a matching folder, or is the folder of a `/**` pattern.
    pub(super) fn hold(&self, root: &Path, path: &Path) -> bool {
        self.mean(root, path)
            || self.folder.as_ref().is_some_and(|folder| self.is_match(folder, root, path))
            // `*` does not mean the workspace's root.
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
