//! The description of an agent in a file of the folder: its fields, approvals, accounts and triggers.

use std::{collections::BTreeSet, sync::Arc};

use archon::{
    orchestrator::{FieldKind, InputField},
    skills::{AgentFile, AgentFileProblem},
    tools::Rule,
    types::ToolSpec,
};

use super::{
    file_triggers::{self, FileTrigger, Surroundings},
    parts::{self, Part, leave_out},
};

/// The fields that agent files in an assistant's folder may have, besides the fields of every agent file.
pub(super) const OWN: &[&str] = &["approval", "credentials", "fields", "triggers", "zone"];

/// An agent of the folder.
pub(super) struct Description {
    pub(super) file: Arc<AgentFile>,
    pub(super) fields: Vec<InputField>,
    /// Permission rules for calls that need an approval each time.
    pub(super) asking: Vec<String>,
    /// True if each call of the agent needs an approval.
    pub(super) is_confirmed: bool,
    /// The services whose accounts the tools reach.
    pub(super) credentials: Vec<String>,
    pub(super) triggers: Vec<FileTrigger>,
    /// The problems that do not leave the file out.
    pub(super) warnings: Vec<AgentFileProblem>,
}

impl Description {
    /// Reads the description.
    ///
    /// # Errors
    /// The first problem, which leaves the file out.
    pub(super) fn read(file: Arc<AgentFile>, around: &Surroundings) -> Result<Self, AgentFileProblem> {
        let fields = fields(&file)?;
        let mut asking = rules(&file)?;
        let before = asking.len();
        asking.retain(|rule| *rule != file.name);
        let credentials = parts::field(&file, "credentials").map(|part| part.names()).transpose()?;
        let mut warnings = Vec::new();
        let triggers = file_triggers::read(&file, &fields, around, &mut warnings)?;
        Ok(Self {
            is_confirmed: asking.len() < before,
            fields,
            asking,
            credentials: credentials.unwrap_or_default(),
            triggers,
            warnings,
            file,
        })
    }
}

/// Returns the permission rules for calls that ask, and the name of the agent if it is among them.
fn rules(file: &AgentFile) -> Result<Vec<String>, AgentFileProblem> {
    let Some(part) = parts::field(file, "approval") else { return Ok(Vec::new()) };
    let rules = part.names()?;
    for rule in rules.iter().filter(|rule| **rule != file.name) {
        if let Err(error) = rule.parse::<Rule>() {
            return Err(part.wrong(error.to_string()));
        }
        let tool = rule.split('(').next().unwrap_or_default();
        // A rule about a tool that the agent does not have would protect nothing.
        if !has_tool(file, tool) {
            return Err(part.wrong(format!("`approval` names `{tool}`, which is not among `tools`")));
        }
    }
    Ok(rules)
}

/// Returns true if the file gives the agent this tool, or tools that this pattern means.
fn has_tool(file: &AgentFile, tool: &str) -> bool {
    let Some(tools) = &file.tools else { return false };
    match tool.strip_suffix('*') {
        Some(prefix) => tools.iter().any(|name| name.starts_with(prefix)),
        None => file.has_tool(tool),
    }
}

fn fields(file: &AgentFile) -> Result<Vec<InputField>, AgentFileProblem> {
    let Some(part) = parts::field(file, "fields") else { return Ok(Vec::new()) };
    let mut names = BTreeSet::new();
    let mut fields = Vec::new();
    for item in part.items(&["name", "description", "kind", "choices", "required", "default"])? {
        let field = field(&item)?;
        if !names.insert(field.name.clone()) {
            return Err(item.wrong(format!("there are two fields `{}`", field.name)));
        }
        fields.push(field);
    }
    Ok(fields)
}

fn field(item: &Part<'_>) -> Result<InputField, AgentFileProblem> {
    let name = item.obligatory_text("name")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // The model's instruction is a parameter of this name.
    if name.len() > 64 || !name.chars().all(is_plain) || name == "task_instruction" {
        return Err(
            item.wrong(format!("the field cannot have the name `{name}`: use letters, digits and `_`"))
        );
    }
    let (kind, description) = (kind(item)?, item.obligatory_text("description")?);
    let field = match item.entry_text("required")?.unwrap_or("yes") {
        "yes" | "true" => InputField::required(name, kind, description),
        "no" | "false" => InputField::optional(name, kind, description),
        other => return Err(item.wrong(format!("`required` must be yes or no, and `{other}` is neither"))),
    };
    match item.entry("default") {
        None => Ok(field),
        Some(part) => match field.read(part.text()?) {
            Ok(value) => Ok(field.with_default(value)),
            Err(problem) => Err(part.wrong(problem)),
        },
    }
}

fn kind(item: &Part<'_>) -> Result<FieldKind, AgentFileProblem> {
    let choices = item.entry("choices");
    let named = item.entry_text("kind")?;
    match (named, &choices) {
        (None | Some("choice"), Some(part)) => Ok(FieldKind::OneOf(part.names()?)),
        (Some("choice"), None) => Err(item.wrong("a choice needs `choices`")),
        (Some(kind), Some(part)) => Err(part.wrong(format!("a field of the kind `{kind}` has no `choices`"))),
        (None | Some("text"), None) => Ok(FieldKind::Text),
        (Some("integer"), None) => Ok(FieldKind::Integer),
        (Some("number"), None) => Ok(FieldKind::Number),
        (Some("boolean"), None) => Ok(FieldKind::Boolean),
        (Some(other), None) => {
            let kinds = "text, integer, number, boolean, choice";
            let part = item.entry("kind").unwrap_or_else(|| item.clone());
            Err(part.wrong(format!("there is no kind `{other}`; the kinds are: {kinds}")))
        }
    }
}

/// Returns the problem of a file whose `tools` name tools that are not there.
pub(super) fn unknown_tools(file: &AgentFile, known: &[ToolSpec]) -> Option<AgentFileProblem> {
    let unknown = file.tools.iter().flatten().find(|name| {
        let mut alone = file.clone();
        alone.tools = Some(vec![(*name).clone()]);
        alone.unknown_tools(known.iter().map(|tool| tool.name.as_str())).is_some()
    })?;
    let problem = format!("there is no tool `{unknown}`: `archon tools list --tools all` lists them");
    Some(leave_out(file, "tools", problem))
}
