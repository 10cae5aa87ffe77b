//! The strict validation, with the same verdicts as the reference validator `skills-ref`. To reach them, it splits a
//! file as that validator does: the first `---` after the beginning ends the frontmatter, even in the middle of a
//! line. The lenient load accepts only a whole line `---`.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    SkillProblem, limits,
    problem::SkillProblemKind as Kind,
    skill_file::{self, SKILL_FILE},
    yaml::{self, Dialect, Node, Value},
};

/// The fields that the specification knows.
const FIELDS: [&str; 6] = ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];

/// Checks a skill's folder, or its `SKILL.md`, against the specification. Returns all problems; none for a valid
/// skill.
///
/// The verdicts are those of the reference validator (`skills-ref` 0.1.1). A skill with problems may still load:
/// [`SkillSet::load_dir`](crate::SkillSet::load_dir) is lenient. One verdict is not that of the reference validator: a
/// `SKILL.md` of more than 1 MB is a problem, because its instructions would not be read.
///
/// ```
/// use archon_skills::validate;
///
/// # let place = tempfile::tempdir()?;
/// let folder = place.path().join("pdf-forms");
/// std::fs::create_dir(&folder)?;
/// std::fs::write(folder.join("SKILL.md"), "---\nname: pdf_forms\ndescription: Fills PDF forms.\n---\n")?;
/// let problems = validate(&folder);
/// assert_eq!((problems.len(), problems[0].line), (2, 2));
/// assert_eq!(problems[0].text, "the name `pdf_forms` may have only letters, digits and hyphens");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn validate(folder: &Path) -> Vec<SkillProblem> {
    let is_file_name = |name: &OsStr| name.to_string_lossy().to_lowercase() == "skill.md";
    let folder = match folder.parent() {
        Some(parent) if folder.is_file() && folder.file_name().is_some_and(is_file_name) => parent,
        _ => folder,
    };
    let (file, text) = match read(folder) {
        Ok(read) => read,
        Err(problem) => return vec![problem],
    };
    let problem = |line, text: &str| vec![SkillProblem::new(&file, line, Kind::Frontmatter, text)];
    let Some(rest) = text.strip_prefix("---") else {
        return problem(1, "the file must begin with `---` and YAML");
    };
    let Some((yaml, _)) = rest.split_once("---") else {
        return problem(1, "the `---` after the YAML is missing");
    };
    let root = match parse(yaml) {
        Ok(root) => root,
        Err((line, text)) => return vec![SkillProblem::new(&file, line, Kind::Yaml, text)],
    };
    let mut found = Findings { file: &file, root: &root, problems: Vec::new() };
    found.check(folder);
    found.problems
}

/// Reads the skill file of a folder.
fn read(folder: &Path) -> Result<(PathBuf, String), SkillProblem> {
    let problem = |file: &Path, kind, text: String| SkillProblem::new(file, 1, kind, text);
    if !folder.exists() {
        return Err(problem(folder, Kind::Missing, "the path does not exist".to_owned()));
    }
    if !folder.is_dir() {
        return Err(problem(folder, Kind::Missing, "the path is not a folder".to_owned()));
    }
    let files = [SKILL_FILE, "skill.md"].map(|name| folder.join(name));
    let Some(file) = files.into_iter().find(|file| file.exists()) else {
        return Err(problem(folder, Kind::Missing, format!("the folder has no {SKILL_FILE}; write one")));
    };
    match skill_file::read_bytes(&file).and_then(skill_file::text_of) {
        Ok(text) => Ok((file, text)),
        Err(error) => Err(problem(&file, Kind::Unreadable, format!("the file cannot be read: {error}"))),
    }
}

/// Parses a frontmatter, which must be a mapping.
fn parse(yaml: &str) -> Result<Node, (usize, String)> {
    if let Some((at, c)) = yaml.char_indices().find(|(_, c)| !is_printable(*c)) {
        let line = yaml[..at].matches('\n').count() + 1;
        return Err((line, format!("the character {c:?} is not allowed; remove it")));
    }
    let root = yaml::parse(yaml, Dialect::Strict)
        .map_err(|(line, problem)| (line, format!("the YAML is not valid: {problem}")))?;
    match root.value {
        Value::Map(_) => Ok(root),
        _ => Err((root.line, "the YAML must be a mapping such as `name: x`".to_owned())),
    }
}

/// Returns true for the characters that YAML allows.
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

struct Findings<'f> {
    file: &'f Path,
    root: &'f Node,
    problems: Vec<SkillProblem>,
}

impl Findings<'_> {
    fn add(&mut self, line: usize, kind: Kind, text: impl Into<String>) {
        self.problems.push(SkillProblem::new(self.file, line, kind, text));
    }

    fn check(&mut self, folder: &Path) {
        self.check_fields();
        match self.root.entry("name") {
            None => self.add(1, Kind::Name, "the field `name` is missing; add it"),
            Some((key, value)) => self.check_name(key.line, value, folder),
        }
        match self.root.entry("description") {
            None => self.add(1, Kind::Description, "the field `description` is missing; add it"),
            Some((key, value)) => self.check_description(key.line, value),
        }
        if let Some((key, value)) = self.root.entry("compatibility") {
            match text_of(value).map(|text| text.chars().count()) {
                None => self.add(key.line, Kind::Compatibility, "the field `compatibility` must be a text"),
                Some(length) if length > limits::COMPATIBILITY => {
                    let most = limits::COMPATIBILITY;
                    let text = format!(
                        "the field `compatibility` has {length} characters; at most {most} are allowed"
                    );
                    self.add(key.line, Kind::Compatibility, text);
                }
                Some(_) => {}
            }
        }
    }

    /// Adds one problem for all unknown fields, at the first of them.
    fn check_fields(&mut self) {
        let Value::Map(entries) = &self.root.value else { return };
        let names = entries.iter().filter_map(|(key, _)| Some((key.line, key.text()?)));
        let unknown: Vec<(usize, &str)> = names.filter(|(_, name)| !FIELDS.contains(name)).collect();
        let Some((line, _)) = unknown.first() else { return };
        let names: Vec<String> = unknown.iter().map(|(_, name)| format!("`{name}`")).collect();
        let text = format!(
            "the specification has no field {}; move it to `metadata`, or leave it out",
            names.join(", ")
        );
        self.add(*line, Kind::UnknownField, text);
    }

    fn check_name(&mut self, line: usize, value: &Node, folder: &Path) {
        let name = text_of(value).map(trim).unwrap_or_default();
        if name.is_empty() {
            return self.add(line, Kind::Name, "the field `name` must be a text that is not empty");
        }
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        for (kind, text) in limits::name_problems(name, &folder) {
            self.add(line, kind, text);
        }
    }

    fn check_description(&mut self, line: usize, value: &Node) {
        let text = text_of(value).unwrap_or_default();
        if trim(text).is_empty() {
            return self.add(
                line,
                Kind::Description,
                "the field `description` must be a text that is not empty",
            );
        }
        let (length, most) = (text.chars().count(), limits::DESCRIPTION);
        if length > most {
            let text = format!("the description has {length} characters; at most {most} are allowed");
            self.add(line, Kind::Description, text);
        }
    }
}

/// Returns the text of a value; `None` for a list, for a mapping, and for `<<` or `=` without quotes.
fn text_of(value: &Node) -> Option<&str> {
    value.text().filter(|_| !value.is_symbol())
}

/// Removes white space around a text. Like the reference validator, it counts U+001C to U+001F as white space.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}'))
}
