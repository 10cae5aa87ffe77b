//! A question of a run, and the keys that answer it.

use std::collections::VecDeque;

use archon_types::{Answer, ApprovalRequest, Json, QuestionKind, Timestamp, is_hidden};

use crate::{
    composer::{
        buffer::Buffer,
        lines::{Lines, columns_beside},
    },
    key::{Input, Key},
    keymap::{Binding, Keymap},
    row::{Place, Row, Span, harmless, width},
    theme::{Look, Page},
    wrap::{break_line, one_row},
};

/// Keys answer a question only after it was on the screen for this time, in milliseconds.
const EARLY_MS: u64 = 400;
/// A rule with more characters is not offered: a person must see the whole rule before it holds.
const MOST_RULE: usize = 200;
/// The indentation of each key.
const KEY_INDENT: &str = "  ";

/// The effect of an input on a question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKey {
    /// The input does not answer: give it to the composer.
    NotForMe,
    /// The question used the input and has new rows.
    Taken,
    /// The answer, and the calls for which it holds. For [`Scope::Always`] the program stores the rules too.
    Decided(Answer, Scope),
}

/// The calls for which an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// For this call.
    Once,
    /// For calls like this one, until the session ends.
    Session,
    /// For calls like this one in this workspace, in later sessions too.
    Always,
}

/// A question on the screen. The program shows its rows, and gives it each input before the composer.
///
/// A key that was read before the question was on the screen, or in the first 400 ms after, was not meant for
/// it: it goes to the draft. Each such input prolongs this time to 400 ms after itself, so that the `y` of a
/// sentence that a person is writing does not answer.
///
/// ```
/// use archon_terminal::{Input, Key, Question, QuestionKey, Scope};
/// use archon_types::{Answer, ApprovalRequest, Timestamp};
///
/// let request = ApprovalRequest::new("approval_1", "Run `ls`", serde_json::json!({ "tool": "bash" }));
/// let mut question = Question::new(request);
/// question.shown(Timestamp::from_millis(1_000));
/// let yes = Input::Key(Key::char('y'));
/// assert_eq!(question.apply(&yes, Timestamp::from_millis(1_399)), QuestionKey::NotForMe);
/// let decided = QuestionKey::Decided(Answer::Approve, Scope::Once);
/// assert_eq!(question.apply(&yes, Timestamp::from_millis(1_799)), decided);
/// ```
#[derive(Clone, Debug)]
pub struct Question {
    request: ApprovalRequest,
    ways: Vec<Way>,
    field: Option<Field>,
    keymap: Keymap,
    /// The time since which the question is on the screen and nobody has typed anything else.
    quiet_since: Option<Timestamp>,
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
    Decide(Answer, Scope),
    Ask(Asked),
}

/// The purpose of the text field.
#[derive(Clone, Debug)]
enum Asked {
    /// The reason for a refusal.
    Reason,
    /// The result in the person's words; it may be empty for a failed step.
    Reply { may_be_empty: bool },
    /// The values of these inputs, one after the other.
    Inputs { names: VecDeque<String>, given: serde_json::Map<String, Json> },
}

/// The open text field.
#[derive(Clone, Debug)]
struct Field {
    asked: Asked,
    text: Buffer,
}

impl Question {
    /// Creates a question that is not on the screen yet.
    pub fn new(request: ApprovalRequest) -> Self {
        let ways = ways(&request);
        Self { request, ways, field: None, keymap: Keymap::default(), quiet_since: None }
    }

    /// Returns the request that the question was made of.
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// Takes the time at which the first frame with the question was written. Later calls change nothing.
    pub fn shown(&mut self, at: Timestamp) {
        self.quiet_since.get_or_insert(at);
    }

    /// Applies an input that was read at this time.
    pub fn apply(&mut self, input: &Input, read_at: Timestamp) -> QuestionKey {
        if let Some(field) = self.field.take() {
            return self.apply_to_field(field, input);
        }
        let is_ready = self.quiet_since.is_some_and(|since| read_at.millis_since(since) >= EARLY_MS);
        let way = match input {
            Input::Key(key) if is_ready => self.way(key).map(|way| way.does.clone()),
            _ => None,
        };
        match way {
            Some(Does::Decide(answer, scope)) => QuestionKey::Decided(answer, scope),
            Some(Does::Ask(asked)) => {
                self.field = Some(Field { asked, text: Buffer::default() });
                QuestionKey::Taken
            }
            None => {
                self.quiet_since = self.quiet_since.map(|since| since.max(read_at));
                QuestionKey::NotForMe
            }
        }
    }

    /// Returns the rows of the question for a page, at most `most` and at least one, and the place of the caret
    /// in them if a text field is open; otherwise the caret stays in the draft. The rows are the first line of
    /// the question and its keys; the whole call belongs to the question's cell.
    pub fn rows(&self, page: &Page, most: usize) -> (Vec<Row>, Option<Place>) {
        let most = most.max(1);
        let (below, place) = match &self.field {
            Some(field) => field.rows(page, most),
            None => (self.keys(page), None),
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

    fn way(&self, key: &Key) -> Option<&Way> {
        let typed = key.text()?.to_lowercase().next()?;
        self.ways.iter().find(|way| way.key == typed)
    }

    fn keys(&self, page: &Page) -> Vec<Row> {
        let labels = self.ways.iter().map(|way| way.label.as_str()).chain(["Esc stops the run"]);
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

    fn apply_to_field(&mut self, mut field: Field, input: &Input) -> QuestionKey {
        let key = match input {
            Input::Key(key) => key,
            Input::Paste(text) => {
                field.text.paste(text);
                self.field = Some(field);
                return QuestionKey::Taken;
            }
        };
        match (self.keymap.binding(key), key.text()) {
            (Some(Binding::Send), _) => return self.finish_field(field),
            (Some(Binding::Stop), _) => return QuestionKey::Taken,
            (Some(Binding::Interrupt | Binding::Suspend | Binding::Repaint), _) => {
                self.field = Some(field);
                return QuestionKey::NotForMe;
            }
            (Some(binding), _) => field.text.edit(binding),
            (None, Some(c)) => field.text.type_char(c),
            (None, None) => {}
        }
        self.field = Some(field);
        QuestionKey::Taken
    }

    fn finish_field(&mut self, mut field: Field) -> QuestionKey {
        let text = field.text.text().trim().to_owned();
        let answer = match &mut field.asked {
            Asked::Reason => Some(Answer::Cancel { reason: text }),
            Asked::Reply { may_be_empty } => {
                (*may_be_empty || !text.is_empty()).then_some(Answer::Reply { text })
            }
            Asked::Inputs { names, given } => {
                if !text.is_empty()
                    && let Some(name) = names.pop_front()
                {
                    given.insert(name, text.into());
                    field.text = Buffer::default();
                }
                names.is_empty().then(|| Answer::Edit { arguments: std::mem::take(given).into() })
            }
        };
        match answer {
            Some(answer) => QuestionKey::Decided(answer, Scope::Once),
            None => {
                self.field = Some(field);
                QuestionKey::Taken
            }
        }
    }
}

impl Field {
    fn rows(&self, page: &Page, most: usize) -> (Vec<Row>, Option<Place>) {
        let sign = "  › ";
        let lines = Lines::new(self.text.text(), columns_beside(sign, page));
        let hint = format!("  {}  (Enter sends it, Esc goes back)", self.asked.label());
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

impl Asked {
    fn label(&self) -> String {
        match self {
            Self::Reason => "Why not? The model reads this.".to_owned(),
            Self::Reply { may_be_empty: true } => "What is its result? It may be empty.".to_owned(),
            Self::Reply { may_be_empty: false } => "What is the answer?".to_owned(),
            Self::Inputs { names, .. } => {
                names.front().map(|name| format!("What is `{name}`?")).unwrap_or_default()
            }
        }
    }
}

fn ways(request: &ApprovalRequest) -> Vec<Way> {
    let may = |option: &str| request.options.iter().any(|other| other == option);
    let way = |key, label: &str, does| Way { key, label: label.to_owned(), does };
    let once = |answer| Does::Decide(answer, Scope::Once);
    let mut ways = Vec::new();
    if may("approve") {
        let label = match request.kind {
            QuestionKind::InDoubt => "[y]es, run it again",
            QuestionKind::FailedStep => "[y]es, try it again",
            _ => "[y]es, once",
        };
        ways.push(way('y', label, once(Answer::Approve)));
        ways.extend(rule_ways(request));
    }
    if may("reply") || request.kind == QuestionKind::Input {
        ways.push(way('r', "[r]eply", Does::Ask(reply(request))));
    }
    ways.push(way('n', "[n]o", once(Answer::Cancel { reason: String::new() })));
    ways.push(way('t', "no, and [t]ell why", Does::Ask(Asked::Reason)));
    ways
}

/// Returns the keys for the narrowest rule that would allow the call.
fn rule_ways(request: &ApprovalRequest) -> Vec<Way> {
    let is_clear = |rule: &&String| rule.chars().count() <= MOST_RULE && !rule.contains(is_hidden);
    let Some(rule) = request.rules.first().filter(is_clear) else { return Vec::new() };
    let way = |key, label, scope| {
        let answer = Answer::Trust { rules: vec![rule.clone()] };
        Way { key, label, does: Does::Decide(answer, scope) }
    };
    vec![
        way('s', "for this [s]ession".to_owned(), Scope::Session),
        way('a', format!("[a]lways: {rule}"), Scope::Always),
    ]
}

fn reply(request: &ApprovalRequest) -> Asked {
    let missing = request.details["missing"].as_array();
    let names = missing.into_iter().flatten().filter_map(|field| field["name"].as_str());
    let names: VecDeque<String> = names.map(str::to_owned).collect();
    match request.kind == QuestionKind::Input && !names.is_empty() {
        true => Asked::Inputs { names, given: serde_json::Map::new() },
        false => Asked::Reply { may_be_empty: request.kind == QuestionKind::FailedStep },
    }
}

/// Returns the rows of a key that begins a row; a long rule takes several.
fn key_rows(label: &str, page: &Page) -> Vec<Row> {
    let columns = page.width.saturating_sub(KEY_INDENT.len()).max(1);
    let rows = break_line(label, columns).into_iter();
    rows.map(|row| Row::of_spans(key_spans(&row.text, page)).cut(page.width)).collect()
}

/// Returns a label behind the space before it, with the letter in brackets as a key.
fn key_spans(label: &str, page: &Page) -> Vec<Span> {
    let span = |text: &str, look| Span::new(text, page.theme.style(look));
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
