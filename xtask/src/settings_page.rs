//! Writes `docs/reference/settings.md` from the schema that `archon schema config` prints.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command_line::CommandLine;

const BEGIN: &str = "# Settings of the command

Written by `cargo xtask codegen` from `archon schema config`; edits here are overwritten.

A setting is looked for in these places. Later ones win.

1. `archon.toml` in `$XDG_CONFIG_HOME/archon` (`~/.config/archon` by default): your own settings.
2. `archon.toml` in the current folder: a project's. It comes with somebody else's code, so what could do harm holds only
   after `archon trust`, and some settings never do.
3. Environment variables: `ARCHON_` and the name in capitals, as in `ARCHON_MAX_TURNS`. A list is separated by commas; tables
   such as `[permissions]` stand in files only. An empty variable counts as absent.
4. Flags, as in `--max-turns`.

`archon config get` says which settings hold and where each comes from, and `archon config set NAME VALUE` changes one. A name
or a value that is wrong is refused with its file and line; `archon config check` lists all of them.

```toml
model = \"openai:gpt-5-mini\"
tools = \"all\"
max_turns = 20
max_cost = \"0.50\"

[permissions]
allow = [\"bash(git status:*)\"]
ask = [\"web_fetch\"]
```
";

/// Returns the page's text.
pub(crate) fn page(program: &str) -> Result<String> {
    let printed = CommandLine::new(program).args(["schema", "config"].map(str::to_owned)).output()?;
    let schema: Value =
        serde_json::from_str(&printed).context("`archon schema config` did not print JSON")?;
    Ok(of_schema(&schema))
}

fn of_schema(schema: &Value) -> String {
    let mut text = BEGIN.to_owned();
    table(&mut text, "All settings", schema, schema);
    let mut seen = BTreeSet::new();
    let mut open = tables_of(schema);
    while let Some(name) = open.pop_first() {
        if seen.insert(name.clone()) {
            let inner = &schema["$defs"][&name];
            open.extend(tables_of(inner));
            if inner["properties"].is_object() {
                table(&mut text, &heading(inner), inner, schema);
            }
            for one in inner["oneOf"].as_array().into_iter().flatten() {
                if let Some(kind) = one["properties"]["kind"]["const"].as_str() {
                    table(&mut text, &format!("{} with `kind = \"{kind}\"`", heading(inner)), one, schema);
                }
            }
        }
    }
    text
}

/// Returns the heading of a table: its form in a file, with which its description begins.
fn heading(table: &Value) -> String {
    let description = table["description"].as_str().unwrap_or_default();
    description.split('`').nth(1).map_or_else(|| one_line(description), |name| format!("`{name}`"))
}

/// Returns the names of the definitions that a value refers to.
fn tables_of(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(fields) => {
            let own =
                fields.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
            let inner =
                fields.iter().filter(|(name, _)| *name != "$defs").flat_map(|(_, inner)| tables_of(inner));
            own.map(str::to_owned).into_iter().chain(inner).collect()
        }
        Value::Array(items) => items.iter().flat_map(tables_of).collect(),
        _ => BTreeSet::new(),
    }
}

fn table(text: &mut String, heading: &str, of: &Value, schema: &Value) {
    text.push_str(&format!("\n## {heading}\n\n| name | is | what it does |\n|---|---|---|\n"));
    for (name, value) in of["properties"].as_object().into_iter().flatten() {
        let does = one_line(value["description"].as_str().unwrap_or_default());
        text.push_str(&format!("| `{name}` | {} | {} |\n", kind(value, schema), does.replace('|', "\\|")));
    }
}

/// Names the type of a value in a word or two.
fn kind(value: &Value, schema: &Value) -> String {
    let one = |name: &str| match name {
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => "list of texts".to_owned(),
        "object" => "table".to_owned(),
        _ => "text".to_owned(),
    };
    if let Some(name) = value["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return kind(&schema["$defs"][name], schema);
    }
    if let Some(words) = value["enum"].as_array() {
        return words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let several = value["anyOf"].as_array().or_else(|| value["oneOf"].as_array());
    if let Some(several) = several {
        let kinds: BTreeSet<String> =
            several.iter().filter(|one| one["type"] != "null").map(|one| kind(one, schema)).collect();
        return kinds.into_iter().collect::<Vec<_>>().join(" or ");
    }
    if let Some(word) = value["const"].as_str() {
        return format!("`{word}`");
    }
    match &value["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let kinds = names.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(one);
            kinds.collect::<Vec<_>>().join(" or ")
        }
        _ => "text".to_owned(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_has_a_line_for_each_setting_and_a_table_for_each_table() {
        let schema = json!({
            "properties": {
                "max_turns": {"type": ["integer", "null"], "description": "Most model\ncalls."},
                "agents": {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/Agent"}},
                "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}], "description": "a | b"},
                "channels": {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/Channel"}}
            },
            "$defs": {
                "Agent": {"type": "object", "properties": {"system": {"type": "string"}}, "description": "`[agents.NAME]` is one."},
                "Channel": {"description": "`[channels.NAME]` is one.", "oneOf": [
                    {"properties": {"kind": {"const": "email"}, "to": {"type": "string"}}},
                ]},
                "Mode": {"enum": ["native", "text"]}
            }
        });
        let text = of_schema(&schema);
        let channel = "## `[channels.NAME]` with `kind = \"email\"`\n\n| name | is | what it does |\n|---|---|---|\n\
                       | `kind` | `email` |  |\n| `to` | text |";
        assert!(text.contains(channel), "{text}");
        assert!(text.contains("| `max_turns` | whole number | Most model calls. |\n"), "{text}");
        assert!(text.contains("| `mode` | `native`, `text` | a \\| b |\n"), "{text}");
        assert!(
            text.contains(
                "## `[agents.NAME]`\n\n| name | is | what it does |\n|---|---|---|\n| `system` | text |"
            ),
            "{text}"
        );
    }
}
