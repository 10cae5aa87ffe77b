//! Expands the steps of a template to subtasks: choices become conditions, loops become concurrent
//! subtasks.

use std::collections::{HashMap, HashSet};

use archon_types::{Json, OnFailure, SubTask, SubTaskId, SubTaskRules};

use super::{
    OnError, OnErrorWord, TemplateProblem, TemplateStep, WorkflowTemplate,
    marks::{OUTER, references_in, unmarked},
};
use crate::{
    references::{Piece, Reference, only_reference, pieces, reference, references, resolve_text},
    texts::text_of,
};

pub(super) type Values = serde_json::Map<String, Json>;

/// Maximum number of levels of choices and loops.
const DEEPEST: usize = 20;
/// Maximum number of subtasks of one template.
const MOST: usize = 1_000;
/// Description of a loop over a result, for the texts of problems. Such a loop is one subtask of the plan.
pub(super) const LATER: &str = "a loop over a result";

/// Returns the subtasks of a template with these values for its parameters, and the template's [`Ends`].
pub(super) fn steps(
    template: &WorkflowTemplate,
    values: &Values,
) -> Result<(Vec<SubTask>, Ends), Vec<TemplateProblem>> {
    let mut expansion = Expansion {
        template: &template.name,
        values: values.clone(),
        subtasks: Vec::new(),
        owners: HashMap::new(),
        problems: Vec::new(),
        is_of_item: false,
    };
    let ends = expansion.block(&template.steps, "step", &Place::default(), Ends::default());
    match expansion.problems.is_empty() {
        true => Ok((expansion.subtasks, ends)),
        false => Err(expansion.problems),
    }
}

/// The end of a sequence of steps, as ids of subtasks.
#[derive(Clone, Default)]
pub(super) struct Ends {
    /// The last subtasks, for which a following step waits.
    pub(super) last: Vec<SubTaskId>,
    /// The subtasks that may give the result of the sequence. The first of them that has a result gives it.
    pub(super) results: Vec<SubTaskId>,
}

impl Ends {
    /// Joins the [`Ends`] of alternatives or of concurrent steps.
    fn or(mut self, other: Self) -> Self {
        self.last.extend(other.last);
        self.last.sort();
        self.last.dedup();
        self.results.extend(other.results);
        self
    }
}

pub(super) struct Expansion<'a> {
    pub(super) template: &'a str,
    /// Parameters, and the items of the surrounding loops.
    pub(super) values: Values,
    pub(super) subtasks: Vec<SubTask>,
    /// For each name, the subtasks that give the name its value.
    pub(super) owners: HashMap<String, Vec<SubTaskId>>,
    pub(super) problems: Vec<TemplateProblem>,
    /// True for the steps of a loop whose list is not known yet. Once the list is known, the texts of these steps are
    /// filled again for each item.
    pub(super) is_of_item: bool,
}

/// The context of a step: the surrounding condition and the depth.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) condition: Option<String>,
    pub(super) depth: usize,
}

impl Expansion<'_> {
    /// Adds the steps of a block, each after the step before it, and returns the [`Ends`] of the block.
    pub(super) fn block(
        &mut self,
        steps: &[TemplateStep],
        prefix: &str,
        place: &Place,
        mut before: Ends,
    ) -> Ends {
        if place.depth > DEEPEST {
            self.problems.push(TemplateProblem::TooDeep { max: DEEPEST });
            return before;
        }
        for (number, step) in (1..).zip(steps) {
            if self.subtasks.len() > MOST {
                let problem = TemplateProblem::TooMany { template: self.template.to_owned(), max: MOST };
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                return before;
            }
            let id = step.id.clone().unwrap_or_else(|| format!("{prefix}{number}"));
            let Ends { last, results } = self.step(step, &id, place, before.last.clone());
            // A step that adds no subtask has no result.
            before = Ends { last, results: if results.is_empty() { before.results } else { results } };
        }
        before
    }

    fn step(&mut self, step: &TemplateStep, id: &str, place: &Place, before: Vec<SubTaskId>) -> Ends {
        let is_work = step.tool.is_some() || step.description.is_some();
        let kinds = [step.condition.is_some(), step.for_each.is_some(), is_work];
        let step_id = id.to_owned();
        match kinds.iter().filter(|is| **is).count() {
            0 => self.problems.push(TemplateProblem::EmptyStep { step: step_id }),
            1 if is_work => return self.work(step, id, place, before),
            1 if step.condition.is_some() => return self.choice(step, id, place, before),
            1 => return self.each(step, id, place, before),
            _ => self.problems.push(TemplateProblem::Ambiguous { step: step_id }),
        }
        after(before)
    }

    fn choice(&mut self, step: &TemplateStep, id: &str, place: &Place, before: Vec<SubTaskId>) -> Ends {
        self.refuse(step, id, "a choice");
        let before = self.followed(step, id, before);
        let condition = braced_text(step.condition.as_deref().unwrap_or_default());
        let condition = condition_with(&condition, &self.values);
        let inside = |condition: String| {
            let condition = match &place.condition {
                Some(outer) => format!("({outer}) and ({condition})"),
                None => condition,
            };
            Place { condition: Some(condition), depth: place.depth + 1 }
        };
        let holds = inside(condition.clone());
        let ends = self.block(&step.then, &format!("{id}_then"), &holds, after(before.clone()));
        if step.otherwise.is_empty() {
            return ends;
        }
        let fails = inside(format!("not ({condition})"));
        ends.or(self.block(&step.otherwise, &format!("{id}_else"), &fails, after(before)))
    }

    fn each(&mut self, step: &TemplateStep, id: &str, place: &Place, before: Vec<SubTaskId>) -> Ends {
        let list = step.for_each.clone().unwrap_or_default();
        let items = match substitute(&braced(&list), &self.values) {
            Json::Array(items) => items,
            list => return self.later(step, id, place, before, list),
        };
        self.refuse(step, id, "a loop over a list that is known at the start");
        let before = self.followed(step, id, before);
        let name = step.item.clone().unwrap_or_else(|| "item".to_owned());
        let inside = Place { depth: place.depth + 1, ..place.clone() };
        let outer = self.values.get(&name).cloned();
        let mut ends = Ends::default();
        for (number, item) in (1..).zip(items) {
            self.values.insert(name.clone(), item);
            let of_item = self.block(&step.body, &format!("{id}_{number}_"), &inside, after(before.clone()));
            // The result of a loop is the result of its last item.
            ends.results.clear();
            ends = ends.or(of_item);
        }
        match outer {
            Some(outer) => _ = self.values.insert(name, outer),
            None => _ = self.values.remove(&name),
        }
        if ends.last.is_empty() { after(before) } else { ends }
    }

    fn work(&mut self, step: &TemplateStep, id: &str, place: &Place, before: Vec<SubTaskId>) -> Ends {
        let mut rules = SubTaskRules::default();
        rules.save_as.clone_from(&step.save_as);
        rules.when.clone_from(&place.condition);
        rules.gate = self.gate(step, id);
        rules.max_attempts = step.attempts;
        rules.on_failure = match &step.on_error {
            None => OnFailure::Replan,
            Some(OnError::Word(OnErrorWord::Stop)) => OnFailure::Stop,
            Some(OnError::Word(OnErrorWord::Ask)) => OnFailure::Ask,
            Some(_) => OnFailure::Skip,
        };
        let description = match (&step.description, &step.tool) {
            (Some(text), _) => self.text(&braced_text(text)),
            (None, Some(tool)) => format!("Run {tool}"),
            (None, None) => String::new(),
        };
        let arguments = step.args.as_ref().map(|args| substitute(&braced(args), &self.values));
        let used = references_in(arguments.as_ref(), rules.when.as_deref());
        let mut subtask = SubTask::new(id, description).with_rules(rules);
        if let Some(tool) = &step.tool {
            subtask = subtask.with_tool(tool, Some(arguments.unwrap_or_else(|| Json::Object(Values::new()))));
        }
        let mut dependencies = self.followed(step, id, before);
        for reference in used.iter().filter(|reference| !reference.may_be_text()) {
            dependencies.extend(self.owner(&reference.head, id));
        }
        let own = self.add(subtask.after(once_each(dependencies)));
        match &step.on_error {
            Some(OnError::Steps(steps)) => {
                // Not `== null`, because a tool may return null.
                let failed = format!("{{{id}}} failed");
                let condition = match &place.condition {
                    Some(outer) => format!("({outer}) and {failed}"),
                    None => failed,
                };
                let inside = Place { condition: Some(condition), depth: place.depth + 1 };
                let instead = self.block(steps, &format!("{id}_error"), &inside, after(own.last.clone()));
                let results = own.results.into_iter().chain(instead.results).collect();
                Ends { last: instead.last, results }
            }
            _ => own,
        }
    }

    /// Adds a subtask and returns the [`Ends`] of its step. The subtask's result becomes the value of its id and of
    /// its `save_as` name.
    pub(super) fn add(&mut self, subtask: SubTask) -> Ends {
        let id = subtask.id.clone();
        for name in [Some(id.to_string()), subtask.rules.save_as.clone()].into_iter().flatten() {
            self.owners.entry(name).or_default().push(id.clone());
        }
        self.subtasks.push(subtask);
        Ends { last: vec![id.clone()], results: vec![id] }
    }

    /// Returns the question to a person before the step, with known values filled in. An unknown name is
    /// a problem, because the person would have to guess its meaning.
    pub(super) fn gate(&mut self, step: &TemplateStep, id: &str) -> Option<String> {
        let question = Json::String(braced_text(step.approve.as_deref()?));
        for reference in references(&question).iter().filter(|reference| !reference.may_be_text()) {
            self.owner(&reference.head, id);
        }
        Some(self.text(question.as_str().unwrap_or_default()))
    }

    /// Adds a problem for each key that a choice or a loop of this kind cannot have.
    pub(super) fn refuse(&mut self, step: &TemplateStep, id: &str, kind: &'static str) {
        let of_steps = [(step.on_error.is_some(), "on_error"), (step.attempts.is_some(), "attempts")];
        // Such a block is no single subtask of the plan, which could have a result or wait for a person.
        let of_subtask = [(step.save_as.is_some(), "save_as"), (step.approve.is_some(), "approve")];
        let of_subtask = of_subtask.into_iter().filter(|_| kind != LATER);
        for (_, key) in of_steps.into_iter().chain(of_subtask).filter(|(is_given, _)| *is_given) {
            self.problems.push(TemplateProblem::NotForBlock { step: id.to_owned(), kind, key });
        }
    }

    /// Returns a text for people and models, filled with the known values.
    fn text(&self, text: &str) -> String {
        match self.is_of_item {
            true => text_to_fill(text, &self.values),
            false => text_with(text, &self.values),
        }
    }

    /// Returns the subtasks after which a step starts: the subtasks of the steps that `after` names, or `before` if
    /// the step has no `after`.
    pub(super) fn followed(
        &mut self,
        step: &TemplateStep,
        id: &str,
        before: Vec<SubTaskId>,
    ) -> Vec<SubTaskId> {
        match &step.after {
            Some(after) => after.iter().flat_map(|name| self.owner(name, id)).collect(),
            None => before,
        }
    }

    /// Returns the subtasks that give the name its value. An unknown name is reported as a problem.
    pub(super) fn owner(&mut self, name: &str, step: &str) -> Vec<SubTaskId> {
        if let Some(owners) = self.owners.get(name) {
            return owners.clone();
        }
        if !self.values.contains_key(name) && !name.starts_with(OUTER) {
            let known = self.owners.keys().chain(self.values.keys()).map(String::as_str);
            let nearest = archon_types::nearest(name, known).map(str::to_owned);
            let (step, name) = (step.to_owned(), name.to_owned());
            self.problems.push(TemplateProblem::UnknownName { step, name, nearest });
        }
        Vec::new()
    }
}

/// Returns the ids in order, each once.
pub(super) fn once_each(mut ids: Vec<SubTaskId>) -> Vec<SubTaskId> {
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

/// Returns the [`Ends`] of a step that adds no subtask: its last subtasks are `before`, and it has no result.
pub(super) fn after(before: Vec<SubTaskId>) -> Ends {
    Ends { last: before, results: Vec::new() }
}

/// Replaces references to `values` in a condition by these values.
pub(super) fn condition_with(condition: &str, values: &Values) -> String {
    let mut out = String::new();
    // The quote that is open at the value. The text of the value must not close the quote.
    let mut open = None;
    for piece in pieces(condition) {
        let reference = match piece {
            Piece::Text(text) => {
                for c in text.chars().filter(|c| matches!(c, '\'' | '"')) {
                    open = match open {
                        None => Some(c),
                        Some(quote) if quote == c => None,
                        still => still,
                    };
                }
                out.push_str(&escaped(&text));
                continue;
            }
            Piece::Reference(reference) => reference,
        };
        let value = values.get(&reference.head).map(|_| substitute_text(&reference.to_string(), values));
        match (&value, open) {
            (Some(Json::String(text)), None) if only_reference(text).is_some() => out.push_str(text),
            (Some(Json::String(text)), None) => out.push_str(&format!("'{}'", text.replace('\'', "''"))),
            (Some(Json::String(text)), Some(quote)) => {
                out.push_str(&text.replace(quote, &format!("{quote}{quote}")));
            }
            (Some(value), _) if !value.is_array() && !value.is_object() => out.push_str(&value.to_string()),
            // An initial value, which is in the task's context.
            _ => out.push_str(&reference.to_string()),
        }
    }
    out
}

/// Escapes a value as data, so that no part of the value is a reference.
pub(super) fn literal(value: &Json) -> Json {
    with_texts(value, &|text| escaped(text).into())
}

/// Reverses [`literal`].
pub(super) fn plain(value: &Json) -> Json {
    with_texts(value, &|text| unescaped(text).into())
}

/// Returns the values, each replaced by the result of `change`.
pub(super) fn each_value(values: &Values, change: impl Fn(&Json) -> Json) -> Values {
    values.iter().map(|(name, value)| (name.clone(), change(value))).collect()
}

/// Returns the value with each of its texts replaced by the result of `change`.
pub(super) fn with_texts(value: &Json, change: &dyn Fn(&str) -> Json) -> Json {
    match value {
        Json::String(text) => change(text),
        Json::Array(items) => items.iter().map(|item| with_texts(item, change)).collect(),
        Json::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), with_texts(value, change))).collect()
        }
        other => other.clone(),
    }
}

/// Returns the text without escapes, and its references without the prefix `OUTER`.
pub(super) fn unescaped(text: &str) -> String {
    let piece = |piece: Piece| match piece {
        Piece::Text(text) => text,
        Piece::Reference(Reference { head, path }) => {
            Reference { head: unmarked(&head).to_owned(), path }.to_string()
        }
    };
    pieces(text).into_iter().map(piece).collect()
}

/// Converts `{{name}}` of templates to `{name}` of plans, and escapes single braces.
fn braced(value: &Json) -> Json {
    with_texts(value, &|text| braced_text(text).into())
}

fn braced_text(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        out.push_str(&escaped(&rest[..at]));
        let after = &rest[at + 2..];
        let inner = after.split_once("}}").map(|(inner, behind)| (format!("{{{}}}", inner.trim()), behind));
        let (piece, behind) = inner
            .filter(|(inner, _)| only_reference(inner).is_some())
            .unwrap_or_else(|| ("{{".to_owned(), after));
        out.push_str(&piece);
        rest = behind;
    }
    out.push_str(&escaped(rest));
    out
}

/// Escapes text, so that it has no references when it is parsed as a plan's text. Single braces have no
/// meaning in a template.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (piece, length) = match reference(rest) {
            Some((_, length)) => (format!("{{{}}}", &rest[..length]), length),
            None => ("{".to_owned(), 1),
        };
        out.push_str(&piece);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// Replaces references to `values` by these values. Other references stay.
pub(super) fn substitute(value: &Json, values: &Values) -> Json {
    with_texts(value, &|text| substitute_text(text, values))
}

/// Replaces references to `values` by these values, and removes escapes.
pub(super) fn text_with(text: &str, values: &Values) -> String {
    unescaped(&text_to_fill(text, values))
}

/// Replaces references like [`text_with`], but keeps escapes, for a text that is filled again later with
/// other values.
pub(super) fn text_to_fill(text: &str, values: &Values) -> String {
    text_of(&substitute_text(text, values))
}

fn substitute_text(text: &str, values: &Values) -> Json {
    let known = |reference: &Reference| {
        let value = values.get(&reference.head)?;
        // A value that is itself a reference has no parts yet, so the path is appended to the reference.
        if references(value).is_empty() || reference.path.is_empty() {
            let lookup = |name: &str| (name == reference.head).then(|| value.clone());
            return resolve_text(&reference.to_string(), &lookup).ok();
        }
        let mut whole = only_reference(value.as_str()?)?;
        whole.path.extend(reference.path.iter().cloned());
        Some(Json::String(whole.to_string()))
    };
    if let Some(reference) = only_reference(text) {
        return known(&reference).unwrap_or_else(|| Json::String(text.to_owned()));
    }
    let piece = |piece: Piece| match piece {
        // Escaped text stays escaped.
        Piece::Text(text) => escaped(&text),
        Piece::Reference(reference) => {
            known(&reference).map_or_else(|| reference.to_string(), |value| text_of(&value))
        }
    };
    Json::String(pieces(text).into_iter().map(piece).collect())
}
