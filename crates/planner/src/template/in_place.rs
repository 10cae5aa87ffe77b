//! Replaces a subtask that names a template as its tool by the template's steps. The subtask's rules
//! apply to the steps, and subtasks that depend on the replaced subtask or refer to its result remain
//! valid.

use std::collections::HashMap;

use archon_types::{ForEach, Json, OnFailure, SubTask, SubTaskId, SubTaskStatus};

use super::{
    TemplateProblem, WorkflowTemplate,
    expand::{Ends, Values, each_value, escaped, once_each, steps, with_texts},
    marks::{OUTER, names_of, unmarked},
};
use crate::references::{Piece, Reference, pieces};

/// The subtasks of a plan after templates were replaced by their steps, and the new names for references to
/// the replaced subtasks.
#[derive(Default)]
pub(crate) struct Replaced {
    subtasks: Vec<SubTask>,
    /// For each replaced subtask: the last steps of its template, on which its dependents now depend.
    last: HashMap<SubTaskId, Vec<SubTaskId>>,
    /// For each replaced subtask: the name for references to its result.
    names: HashMap<String, String>,
}

impl Replaced {
    /// Adds a subtask without changes.
    pub(crate) fn add(&mut self, subtask: &SubTask) {
        self.subtasks.push(subtask.clone());
    }

    /// Adds the steps of the template that `whole` names as its tool. If one step has the result, that step
    /// gets the id of `whole`; if several steps may have the result, they share one name for the result.
    pub(crate) fn add_steps(
        &mut self,
        whole: &SubTask,
        template: &WorkflowTemplate,
    ) -> Result<(), Vec<TemplateProblem>> {
        let given = whole.tool_args().and_then(Json::as_object).cloned().unwrap_or_default();
        let (inner, ends) = steps(template, &template.values(&outer(&given))?)?;
        if inner.is_empty() {
            self.add(whole);
            return Ok(());
        }
        let problems = rules_without_meaning(whole, template, &inner);
        if !problems.is_empty() {
            return Err(problems);
        }
        let place = InPlace::new(whole, &inner, &ends);
        let last: Vec<SubTaskId> = ends.last.iter().map(|id| place.id(id)).collect();
        if last.as_slice() != [whole.id.clone()] {
            self.last.insert(whole.id.clone(), last);
        }
        if place.result_name != whole.id.as_str() {
            self.names.insert(whole.id.to_string(), place.result_name.clone());
        }
        self.subtasks.extend(inner.iter().map(|step| place.step(step)));
        Ok(())
    }

    /// Returns the subtasks with updated dependencies and references.
    pub(crate) fn subtasks(self) -> Vec<SubTask> {
        let Self { subtasks, last, names } = self;
        if last.is_empty() && names.is_empty() {
            return subtasks;
        }
        let name = |head: &str| names.get(head).cloned().unwrap_or_else(|| head.to_owned());
        let steps_of = |id: &SubTaskId| last.get(id).cloned().unwrap_or_else(|| vec![id.clone()]);
        let changed = |subtask: SubTask| match subtask.status() {
            SubTaskStatus::Pending | SubTaskStatus::Blocked => {
                let dependencies = subtask.dependencies().iter().flat_map(steps_of).collect();
                with_names(&subtask, subtask.id.clone(), &name).after(once_each(dependencies))
            }
            _ => subtask,
        };
        subtasks.into_iter().map(changed).collect()
    }
}

/// Names the steps of a template in the plan, where the steps replace the subtask `whole`.
struct InPlace<'a> {
    whole: &'a SubTask,
    inner: &'a [SubTask],
    results: &'a [SubTaskId],
    /// The name by which references in the plan find the result of `whole`.
    result_name: String,
}

impl<'a> InPlace<'a> {
    fn new(whole: &'a SubTask, inner: &'a [SubTask], ends: &'a Ends) -> Self {
        let result_name = match (ends.results.as_slice(), &whole.rules.save_as) {
            ([_, _, ..], Some(name)) => name.clone(),
            _ => whole.id.to_string(),
        };
        Self { whole, inner, results: &ends.results, result_name }
    }

    fn id(&self, id: &SubTaskId) -> SubTaskId {
        match self.results {
            [only] if only == id => self.whole.id.clone(),
            _ => SubTaskId::new(format!("{}_{id}", self.whole.id)),
        }
    }

    /// Returns the name in the plan for a name inside the template. The name in the plan is unique,
    /// because another subtask may use the same template.
    fn name(&self, head: &str) -> String {
        if let Some(around) = head.strip_prefix(OUTER) {
            return around.to_owned();
        }
        if let Some(step) = self.inner.iter().find(|step| step.id.as_str() == head) {
            return self.id(&step.id).to_string();
        }
        let is_named = |step: &&SubTask| step.rules.save_as.as_deref() == Some(head);
        let named: Vec<&SubTask> = self.inner.iter().filter(is_named).collect();
        // Steps that have the result share the name of `whole` and have no other second name.
        match (named.as_slice(), named.iter().all(|step| self.has_result(step))) {
            ([], _) => head.to_owned(),
            ([only], true) => self.id(&only.id).to_string(),
            (_, true) => self.result_name.clone(),
            (_, false) => format!("{}_{head}", self.whole.id),
        }
    }

    fn has_result(&self, step: &SubTask) -> bool {
        self.results.contains(&step.id)
    }

    /// Returns a step under its new name, with the rules of `whole` added to its own. All steps get the condition and
    /// the resources of `whole`, and the first steps also get its gate, in addition to their own. The other rules of
    /// `whole` apply only if the step does not set them.
    fn step(&self, step: &SubTask) -> SubTask {
        let whole = &self.whole.rules;
        let mut new = with_names(step, self.id(&step.id), &|head| self.name(head));
        let rules = &mut new.rules;
        rules.save_as = match (self.results, self.has_result(step)) {
            ([_], true) => whole.save_as.clone(),
            (_, true) => Some(self.result_name.clone()),
            (_, false) => rules.save_as.clone(),
        };
        rules.when = match (whole.when.clone(), rules.when.take()) {
            (Some(whole), Some(own)) => Some(format!("({whole}) and ({own})")),
            (whole, own) => whole.or(own),
        };
        if self.is_first(step) {
            rules.gate = match (whole.gate.clone(), rules.gate.take()) {
                (Some(whole), Some(own)) => Some(format!("{whole} {own}")),
                (whole, own) => whole.or(own),
            };
        }
        rules.role = rules.role.take().or_else(|| whole.role.clone());
        rules.max_attempts = rules.max_attempts.or(whole.max_attempts);
        rules.resources.extend(whole.resources.iter().cloned());
        if rules.on_failure == OnFailure::Replan {
            rules.on_failure = whole.on_failure;
        }
        if self.has_result(step) {
            rules.expected_ms = rules.expected_ms.or(whole.expected_ms);
            new.expected_output = new.expected_output.or_else(|| self.whole.expected_output.clone());
        }
        new.critical = self.whole.critical;
        let own = step.dependencies().iter().map(|id| self.id(id));
        let dependencies: Vec<SubTaskId> = self.whole.dependencies().iter().cloned().chain(own).collect();
        new.after(dependencies)
    }

    fn is_first(&self, step: &SubTask) -> bool {
        is_first(step, self.inner)
    }
}

fn is_first(step: &SubTask, inner: &[SubTask]) -> bool {
    !step.dependencies().iter().any(|id| inner.iter().any(|other| other.id == *id))
}

/// Returns problems for rules of a subtask that several steps cannot follow. Such rules are refused, so
/// that no rule is ignored silently.
fn rules_without_meaning(
    whole: &SubTask,
    template: &WorkflowTemplate,
    inner: &[SubTask],
) -> Vec<TemplateProblem> {
    let mut problems = Vec::new();
    let mut problem = |rule, instead: String| {
        let (subtask, template) = (whole.id.clone(), template.name.clone());
        problems.push(TemplateProblem::NotForTemplate { subtask, template, rule, instead });
    };
    if !whole.rules.fallback_tools.is_empty() {
        let tools = whole.rules.fallback_tools.join(", ");
        problem("fallback_tools", format!("name {tools} in `on_error` of the template's steps"));
    }
    if whole.rules.review.is_some() {
        problem("review", "set a gate on a later subtask".to_owned());
    }
    let word = match whole.rules.on_failure {
        OnFailure::Skip => Some(("on_failure: skip", "skip")),
        OnFailure::Ask => Some(("on_failure: ask", "ask")),
        _ => None,
    };
    if let Some((rule, word)) = word.filter(|_| inner.len() > 1) {
        problem(rule, format!("set `on_error: {word}` on the template's steps that may fail"));
    }
    // A refused first step would be skipped, and the steps after it would run.
    let passed_over = |step: &&SubTask| {
        is_first(step, inner) && step.rules.on_failure == OnFailure::Skip && inner.len() > 1
    };
    if let Some(step) = inner.iter().find(passed_over).filter(|_| whole.rules.gate.is_some()) {
        let instead = format!(
            "the steps after step {} would run if a person refused it; set `approve` in the template",
            step.id
        );
        problem("gate", instead);
    }
    problems
}

/// Marks references in values as references to subtasks outside the template.
fn outer(values: &Values) -> Values {
    each_value(values, |value| with_heads(value, &|head| format!("{OUTER}{head}")))
}

/// Returns the subtask with the id `id`, and with the names in its references replaced by `name`.
fn with_names(subtask: &SubTask, id: SubTaskId, name: &dyn Fn(&str) -> String) -> SubTask {
    let mut new = subtask.clone();
    new.id = id;
    new.rules.save_as = new.rules.save_as.as_deref().map(name);
    new.rules.when = new.rules.when.as_deref().map(|condition| text_with_heads(condition, name));
    if let Some(each) = &mut new.rules.each {
        **each = each_with_names(each, new.id.as_str(), name);
    }
    match subtask.tool_name() {
        Some(tool) => new.with_tool(tool, subtask.tool_args().map(|args| with_heads(args, name))),
        None => new,
    }
}

/// Returns the loop with new names. In references to subtasks outside the loop, `name` replaces the names. The names
/// of the loop's own steps get the loop's id as a prefix, because two loops may come from one template.
fn each_with_names(each: &ForEach, id: &str, name: &dyn Fn(&str) -> String) -> ForEach {
    let own = names_of(each);
    let named = |head: &str| match own.contains(head) {
        true if head.starts_with(id) => head.to_owned(),
        true => format!("{id}_{head}"),
        false if head == each.item => head.to_owned(),
        false => name(head),
    };
    let step = |step: &SubTask| {
        let after: Vec<String> = step.dependencies().iter().map(|id| named(id.as_str())).collect();
        let mut new = with_names(step, named(step.id.as_str()).into(), &named).after(after);
        // The step's texts are filled again for each item.
        let around = |head: &str| unmarked(head).to_owned();
        new.description = text_with_heads(&new.description, &around);
        new.rules.gate = new.rules.gate.as_deref().map(|question| text_with_heads(question, &around));
        new
    };
    let mut new = each.clone();
    new.list = with_heads(&each.list, name);
    new.steps = each.steps.iter().map(step).collect();
    new.results = each.results.iter().map(|id| named(id.as_str()).into()).collect();
    new
}

/// Returns the value with the names in its references replaced by `head`.
fn with_heads(value: &Json, head: &dyn Fn(&str) -> String) -> Json {
    with_texts(value, &|text| text_with_heads(text, head).into())
}

fn text_with_heads(text: &str, head: &dyn Fn(&str) -> String) -> String {
    let piece = |piece: Piece| match piece {
        // Escaped text stays escaped.
        Piece::Text(text) => escaped(&text),
        Piece::Reference(reference) => {
            Reference { head: head(&reference.head), path: reference.path }.to_string()
        }
    };
    pieces(text).into_iter().map(piece).collect()
}
