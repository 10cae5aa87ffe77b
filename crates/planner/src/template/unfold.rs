//! Loops over a result: the loop subtask of a plan, and its expansion once the list is known.

use std::collections::HashSet;

use archon_types::{ForEach, Json, SubTask, SubTaskId};

use super::{
    TemplateProblem, TemplateStep,
    expand::{
        Ends, Expansion, LATER, Place, Values, after, condition_with, literal, once_each, substitute,
        text_to_fill, text_with, unescaped,
    },
    marks::{names_of, references_in, unmarked},
};
use crate::{
    references::{Reference, only_reference, references},
    texts::tool_mark,
};

impl Expansion<'_> {
    /// Adds a loop over the result of a step, as one subtask that contains the steps for one item.
    pub(super) fn later(
        &mut self,
        step: &TemplateStep,
        id: &str,
        place: &Place,
        before: Vec<SubTaskId>,
        list: Json,
    ) -> Ends {
        let item = step.item.clone().unwrap_or_else(|| "item".to_owned());
        let reference = list.as_str().and_then(only_reference).filter(|_| !step.body.is_empty());
        let Some(Reference { head, .. }) = reference else {
            self.problems.push(TemplateProblem::UnknownList { step: id.to_owned() });
            return after(before);
        };
        self.refuse(step, id, LATER);
        let mut dependencies = self.followed(step, id, before);
        dependencies.extend(self.owner(&head, id));
        let (steps, ends) = self.of_one_item(step, id, place, &item);
        let own: HashSet<SubTaskId> = steps.iter().map(|step| step.id.clone()).collect();
        let (mut inner, mut words) = (Vec::new(), Vec::new());
        for step in steps {
            let (inside, around): (Vec<_>, Vec<_>) =
                step.dependencies().iter().cloned().partition(|id| own.contains(id));
            dependencies.extend(around);
            words.push(format!("{}{}", step.description, tool_mark(&step)));
            inner.push(step.after(inside));
        }
        let mut each = ForEach::new(list, item.clone(), inner);
        each.results = ends.results;
        each.max_items = step.max_items.unwrap_or(each.max_items);
        let mut description = format!("For each {item} of {}: {}", unmarked(&head), words.join("; "));
        if !self.is_of_item {
            description = unescaped(&description);
        }
        let mut subtask = SubTask::new(id, description).after(once_each(dependencies));
        subtask.rules.each = Some(Box::new(each));
        subtask.rules.when.clone_from(&place.condition);
        subtask.rules.save_as.clone_from(&step.save_as);
        subtask.rules.gate = self.gate(step, id);
        self.add(subtask)
    }

    /// Returns the steps for one item, which refer to the item by its name.
    fn of_one_item(
        &mut self,
        step: &TemplateStep,
        id: &str,
        place: &Place,
        item: &str,
    ) -> (Vec<SubTask>, Ends) {
        let mut values = self.values.clone();
        values.insert(item.to_owned(), Json::String(format!("{{{item}}}")));
        let mut inner = Expansion {
            template: self.template,
            values,
            subtasks: Vec::new(),
            owners: self.owners.clone(),
            problems: Vec::new(),
            is_of_item: true,
        };
        let inside = Place { condition: None, depth: place.depth + 1 };
        let ends = inner.block(&step.body, &format!("{id}_do"), &inside, Ends::default());
        for own in &inner.subtasks {
            let names = [Some(own.id.as_str()), own.rules.save_as.as_deref()];
            if names.into_iter().flatten().any(|name| self.owners.contains_key(name) || name == item) {
                self.problems.push(TemplateProblem::SameName { step: own.id.to_string() });
            }
        }
        self.problems.extend(inner.problems);
        (inner.subtasks, ends)
    }
}

/// Returns the subtasks for all items of a list, and for each item the subtasks that may have the item's
/// result. The items are data: braces in them are not references.
pub(crate) fn unfold(whole: &SubTask, each: &ForEach, items: &[Json]) -> (Vec<SubTask>, Vec<Vec<SubTaskId>>) {
    let names = names_of(each);
    let (mut subtasks, mut results) = (Vec::new(), Vec::new());
    for (number, item) in (1..).zip(items) {
        let mut values = numbered_references(&names, number);
        values.insert(each.item.clone(), literal(item));
        for step in &each.steps {
            let mut new = of_item(step, number, (&values, text_with), &names);
            if step.dependencies().is_empty() {
                // Subtasks outside the loop to which the step refers are already done.
                new = new.after(whole.dependencies().to_vec());
            }
            subtasks.push(new);
        }
        results.push(numbered_ids(&each.results, number));
    }
    (subtasks, results)
}

fn numbered(name: &str, number: usize) -> String {
    format!("{name}_{number}")
}

fn numbered_ids(ids: &[SubTaskId], number: usize) -> Vec<SubTaskId> {
    ids.iter().map(|id| numbered(id.as_str(), number).into()).collect()
}

/// Returns a reference for each name of a loop's steps. The reference leads to the copy of the step for the item with
/// this number.
fn numbered_references(names: &HashSet<String>, number: usize) -> Values {
    names.iter().map(|name| (name.clone(), format!("{{{}}}", numbered(name, number)).into())).collect()
}

/// Returns a step of a loop for one item. `text` fills the step's description and question with `values`.
fn of_item(
    step: &SubTask,
    number: usize,
    (values, text): (&Values, fn(&str, &Values) -> String),
    names: &HashSet<String>,
) -> SubTask {
    let mut new = step.clone();
    new.id = numbered(step.id.as_str(), number).into();
    new.description = text(&step.description, values);
    let rules = &mut new.rules;
    rules.save_as = rules.save_as.take().map(|name| numbered(&name, number));
    rules.when = rules.when.take().map(|condition| condition_with(&condition, values));
    rules.each = rules.each.take().map(|each| Box::new(inner_of_item(&each, number, values, names)));
    rules.gate = rules.gate.take().map(|question| text(&question, values));
    if let Some(tool) = step.tool_name() {
        new = new.with_tool(tool, step.tool_args().map(|arguments| substitute(arguments, values)));
    }
    let after = step.dependencies().iter().map(|id| match names.contains(id.as_str()) {
        true => numbered(id.as_str(), number),
        false => id.to_string(),
    });
    new.after(after.collect::<Vec<_>>())
}

/// Returns a loop inside a loop, for one item of the outer loop.
fn inner_of_item(each: &ForEach, number: usize, outer: &Values, names: &HashSet<String>) -> ForEach {
    let own = names_of(each);
    let mut values = outer.clone();
    values.extend(numbered_references(&own, number));
    values.remove(&each.item);
    let all: HashSet<String> = names.union(&own).cloned().collect();
    let mut new = each.clone();
    new.list = substitute(&each.list, outer);
    new.steps = each.steps.iter().map(|step| of_item(step, number, (&values, text_to_fill), &all)).collect();
    new.results = numbered_ids(&each.results, number);
    new
}

/// Returns the references of a loop to values from outside the loop.
pub(crate) fn around(each: &ForEach) -> Vec<Reference> {
    let own = names_of(each);
    let mut found = references(&each.list);
    for step in &each.steps {
        let mut used = references_in(step.tool_args(), step.rules.when.as_deref());
        used.extend(step.rules.each.as_deref().map(around).unwrap_or_default());
        found.extend(used.into_iter().filter(|used| used.head != each.item && !own.contains(&used.head)));
    }
    found
}
