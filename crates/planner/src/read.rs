//! Parses plans from text: pure JSON, JSON in a code fence, or JSON in prose. Reports all problems at
//! once.

use archon_types::{Json, SubTask, SubTaskRules, nearest};
use serde_json::json;

use crate::{
    arguments::type_of,
    problem::{PlanProblem, ProblemKind},
    texts::text_of,
};

/// The text that may surround a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// No other text is allowed: the whole text must be the plan.
    Strict,
    /// A code fence, and text before and after the plan, are allowed, because models write them.
    Lenient,
}

/// A parsed plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReadPlan {
    /// The goal, if the text has one.
    pub goal: Option<String>,
    /// The subtasks of the plan.
    pub subtasks: Vec<SubTask>,
}

/// Parses a plan: a list of subtasks, or an object with `subtasks` and possibly a `goal`.
///
/// # Errors
/// All problems of the format. [`check`](crate::check) checks the content.
pub fn read_plan(text: &str, reading: Reading) -> Result<ReadPlan, Vec<PlanProblem>> {
    let value = match reading {
        Reading::Strict => strict(text),
        Reading::Lenient => lenient(text),
    };
    value.map_err(|kind| vec![PlanProblem::of_plan(kind)]).and_then(|value| plan_of_json(&value))
}

/// Parses a plan like [`read_plan`], from JSON that is already parsed.
///
/// # Errors
/// See [`read_plan`].
pub fn plan_of_json(value: &Json) -> Result<ReadPlan, Vec<PlanProblem>> {
    let steps = match value {
        Json::Array(steps) => Some(steps),
        other => other.get("subtasks").and_then(Json::as_array),
    };
    let Some(steps) = steps else {
        let found = match value {
            Json::Object(_) => "an object without a list \"subtasks\"",
            other => type_of(other),
        };
        return Err(vec![PlanProblem::of_plan(ProblemKind::NotAPlan { found: found.to_owned() })]);
    };
    let mut problems = Vec::new();
    let mut subtasks = Vec::new();
    for (place, step) in (1..).zip(steps) {
        match subtask(place, step) {
            Ok(subtask) => subtasks.push(subtask),
            Err(found) => problems.extend(found),
        }
    }
    let goal = value.get("goal").and_then(Json::as_str).map(str::to_owned);
    if problems.is_empty() { Ok(ReadPlan { goal, subtasks }) } else { Err(problems) }
}

fn strict(text: &str) -> Result<Json, ProblemKind> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    let value = match stream.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(ProblemKind::NotJson { problem: error.to_string() }),
        None => return Err(ProblemKind::NotJson { problem: "there is no text".to_owned() }),
    };
    match text[stream.byte_offset()..].trim() {
        "" => Ok(value),
        more => Err(ProblemKind::TrailingText { text: more.chars().take(SHOWN).collect() }),
    }
}

const SHOWN: usize = 60;

/// Returns the first JSON in the text that could be a plan.
fn lenient(text: &str) -> Result<Json, ProblemKind> {
    let whole = strict(text);
    if whole.is_ok() {
        return whole;
    }
    // Tried before the parts of the text, because a part of an almost valid plan may look like a plan.
    if let Some(value) = mended(text).filter(may_be_plan) {
        return Ok(value);
    }
    let mut best = None;
    let mut at = 0;
    let mut tries = 0;
    while let Some(next) = text[at..].find(['[', '{']) {
        at += next;
        tries += 1;
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Json>();
        match stream.next() {
            Some(Ok(value)) => {
                if may_be_plan(&value) {
                    return Ok(value);
                }
                at += stream.byte_offset().max(1);
                best = best.or(Some(value));
            }
            _ => at += 1,
        }
        if tries > MOST_TRIES {
            break;
        }
    }
    match (best, whole) {
        (Some(value), _) => Ok(value),
        (None, Err(ProblemKind::TrailingText { .. })) | (None, Ok(_)) => {
            Err(ProblemKind::NotJson { problem: "there is no list of subtasks in it".to_owned() })
        }
        (None, Err(problem)) => Err(problem),
    }
}

/// Parses the text between the first and the last bracket as lenient JSON: single quotes, bare keys,
/// trailing commas. Text that was cut off is not repaired.
fn mended(text: &str) -> Option<Json> {
    let object = text.get(text.find(['[', '{'])?..=text.rfind([']', '}'])?)?;
    // The parser is recursive, so the depth is limited.
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in object.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    (deepest <= DEEPEST).then(|| json5::from_str(object).ok()).flatten()
}

/// Maximum number of levels of nested brackets, as for strict JSON.
const DEEPEST: usize = 128;

/// Maximum number of brackets in a text at which parsing is tried. Each attempt may read the whole text after
/// the bracket.
const MOST_TRIES: usize = 200;

fn may_be_plan(value: &Json) -> bool {
    match value {
        Json::Array(items) => !items.is_empty() && items.iter().all(Json::is_object),
        other => other.get("subtasks").is_some_and(Json::is_array),
    }
}

/// The fields of a subtask.
const FIELDS: &str =
    "id description expected_output tool_name tool_args dependencies critical rules status result";

fn subtask(place: usize, step: &Json) -> Result<SubTask, Vec<PlanProblem>> {
    let Some(fields) = step.as_object() else {
        let found = type_of(step).to_owned();
        let field = "the whole".to_owned();
        let kind = ProblemKind::WrongType { place, field, expected: "an object", found };
        return Err(vec![PlanProblem::of_plan(kind)]);
    };
    let mut reader = Reader { place, fields, problems: Vec::new() };
    let id = reader.text("id", Need::Required);
    let description = reader.text("description", Need::Required);
    let mut subtask = SubTask::new(id.unwrap_or_default(), description.unwrap_or_default());
    subtask.expected_output = reader.text("expected_output", Need::Optional).filter(|text| !text.is_empty());
    let tool_name = reader.text("tool_name", Need::Optional).filter(|name| !name.is_empty());
    let dependencies = reader.texts("dependencies");
    subtask.critical = reader.flag("critical");
    // `{}` is a call without arguments. Without a tool, `{}` means nothing.
    let tool_args = fields.get("tool_args").filter(|args| !args.is_null()).cloned();
    let names_none = fields.get("tool_name").is_none_or(|name| name.is_null() || name == "");
    if names_none && tool_args.as_ref().is_some_and(|args| *args != json!({})) {
        reader.problem(ProblemKind::ArgumentsWithoutTool);
    }
    subtask.rules = reader.rules();
    reader.unknown();
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    if let Some(name) = tool_name {
        subtask = subtask.with_tool(name, tool_args);
    }
    Ok(subtask.after(dependencies))
}

enum Need {
    Required,
    Optional,
}

/// Reads the fields of one subtask.
struct Reader<'a> {
    place: usize,
    fields: &'a serde_json::Map<String, Json>,
    problems: Vec<PlanProblem>,
}

impl Reader<'_> {
    fn text(&mut self, field: &'static str, need: Need) -> Option<String> {
        match (self.fields.get(field), need) {
            (Some(Json::String(text)), _) => return Some(text.clone()),
            // Models may number their steps.
            (Some(Json::Number(number)), _) if field == "id" => return Some(number.to_string()),
            (None | Some(Json::Null), Need::Optional) => {}
            (None, Need::Required) => self.problem(ProblemKind::MissingField { place: self.place, field }),
            (Some(other), _) => self.wrong(field, "text", other),
        }
        None
    }

    fn texts(&mut self, field: &'static str) -> Vec<String> {
        let Some(value) = self.fields.get(field) else {
            self.problem(ProblemKind::MissingField { place: self.place, field });
            return Vec::new();
        };
        let text = |item: &Json| (item.is_string() || item.is_number()).then(|| text_of(item));
        let texts = value.as_array().and_then(|items| items.iter().map(text).collect());
        texts.unwrap_or_else(|| {
            self.wrong(field, "a list of ids", value);
            Vec::new()
        })
    }

    fn flag(&mut self, field: &'static str) -> bool {
        match self.fields.get(field) {
            None | Some(Json::Null) => false,
            Some(Json::Bool(is)) => *is,
            Some(other) => {
                self.wrong(field, "true or false", other);
                false
            }
        }
    }

    fn rules(&mut self) -> SubTaskRules {
        let Some(rules) = self.fields.get("rules").filter(|rules| !rules.is_null()) else {
            return SubTaskRules::default();
        };
        serde_json::from_value(rules.clone()).unwrap_or_else(|error| {
            let (place, field) = (self.place, "rules".to_owned());
            let (expected, found) = ("an object of rules", format!("invalid ({error})"));
            self.problem(ProblemKind::WrongType { place, field, expected, found });
            SubTaskRules::default()
        })
    }

    /// Reports unknown fields. Also reports a status or a result that only a started subtask can have.
    fn unknown(&mut self) {
        let fields = self.fields;
        for field in fields.keys().filter(|field| FIELDS.split(' ').all(|known| known != *field)) {
            let nearest = nearest(field, FIELDS.split(' ')).map(str::to_owned);
            self.problem(ProblemKind::UnknownField { place: self.place, field: field.clone(), nearest });
        }
        let has_begun = |status: &&Json| !matches!(status.as_str(), Some("pending" | "blocked"));
        if let Some(status) = fields.get("status").filter(has_begun) {
            self.problem(ProblemKind::Begun { status: text_of(status) });
        } else if fields.contains_key("result") {
            self.problem(ProblemKind::Begun { status: "done".to_owned() });
        }
    }

    fn wrong(&mut self, field: &str, expected: &'static str, found: &Json) {
        let (place, found) = (self.place, type_of(found).to_owned());
        self.problem(ProblemKind::WrongType { place, field: field.to_owned(), expected, found });
    }

    fn problem(&mut self, kind: ProblemKind) {
        let subtask = self.fields.get("id").and_then(Json::as_str).map(Into::into);
        self.problems.push(PlanProblem { subtask, kind });
    }
}
