//! A skill: its fields, which are in memory, and its instructions and files, which are read when they are needed.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use crate::{
    AllowedTools, SkillError, fields::Fields, folder, problem::SkillProblem,
    problem::SkillProblemKind as Kind, skill_file, xml::escape,
};

/// The maximum number of files that are listed after the instructions.
const LISTED: usize = 50;
/// The maximum total size of the files that [`SkillLevel::Resources`] adds to the instructions, in bytes.
const RESOURCE_BYTES: usize = 64 * 1024;

/// A skill. Its fields are those of its frontmatter.
///
/// ```
/// use archon_skills::{SkillLevel, SkillSet};
///
/// # let place = tempfile::tempdir()?;
/// let folder = place.path().join("release-notes");
/// std::fs::create_dir(&folder)?;
/// let text = "---\nname: release-notes\ndescription: Writes release notes.\n---\nRead the changelog first.\n";
/// std::fs::write(folder.join("SKILL.md"), text)?;
/// let set = SkillSet::load([place.path()]);
/// let skill = set.get("release-notes").unwrap();
/// assert_eq!(skill.description, "Writes release notes.");
/// assert!(skill.content(SkillLevel::Instructions)?.contains("\nRead the changelog first.\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name, unique in a set.
    pub name: String,
    /// The purpose of the skill and when to use it, for the model.
    pub description: String,
    /// The license, as the author wrote it: a name, or a file in the folder.
    pub license: Option<String>,
    /// The requirements of the skill, such as programs or a network.
    pub compatibility: Option<String>,
    /// The keys and values of the field `metadata`, for other programs.
    pub metadata: BTreeMap<String, String>,
    /// The tools that may be called while the skill is active; `None` for all tools that the agent has.
    pub allowed_tools: Option<AllowedTools>,
    /// The model to use while the skill is active.
    pub model: Option<String>,
    /// True if only a person can activate the skill. A model does not see it.
    pub disable_model_invocation: bool,
    /// The name of the place that the skill was loaded from, such as `dir:0` or `user:.agents/skills`.
    pub source: String,
    /// The folder, as an absolute path without symbolic links.
    pub folder: PathBuf,
    /// The hash of the folder that a person trusted, for a project's skill; `None` for other skills. The instructions
    /// are not read from a folder with another hash.
    pub trusted_hash: Option<String>,
}

/// The parts of a skill that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkillLevel {
    /// Level 1: the name and the description, which are in memory.
    Metadata,
    /// Level 2: also the instructions and the names of the skill's files.
    #[default]
    Instructions,
    /// Level 3: also the texts of the files in `scripts`, `references` and `assets`, up to 64 KB.
    Resources,
}

impl Skill {
    /// Loads the fields of the skill in a folder, and returns all problems. If a skill is returned, the problems are
    /// warnings. If it is `None`, the last problem is the reason.
    pub(crate) fn load(folder: &Path, source: &str) -> (Option<Self>, Vec<SkillProblem>) {
        Self::parse(skill_file::read_head(&folder.join(skill_file::SKILL_FILE)), folder, source)
    }

    /// Does the same as [`load`](Self::load). `head` is the beginning of the skill's file, which was already read.
    pub(crate) fn parse(
        head: io::Result<String>,
        folder: &Path,
        source: &str,
    ) -> (Option<Self>, Vec<SkillProblem>) {
        let file = folder.join(skill_file::SKILL_FILE);
        let failed = |line, kind, text: String| (None, vec![SkillProblem::new(&file, line, kind, text)]);
        let text = match head {
            Ok(text) => text,
            Err(e) => {
                return failed(
                    1,
                    Kind::Unreadable,
                    format!("the file cannot be read ({e}); the skill is left out"),
                );
            }
        };
        let parts = match skill_file::split(&text) {
            Ok(parts) => parts,
            Err((line, problem)) => {
                return failed(line, Kind::Frontmatter, format!("{problem}; the skill is left out"));
            }
        };
        let (fields, problems) = crate::fields::read(parts.yaml, &file);
        (fields.map(|fields| Self::new(fields, folder, source)), problems)
    }

    fn new(fields: Fields, folder: &Path, source: &str) -> Self {
        Self {
            name: fields.name,
            description: fields.description,
            license: fields.license,
            compatibility: fields.compatibility,
            metadata: fields.metadata,
            allowed_tools: fields.allowed_tools,
            model: fields.model,
            disable_model_invocation: fields.disable_model_invocation,
            source: source.to_owned(),
            folder: folder.to_owned(),
            trusted_hash: None,
        }
    }

    /// Returns the path of the skill's file.
    pub fn file(&self) -> PathBuf {
        self.folder.join(skill_file::SKILL_FILE)
    }

    /// Reads the instructions: the Markdown after the frontmatter, without white space around it.
    ///
    /// # Errors
    /// [`SkillError::Unreadable`] if the file cannot be read; [`SkillError::Changed`] for a project's skill if its
    /// folder has changed since a person trusted it.
    pub fn instructions(&self) -> Result<String, SkillError> {
        self.instructions_of(self.trusted_files()?.as_ref())
    }

    fn instructions_of(&self, trusted: Option<&TrustedFiles>) -> Result<String, SkillError> {
        let unreadable = |problem: String| SkillError::Unreadable { file: self.file(), problem };
        let content = self.read(skill_file::SKILL_FILE, trusted)?;
        let text = skill_file::text_of(content).map_err(|error| unreadable(error.to_string()))?;
        let parts = skill_file::split(&text).map_err(|(_, problem)| unreadable(problem.to_owned()))?;
        Ok(parts.body.to_owned())
    }

    /// Returns the paths of the skill's other files, relative to its folder, in order. Files behind symbolic links
    /// are left out.
    pub fn files(&self) -> Vec<String> {
        folder::files(&self.folder)
    }

    /// Reads a file of the skill, by its path relative to the folder.
    ///
    /// # Errors
    /// [`SkillError::Outside`] if the path leads out of the folder or through a link; [`SkillError::Unreadable`], also
    /// for a file of more than 1 MB; [`SkillError::Changed`] as for [`instructions`](Self::instructions).
    pub fn read_file(&self, name: &str) -> Result<Vec<u8>, SkillError> {
        folder::inside(&self.folder, name)?;
        self.read(name, self.trusted_files()?.as_ref())
    }

    /// Reads a file of the skill: from the hashed files `trusted` if they are given, otherwise from the disk.
    fn read(&self, name: &str, trusted: Option<&TrustedFiles>) -> Result<Vec<u8>, SkillError> {
        // A link could have replaced the file since it was loaded.
        let file = folder::inside(&self.folder, name)?;
        let content = match trusted {
            Some(files) => match files.get(&folder::name_below(&self.folder, &file)) {
                Some(content) => skill_file::checked(content),
                None => Err(io::Error::other("it is not a file of the skill")),
            },
            None => skill_file::read_bytes(&file),
        };
        content.map_err(|error| SkillError::Unreadable { file, problem: error.to_string() })
    }

    /// Returns the text of the skill for a model, up to a level. From level 2 on, the text is in a tag
    /// `skill_content`, and ends with the path of the folder and the names of at most 50 files. Level 3 adds the
    /// texts of files.
    ///
    /// # Errors
    /// As [`instructions`](Self::instructions).
    pub fn content(&self, level: SkillLevel) -> Result<String, SkillError> {
        let name = escape(&self.name);
        if level == SkillLevel::Metadata {
            return Ok(format!("{}: {}", self.name, self.description));
        }
        let trusted = self.trusted_files()?;
        let (body, folder) = (self.instructions_of(trusted.as_ref())?, self.folder.display());
        let mut text = format!(
            "<skill_content name=\"{name}\">\n{body}\n\nSkill directory: {folder}\n\
             Relative paths in this skill are relative to the skill directory.\n"
        );
        let files = self.files();
        if !files.is_empty() {
            text += "<skill_resources>\n";
            for file in files.iter().take(LISTED) {
                let _ = writeln!(text, "<file>{}</file>", escape(file));
            }
            if files.len() > LISTED {
                let _ = writeln!(text, "and {} more files", files.len() - LISTED);
            }
            text += "</skill_resources>\n";
        }
        if level == SkillLevel::Resources {
            text += &self.resources(&files, trusted.as_ref());
        }
        text += "</skill_content>";
        Ok(text)
    }

    /// Returns the texts of the files in `scripts`, `references` and `assets`, at most [`RESOURCE_BYTES`] together.
    /// Files that do not fit or are not text are left out.
    fn resources(&self, files: &[String], trusted: Option<&TrustedFiles>) -> String {
        let (mut text, mut room) = (String::new(), RESOURCE_BYTES);
        let is_resource = |file: &&String| {
            ["scripts/", "references/", "assets/"].iter().any(|folder| file.starts_with(folder))
        };
        for file in files.iter().filter(is_resource) {
            let Ok(content) = self.read(file, trusted) else { continue };
            let Ok(content) = String::from_utf8(content) else { continue };
            if content.len() <= room {
                room -= content.len();
                let _ = writeln!(text, "<resource path=\"{}\">\n{content}\n</resource>", escape(file));
            }
        }
        text
    }

    /// Returns the files of a skill that a person has to trust, read and hashed now; `None` for a skill that needs no
    /// trust. Fails if the hash is not the trusted one.
    fn trusted_files(&self) -> Result<Option<TrustedFiles>, SkillError> {
        let Some(trusted) = &self.trusted_hash else { return Ok(None) };
        let unreadable = |error: io::Error| SkillError::Unreadable {
            file: self.folder.clone(),
            problem: error.to_string(),
        };
        let loaded = folder::load(&self.folder).map_err(unreadable)?;
        match loaded.hash == *trusted {
            true => Ok(Some(loaded.files)),
            false => Err(SkillError::Changed(self.folder.clone())),
        }
    }
}

/// The content of each file of a skill, by its path relative to the folder. Exactly this content was hashed, so no
/// file can be replaced between the check of the hash and the use.
type TrustedFiles = BTreeMap<String, Vec<u8>>;
