//! The skills of an agent, by name.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use archon_types::nearest;

use crate::{Skill, SkillError, SkillProblem, UntrustedSkill, problem::SkillProblemKind as Kind, scan};

/// Skills by name. If a name is loaded again, the later skill replaces the earlier one, with a warning.
///
/// ```
/// use archon_skills::SkillSet;
///
/// # let place = tempfile::tempdir()?;
/// let folder = place.path().join("release-notes");
/// std::fs::create_dir(&folder)?;
/// let text = "---\nname: release-notes\ndescription: Writes release notes.\n---\nRead the changelog.\n";
/// std::fs::write(folder.join("SKILL.md"), text)?;
///
/// let mut set = SkillSet::load_dir(place.path(), "company");
/// set.merge(SkillSet::load([place.path().join("no such folder")]));
/// assert_eq!(set.iter().map(|skill| &skill.name).collect::<Vec<_>>(), ["release-notes"]);
/// assert!(set.format_for_prompt().contains("<description>Writes release notes.</description>"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SkillSet {
    skills: BTreeMap<String, Arc<Skill>>,
    pub(crate) warnings: Vec<SkillProblem>,
    pub(crate) untrusted: Vec<UntrustedSkill>,
}

impl SkillSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the skills below folders that a person trusts. Later folders override earlier ones. The sources of the
    /// skills are `dir:0`, `dir:1` and so on. A folder that does not exist has no skills.
    pub fn load<P: AsRef<Path>>(dirs: impl IntoIterator<Item = P>) -> Self {
        let mut set = Self::new();
        for (number, dir) in dirs.into_iter().enumerate() {
            set.merge(Self::load_dir(dir.as_ref(), &format!("dir:{number}")));
        }
        set
    }

    /// Loads the skills below a folder that a person trusts: each folder with a `SKILL.md` is a skill. The search
    /// goes up to 6 folders deep and through at most 2,000 folders. Symbolic links below the folder are not followed.
    ///
    /// A skill is left out with a warning if it has no description, if its frontmatter cannot be read, or if its
    /// `allowed-tools` are not understood. Other faults are only warnings.
    pub fn load_dir(dir: &Path, source: &str) -> Self {
        let mut set = Self::new();
        let found = scan::folders(dir);
        set.warnings.extend(found.problems);
        for folder in found.folders {
            let (skill, problems) = Skill::load(&folder, source);
            set.warnings.extend(problems);
            if let Some(skill) = skill {
                set.insert(Arc::new(skill));
            }
        }
        set
    }

    /// Adds the skills, warnings and untrusted skills of `later`. If both have a skill with the same name, the skill
    /// of `later` is kept, with a warning.
    pub fn merge(&mut self, later: Self) {
        self.warnings.extend(later.warnings);
        self.untrusted.extend(later.untrusted);
        later.skills.into_values().for_each(|skill| self.insert(skill));
    }

    pub(crate) fn insert(&mut self, skill: Arc<Skill>) {
        if let Some(earlier) = self.skills.insert(skill.name.clone(), skill.clone()) {
            let (name, from, file) = (&skill.name, &earlier.source, earlier.file());
            let text = format!(
                "the skill `{name}` replaces that of {from} ({}); rename one to have both",
                file.display()
            );
            self.warnings.push(SkillProblem::new(skill.file(), 1, Kind::Conflict, text));
        }
    }

    /// Keeps the skills for which `keep` returns true, for instance those that no setting disables.
    pub fn retain(&mut self, mut keep: impl FnMut(&Skill) -> bool) {
        self.skills.retain(|_, skill| keep(skill));
    }

    /// Returns the skill with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.skills.get(name)
    }

    /// Returns all skills, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// Returns the skills that a model sees and can activate, in the order of their names.
    pub fn visible(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values().map(AsRef::as_ref).filter(|skill| !skill.disable_model_invocation)
    }

    /// Returns true if there are no skills.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the problems that were found, each with its file and line.
    pub fn warnings(&self) -> &[SkillProblem] {
        &self.warnings
    }

    /// Returns the project's skills that no person has trusted in their present form.
    pub fn untrusted(&self) -> &[UntrustedSkill] {
        &self.untrusted
    }

    /// Returns the skill that a person's message activates, and the rest of the message: `/release-notes for 1.2` is
    /// the skill `release-notes` and `for 1.2`.
    pub fn command<'m>(&self, message: &'m str) -> Option<(&Arc<Skill>, &'m str)> {
        let message = message.trim().strip_prefix('/')?;
        let (name, rest) = message.split_once(char::is_whitespace).unwrap_or((message, ""));
        Some((self.get(name)?, rest.trim_start()))
    }

    /// Returns the skill with this name, or an error that suggests the most similar name, or all names.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Skill>, SkillError> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.visible().map(|skill| skill.name.as_str()).collect();
            let advice = match nearest(name, names.iter().copied()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if names.is_empty() => "no skills are loaded".to_owned(),
                None => format!("the skills are: {}", names.join(", ")),
            };
            SkillError::Unknown { name: name.to_owned(), advice }
        })
    }
}
