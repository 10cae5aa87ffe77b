//! Changes settings in a file, and keeps the comments and the layout of the file.

use std::path::{Path, PathBuf};

use toml::Value;

use super::{Owner, Settings, file, name::Name, source::candidates, trust};
use crate::{failure::Failure, own_file, text::one_line};

/// A settings file with a change that is not written yet.
#[derive(Debug)]
pub(crate) struct Edit {
    path: PathBuf,
    text: String,
    owner: Owner,
}

impl Edit {
    /// Reads the file, which may not exist yet.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be read or has a problem.
    pub(crate) fn of(path: &Path, owner: Owner) -> Result<Self, Failure> {
        let text = file::read(Some(path))?.map(|file| file.text).unwrap_or_default();
        Ok(Self { path: path.to_owned(), text, owner })
    }

    /// Sets a setting to the value that a person wrote, and returns the value as TOML. A value may be
    /// written as TOML; a text also without quotes, and a list also with commas.
    ///
    /// # Errors
    /// [`Failure`] if the value does not fit the setting, or if a project may not set it. The file is then
    /// unchanged.
    pub(crate) fn set(&mut self, name: &Name, value: &str) -> Result<Value, Failure> {
        let mut problem: Option<String> = None;
        for candidate in candidates(value) {
            match self.with(name, &candidate) {
                Ok((text, settings)) => {
                    if self.owner == Owner::Project {
                        trust::check(&self.path, &settings)?;
                    }
                    self.text = text;
                    return Ok(candidate);
                }
                // The best is one that is not only of another type, then that of the value as a text.
                Err(e) => match &problem {
                    Some(known) if !is_of_type(known) => {}
                    Some(_) if is_of_type(&e) && !candidate.is_str() => {}
                    _ => problem = Some(e),
                },
            }
        }
        let by_hand = Settings::default().set(name.key(), value).err().filter(|_| name.parts().len() == 1);
        let problem = by_hand.or(problem).unwrap_or_default();
        let shown = one_line(value, 60);
        Err(Failure::usage(
            format!("`{name}` cannot be {shown:?}: {}", one_line(problem.trim_end_matches('.'), 200)),
            advice(name),
        ))
    }

    /// Removes a table or a value; returns false if the file does not have it in a form that can be removed.
    #[cfg(any(feature = "openapi", all(unix, feature = "mcp")))]
    pub(crate) fn remove(&mut self, name: &Name) -> bool {
        let Some((last, tables)) = name.parts().split_last() else { return false };
        let Ok(mut document) = self.text.parse::<toml_edit::DocumentMut>() else { return false };
        let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
        for part in tables {
            let Some(inner) = table.get_mut(part).and_then(toml_edit::Item::as_table_like_mut) else {
                return false;
            };
            table = inner;
        }
        let was_there = table.remove(last).is_some();
        self.text = document.to_string();
        was_there
    }

    /// Replaces the file by the changed text, atomically.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be written.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let written = match self.owner {
            Owner::User => own_file::rewrite(&self.path, &self.text),
            Owner::Project => own_file::rewrite_shared(&self.path, &self.text),
        };
        let advice = "make the file and its folder writable, or write the setting into another file";
        written.map_err(|e| Failure::unwritable(&self.path, &e, advice))
    }

    /// Returns the file's text with this value of the setting, and all settings of the new text.
    fn with(&self, name: &Name, value: &Value) -> Result<(String, Settings), String> {
        let text = with_value(&self.text, name, value)?;
        let mut settings: Settings = toml::from_str(&text).map_err(|e| e.message().to_owned())?;
        file::resolve_paths(&self.path, &mut settings);
        let table: toml::Table = toml::from_str(&text).map_err(|e| e.message().to_owned())?;
        let mut parts = name.parts().iter();
        let first = parts.next().and_then(|part| table.get(part));
        match parts.try_fold(first, |found, part| Some(found?.get(part))).flatten() == Some(value) {
            true => Ok((text, settings)),
            false => Err("the file writes the setting in a form that cannot be changed here".to_owned()),
        }
    }
}

/// Returns true if the only problem of a value is its type.
fn is_of_type(problem: &str) -> bool {
    problem.starts_with("invalid type")
}

fn advice(name: &Name) -> String {
    let about = format!("the setting is: {}", name.description());
    match name.table() {
        Some(table) => {
            let together = format!("archon config set '{table}' '{{ PART = VALUE, PART = VALUE }}'");
            format!("{about} To set several parts together: {together}")
        }
        None => about,
    }
}

/// Returns the text of a file, changed so that the setting has this value.
fn with_value(text: &str, name: &Name, value: &Value) -> Result<String, String> {
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    let mut value: toml_edit::Value =
        value.to_string().parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    let Some((last, tables)) = name.parts().split_last() else { return Err("it has no name".to_owned()) };
    // Comments of a file without settings stay before the first one.
    let heading = document.is_empty().then(|| document.trailing().as_str().unwrap_or_default().to_owned());
    if heading.is_some() {
        document.set_trailing("");
    }
    // A table gets a header of its own, unless it is inside of another one's braces.
    let (is_table, mut is_inline) = (value.is_inline_table(), false);
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for (at, part) in tables.iter().enumerate() {
        let inner = table.entry(part).or_insert_with(|| {
            let mut inner = toml_edit::Table::new();
            inner.set_implicit(at + 1 < tables.len() || is_table);
            toml_edit::Item::Table(inner)
        });
        is_inline = inner.is_inline_table();
        table = inner.as_table_like_mut().ok_or_else(|| format!("`{part}` is not a table in the file"))?;
    }
    match table.get_mut(last) {
        Some(toml_edit::Item::Value(before)) => {
            *value.decor_mut() = before.decor().clone();
            *before = value;
        }
        Some(_) => return Err(format!("`{last}` is a table in the file: set its parts")),
        None => {
            let item = match value {
                toml_edit::Value::InlineTable(inner) if !is_inline => {
                    toml_edit::Item::Table(inner.into_table())
                }
                value => toml_edit::value(value),
            };
            table.insert(last, item);
        }
    }
    let text = document.to_string();
    Ok(match heading.filter(|heading| !heading.trim().is_empty()) {
        Some(heading) => format!("{}\n\n{text}", heading.trim_end()),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn edit(text: &str) -> Edit {
        Edit { path: "/p/archon.toml".into(), text: text.to_owned(), owner: Owner::User }
    }

    fn check(text: &str, name: &str, value: &str, expected: Expect) {
        let mut edit = edit(text);
        match edit.set(&Name::parse(name).unwrap(), value) {
            Ok(_) => expected.assert_eq(&edit.text),
            Err(e) => {
                assert_eq!(edit.text, text);
                expected.assert_eq(&format!("{}\n  {}", e.what(), e.advice()[0]));
            }
        }
    }

    #[test]
    fn set_keeps_comments_and_layout() {
        let text = "# Mine.\n\nmax_turns  =  3   # few\nmodel='a:b'\n\n[permissions] # rules\ndeny = [\n  'bash', # never\n]\n";
        check(
            text,
            "max_turns",
            "7",
            expect![[r#"
            # Mine.

            max_turns  =  7   # few
            model='a:b'

            [permissions] # rules
            deny = [
              'bash', # never
            ]
        "#]],
        );
        check(
            text,
            "thinking",
            "high",
            expect![[r##"
            # Mine.

            max_turns  =  3   # few
            model='a:b'
            thinking = "high"

            [permissions] # rules
            deny = [
              'bash', # never
            ]
        "##]],
        );
        check(
            text,
            "permissions.ask",
            "bash,web_fetch",
            expect![[r##"
            # Mine.

            max_turns  =  3   # few
            model='a:b'

            [permissions] # rules
            deny = [
              'bash', # never
            ]
            ask = ["bash", "web_fetch"]
        "##]],
        );
        check(
            "# Only a comment.\n",
            "model",
            "openai:gpt-5-mini",
            expect![[r##"
            # Only a comment.

            model = "openai:gpt-5-mini"
        "##]],
        );
        check(
            "# Only a comment.\n",
            "agents.reviewer.description",
            "Reviews.",
            expect![[r##"
            # Only a comment.

            [agents.reviewer]
            description = "Reviews."
        "##]],
        );
        check(
            "",
            "models.\"openai:m\".context_window",
            "1000",
            expect![[r#"
            [models."openai:m"]
            context_window = 1000
        "#]],
        );
        check(
            "max_turns = 3\n",
            "agents.a",
            "{ description = 'x', max_turns = 2 }",
            expect![[r#"
            max_turns = 3

            [agents.a]
            description = "x"
            max_turns = 2
        "#]],
        );
        check(
            "agents = { a = { description = 'x' } }\n",
            "agents.a.max_turns",
            "2",
            expect![[r#"
            agents = { a = { description = 'x' , max_turns = 2 } }
        "#]],
        );
    }

    #[cfg(all(unix, feature = "mcp"))]
    #[test]
    fn remove_takes_out_a_table_and_nothing_else() {
        let text =
            "max_turns = 3 # few\n\n# Files.\n[mcp.files]\ncommand = 'a'\n\n[mcp.web]\nurl = 'https://b'\n";
        let name = Name::parse("mcp.files").unwrap();
        for (text, expected) in [
            (text, "max_turns = 3 # few\n\n[mcp.web]\nurl = 'https://b'\n"),
            ("mcp = { files = { command = 'a' }, web = { url = 'b' } }\n", "mcp = { web = { url = 'b' } }\n"),
            ("[mcp]\nfiles.command = 'a'\n", "[mcp]\n"),
        ] {
            let mut edit = edit(text);
            assert!(edit.remove(&name), "{text}");
            assert_eq!(edit.text.replace("{  ", "{ "), expected);
            assert!(!edit.remove(&name), "it is gone");
        }
    }

    #[test]
    fn set_reads_a_value_as_its_setting_takes_it() {
        for (name, value, expected) in [
            ("max_turns", "7", "7"),
            ("max_cost", "0.50", "\"0.50\""),
            ("allow_plain_http", "true", "true"),
            ("system", "Be brief, and exact.", "\"Be brief, and exact.\""),
            ("system", "7", "\"7\""),
            ("fallback", "a:b", "[\"a:b\"]"),
            ("fallback", "a:b, c:d", "[\"a:b\", \"c:d\"]"),
            ("fallback", "['a:b']", "[\"a:b\"]"),
            ("tools", "all", "\"all\""),
            ("tools", "search,read_file", "[\"search\", \"read_file\"]"),
            ("system", "two\nlines", "\"two\\nlines\""),
        ] {
            let mut edit = edit("");
            let set = edit.set(&Name::parse(name).unwrap(), value).unwrap();
            let read: toml::Table = toml::from_str(&edit.text).unwrap();
            assert_eq!(read[name], set, "{name}");
            assert_eq!(
                set,
                toml::from_str::<toml::Table>(&format!("v = {expected}")).unwrap()["v"],
                "{name}"
            );
        }
    }

    #[test]
    fn set_of_a_value_that_does_not_fit_changes_nothing() {
        check(
            "max_turns = 3\n",
            "max_turns",
            "many",
            expect![[r#"
            `max_turns` cannot be "many": a whole number is needed
              the setting is: The maximum number of model calls of a run."#]],
        );
        check(
            "",
            "mode",
            "loud",
            expect![[r#"
            `mode` cannot be "loud": `native` or `text` is needed
              the setting is: The form in which the model gets tools: `native` or `text`; by default the form that it supports."#]],
        );
        check(
            "",
            "permissions",
            "all",
            expect![[r#"
            `permissions` cannot be "all": rules can be set only in a file, under [permissions]
              the setting is: Permission rules: calls that are allowed, asked about or denied. Layers add to each other."#]],
        );
        check(
            "",
            "agents.a.system",
            "x",
            expect![[r#"
            `agents.a.system` cannot be "x": missing field `description`
              the setting is: The agent's instructions. To set several parts together: archon config set 'agents.a' '{ PART = VALUE, PART = VALUE }'"#]],
        );
        check(
            "[permissions]\n",
            "permissions",
            "{}",
            expect![[r#"
            `permissions` cannot be "{}": rules can be set only in a file, under [permissions]
              the setting is: Permission rules: calls that are allowed, asked about or denied. Layers add to each other."#]],
        );
        check(
            "",
            "models.\"openai:m\".input",
            "1.5",
            expect![[r#"
                `models."openai:m".input` cannot be "1.5": [models."openai:m"]: a price needs both `input` and `output`
                  the setting is: The price of input tokens. To set several parts together: archon config set 'models."openai:m"' '{ PART = VALUE, PART = VALUE }'"#]],
        );
    }
}
