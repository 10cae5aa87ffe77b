//! Parts of the fields of an agent file, with their places, so that a problem names its line.

use archon::{
    skills::{AgentFile, AgentFileProblem},
    types::Json,
};

/// A part of a field: a text, a list or a mapping.
#[derive(Clone)]
pub(super) struct Part<'f> {
    file: &'f AgentFile,
    path: String,
    value: &'f Json,
}

type Read<T> = Result<T, AgentFileProblem>;

/// Returns a field of the file; `None` if the file does not have it.
pub(super) fn field<'f>(file: &'f AgentFile, name: &str) -> Option<Part<'f>> {
    file.more.get(name).map(|value| Part { file, path: name.to_owned(), value })
}

/// Returns the problem that leaves a file out.
pub(super) fn leave_out(file: &AgentFile, path: &str, problem: impl AsRef<str>) -> AgentFileProblem {
    file.problem(path, format!("{}; the file is left out", problem.as_ref()))
}

impl<'f> Part<'f> {
    pub(super) fn wrong(&self, problem: impl AsRef<str>) -> AgentFileProblem {
        leave_out(self.file, &self.path, problem)
    }

    /// Returns a problem of the part that does not leave the file out.
    pub(super) fn warning(&self, problem: impl Into<String>) -> AgentFileProblem {
        self.file.problem(&self.path, problem)
    }

    /// Returns the value: a text, or a list or mapping of values.
    pub(super) fn value(&self) -> &'f Json {
        self.value
    }

    /// Names the part for a person: `` `fields` in item 1 of `triggers` ``.
    fn name(&self) -> String {
        let mut segments = self.path.split('/');
        let mut name = format!("`{}`", segments.next().unwrap_or_default());
        for segment in segments {
            name = match segment.parse::<usize>() {
                Ok(at) => format!("item {} of {name}", at + 1),
                Err(_) => format!("`{segment}` in {name}"),
            };
        }
        name
    }

    /// Returns the text, which is not empty.
    pub(super) fn text(&self) -> Read<&'f str> {
        let text = self.value.as_str().map(str::trim).filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(format!("{} must be a text", self.name())))
    }

    /// Returns the names in a list, or in a text with commas.
    pub(super) fn names(&self) -> Read<Vec<String>> {
        let texts: Option<Vec<&str>> = match self.value {
            Json::String(text) => Some(text.split(',').collect()),
            Json::Array(items) => items.iter().map(Json::as_str).collect(),
            _ => None,
        };
        let names = texts.into_iter().flatten().map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        match names.is_empty() {
            true => Err(self.wrong(format!("{} must be names, with commas or as a list", self.name()))),
            false => Ok(names),
        }
    }

    /// Returns the items of a list of mappings with these keys.
    pub(super) fn items(&self, keys: &[&str]) -> Read<Vec<Part<'f>>> {
        let Json::Array(items) = self.value else {
            return Err(self.wrong(format!("{} must be a list: `- name: …`", self.name())));
        };
        let items = items.iter().enumerate().map(|(at, value)| {
            let item = Part { file: self.file, path: format!("{}/{at}", self.path), value };
            match item.entries()?.iter().find(|(key, _)| !keys.contains(key)) {
                Some((key, part)) => {
                    let (item, known) = (item.name(), keys.join(", "));
                    Err(part.wrong(format!("{item} has no part `{key}`: remove it, or use one of: {known}")))
                }
                None => Ok(item),
            }
        });
        items.collect()
    }

    /// Returns the entries of a mapping.
    pub(super) fn entries(&self) -> Read<Vec<(&'f str, Part<'f>)>> {
        let Json::Object(entries) = self.value else {
            return Err(self.wrong(format!("{} must be a mapping, such as `name: …`", self.name())));
        };
        let part = |(key, value): (&'f String, &'f Json)| {
            (key.as_str(), Part { file: self.file, path: format!("{}/{key}", self.path), value })
        };
        Ok(entries.iter().map(part).collect())
    }

    pub(super) fn entry(&self, key: &str) -> Option<Part<'f>> {
        let value = self.value.get(key)?;
        Some(Part { file: self.file, path: format!("{}/{key}", self.path), value })
    }

    /// Returns the text of an entry; `None` if there is no such entry.
    pub(super) fn entry_text(&self, key: &str) -> Read<Option<&'f str>> {
        self.entry(key).map(|part| part.text()).transpose()
    }

    /// Returns the text of an entry that must be there.
    pub(super) fn obligatory_text(&self, key: &str) -> Read<&'f str> {
        match self.entry(key) {
            Some(part) => part.text(),
            None => Err(self.wrong(format!("{} has no `{key}`: add it", self.name()))),
        }
    }
}
