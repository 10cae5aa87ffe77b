//! The places where people and projects have their skills.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Skill, SkillProblem, SkillSet, SkillTrust, UntrustedSkill, folder_hash, problem::SkillProblemKind as Kind,
};

/// The folders of skills below a home folder and below a project, the weakest first.
const FOLDERS: [&str; 3] = [".claude/skills", ".agents/skills", ".archon/skills"];

/// The places of skills: `.archon/skills`, `.agents/skills` and `.claude/skills` in a person's home folder and in a
/// project.
///
/// The skills of a project override those of the person. At each of the two, `.archon` overrides `.agents`, and that
/// overrides `.claude`.
///
/// ```
/// use archon_skills::SkillPlaces;
///
/// let places = SkillPlaces::new().with_user("/home/anna").with_project("/home/anna/shop");
/// ```
#[derive(Clone, Debug)]
pub struct SkillPlaces {
    user: Option<PathBuf>,
    project: Option<PathBuf>,
    folders: Vec<String>,
}

impl Default for SkillPlaces {
    fn default() -> Self {
        Self { user: None, project: None, folders: FOLDERS.map(str::to_owned).to_vec() }
    }
}

impl SkillPlaces {
    /// Creates places without a home folder and without a project.
    pub fn new() -> Self {
        Self::default()
    }
}

archon_types::setters! {
impl SkillPlaces {
    /// Sets the home folder of the person.
    pub fn with_user(self, home: impl Into<PathBuf>) -> Self { self.user = Some(home.into()) }

    /// Sets the folder of the project.
    pub fn with_project(self, root: impl Into<PathBuf>) -> Self { self.project = Some(root.into()) }

    /// Sets the folders to look for at each place, as relative paths, the weakest first.
    pub fn with_folders(self, folders: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folders = folders.into_iter().map(Into::into).collect()
    }
}
}

impl SkillSet {
    /// Loads the skills of the places. A project's skill is loaded only if `trust` knows the present content of its
    /// folder; the others are in [`untrusted`](Self::untrusted), each with a warning.
    ///
    /// The sources are `user:` and `project:` with the folder, such as `user:.agents/skills`.
    pub fn discover(places: &SkillPlaces, trust: &dyn SkillTrust) -> Self {
        let mut set = Self::new();
        for folder in &places.folders {
            if let Some(home) = &places.user {
                set.merge(Self::load_dir(&home.join(folder), &format!("user:{folder}")));
            }
        }
        for folder in &places.folders {
            if let Some(root) = &places.project {
                set.merge(of_project(root, folder, trust));
            }
        }
        set
    }
}

/// Loads the trusted skills of a project's folder.
fn of_project(root: &Path, folder: &str, trust: &dyn SkillTrust) -> SkillSet {
    let dir = root.join(folder);
    let mut set = SkillSet::new();
    let (Ok(real_root), Ok(real)) = (root.canonicalize(), dir.canonicalize()) else { return set };
    if !real.starts_with(&real_root) {
        let text =
            "the folder leads out of the project, and is not searched for skills; copy it into the project";
        set.warnings.push(SkillProblem::new(dir, 1, Kind::Link, text));
        return set;
    }
    let found = SkillSet::load_dir(&real, &format!("project:{folder}"));
    for skill in found.iter() {
        match folder_hash(&skill.folder) {
            Ok(hash) if trust.is_trusted(&skill.folder, &hash) => {
                let skill = Skill { trusted_hash: Some(hash), ..Skill::clone(skill) };
                set.insert(Arc::new(skill));
            }
            Ok(hash) => {
                let text =
                    "no person has trusted the skill with its present files; it is left out until then";
                set.warnings.push(SkillProblem::new(skill.file(), 1, Kind::Untrusted, text));
                set.untrusted.push(UntrustedSkill {
                    name: skill.name.clone(),
                    description: skill.description.clone(),
                    folder: skill.folder.clone(),
                    hash,
                });
            }
            Err(error) => {
                let text = format!(
                    "the skill's files cannot be read ({error}), so that nobody can trust them; it is left out"
                );
                set.warnings.push(SkillProblem::new(skill.file(), 1, Kind::Untrusted, text));
            }
        }
    }
    set.warnings.splice(0..0, found.warnings);
    set
}
