//! Trust in the skills of a project. A project may come from a stranger, and a stranger's instructions can turn an
//! agent against its user. So a project's skill is loaded only if a person trusted its folder with exactly the
//! present content.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{Skill, folder::HashedFolder, skill_file::SKILL_FILE};

/// Decides which skills a person trusts, by the path and the hash of a skill's folder
/// ([`folder_hash`](crate::folder_hash)).
///
/// A closure is a `SkillTrust`:
///
/// ```
/// use std::{collections::BTreeMap, path::{Path, PathBuf}};
///
/// use archon_skills::{SkillPlaces, SkillSet};
///
/// let agreed: BTreeMap<PathBuf, String> = BTreeMap::new();
/// let trust = |folder: &Path, hash: &str| agreed.get(folder).is_some_and(|agreed| agreed == hash);
/// let set = SkillSet::discover(&SkillPlaces::new().with_project("/no/such/project"), &trust);
/// assert!(set.is_empty() && set.untrusted().is_empty());
/// ```
pub trait SkillTrust {
    /// Returns true if a person trusts the folder with this content. `folder` is an absolute path without symbolic
    /// links.
    fn is_trusted(&self, folder: &Path, hash: &str) -> bool;
}

impl<F: Fn(&Path, &str) -> bool> SkillTrust for F {
    fn is_trusted(&self, folder: &Path, hash: &str) -> bool {
        self(folder, hash)
    }
}

/// A skill of a project that was not loaded, because no person trusts its present content. Show it to a person. If
/// the person trusts it, store the folder and the hash, so that [`SkillTrust::is_trusted`] returns true for them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UntrustedSkill {
    /// The skill's name.
    pub name: String,
    /// The skill's description.
    pub description: String,
    /// The folder, as an absolute path without symbolic links.
    pub folder: PathBuf,
    /// The hash of the folder's content.
    pub hash: String,
    /// The text of `SKILL.md`: the frontmatter, with the tools that the skill may use, and the instructions.
    pub text: String,
    /// All files and symbolic links of the folder, in the order of their paths.
    pub files: Vec<UntrustedFile>,
}

/// A file of an [`UntrustedSkill`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UntrustedFile {
    /// The path below the folder, with `/`.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// True for a symbolic link, which is never followed.
    pub is_link: bool,
}

impl UntrustedSkill {
    pub(crate) fn new(skill: Skill, folder: HashedFolder) -> Self {
        let text = folder.files.get(SKILL_FILE).map(|content| String::from_utf8_lossy(content).into_owned());
        let of = |entries: BTreeMap<String, Vec<u8>>, is_link: bool| {
            entries.into_iter().map(move |(name, content)| {
                let bytes = content.len() as u64;
                UntrustedFile { name, bytes, is_link }
            })
        };
        let mut files: Vec<UntrustedFile> = of(folder.files, false).chain(of(folder.links, true)).collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            name: skill.name,
            description: skill.description,
            folder: skill.folder,
            hash: folder.hash,
            text: text.unwrap_or_default(),
            files,
        }
    }
}
