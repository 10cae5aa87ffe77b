//! Workflow templates: a plan with parameters, written once and used repeatedly.
//!
//! A template is data, in JSON, in YAML (feature `yaml`) or in another format that `serde` reads:
//!
//! ```json
//! {
//!   "name": "support_ticket_triage",
//!   "parameters": [{"name": "ticket_text", "type": "string"}],
//!   "steps": [
//!     {"tool": "classify_issue", "args": {"text": "{{ticket_text}}"}, "save_as": "issue_type"},
//!     {"if": "{{issue_type}} == 'billing'",
//!      "then": [{"tool": "fetch_customer_record", "args": {"extracted_from": "{{ticket_text}}"}}],
//!      "else": [{"tool": "escalate_to_human", "args": {"reason": "Not about billing"}}]}
//!   ]
//! }
//! ```
//!
//! Each step follows the one above unless `after` names other steps. `{{name}}` stands for a parameter, for the item
//! of a loop, or for the result of a step, by the step's name (`step1` is the first step) or by its `save_as` name. A
//! text that is only such a name keeps the type of the value.

mod expand;
mod in_place;
mod marks;
mod text;
mod unfold;

use archon_types::{Json, SubTaskId, Task, TaskId, ToolDefinition};
use serde::{Deserialize, Serialize};
use serde_json::json;

use expand::{Values, each_value, literal, plain, steps};
pub(crate) use in_place::Replaced;
pub(crate) use unfold::{around, unfold};

/// A plan with parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkflowTemplate {
    /// Name of the template, in the form of a tool name.
    pub name: String,
    /// Version: numbers with dots. The highest version is used. Default `1.0.0`.
    #[serde(default = "first_version")]
    pub version: String,
    /// Description of the template's purpose.
    #[serde(default)]
    pub description: String,
    /// Phrases for matching: the template matches a goal that has all words of one of the phrases.
    #[serde(default)]
    pub matches: Vec<String>,
    /// Parameters of the template.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Steps of the template, in order.
    pub steps: Vec<TemplateStep>,
}

/// A parameter of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Type of the value, as in JSON Schema. Default `string`.
    #[serde(rename = "type", default = "text")]
    pub kind: String,
    /// Meaning of the parameter, for planners.
    #[serde(default)]
    pub description: String,
    /// Default value. A parameter without a default needs a value.
    #[serde(default)]
    pub default: Option<Json>,
}

/// One step of a template: a tool call, a task for an agent, a choice, or a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TemplateStep {
    /// Name of the step. Default: a name made from its position, such as `step1`.
    pub id: Option<String>,
    /// Description of the step.
    pub description: Option<String>,
    /// Name of the tool that the step calls.
    pub tool: Option<String>,
    /// Arguments of the tool.
    pub args: Option<Json>,
    /// A name for the step's result besides the name of the step.
    pub save_as: Option<String>,
    /// Steps after which this step starts. Default: the step before it in the file.
    pub after: Option<Vec<String>>,
    /// The condition of a choice.
    #[serde(rename = "if")]
    pub condition: Option<String>,
    /// The steps that are executed if the condition of a choice holds.
    pub then: Vec<TemplateStep>,
    /// The steps that are executed if the condition of a choice does not hold.
    #[serde(rename = "else")]
    pub otherwise: Vec<TemplateStep>,
    /// The list of a loop, or the name of a parameter or an earlier result that is a list.
    pub for_each: Option<Json>,
    /// The maximum number of items of a loop over a result. A longer list is refused. Default 50.
    pub max_items: Option<u32>,
    /// The name of the item in a loop. Default `item`.
    #[serde(rename = "as")]
    pub item: Option<String>,
    /// The steps that a loop executes for each item. Items are processed concurrently.
    #[serde(rename = "do")]
    pub body: Vec<TemplateStep>,
    /// Reaction to a failure of the step. Default: a replan.
    pub on_error: Option<OnError>,
    /// Question to a person before the step starts.
    pub approve: Option<String>,
    /// Maximum number of attempts before the step counts as failed. Default: the number in the settings of the plan
    /// (`ReplanPolicy::same_subtask`).
    pub attempts: Option<u32>,
}

/// The reaction to a failure of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum OnError {
    /// One of the words `skip`, `stop` and `ask`.
    Word(OnErrorWord),
    /// Steps that run after the failure, in place of the failed step.
    Steps(Vec<TemplateStep>),
}

/// The reaction to a failure of a step, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnErrorWord {
    /// The other steps continue without the failed step.
    Skip,
    /// Steps that depend on the failed step are not executed.
    Stop,
    /// A person decides how to continue.
    Ask,
}

/// A problem of a template, or of the values for its parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum TemplateProblem {
    #[error("{line}:{column}: {problem}")]
    Unreadable { line: u64, column: u64, problem: String },
    #[error("the template {template} has no parameter {name:?}{}", meant(nearest.as_ref()))]
    UnknownParameter { template: String, name: String, nearest: Option<String> },
    #[error("the template {template} needs a value for {name:?}")]
    MissingParameter { template: String, name: String },
    #[error("the value of {name:?} of the template {template} must be of type {expected}")]
    WrongType { template: String, name: String, expected: String },
    #[error("step {step} refers to {name:?}, which is not a parameter, the item of a loop or an earlier step{}", meant(nearest.as_ref()))]
    UnknownName { step: String, name: String, nearest: Option<String> },
    #[error("step {step} is a loop: `for_each` must be a list or name a list, and `do` must have steps")]
    UnknownList { step: String },
    #[error("step {step} has no `tool`, `description`, `if` or `for_each`")]
    EmptyStep { step: String },
    #[error("step {step} has more than one of `if`, `for_each`, and `tool` or `description`")]
    Ambiguous { step: String },
    #[error("step {step} cannot have `{key}`, because it is {kind}: set `{key}` on the steps inside")]
    NotForBlock { step: String, kind: &'static str, key: &'static str },
    #[error("step {step} in a loop has an id or save_as that another step or the loop's item already uses")]
    SameName { step: String },
    #[error("steps are nested more than {max} levels deep")]
    TooDeep { max: usize },
    #[error(
        "subtask {subtask} sets `{rule}`, which does not work for the template {template} that it runs: {instead}"
    )]
    NotForTemplate { subtask: SubTaskId, template: String, rule: &'static str, instead: String },
    #[error("the template {template} would have more than {max} subtasks")]
    TooMany { template: String, max: usize },
}

fn meant(nearest: Option<&String>) -> String {
    nearest.map(|name| format!(" (is {name:?} meant?)")).unwrap_or_default()
}

impl WorkflowTemplate {
    /// Returns a task made from the template, with `values` for its parameters. The task must be checked
    /// like any other plan. Values are data: braces in them are not references.
    ///
    /// # Errors
    /// All problems of the values, or of the template itself.
    pub fn instantiate(
        &self,
        id: impl Into<TaskId>,
        goal: &str,
        values: &serde_json::Map<String, Json>,
    ) -> Result<Task, Vec<TemplateProblem>> {
        let values = self.values(&each_value(values, literal))?;
        let mut task = Task::new(id, goal).with_subtasks(steps(self, &values)?.0);
        task.context = each_value(&values, plain);
        Ok(task)
    }

    /// Returns the values of all parameters, given or default.
    fn values(&self, given: &Values) -> Result<Values, Vec<TemplateProblem>> {
        let mut problems = Vec::new();
        let mut values = Values::new();
        let template = || self.name.clone();
        for name in given.keys().filter(|name| self.parameters.iter().all(|p| p.name != **name)) {
            let names = self.parameters.iter().map(|p| p.name.as_str());
            let nearest = archon_types::nearest(name, names).map(str::to_owned);
            let (template, name) = (template(), name.clone());
            problems.push(TemplateProblem::UnknownParameter { template, name, nearest });
        }
        for parameter in &self.parameters {
            let name = parameter.name.clone();
            let default = parameter.default.as_ref().map(literal);
            match given.get(&name).or(default.as_ref()) {
                None => problems.push(TemplateProblem::MissingParameter { template: template(), name }),
                Some(value) if !parameter.takes(value) => {
                    let expected = parameter.kind.clone();
                    problems.push(TemplateProblem::WrongType { template: template(), name, expected });
                }
                Some(value) => _ = values.insert(name, value.clone()),
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    /// Returns the template as a tool definition, for planners.
    pub fn definition(&self) -> ToolDefinition {
        let property =
            |p: &Parameter| (p.name.clone(), json!({"type": p.kind, "description": p.description}));
        let properties: serde_json::Map<String, Json> = self.parameters.iter().map(property).collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|p| p.default.is_none()).map(|p| p.name.as_str()).collect();
        ToolDefinition {
            name: self.name.clone(),
            description: format!("A workflow of several steps. {}", self.description),
            parameters: json!({"type": "object", "properties": properties, "required": required,
                "additionalProperties": false}),
        }
    }

    /// Returns the number of words of the template's longest phrase whose words are all in the goal; 0 if
    /// there is none.
    pub(crate) fn likeness(&self, goal: &str) -> usize {
        let words = |text: &str| -> Vec<String> {
            let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            parts.map(str::to_lowercase).collect()
        };
        let goal = words(goal);
        let phrases = self.matches.iter().map(|phrase| words(phrase));
        let found = phrases.filter(|phrase| phrase.iter().all(|word| goal.contains(word)));
        found.map(|phrase| phrase.len()).max().unwrap_or(0)
    }
}

impl Parameter {
    /// Returns true if a value has the parameter's type. A reference is allowed for any type.
    fn takes(&self, value: &Json) -> bool {
        if !crate::references(value).is_empty() {
            return true;
        }
        match self.kind.as_str() {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        }
    }
}

fn first_version() -> String {
    "1.0.0".to_owned()
}

fn text() -> String {
    "string".to_owned()
}
