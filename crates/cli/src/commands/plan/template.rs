//! `archon plan --template FILE --set NAME=VALUE`: a plan with parameters from a file.

use std::path::Path;

use archon::{
    Archon, Planning,
    planner::{TemplateProblem, WorkflowTemplate},
    types::{Confirm, Json, SubTask},
};
use serde_json::Map;

use crate::{failure::Failure, planning::planning_by};

/// A template with values for its parameters.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) goal: String,
    subtasks: Vec<SubTask>,
    values: Map<String, Json>,
}

impl Used {
    pub(super) fn planning(self, archon: &Archon, confirm: Confirm) -> Planning {
        planning_by(archon, confirm, self.values, Some(self.subtasks))
    }
}

/// Reads a template and sets its parameters.
pub(super) fn used(file: &Path, set: &[String]) -> Result<Used, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        let what = format!("cannot read the template {}: {e}", file.display());
        Failure::usage(what, "give the path of a file in YAML or JSON")
    })?;
    let template = read(file, &text)?;
    let values = values(&template, set)?;
    let goal = if template.description.is_empty() { &template.name } else { &template.description }.clone();
    let task =
        template.instantiate("template", &goal, &values).map_err(|problems| wrong(&template, &problems))?;
    Ok(Used { goal, subtasks: task.subtasks, values: task.context })
}

fn read(file: &Path, text: &str) -> Result<WorkflowTemplate, Failure> {
    let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    // JSON is valid YAML, whatever the file's name is.
    #[cfg(not(feature = "yaml"))]
    if !is_json && !text.trim_start().starts_with('{') {
        let what = format!("{}: YAML is not in this build", file.display());
        return Err(Failure::usage(what, "write it in JSON, or build with `--features yaml`"));
    }
    let (form, read) = match is_json {
        #[cfg(feature = "yaml")]
        false => ("YAML", WorkflowTemplate::from_yaml(text)),
        _ => ("JSON", WorkflowTemplate::from_json(text)),
    };
    read.map_err(|problem| {
        let advice =
            format!(
                "it is read as {form}: `name: TEXT`, `parameters:` is a list of `- name: TEXT`, and `steps:` is a list of \
                 `- tool: NAME` with `args:`, or `- description: TEXT`; docs/templates.md shows all of it"
            );
        Failure::usage(format!("{}:{problem}", file.display()), advice)
    })
}

/// Parses the values of `--set NAME=VALUE`. A value is text if its parameter is a string, otherwise JSON.
fn values(template: &WorkflowTemplate, set: &[String]) -> Result<Map<String, Json>, Failure> {
    let mut values = Map::new();
    for word in set {
        let Some((name, value)) = word.split_once('=') else {
            let what = format!("--set {word:?} has no value");
            return Err(Failure::usage(what, "write it as --set NAME=VALUE"));
        };
        let is_text = template.parameters.iter().any(|p| p.name == name && p.kind == "string");
        let json = serde_json::from_str(value).ok().filter(|_| !is_text);
        if values.insert(name.to_owned(), json.unwrap_or_else(|| value.into())).is_some() {
            return Err(Failure::usage(format!("--set {name} is given twice"), "give it once"));
        }
    }
    Ok(values)
}

fn wrong(template: &WorkflowTemplate, problems: &[TemplateProblem]) -> Failure {
    let names: Vec<&str> = template.parameters.iter().map(|p| p.name.as_str()).collect();
    let known = match names.is_empty() {
        true => "the template has no parameters".to_owned(),
        false => format!("its parameters are {}: --set NAME=VALUE", names.join(", ")),
    };
    let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.push(known);
    Failure::choices(crate::exit::Exit::Usage, "the template cannot be used", &lines)
}
