//! An agent file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use archon_types::Json;
use serde_json::Map;

use super::{AgentFileProblem, fields, tool_names};
use crate::{SkillLevel, SkillSet, skill_file};

/// An agent that is described by a Markdown file with YAML at its beginning.
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
    /// The names of the tools that the agent keeps, as the file writes them; `None` if it keeps all tools of the main
    /// agent.
    pub tools: Option<Vec<String>>,
    /// The names of the tools that the agent does not get, as the file writes them.
    pub denied_tools: Vec<String>,
    /// The model; `None` for the model of the main agent (`inherit` in the file).
    pub model: Option<String>,
    /// The names of the skills whose instructions the agent reads.
    pub skills: Vec<String>,
    /// The maximum number of turns of each call of the agent.
    pub max_turns: Option<u32>,
    /// The instructions: the Markdown after the frontmatter, without white space around it.
    pub instructions: String,
    /// The path of the file.
    pub file: PathBuf,
    /// The SHA-256 of the file in hexadecimal digits.
    pub digest: String,
    /// The further fields that the caller of [`parse_with`](Self::parse_with) named. Numbers and booleans in them are
    /// kept as texts.
    pub more: Map<String, Json>,
    /// The line of each field and of each part of a further field, by its path: `name`, `fields/0/kind`.
    pub(super) lines: BTreeMap<String, usize>,
}

impl AgentFile {
    /// Parses the content of a file. Returns the agent, and warnings about fields that were ignored or corrected.
    ///
    /// # Errors
    /// The file does not describe an agent: the last problem is the reason.
    pub fn parse(
        file: impl AsRef<Path>,
        content: &[u8],
    ) -> Result<(Self, Vec<AgentFileProblem>), Vec<AgentFileProblem>> {
        Self::parse_with(file, content, &[])
    }

    /// Does the same as [`parse`](Self::parse), and also keeps the further fields whose names are in `own`: they are
    /// in [`more`](Self::more). The caller checks these fields, and names the line of a wrong part with
    /// [`problem`](Self::problem).
    ///
    /// ```
    /// use archon_skills::AgentFile;
    ///
    /// let text = "---\nname: a\ndescription: b\nfields:\n  - name: cents\n    kind: money\n---\nYou help.\n";
    /// let (file, warnings) = AgentFile::parse_with("a.md", text.as_bytes(), &["fields"]).unwrap();
    /// assert!(warnings.is_empty());
    /// assert_eq!(file.more["fields"][0]["kind"], "money");
    /// let problem = file.problem("fields/0/kind", "there is no kind `money`");
    /// assert_eq!(problem.to_string(), "a.md:6: there is no kind `money`");
    /// ```
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        file: impl AsRef<Path>,
        content: &[u8],
        own: &[&str],
    ) -> Result<(Self, Vec<AgentFileProblem>), Vec<AgentFileProblem>> {
        let file = file.as_ref();
        let failed = |line, problem: &str| {
            vec![AgentFileProblem::new(file, line, format!("{problem}; the file is left out"))]
        };
        let text = std::str::from_utf8(content).map_err(|_| failed(1, "the file is not UTF-8 text"))?;
        let text = skill_file::with_plain_line_ends(text);
        let parts = skill_file::split(&text).map_err(|(line, problem)| failed(line, problem))?;
        let (fields, mut problems) = fields::read(parts.yaml, file, own);
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
            more: fields.more,
            lines: fields.lines,
        };
        Ok((agent, problems))
    }

    /// Returns true if the agent keeps this tool of the main agent. The file may use names of other programs: `Read`
    /// means `read_file`.
    pub fn has_tool(&self, tool: &str) -> bool {
        let is_kept = self
            .tools
            .as_ref()
            .is_none_or(|names| names.iter().any(|written| tool_names::means(written, tool)));
        is_kept && !self.denied_tools.iter().any(|written| tool_names::denies(written, tool))
    }

    /// Returns a problem if the field `tools` has names that match none of the `known` tools; `None` if each name
    /// matches one.
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

    /// Returns the system prompt: the instructions of the agent, then the instructions of each skill that the file
    /// names. The limits of these skills, such as their `allowed-tools`, do not apply.
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

    /// Returns a problem that points to the line of `field` in the file. `field` is the name of a field, or a path to
    /// a part of it, such as `fields/0/kind`.
    ///
    /// ```
    /// # let text = "---\nname: a\ndescription: b\nmodel: gpt-9\n---\nYou help.\n";
    /// # let (file, _) = archon_skills::AgentFile::parse("a.md", text.as_bytes()).unwrap();
    /// let problem = file.problem("model", "there is no model `gpt-9`");
    /// assert_eq!(problem.to_string(), "a.md:4: there is no model `gpt-9`");
    /// ```
    pub fn problem(&self, field: &str, text: impl Into<String>) -> AgentFileProblem {
        let above = std::iter::successors(Some(field), |path| Some(path.rsplit_once('/')?.0));
        let line = above.into_iter().find_map(|path| self.lines.get(path)).copied();
        AgentFileProblem::new(&self.file, line.unwrap_or(1), text)
    }
}
