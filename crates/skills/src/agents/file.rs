//! An agent file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{AgentFileProblem, fields, tool_names};
use crate::{SkillLevel, SkillSet, skill_file};

/// An agent that a file describes: Markdown with YAML.
///
/// ```
/// use archon_skills::AgentFile;
///
/// let text = "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep\n---\nYou review changes.\n";
/// let (file, warnings) = AgentFile::parse(".archon/agents/reviewer.md", text.as_bytes()).unwrap();
/// assert!(warnings.is_empty());
/// assert_eq!((file.name.as_str(), file.instructions.as_str()), ("reviewer", "You review changes."));
/// assert!(file.has_tool("read_file") && !file.has_tool("write_file"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFile {
    /// The name, unique in an [`AgentFiles`](crate::AgentFiles): 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// The purpose of the agent and when to call it, for models that may call it.
    pub description: String,
    /// The names of the tools that the agent keeps, as they are written; `None` for all tools of the main agent.
    pub tools: Option<Vec<String>>,
    /// The names of the tools that the agent does not get, as they are written.
    pub denied_tools: Vec<String>,
    /// The model; `None` for that of the main agent (`inherit`).
    pub model: Option<String>,
    /// The names of the skills whose instructions the agent reads.
    pub skills: Vec<String>,
    /// The maximum number of turns of each call of the agent.
    pub max_turns: Option<u32>,
    /// The instructions: the Markdown after the frontmatter, without white space around it.
    pub instructions: String,
    /// The file.
    pub file: PathBuf,
    /// The SHA-256 of the file in hexadecimal digits.
    pub digest: String,
    /// The lines of the fields.
    pub(super) lines: BTreeMap<&'static str, usize>,
}

impl AgentFile {
    /// Reads the content of a file: the agent, and the warnings about fields that were left out or corrected.
    ///
    /// # Errors
    /// The problems, the last of which is the reason why the file describes no agent.
    pub fn parse(
        file: impl AsRef<Path>,
        content: &[u8],
    ) -> Result<(Self, Vec<AgentFileProblem>), Vec<AgentFileProblem>> {
        let file = file.as_ref();
        let failed = |line, problem: &str| {
            vec![AgentFileProblem::new(file, line, format!("{problem}; the file is left out"))]
        };
        let text = std::str::from_utf8(content).map_err(|_| failed(1, "the file is not UTF-8 text"))?;
        let text = skill_file::with_plain_line_ends(text);
        let parts = skill_file::split(&text).map_err(|(line, problem)| failed(line, problem))?;
        let (fields, mut problems) = fields::read(parts.yaml, file);
        let Some(fields) = fields else { return Err(problems) };
        if parts.body.is_empty() {
            problems.extend(failed(1, "the instructions after the YAML are missing"));
            return Err(problems);
        }
        let agent = Self {
            name: fields.name,
            description: fields.description,
            tools: fields.tools,
            denied_tools: fields.denied_tools,
            model: fields.model,
            skills: fields.skills,
            max_turns: fields.max_turns,
            instructions: parts.body.to_owned(),
            file: file.to_owned(),
            digest: hmac_sha256::Hash::hash(content).iter().map(|byte| format!("{byte:02x}")).collect(),
            lines: fields.lines,
        };
        Ok((agent, problems))
    }

    /// Returns true if the agent keeps this tool of the main agent. Names of other programs' tools mean ours.
    pub fn has_tool(&self, tool: &str) -> bool {
        let is_kept = self
            .tools
            .as_ref()
            .is_none_or(|names| names.iter().any(|written| tool_names::means(written, tool)));
        is_kept && !self.denied_tools.iter().any(|written| tool_names::denies(written, tool))
    }

    /// Returns the problem that the field `tools` has names which mean none of these tools; `None` if each means one.
    pub fn unknown_tools<'t>(&self, known: impl IntoIterator<Item = &'t str>) -> Option<AgentFileProblem> {
        let known: Vec<&str> = known.into_iter().collect();
        let is_unknown = |written: &&String| !known.iter().any(|tool| tool_names::means(written, tool));
        let unknown: Vec<&str> = self.tools.iter().flatten().filter(is_unknown).map(String::as_str).collect();
        (!unknown.is_empty()).then(|| {
            let names = unknown.join("`, `");
            self.problem(
                "tools",
                format!("the main agent has no tool `{names}`, so the agent has none either"),
            )
        })
    }

    /// Returns the system prompt: the instructions, and after them those of the skills that the file names. The limits of
    /// these skills are not in force.
    ///
    /// # Errors
    /// A skill is not in the set, or cannot be read.
    pub fn system_prompt(&self, skills: &SkillSet) -> Result<String, AgentFileProblem> {
        let mut prompt = self.instructions.clone();
        for name in &self.skills {
            let skill = skills.find(name).map_err(|error| self.problem("skills", error.to_string()))?;
            let content = skill.content(SkillLevel::Instructions);
            let content = content.map_err(|error| self.problem("skills", error.to_string()))?;
            prompt.push_str("\n\n");
            prompt.push_str(&content);
        }
        Ok(prompt)
    }

    /// Returns a problem with the line of this field.
    ///
    /// ```
    /// # let text = "---\nname: a\ndescription: b\nmodel: gpt-9\n---\nYou help.\n";
    /// # let (file, _) = archon_skills::AgentFile::parse("a.md", text.as_bytes()).unwrap();
    /// let problem = file.problem("model", "there is no model `gpt-9`");
    /// assert_eq!(problem.to_string(), "a.md:4: there is no model `gpt-9`");
    /// ```
    pub fn problem(&self, field: &str, text: impl Into<String>) -> AgentFileProblem {
        AgentFileProblem::new(&self.file, self.lines.get(field).copied().unwrap_or(1), text)
    }
}
