//! Reads the fields of a frontmatter leniently: a skill that was written for another program is loaded if it has a
//! description, and a doubtful value is only a warning. But a skill whose `allowed-tools` are not understood is left
//! out.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use crate::{
    AllowedTools, SkillProblem, SkillProblemKind, limits,
    problem::SkillProblemKind as Kind,
    yaml::{self, Dialect, Node, Value},
};

/// The fields of a skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: Option<AllowedTools>,
    pub(crate) model: Option<String>,
    pub(crate) disable_model_invocation: bool,
}

/// Reads the fields, and returns all problems. If the fields are returned, the problems are warnings. If they are
/// `None`, the last problem is the reason.
pub(crate) fn read(yaml: &str, file: &Path) -> (Option<Fields>, Vec<SkillProblem>) {
    let mut reader = Reader { file, problems: Vec::new() };
    let fields = reader.fields(yaml);
    (fields, reader.problems)
}

struct Reader<'f> {
    file: &'f Path,
    problems: Vec<SkillProblem>,
}

impl Reader<'_> {
    fn warn(&mut self, line: usize, kind: SkillProblemKind, text: impl Into<String>) {
        self.problems.push(SkillProblem::new(self.file, line, kind, text));
    }

    fn fields(&mut self, yaml: &str) -> Option<Fields> {
        let root = self.root(yaml)?;
        let Value::Map(_) = root.value else {
            self.warn(
                root.line,
                Kind::Yaml,
                "the YAML must be a mapping such as `name: x`; the skill is left out",
            );
            return None;
        };
        Some(Fields {
            description: self.description(&root)?,
            name: self.name(&root),
            license: self.text(&root, "license", Kind::Field),
            compatibility: self.compatibility(&root),
            metadata: self.metadata(&root),
            allowed_tools: self.allowed_tools(&root)?,
            model: self.text(&root, "model", Kind::Field),
            disable_model_invocation: self.disable_model_invocation(&root),
        })
    }

    fn root(&mut self, yaml: &str) -> Option<Node> {
        match parse_lenient(yaml) {
            Ok((root, None)) => Some(root),
            Ok((root, Some(line))) => {
                self.warn(line, Kind::Yaml, QUOTED);
                Some(root)
            }
            Err((line, problem)) => {
                let text = format!("the YAML is not valid ({problem}); the skill is left out");
                self.warn(line, Kind::Yaml, text);
                None
            }
        }
    }

    fn description(&mut self, root: &Node) -> Option<String> {
        let (line, text) = match root.entry("description") {
            Some((key, value)) => (key.line, value.text().unwrap_or_default().trim()),
            None => (1, ""),
        };
        if text.is_empty() {
            self.warn(line, Kind::Description, "the field `description` has no text; the skill is left out");
            return None;
        }
        if text.chars().count() > limits::DESCRIPTION {
            let text = format!(
                "the description has more than {} characters; models read the first",
                limits::DESCRIPTION
            );
            self.warn(line, Kind::Description, text);
        }
        Some(text.to_owned())
    }

    fn name(&mut self, root: &Node) -> String {
        let folder = self.file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let (line, name) = match root.entry("name") {
            Some((key, value)) => (key.line, value.text().unwrap_or_default().trim()),
            None => (1, ""),
        };
        if name.is_empty() {
            self.warn(
                line,
                Kind::Name,
                format!("the field `name` has no text; the folder's name `{folder}` is used"),
            );
            return folder.into_owned();
        }
        for (kind, problem) in limits::name_problems(name, &folder) {
            self.warn(line, kind, format!("{problem}; other programs may refuse the skill"));
        }
        name.to_owned()
    }

    fn compatibility(&mut self, root: &Node) -> Option<String> {
        let text = self.text(root, "compatibility", Kind::Compatibility)?;
        if text.chars().count() > limits::COMPATIBILITY {
            let line = root.entry("compatibility").map_or(1, |(key, _)| key.line);
            let text = format!("the compatibility note has more than {} characters", limits::COMPATIBILITY);
            self.warn(line, Kind::Compatibility, text);
        }
        Some(text)
    }

    /// Returns the text of a field; `None` if the field is absent, empty, or not a text. If it is not a text, adds a
    /// warning.
    fn text(&mut self, root: &Node, field: &str, kind: SkillProblemKind) -> Option<String> {
        let (key, value) = root.entry(field)?;
        let Some(text) = value.text() else {
            self.warn(key.line, kind, format!("the field `{field}` must be a text; it is left out"));
            return None;
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn metadata(&mut self, root: &Node) -> BTreeMap<String, String> {
        let Some((key, value)) = root.entry("metadata") else { return BTreeMap::new() };
        let Value::Map(entries) = &value.value else {
            self.warn(key.line, Kind::Field, "the field `metadata` must be a mapping; it is left out");
            return BTreeMap::new();
        };
        let mut metadata = BTreeMap::new();
        for (key, value) in entries {
            match (key.text(), value.text()) {
                (Some(key), Some(value)) => drop(metadata.insert(key.to_owned(), value.to_owned())),
                _ => self.warn(key.line, Kind::Field, "an entry of `metadata` is not a text; it is left out"),
            }
        }
        metadata
    }

    /// Returns the allowed tools: `Some(None)` if all tools are allowed, `None` if the list cannot be understood.
    /// Then the skill is left out, because without the list it could do more than its author meant.
    fn allowed_tools(&mut self, root: &Node) -> Option<Option<AllowedTools>> {
        let Some((key, value)) = either(root, "allowed-tools", "allowed_tools") else { return Some(None) };
        let list = match &value.value {
            Value::Text(text) => Some(AllowedTools::parse(text)),
            Value::List(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(Node::text).collect();
                texts.map(AllowedTools::new)
            }
            Value::Map(_) => None,
        };
        let Some(list) = list else {
            let text = "the field `allowed-tools` must be names of tools, with spaces; the skill is left out";
            self.warn(key.line, Kind::Field, text);
            return None;
        };
        for rule in list.rules().iter().filter(|rule| rule.contains('(') && !rule.ends_with(')')) {
            let text = format!("the closing bracket is missing in `{rule}`, which allows nothing");
            self.warn(key.line, Kind::Field, text);
        }
        Some((!list.rules().is_empty()).then_some(list))
    }

    fn disable_model_invocation(&mut self, root: &Node) -> bool {
        let found = either(root, "disable-model-invocation", "disable_model_invocation");
        let Some((key, value)) = found else { return false };
        match value.text().unwrap_or_default().trim().to_lowercase().as_str() {
            "true" | "yes" | "on" => true,
            "false" | "no" | "off" | "" => false,
            _ => {
                let text =
                    "the field `disable-model-invocation` must be `true` or `false`; it is read as `true`";
                self.warn(key.line, Kind::Field, text);
                true
            }
        }
    }
}

/// The warning about values that were read as if they were in quotes.
pub(crate) const QUOTED: &str = "a value with a colon must be in quotes; it was read as if it were";

/// Parses the YAML. If that fails, puts quotes around values that contain a colon, parses again, and also returns the
/// line of the first problem.
pub(crate) fn parse_lenient(yaml: &str) -> Result<(Node, Option<usize>), yaml::Failed> {
    let failed = match yaml::parse(yaml, Dialect::Lenient) {
        Ok(root) => return Ok((root, None)),
        Err(failed) => failed,
    };
    if let Cow::Owned(quoted) = quote_colons(yaml)
        && let Ok(root) = yaml::parse(&quoted, Dialect::Lenient)
    {
        return Ok((root, Some(failed.0)));
    }
    Err(failed)
}

fn either<'n>(root: &'n Node, name: &str, other: &str) -> Option<(&'n Node, &'n Node)> {
    root.entry(name).or_else(|| root.entry(other))
}

/// Puts quotes around values that contain a colon and a space, or end with a colon, and have no quotes yet.
fn quote_colons(yaml: &str) -> Cow<'_, str> {
    let lines: Vec<Cow<'_, str>> = yaml.split_inclusive('\n').map(quoted_line).collect();
    match lines.iter().any(|line| matches!(line, Cow::Owned(_))) {
        true => Cow::Owned(lines.concat()),
        false => Cow::Borrowed(yaml),
    }
}

fn quoted_line(line: &str) -> Cow<'_, str> {
    let unchanged = Cow::Borrowed(line);
    let Some((key, value)) = line.trim_end().split_once(": ") else { return unchanged };
    let is_key = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let value = value.trim();
    let is_other_form = value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!', '#']);
    if !key.trim_start().chars().all(is_key)
        || is_other_form
        || !(value.contains(": ") || value.ends_with(':'))
    {
        return unchanged;
    }
    Cow::Owned(format!("{key}: '{}'\n", value.replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quote_colons_only_where_a_value_has_one_and_no_quotes() {
        let yaml = "\nname: a\ndescription: Use when: it's so\nlicense: 'a: b'\nmetadata:\n  note: a: b\n";
        let expected =
            "\nname: a\ndescription: 'Use when: it''s so'\nlicense: 'a: b'\nmetadata:\n  note: 'a: b'\n";
        assert_eq!(quote_colons(yaml), expected);
        assert!(matches!(quote_colons("name: a\n"), Cow::Borrowed(_)));
    }
}
