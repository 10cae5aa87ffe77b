//! Trust in the skills of a project. A project may come from a stranger, and instructions of a stranger can turn an
//! agent against its user. So a project's skill is loaded only if a person trusted this content of its folder.

use std::path::{Path, PathBuf};

/// The skills that a person trusts, each by the path and the hash of its folder ([`folder_hash`](crate::folder_hash)).
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

/// A skill of a project that was not loaded, because no person trusts its present content. Show the folder to a
/// person, then remember the folder and the hash.
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
}
