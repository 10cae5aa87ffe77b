//! The places where people and projects have their skills.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Skill, SkillProblem, SkillSet, SkillTrust, UntrustedSkill, folder, problem::SkillProblemKind as Kind,
    scan, skill_file, skill_file::SKILL_FILE,
};

/// The folders with skills, relative to a home folder or a project. Later folders override earlier ones.
const FOLDERS: [&str; 3] = [".claude/skills", ".agents/skills", ".archon/skills"];

/// The places of skills: `.archon/skills`, `.agents/skills` and `.claude/skills` in a person's home folder and in a
/// project.
///
/// Skills of the project override skills of the person. In both, `.archon` overrides `.agents`, and `.agents`
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

    /// Sets the folders that are searched in the home folder and in the project, as relative paths. Later folders
    /// override earlier ones. Default: `.claude/skills`, `.agents/skills`, `.archon/skills`.
    pub fn with_folders(self, folders: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folders = folders.into_iter().map(Into::into).collect()
    }
}
}

impl SkillSet {
    /// Loads the skills of the places. A project's skill is loaded only if `trust` trusts the present content of its
    /// folder. The other skills of the project are in [`untrusted`](Self::untrusted), each with a warning. A
    /// project's skill with more than 1,000 files and folders, or with files of more than 16 MiB together, is left
    /// out with a warning.
    ///
    /// The source of a skill is `user:` or `project:` and the folder, such as `user:.agents/skills`.
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
    let (dir, source) = (root.join(folder), format!("project:{folder}"));
    let mut set = SkillSet::new();
    let (Ok(real_root), Ok(real)) = (root.canonicalize(), dir.canonicalize()) else { return set };
    if !real.starts_with(&real_root) {
        let text =
            "the folder leads out of the project, and is not searched for skills; copy it into the project";
        set.warnings.push(SkillProblem::new(dir, 1, Kind::Link, text));
        return set;
    }
    let found = scan::folders(&real);
    set.warnings.extend(found.problems);
    for folder in &found.folders {
        add_of_project(&mut set, folder, &source, trust);
    }
    set
}

/// Adds the skill in a folder of a project if a person trusts the content of the folder. Otherwise adds it to the
/// untrusted skills, with a warning.
fn add_of_project(set: &mut SkillSet, folder: &Path, source: &str, trust: &dyn SkillTrust) {
    let file = folder.join(SKILL_FILE);
    let loaded = match folder::load(folder) {
        Ok(loaded) => loaded,
        Err(error) => {
            let text = format!(
                "nobody can trust the skill, because its folder cannot be hashed ({error}); it is left out"
            );
            return set.warnings.push(SkillProblem::new(file, 1, Kind::Untrusted, text));
        }
    };
    let content = loaded.files.get(SKILL_FILE).map(Vec::as_slice).unwrap_or_default();
    let (skill, problems) = Skill::parse(skill_file::head(content), folder, source);
    set.warnings.extend(problems);
    let Some(skill) = skill else { return };
    if trust.is_trusted(folder, &loaded.hash) {
        return set.insert(Arc::new(Skill { trusted_hash: Some(loaded.hash), ..skill }));
    }
    let text = "no person has trusted the skill with its present files; it is left out until then";
    set.warnings.push(SkillProblem::new(file, 1, Kind::Untrusted, text));
    set.untrusted.push(UntrustedSkill::new(skill, loaded));
}
