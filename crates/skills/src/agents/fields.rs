//! Reads the fields of an agent file leniently: an unknown field is only a warning. But if a known field has a value
//! that cannot be understood, the file is left out, because the agent could otherwise do more than its author meant.

use std::{collections::BTreeMap, path::Path};

use archon_types::Json;
use serde_json::Map;

use super::AgentFileProblem;
use crate::{
    fields::{QUOTED, parse_lenient},
    yaml::{Node, Value},
};

/// The most characters of a name.
const NAME: usize = 64;

/// Fields for other programs. They have no effect here, and cause no warning.
const WITHOUT_EFFECT: [&str; 2] = ["color", "version"];

/// The fields, each with its accepted spellings.
const FIELDS: [(&str, &[&str]); 7] = [
    ("name", &["name"]),
    ("description", &["description"]),
    ("tools", &["tools"]),
    ("disallowed_tools", &["disallowed_tools", "disallowedTools", "disallowed-tools"]),
    ("model", &["model"]),
    ("skills", &["skills"]),
    ("max_turns", &["max_turns", "maxTurns", "max-turns"]),
];

pub(super) struct AgentFields {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) tools: Option<Vec<String>>,
    pub(super) denied_tools: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) skills: Vec<String>,
    pub(super) max_turns: Option<u32>,
    pub(super) more: Map<String, Json>,
    pub(super) lines: BTreeMap<String, usize>,
}

/// Reads the fields, and returns all problems. If the fields are returned, the problems are warnings. If they are
/// `None`, the last problem is the reason. `own` are the names of further fields, which the caller reads.
pub(super) fn read(yaml: &str, file: &Path, own: &[&str]) -> (Option<AgentFields>, Vec<AgentFileProblem>) {
    let mut reader = Reader { file, own, problems: Vec::new() };
    let fields = reader.fields(yaml);
    (fields, reader.problems)
}

struct Reader<'f> {
    file: &'f Path,
    own: &'f [&'f str],
    problems: Vec<AgentFileProblem>,
}

impl Reader<'_> {
    fn warn(&mut self, line: usize, text: impl Into<String>) {
        self.problems.push(AgentFileProblem::new(self.file, line, text));
    }

    fn leave_out<T>(&mut self, line: usize, problem: &str) -> Option<T> {
        self.warn(line, format!("{problem}; the file is left out"));
        None
    }

    fn fields(&mut self, yaml: &str) -> Option<AgentFields> {
        let root = match parse_lenient(yaml) {
            Ok((root, None)) => root,
            Ok((root, Some(line))) => {
                self.warn(line, QUOTED);
                root
            }
            Err((line, problem)) => {
                return self.leave_out(line, &format!("the YAML is not valid ({problem})"));
            }
        };
        let Value::Map(entries) = &root.value else {
            return self.leave_out(root.line, "the YAML must be a mapping such as `name: x`");
        };
        self.warn_of_unknown(entries);
        let lines =
            FIELDS.iter().filter_map(|(field, _)| Some(((*field).to_owned(), entry(&root, field)?.0)));
        let mut lines: BTreeMap<String, usize> = lines.collect();
        let more = self.more(&root, &mut lines);
        Some(AgentFields {
            more,
            lines,
            name: self.name(&root)?,
            description: self.description(&root)?,
            tools: self.tools(&root)?,
            denied_tools: self.names(&root, "disallowed_tools")?.unwrap_or_default(),
            model: self.model(&root)?,
            skills: self.names(&root, "skills")?.unwrap_or_default(),
            max_turns: self.max_turns(&root)?,
        })
    }

    fn warn_of_unknown(&mut self, entries: &[(Node, Node)]) {
        let is_known = |name: &str| {
            WITHOUT_EFFECT.contains(&name)
                || self.own.contains(&name)
                || FIELDS.iter().any(|(_, spellings)| spellings.contains(&name))
        };
        for (key, _) in entries {
            let name = key.text().unwrap_or_default();
            if !is_known(name) {
                let known = FIELDS.iter().map(|(field, _)| *field).chain(self.own.iter().copied());
                let known = known.collect::<Vec<_>>().join(", ");
                self.warn(key.line, format!("the field `{name}` has no effect; the fields are: {known}"));
            }
        }
    }

    /// Returns the further fields, and adds the lines of all their parts.
    fn more(&self, root: &Node, lines: &mut BTreeMap<String, usize>) -> Map<String, Json> {
        let named = self.own.iter().filter_map(|name| Some((*name, root.entry(name)?)));
        named
            .map(|(name, (key, value))| {
                lines.insert(name.to_owned(), key.line);
                (name.to_owned(), json(value, name, lines))
            })
            .collect()
    }

    fn name(&mut self, root: &Node) -> Option<String> {
        let (line, name) = self.text(root, "name")?;
        let name = match name {
            Some(name) => name,
            None => {
                let stem = self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                self.warn(line, format!("the field `name` has no text; the file's name `{stem}` is used"));
                stem
            }
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        // Tools of MCP servers have names with two underscores.
        if name.is_empty() || name.len() > NAME || !name.chars().all(is_plain) || name.contains("__") {
            let problem =
                format!("the name `{name}` must have 1 to {NAME} letters, digits, `_` or `-`, and not `__`");
            return self.leave_out(line, &problem);
        }
        Some(name)
    }

    fn description(&mut self, root: &Node) -> Option<String> {
        match self.text(root, "description")? {
            (_, Some(description)) => Some(description),
            (line, None) => self.leave_out(line, "the field `description` has no text"),
        }
    }

    /// Returns the tools that the agent keeps: `Some(None)` for all tools, `None` if the list cannot be understood.
    /// Then the file is left out, because without the list the agent could do more than its author meant.
    fn tools(&mut self, root: &Node) -> Option<Option<Vec<String>>> {
        let Some(mut names) = self.names(root, "tools")? else { return Some(None) };
        let is_written = !names.is_empty();
        // An agent of a file calls no other agents.
        names.retain(|name| !is_of_agents(name));
        if !is_written {
            let line = entry(root, "tools").map_or(1, |(line, _)| line);
            self.warn(
                line,
                "the field `tools` is empty, so the agent has no tools; remove the field for all",
            );
        }
        Some(Some(names))
    }

    fn model(&mut self, root: &Node) -> Option<Option<String>> {
        let (_, model) = self.text(root, "model")?;
        Some(model.filter(|model| model != "inherit"))
    }

    fn max_turns(&mut self, root: &Node) -> Option<Option<u32>> {
        let (line, text) = self.text(root, "max_turns")?;
        let Some(text) = text else { return Some(None) };
        match text.parse() {
            Ok(turns) if turns > 0 => Some(Some(turns)),
            _ => self.leave_out(line, "the field `max_turns` must be a whole number from 1"),
        }
    }

    /// Returns the line and the text of a field. The text is `None` if the field is absent or empty. Returns `None`
    /// if the value is not a text: then the file is left out.
    fn text(&mut self, root: &Node, field: &'static str) -> Option<(usize, Option<String>)> {
        let Some((line, value)) = entry(root, field) else { return Some((1, None)) };
        match value.text() {
            Some(text) => Some((line, Some(text.trim().to_owned()).filter(|text| !text.is_empty()))),
            None => self.leave_out(line, &format!("the field `{field}` must be a text")),
        }
    }

    /// Returns the names in a field, which is a list or a text with commas; `Some(None)` if the field is absent.
    /// Returns `None` if the value cannot be understood: then the file is left out.
    fn names(&mut self, root: &Node, field: &'static str) -> Option<Option<Vec<String>>> {
        let Some((line, value)) = entry(root, field) else { return Some(None) };
        let texts: Option<Vec<&str>> = match &value.value {
            Value::Text(text) => Some(parts(text)),
            Value::List(items) => items.iter().map(Node::text).collect(),
            Value::Map(_) => None,
        };
        let Some(texts) = texts else {
            return self
                .leave_out(line, &format!("the field `{field}` must be names, with commas or as a list"));
        };
        let names = texts.into_iter().map(|text| text.trim().to_owned()).filter(|name| !name.is_empty());
        let names: Vec<String> = names.collect();
        if let Some(name) = names.iter().find(|name| is_pattern(name)) {
            let problem = format!("`{name}` in the field `{field}` is not one name; write names with commas");
            return self.leave_out(line, &problem);
        }
        Some(Some(names))
    }
}

/// Returns a value as JSON, in which each scalar is a text. Adds the line of each part under its path.
fn json(value: &Node, path: &str, lines: &mut BTreeMap<String, usize>) -> Json {
    match &value.value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => {
            let items = items.iter().enumerate().map(|(at, item)| {
                let path = format!("{path}/{at}");
                lines.insert(path.clone(), item.line);
                json(item, &path, lines)
            });
            items.collect()
        }
        Value::Map(entries) => {
            let entries = entries.iter().filter_map(|(key, value)| {
                let name = key.text()?;
                let path = format!("{path}/{name}");
                lines.insert(path.clone(), key.line);
                Some((name.to_owned(), json(value, &path, lines)))
            });
            Json::Object(entries.collect())
        }
    }
}

/// Divides a text at the commas that are not in brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_separator = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c == ','
    };
    text.split(is_separator).collect()
}

/// Returns true for the tools with which other programs call agents.
fn is_of_agents(name: &str) -> bool {
    matches!(name.split('(').next(), Some("Agent" | "Task"))
}

/// Returns true if the text is not the name of one tool: a rule about some calls of a tool, such as `Bash(git:*)`, or
/// several names.
fn is_pattern(name: &str) -> bool {
    !is_of_agents(name) && name.contains(|c: char| c == '(' || c == ')' || c.is_whitespace())
}

/// Returns the line and the value of a field, in any of its spellings.
fn entry<'n>(root: &'n Node, field: &str) -> Option<(usize, &'n Node)> {
    let (_, spellings) = FIELDS.iter().find(|(name, _)| *name == field)?;
    spellings.iter().find_map(|spelling| root.entry(spelling)).map(|(key, value)| (key.line, value))
}
