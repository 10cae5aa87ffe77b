//! Builds the prompt of an agent that executes a subtask.

use archon_types::{Json, SubTask, Task};

use crate::{
    references::{Reference, references},
    texts::text_of,
};

/// Maximum number of characters of an earlier result in a prompt; `LONGEST_SHORT` is for small models.
const LONGEST: usize = 8_000;
const LONGEST_SHORT: usize = 1_200;

/// The amount of context in the prompt of a subtask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Briefing {
    /// The subtask, the larger task, the expected result, and the known values and results.
    #[default]
    Full,
    /// The subtask and the results on which it depends. More context would confuse a small model.
    Short,
}

/// Returns the description of a subtask and the results on which it depends.
pub(crate) fn short_brief(task: &Task, subtask: &SubTask) -> String {
    let results = subtask.dependencies().iter().filter_map(|id| task.context.get(id.as_str()));
    let shown = |value: &Json| text_of(value).trim().chars().take(LONGEST_SHORT).collect::<String>();
    let lines: Vec<String> = std::iter::once(subtask.description.clone()).chain(results.map(shown)).collect();
    lines.join("\n")
}

/// Returns the prompt for the agent that executes `subtask`. `arguments` are the planned arguments of its
/// tool.
pub(crate) fn brief(
    (task, background): (&Task, &str),
    subtask: &SubTask,
    tool: Option<&str>,
    arguments: Option<&Json>,
) -> String {
    let mut text = format!(
        "{}\n\nThis is one step of a larger task: {}\nDo this step only.",
        subtask.description, task.goal
    );
    match (tool, arguments) {
        (Some(tool), Some(arguments)) => {
            text.push_str(&format!("\nUse the tool {tool} with these arguments: {arguments}"));
        }
        (Some(tool), None) => text.push_str(&format!("\nUse the tool {tool}.")),
        (None, _) => {}
    }
    if let Some(expected) = &subtask.expected_output {
        text.push_str(&format!("\n\nExpected result: {expected}"));
    }
    let fields = fields_wanted(task, subtask).join(", ");
    if !fields.is_empty() {
        text.push_str(&format!(
            "\n\nOther steps need parts of your result. Answer with nothing but JSON that has: {fields}"
        ));
    }
    let known = known(task, subtask).join("\n");
    if !known.is_empty() {
        text.push_str(&format!("\n\nWhat is known:\n{known}"));
    }
    if !background.is_empty() {
        text.push_str(&format!("\n\nBackground of the larger task:\n{background}"));
    }
    text
}

/// Returns the parts of the subtask's result to which other subtasks refer.
fn fields_wanted(task: &Task, subtask: &SubTask) -> Vec<String> {
    let name = subtask.rules.save_as.as_deref();
    let of_this = |r: &Reference| r.head == subtask.id.as_str() || Some(r.head.as_str()) == name;
    let mut fields = Vec::new();
    for other in &task.subtasks {
        for reference in other.tool_args().map(references).unwrap_or_default() {
            if of_this(&reference) && !reference.path.is_empty() {
                let whole = reference.to_string();
                let field = whole.trim_matches(['{', '}']).trim_start_matches(reference.head.as_str());
                let field = field.trim_start_matches('.').to_owned();
                if !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
    }
    fields
}

/// Returns the initial values, and the results on which this subtask depends, as lines of the prompt.
fn known(task: &Task, subtask: &SubTask) -> Vec<String> {
    let is_result = |key: &str| {
        task.subtasks.iter().any(|s| s.id.as_str() == key || s.rules.save_as.as_deref() == Some(key))
    };
    let line = |key: &str, value: &Json| {
        let text = text_of(value);
        let shown: String = text.chars().take(LONGEST).collect();
        let more = if shown.len() < text.len() { " […]" } else { "" };
        format!("[{key}] {shown}{more}")
    };
    let given = task.context.iter().filter(|(key, _)| !is_result(key)).map(|(key, value)| line(key, value));
    let results = subtask
        .dependencies()
        .iter()
        .filter_map(|id| Some(line(id.as_str(), task.context.get(id.as_str())?)));
    given.chain(results).collect()
}
