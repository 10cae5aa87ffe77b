//! Folders of skills for tests.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_skills::{SkillConversation, SkillSet};
use tempfile::TempDir;

/// A temporary folder with skills.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, file: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a skill in a folder, with further lines of its frontmatter; its body is `Do {name}.`.
    pub(crate) fn skill(&self, folder: &str, more: &str) -> PathBuf {
        let name = folder.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: About {name}.\n{more}---\n\nDo {name}.\n");
        let file = self.write(&format!("{folder}/SKILL.md"), text);
        file.parent().unwrap().to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn load(&self) -> SkillSet {
        SkillSet::load([self.path()])
    }

    pub(crate) fn conversation(&self) -> SkillConversation {
        SkillConversation::new(Arc::new(self.load()))
    }
}

/// Returns the names of a set's skills.
pub(crate) fn names(set: &SkillSet) -> Vec<&str> {
    set.iter().map(|skill| skill.name.as_str()).collect()
}

/// Returns the warnings of a set without the folder that they are in.
pub(crate) fn warnings(set: &SkillSet, place: &Place) -> Vec<String> {
    let root = place.path().canonicalize().unwrap();
    let below = |text: String| text.replace(&format!("{}/", root.display()), "");
    set.warnings().iter().map(|warning| below(warning.to_string())).collect()
}
