//! A question of a run, and the keys that answer it.

use std::collections::VecDeque;

use archon_types::{Answer, ApprovalRequest, Json, PLAN_TOOL, QuestionKind, Timestamp, is_hidden};

use crate::{
    composer::{
        Composer, ViMode,
        buffer::Buffer,
        lines::{Lines, columns_beside},
    },
    key::{Input, Key, KeyCode},
    keymap::{Binding, Keymap},
    row::{Place, Row, TextSpan, harmless, width},
    theme::{Look, Page},
    wrap::{break_line, one_row},
};

/// The time that a question must be on the screen before keys answer it, in milliseconds.
const EARLY_MS: u64 = 400;
/// The maximum number of characters of a rule that is offered: a person must see the whole rule before it holds.
const MOST_RULE: usize = 200;
/// The indentation of each key.
const KEY_INDENT: &str = "  ";
/// While there is a draft, this key lets the next key answer the question.
const CALL: Key = Key::plain(KeyCode::Tab);
/// The label that is shown while there is a draft.
const HOW: &str = "empty the draft to answer, or press Tab";

/// The effect of an input on a question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKey {
    /// The input does not answer: give it to the composer.
    NotForMe,
    /// The question used the input and has new rows.
    Taken,
    /// The answer, and the calls for which it holds. For [`AnswerScope::Always`], the program must also store the
    /// rules of the answer.
    Decided(Answer, AnswerScope),
}

/// The calls for which an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerScope {
    /// For this call.
    Once,
    /// For calls like this one, until the session ends.
    Session,
    /// For calls like this one in this workspace, in later sessions too.
    Always,
}

/// A question on the screen. The program shows its rows, and gives it each input before the composer.
///
/// A letter answers only if the draft is empty, so that no letter of a message answers by mistake. A key that was read
/// before the question was on the screen, or within 400 ms after that, was not meant as an answer, so it goes to the
/// draft; the 400 ms then begin again. While there is a draft, Tab lets the next letter answer. The letter that stores
/// a rule must be pressed twice, so that a person who begins to write a message does not store a rule.
///
/// ```
/// use archon_terminal::{AnswerScope, Input, Key, Question, QuestionKey};
/// use archon_types::{Answer, ApprovalRequest, Timestamp};
///
/// let request = ApprovalRequest::new("approval_1", "Run `ls`", serde_json::json!({ "tool": "bash" }));
/// let mut question = Question::new(request);
/// question.mark_drawn(Timestamp::from_millis(1_000));
/// let (yes, has_draft) = (Input::Key(Key::char('y')), false);
/// assert_eq!(question.apply(&yes, Timestamp::from_millis(1_399), has_draft), QuestionKey::NotForMe);
/// let decided = QuestionKey::Decided(Answer::Approve, AnswerScope::Once);
/// assert_eq!(question.apply(&yes, Timestamp::from_millis(1_799), has_draft), decided);
/// ```
#[derive(Clone, Debug)]
pub struct Question {
    request: ApprovalRequest,
    ways: Vec<Way>,
    stage: Stage,
    keymap: Keymap,
    /// The beginning of the time in which keys do not answer: the rows of the stage came on the screen, or a later
    /// input did not answer. `None` while the rows are not on the screen.
    quiet_since: Option<Timestamp>,
}

/// The meaning of the next key.
#[derive(Clone, Debug, Default)]
enum Stage {
    /// The next key answers if the draft is empty.
    #[default]
    Keys,
    /// The next key answers although there is a draft.
    Called,
    /// The next key repeats the key of an answer that stores a rule, or goes back.
    Repeat(Repeat),
    /// The next key edits the text field.
    Field(Box<Field>),
}

/// An answer that stores a rule, so that its key must be pressed twice.
#[derive(Clone, Debug)]
struct Repeat {
    key: char,
    rule: String,
}

/// A key that answers.
#[derive(Clone, Debug)]
struct Way {
    key: char,
    /// The text for the key, with the key in brackets.
    label: String,
    does: Does,
}

#[derive(Clone, Debug)]
enum Does {
    Decide(Answer, AnswerScope),
    /// Stores this rule, after the key was pressed once more.
    Store(String),
    Open(Purpose),
}

/// The purpose of the text field.
#[derive(Clone, Debug)]
enum Purpose {
    /// The reason for a refusal.
    Reason,
    /// The result in the person's words; it may be empty for a failed step.
    Reply { may_be_empty: bool },
    /// The values of these inputs, one after the other.
    Inputs { names: VecDeque<String>, given: serde_json::Map<String, Json> },
    /// The new arguments of the call. `only` is the name of the call's only argument if that is a text: then the field
    /// has this text. Otherwise it has all arguments as JSON.
    Arguments { only: Option<String>, is_invalid: bool },
}

/// The open text field.
#[derive(Clone, Debug)]
struct Field {
    purpose: Purpose,
    text: Buffer,
}

impl Question {
    /// Creates a question that is not on the screen yet.
    pub fn new(request: ApprovalRequest) -> Self {
        let ways = ways(&request);
        Self { request, ways, stage: Stage::Keys, keymap: Keymap::default(), quiet_since: None }
    }

    /// Returns the request that was passed to [`new`](Self::new).
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// Records that a frame with the question was written at this time. Call it after each such frame.
    pub fn mark_drawn(&mut self, at: Timestamp) {
        self.quiet_since.get_or_insert(at);
    }

    /// Records that the question is no longer on the screen. Keys answer it again only after the next frame that shows
    /// it.
    pub fn mark_hidden(&mut self) {
        self.quiet_since = None;
        if matches!(self.stage, Stage::Called) {
            self.stage = Stage::Keys;
        }
    }

    /// Applies an input that was read at this time. `has_draft` is true if the composer has text.
    pub fn apply(&mut self, input: &Input, read_at: Timestamp, has_draft: bool) -> QuestionKey {
        let is_ready = self.quiet_since.is_some_and(|since| read_at.millis_since(since) >= EARLY_MS);
        let key = match input {
            Input::Key(key) => Some(key),
            Input::Paste(_) => None,
        };
        let taken = match std::mem::take(&mut self.stage) {
            Stage::Field(field) => return self.apply_to_field(field, input),
            Stage::Repeat(repeat) => self.apply_to_repeat(repeat, key, is_ready),
            Stage::Keys if has_draft => self.call(key.filter(|_| is_ready)),
            Stage::Keys => key.filter(|_| is_ready).and_then(|key| self.choose(key)),
            Stage::Called => key.and_then(|key| self.choose(key)),
        };
        taken.unwrap_or_else(|| {
            self.quiet_since = self.quiet_since.map(|since| since.max(read_at));
            QuestionKey::NotForMe
        })
    }

    /// Returns the rows that show the question, at least one and at most `most`: the first line of the question if
    /// there is room, then the keys that answer it, or the open text field. While the composer has a draft, keys answer
    /// only after Tab; until then, the rows say so in place of the keys. The rows never show the whole call. The second
    /// value is the place of the caret in these rows while a text field is open; `None` if the caret stays in the
    /// composer. `draft` is the composer if it has text, and `None` otherwise.
    pub fn rows(&self, page: &Page, most: usize, draft: Option<&Composer>) -> (Vec<Row>, Option<Place>) {
        let most = most.max(1);
        let (below, place) = match &self.stage {
            Stage::Field(field) => field.rows(page, most),
            Stage::Repeat(repeat) => (key_rows(&repeat.label(), page), None),
            Stage::Keys if draft.is_some() => (label_rows([HOW, stop(draft)].into_iter(), page), None),
            Stage::Keys | Stage::Called => (self.keys(page, draft), None),
        };
        let mut rows = Vec::new();
        if below.len() < most {
            let summary = self.request.action_summary.lines().next().unwrap_or_default();
            let summary = format!("? {}", harmless(summary));
            let summary = one_row(&summary, page.width).into_owned();
            rows.push(Row::of(summary, Look::Warning, page));
        }
        let place = place.map(|place| Place { row: place.row + rows.len(), ..place });
        rows.extend(below.into_iter().take(most));
        (rows, place)
    }

    /// Applies Tab while there is a draft: the next key answers. Returns `None` for any other key.
    fn call(&mut self, key: Option<&Key>) -> Option<QuestionKey> {
        key.filter(|key| **key == CALL)?;
        Some(self.enter(Stage::Called))
    }

    /// Applies a key that answers; returns `None` for any other key.
    fn choose(&mut self, key: &Key) -> Option<QuestionKey> {
        let Way { key, does, .. } = self.way(key)?.clone();
        Some(match does {
            Does::Decide(answer, scope) => QuestionKey::Decided(answer, scope),
            Does::Store(rule) => self.enter(Stage::Repeat(Repeat { key, rule })),
            Does::Open(purpose) => {
                let mut text = Buffer::default();
                if let Purpose::Arguments { only, .. } = &purpose {
                    text.paste(&arguments_as_text(&self.request.details["arguments"], only.as_deref()));
                }
                self.enter(Stage::Field(Box::new(Field { purpose, text })))
            }
        })
    }

    /// Stores the rule if the same key was pressed again. Any other key goes back to the question; unless it is the
    /// key for that, it then goes to the draft.
    fn apply_to_repeat(&mut self, repeat: Repeat, key: Option<&Key>, is_ready: bool) -> Option<QuestionKey> {
        let key = key?;
        if is_ready && letter(key) == Some(repeat.key) {
            return Some(QuestionKey::Decided(
                Answer::Trust { rules: vec![repeat.rule] },
                AnswerScope::Always,
            ));
        }
        (self.keymap.binding(key) == Some(Binding::Stop)).then(|| self.enter(Stage::Keys))
    }

    /// Goes to a stage, whose rows are not on the screen yet.
    fn enter(&mut self, stage: Stage) -> QuestionKey {
        (self.stage, self.quiet_since) = (stage, None);
        QuestionKey::Taken
    }

    fn way(&self, key: &Key) -> Option<&Way> {
        let typed = letter(key)?;
        self.ways.iter().find(|way| way.key == typed)
    }

    fn keys(&self, page: &Page, draft: Option<&Composer>) -> Vec<Row> {
        label_rows(self.ways.iter().map(|way| way.label.as_str()).chain([stop(draft)]), page)
    }

    fn apply_to_field(&mut self, mut field: Box<Field>, input: &Input) -> QuestionKey {
        let key = match input {
            Input::Key(key) => key,
            Input::Paste(text) => {
                field.text.paste(text);
                self.stage = Stage::Field(field);
                return QuestionKey::Taken;
            }
        };
        match (self.keymap.binding(key), key.text()) {
            (Some(Binding::Send), _) => return self.finish_field(field),
            (Some(Binding::Stop), _) => return self.enter(Stage::Keys),
            (Some(Binding::Interrupt | Binding::Suspend | Binding::Repaint), _) => {
                self.stage = Stage::Field(field);
                return QuestionKey::NotForMe;
            }
            (Some(binding), _) => field.text.edit(binding),
            (None, Some(c)) => field.text.type_char(c),
            (None, None) => {}
        }
        self.stage = Stage::Field(field);
        QuestionKey::Taken
    }

    fn finish_field(&mut self, mut field: Box<Field>) -> QuestionKey {
        let text = field.text.text().trim().to_owned();
        let answer = match &mut field.purpose {
            Purpose::Reason => Some(Answer::Cancel { reason: text }),
            Purpose::Reply { may_be_empty } => {
                (*may_be_empty || !text.is_empty()).then_some(Answer::Reply { text })
            }
            Purpose::Inputs { names, given } => {
                if !text.is_empty()
                    && let Some(name) = names.pop_front()
                {
                    given.insert(name, text.into());
                    field.text = Buffer::default();
                }
                names.is_empty().then(|| Answer::Edit { arguments: std::mem::take(given).into() })
            }
            Purpose::Arguments { only, is_invalid } => {
                let arguments = arguments_of_text(text, only.as_deref());
                *is_invalid = arguments.is_none();
                arguments.map(|arguments| Answer::Edit { arguments })
            }
        };
        match answer {
            Some(answer) => QuestionKey::Decided(answer, AnswerScope::Once),
            None => {
                self.stage = Stage::Field(field);
                QuestionKey::Taken
            }
        }
    }
}

impl Repeat {
    fn label(&self) -> String {
        let Self { key, rule } = self;
        format!("press [{key}] again to store the rule {rule}, any other key goes back")
    }
}

impl Field {
    fn rows(&self, page: &Page, most: usize) -> (Vec<Row>, Option<Place>) {
        let sign = "  › ";
        let lines = Lines::new(self.text.text(), columns_beside(sign, page));
        let hint = format!("  {}  (Enter sends it, Esc goes back)", self.purpose.label());
        let mut rows = Vec::new();
        if most > 1 {
            rows.push(Row::of(one_row(&harmless(&hint), page.width).into_owned(), Look::Dim, page));
        }
        // One row is left for the first line of the question.
        let most = most.saturating_sub(2).max(1);
        let window = lines.window(self.text.caret(), sign, page, 0, most);
        let place = Place { row: window.caret.row + rows.len(), ..window.caret };
        rows.extend(window.rows);
        (rows, Some(place))
    }
}

impl Purpose {
    fn label(&self) -> String {
        match self {
            Self::Reason => "Why not? The model reads this.".to_owned(),
            Self::Reply { may_be_empty: true } => "What is its result? It may be empty.".to_owned(),
            Self::Reply { may_be_empty: false } => "What is the answer?".to_owned(),
            Self::Inputs { names, .. } => {
                names.front().map(|name| format!("What is `{name}`?")).unwrap_or_default()
            }
            Self::Arguments { is_invalid: true, only: Some(name) } => format!("`{name}` may not be empty."),
            Self::Arguments { is_invalid: true, only: None } => {
                "This is no JSON object. Correct it:".to_owned()
            }
            Self::Arguments { only: Some(name), .. } => format!("Change `{name}` of the call:"),
            Self::Arguments { only: None, .. } => "Change the arguments of the call, in JSON:".to_owned(),
        }
    }
}

fn ways(request: &ApprovalRequest) -> Vec<Way> {
    let may = |option: &str| request.options.iter().any(|other| other == option);
    let way = |key, label: &str, does| Way { key, label: label.to_owned(), does };
    let once = |answer| Does::Decide(answer, AnswerScope::Once);
    let mut ways = Vec::new();
    if may("approve") {
        let label = match request.kind {
            QuestionKind::InDoubt => "[y]es, run it again",
            QuestionKind::FailedStep => "[y]es, try it again",
            _ if request.details["tool"] == PLAN_TOOL => "[y]es, carry it out",
            _ => "[y]es, once",
        };
        ways.push(way('y', label, once(Answer::Approve)));
        ways.extend(rule_ways(request));
    }
    let arguments = request.details["arguments"].as_object();
    if let Some(arguments) = arguments
        .filter(|_| may("edit") && request.allow_modification && request.kind == QuestionKind::Consent)
    {
        let only = arguments.iter().next().filter(|(_, value)| arguments.len() == 1 && value.is_string());
        let only = only.map(|(name, _)| name.clone());
        ways.push(way('e', "[e]dit", Does::Open(Purpose::Arguments { only, is_invalid: false })));
    }
    if may("reply") || request.kind == QuestionKind::Input {
        ways.push(way('r', "[r]eply", Does::Open(reply(request))));
    }
    ways.push(way('n', "[n]o", once(Answer::Cancel { reason: String::new() })));
    if may("cancel") {
        ways.push(way('t', "no, and [t]ell why", Does::Open(Purpose::Reason)));
    }
    ways
}

/// Returns the keys for the narrowest rule that would allow the call.
fn rule_ways(request: &ApprovalRequest) -> Vec<Way> {
    let is_clear = |rule: &&String| rule.chars().count() <= MOST_RULE && !rule.contains(is_hidden);
    let Some(rule) = request.rules.first().filter(is_clear) else { return Vec::new() };
    let session = Does::Decide(Answer::Trust { rules: vec![rule.clone()] }, AnswerScope::Session);
    vec![
        Way { key: 's', label: "for this [s]ession".to_owned(), does: session },
        Way { key: 'a', label: format!("[a]lways: {rule}"), does: Does::Store(rule.clone()) },
    ]
}

fn reply(request: &ApprovalRequest) -> Purpose {
    let missing = request.details["missing"].as_array();
    let names = missing.into_iter().flatten().filter_map(|field| field["name"].as_str());
    let names: VecDeque<String> = names.map(str::to_owned).collect();
    match request.kind == QuestionKind::Input && !names.is_empty() {
        true => Purpose::Inputs { names, given: serde_json::Map::new() },
        false => Purpose::Reply { may_be_empty: request.kind == QuestionKind::FailedStep },
    }
}

/// Returns the text that a person edits: the value of the argument `only`, or all arguments as JSON.
fn arguments_as_text(arguments: &Json, only: Option<&str>) -> String {
    match only {
        Some(name) => arguments[name].as_str().unwrap_or_default().to_owned(),
        None => arguments.to_string(),
    }
}

/// Returns the arguments from an edited text; `None` if the text is empty, or not a JSON object.
fn arguments_of_text(text: String, only: Option<&str>) -> Option<Json> {
    match only {
        Some(name) => (!text.is_empty())
            .then(|| serde_json::Map::from_iter([(name.to_owned(), Json::String(text))]).into()),
        None => serde_json::from_str(&text).ok().filter(Json::is_object),
    }
}

/// Returns the label for the keys that stop the run. If there is a draft in vi's insert mode, the first Esc only
/// leaves this mode.
fn stop(draft: Option<&Composer>) -> &'static str {
    match draft.and_then(Composer::vi_mode) {
        Some(ViMode::Insert) => "Esc Esc stops the run",
        _ => "Esc stops the run",
    }
}

/// Returns the letter that a key writes, in lower case.
fn letter(key: &Key) -> Option<char> {
    key.text()?.to_lowercase().next()
}

/// Returns rows of labels; each row has as many labels as fit.
fn label_rows<'a>(labels: impl Iterator<Item = &'a str>, page: &Page) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for label in labels {
        let wide = width(label) + KEY_INDENT.len();
        match rows.last_mut().filter(|row| row.width() + wide <= page.width) {
            Some(row) => row.spans.extend(key_spans(label, page)),
            None => rows.extend(key_rows(label, page)),
        }
    }
    rows
}

/// Returns the rows of a key that begins a row; a long rule takes several.
fn key_rows(label: &str, page: &Page) -> Vec<Row> {
    let columns = page.width.saturating_sub(KEY_INDENT.len()).max(1);
    let rows = break_line(label, columns).into_iter();
    rows.map(|row| Row::of_spans(key_spans(&row.text, page)).cut(page.width)).collect()
}

/// Returns the spans of an indented label. The letter in brackets gets the style of a key.
fn key_spans(label: &str, page: &Page) -> Vec<TextSpan> {
    let span = |text: &str, look| TextSpan::new(text, page.theme.style(look));
    let bracket = label.find('[').and_then(|at| Some((at, at + label.get(at..)?.find(']')? + 1)));
    let parts =
        bracket.and_then(|(at, end)| Some((label.get(..at)?, label.get(at..end)?, label.get(end..)?)));
    let mut spans = vec![span(KEY_INDENT, Look::Plain)];
    match parts.filter(|(_, key, _)| key.len() == 3) {
        Some((before, key, after)) => {
            spans.extend([span(before, Look::Plain), span(key, Look::Key), span(after, Look::Plain)])
        }
        None => spans.push(span(label, Look::Plain)),
    }
    spans
}
