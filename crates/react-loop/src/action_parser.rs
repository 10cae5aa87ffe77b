//! Parses the answers of models without tool calling: actions, or a final answer.
//!
//! Models are careless about the format, so the parser accepts any case, one line or many, fenced code,
//! almost valid JSON, several spellings of the keys, and other call formats that models are trained on, such as
//! `<tool_call>`. The parser never invents a name or an argument, and refuses calls that were cut off.

use archon_types::{
    Json, StopReason,
    almost_json::{NoObject, OpenEnd, ParsedObject, object_at, starts_with},
};
use serde_json::Map;

use crate::written_call::WrittenCall;

/// The parsed content of an answer in text mode, in which the model writes its tool calls as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// Tool calls to run, in this order; at least one.
    Calls(Vec<WrittenCall>),
    /// The final answer.
    Final(String),
}

/// Reason why an answer could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFailure {
    /// The answer has neither an action nor a final answer.
    #[error("no \"Action:\" and no \"Final Answer:\" was found")]
    Nothing,
    /// The answer has neither an action nor a final answer, and was cut off by its token limit.
    #[error(
        "the answer was cut off by its token limit before an \"Action:\" or a \"Final Answer:\"; be brief"
    )]
    CutOff,
    /// `Action:` is not followed by a JSON object.
    #[error("\"Action:\" is not followed by a JSON object")]
    NoObject,
    /// The JSON object of the action has no closing brace; the answer may have been cut off.
    #[error("the action has no end: it may have been cut off, so it was not run; write it again, whole")]
    Torn,
    /// The object of the action is not JSON, even when parsed leniently.
    #[error("the action is not valid JSON")]
    BadJson,
    /// The object of the action names no tool.
    #[error("the action has no \"tool\"")]
    NoTool,
}

/// Parses one answer, which ended for the reason `stop`. If the answer has both an action and a final
/// answer, the earlier one counts.
///
/// Calls after an `Observation:` that the model wrote itself are refused, because they build on an invented
/// result. A call that cannot be parsed is refused too, if a valid call comes before it and its tool name can
/// be read.
///
/// # Errors
/// [`ParseFailure`], whose text tells the model what is missing.
pub fn parse_answer(text: &str, stop: StopReason) -> Result<Written, ParseFailure> {
    let is_cut = matches!(stop, StopReason::Length | StopReason::StopSequence);
    let open_end = if is_cut { OpenEnd::Refuse } else { OpenEnd::Close };
    let lower = text.to_ascii_lowercase();
    let mut reader = Reader { text, lower: &lower, open_end, calls: Vec::new(), invented: false, prose: 0 };
    match reader.read()? {
        Some(answer) => Ok(Written::Final(answer)),
        None if !reader.calls.is_empty() => Ok(Written::Calls(reader.calls)),
        None if reader.prose > 0 => Err(ParseFailure::NoObject),
        None if stop == StopReason::Length => Err(ParseFailure::CutOff),
        None => Err(ParseFailure::Nothing),
    }
}

/// A marker at the start of a call or a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Action,
    FinalAnswer,
    Observation,
    /// `<tool_call>{…}</tool_call>`: Hermes, Qwen.
    ToolCallTag,
    /// `[TOOL_CALLS][{…}]`, `[TOOL_CALLS]name{…}` and `[TOOL_CALLS]name[ARGS]{…}`: Mistral.
    ToolCalls,
    /// `<function=name>{…}</function>`: Llama.
    FunctionTag,
}

const MARKERS: [(&str, Marker); 6] = [
    ("action:", Marker::Action),
    ("final answer:", Marker::FinalAnswer),
    ("observation:", Marker::Observation),
    ("<tool_call>", Marker::ToolCallTag),
    ("[tool_calls]", Marker::ToolCalls),
    ("<function=", Marker::FunctionTag),
];

struct Reader<'a> {
    text: &'a str,
    lower: &'a str,
    open_end: OpenEnd,
    calls: Vec<WrittenCall>,
    /// True if the model wrote an `Observation:` after a call, so that the calls after it build on an
    /// invented result.
    invented: bool,
    /// Number of `Action:` markers that no object follows; they count as words of a sentence.
    prose: usize,
}

/// A parsed object: a call, or a final answer in place of a call.
enum Meant {
    Call(WrittenCall),
    Final(String),
}

const INVENTED: &str =
    "it stands behind an observation that you wrote yourself; wait for the real result of the call before it";
const UNREADABLE: &str = "it could not be read as one whole JSON object, and nothing behind it was run";

impl Reader<'_> {
    /// Parses the answer and collects its calls. Returns the final answer, if no call comes before it.
    fn read(&mut self) -> Result<Option<String>, ParseFailure> {
        let mut at = 0;
        let mut is_marked = false;
        while let Some((marker, behind)) = self.next_marker(at) {
            is_marked = true;
            at = match marker {
                Marker::FinalAnswer if self.calls.is_empty() => {
                    return Ok(Some(self.text[behind..].trim().to_owned()));
                }
                // A final answer after calls was written before their results.
                Marker::FinalAnswer => return Ok(None),
                // The model meant the words before as a call, so the text after them builds on an
                // invented result.
                Marker::Observation if self.calls.is_empty() && self.prose > 0 => {
                    return Err(ParseFailure::NoObject);
                }
                Marker::Observation => {
                    self.invented |= !self.calls.is_empty();
                    behind
                }
                marker => match self.marked(marker, behind) {
                    Ok((end, None)) => end,
                    Ok((_, Some(answer))) if self.calls.is_empty() => return Ok(Some(answer)),
                    Ok((_, Some(_))) => return Ok(None),
                    // The word may be a part of a sentence before the action itself.
                    Err(ParseFailure::NoObject) if self.is_prose(marker, behind) => {
                        self.prose += 1;
                        behind
                    }
                    Err(failure) if self.calls.is_empty() => return Err(failure),
                    // The end of the call is unknown, so the text after it may be a part of the call.
                    Err(_) => {
                        self.unreadable(behind);
                        return Ok(None);
                    }
                },
            };
        }
        if is_marked { Ok(None) } else { self.unmarked() }
    }

    /// Returns whether the marker before `from`, which no object follows, can be a part of a sentence.
    /// `Action: name` with `Action Input:` cannot.
    fn is_prose(&self, marker: Marker, from: usize) -> bool {
        let section = &self.lower[from..self.section_end(from)];
        marker == Marker::Action && !section.contains("action input:") && self.prose < MOST_PROSE
    }

    fn next_marker(&self, from: usize) -> Option<(Marker, usize)> {
        let found = MARKERS.iter().filter_map(|(word, marker)| {
            let at = self.lower[from..].match_indices(word).map(|(at, _)| from + at).find(|at| {
                // The marker must not be the end of another word.
                let before = self.lower[..*at].chars().next_back();
                !word.starts_with(char::is_alphabetic) || !before.is_some_and(char::is_alphanumeric)
            })?;
            Some((at, *marker, at + word.len()))
        });
        found.min_by_key(|(at, ..)| *at).map(|(_, marker, behind)| (marker, behind))
    }

    /// Parses the calls or the final answer after a marker. Returns the index after the parsed text, and the
    /// final answer if there is one.
    fn marked(&mut self, marker: Marker, from: usize) -> Result<(usize, Option<String>), ParseFailure> {
        if let Some(end) = self.named(marker, from)? {
            return Ok((end, None));
        }
        let (meant, mut end) = self.first_object(from, self.section_end(from))?;
        match meant {
            Meant::Final(answer) => return Ok((end, Some(answer))),
            Meant::Call(call) => self.push(call),
        }
        // More calls directly after the first one, in a list or one below the other.
        while let Some(next) = self.next_object(end) {
            let Ok(found) = object_at(&self.text[next..], self.open_end) else { break };
            let Ok(Meant::Call(call)) = meaning(found.fields, Marks::None) else { break };
            self.push(call);
            end = next + found.end;
        }
        Ok((end, None))
    }

    /// Parses a call whose name comes before its arguments: `Action: name` with `Action Input: {…}`, or one
    /// of the tags. Returns the index after the call; `None` if no such call starts at `from`.
    fn named(&mut self, marker: Marker, from: usize) -> Result<Option<usize>, ParseFailure> {
        let behind = &self.text[from..];
        let trimmed = behind.trim_start_matches([' ', '`', '"', '*']);
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let length = trimmed.find(|c| !is_name(c)).unwrap_or(trimmed.len());
        if length == 0 {
            return Ok(None);
        }
        let after = trimmed[length..].trim_start_matches(['`', '"', '*']).trim_start();
        let arguments = match marker {
            Marker::Action => strip_prefix_ignoring_case(after, "action input:"),
            Marker::FunctionTag => after.strip_prefix('>'),
            Marker::ToolCalls => Some(strip_prefix_ignoring_case(after, "[args]").unwrap_or(after)),
            _ => None,
        };
        let Some(arguments) = arguments.map(str::trim_start) else { return Ok(None) };
        let arguments =
            arguments.strip_prefix("```json").unwrap_or(arguments).trim_start_matches(['`', '\n']);
        let at = self.text.len() - arguments.len();
        let tool = trimmed[..length].to_owned();
        if !arguments.starts_with('{') {
            return Err(ParseFailure::NoObject);
        }
        let ParsedObject { fields, end } = object_at(arguments, self.open_end).map_err(failure)?;
        self.push(WrittenCall::new(tool, Json::Object(fields)));
        Ok(Some(at + end))
    }

    /// Returns the first object between `from` and `to` that is a call or a final answer, and the index after
    /// the object. Other text with brackets may come before it.
    fn first_object(&self, from: usize, to: usize) -> Result<(Meant, usize), ParseFailure> {
        let mut none = ParseFailure::NoObject;
        let mut at = from;
        for _ in 0..MOST_TRIES {
            let Some(next) = self.text[at..to].find('{').map(|next| at + next) else { break };
            at = match object_at(&self.text[next..], self.open_end) {
                Ok(found) => match meaning(found.fields, Marks::Marked) {
                    Ok(meant) => return Ok((meant, next + found.end)),
                    Err(failure) => {
                        none = failure;
                        next + found.end
                    }
                },
                Err(NoObject::Prose) => next + 1,
                Err(error) => return Err(failure(error)),
            };
            if at >= to {
                break;
            }
        }
        Err(none)
    }

    /// Parses an answer without markers: some models send only the object of a call or of a final answer.
    fn unmarked(&mut self) -> Result<Option<String>, ParseFailure> {
        let mut at = 0;
        for _ in 0..MOST_TRIES {
            let Some(next) = self.text[at..].find('{').map(|next| at + next) else { break };
            at = match object_at(&self.text[next..], self.open_end) {
                Ok(found) => {
                    match meaning(found.fields, Marks::None) {
                        Ok(Meant::Final(answer)) if self.calls.is_empty() => return Ok(Some(answer)),
                        Ok(Meant::Call(call)) => self.push(call),
                        _ => {}
                    }
                    next + found.end
                }
                Err(NoObject::Prose) => next + 1,
                // Text inside the incomplete object may look like a call, but is a part of that object.
                Err(NoObject::Torn) if self.calls.is_empty() => return Err(ParseFailure::Torn),
                Err(_) => break,
            };
        }
        if self.calls.is_empty() {
            self.calls = crate::pythonic::calls(self.text).unwrap_or_default();
        }
        Ok(None)
    }

    /// Returns the index of the next object, if only white space and commas come between `from` and the
    /// object.
    fn next_object(&self, from: usize) -> Option<usize> {
        let rest = &self.text[from..];
        let next = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        next.starts_with('{').then_some(self.text.len() - next.len())
    }

    /// Returns the index of the end of the section that starts with the marker before `from`.
    fn section_end(&self, from: usize) -> usize {
        let lower = &self.lower[from..];
        // A thought or an observation may continue in the same line, and objects in it are no calls.
        let is_word =
            |at: usize| self.lower[..from + at].chars().next_back().is_some_and(char::is_alphanumeric);
        let in_line = ["thought:", "observation:"]
            .iter()
            .filter_map(|word| lower.match_indices(word).map(|(at, _)| at).find(|at| !is_word(*at)));
        ["\naction:", "final answer:"]
            .iter()
            .filter_map(|marker| lower.find(marker))
            .chain(in_line)
            .min()
            .map_or(self.text.len(), |at| from + at)
    }

    fn push(&mut self, mut call: WrittenCall) {
        call.refused = self.invented.then_some(INVENTED);
        if self.calls.len() < MOST_CALLS {
            self.calls.push(call);
        }
    }

    /// Adds a refused call for an action that could not be parsed, if its tool name can be read.
    fn unreadable(&mut self, from: usize) {
        let section = &self.text[from..self.section_end(from)];
        let name = ["\"tool\"", "'tool'", "\"name\"", "\"tool_name\""].iter().find_map(|key| {
            let (_, value) = section.split_once(key)?;
            let value = value.trim_start().strip_prefix(':')?.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            Some(value[1..].split_once(quote)?.0.to_owned())
        });
        if let Some(tool) = name {
            let arguments = Json::Object(Map::new());
            self.push(WrittenCall::new(tool, arguments));
            if let Some(call) = self.calls.last_mut() {
                call.refused = call.refused.or(Some(UNREADABLE));
            }
        }
    }
}

/// Maximum number of objects that the parser tries in one answer, and of calls that it accepts. Each try may
/// read the answer to its end, so many tries would take too long.
const MOST_TRIES: usize = 100;
const MOST_CALLS: usize = 128;
/// Maximum number of markers without an object that the parser skips in one answer; see [`MOST_TRIES`].
const MOST_PROSE: usize = 10;

/// The presence of a marker before an object. Without a marker, an object with a `name` is a call only if it has
/// arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    Marked,
    None,
}

fn failure(error: NoObject) -> ParseFailure {
    match error {
        NoObject::Prose => ParseFailure::NoObject,
        NoObject::Torn => ParseFailure::Torn,
        NoObject::Bad => ParseFailure::BadJson,
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, lower: &str) -> Option<&'a str> {
    starts_with(text, lower).then(|| &text[lower.len()..])
}

const ARGUMENTS: [&str; 5] = ["arguments", "args", "action_input", "parameters", "input"];

fn meaning(mut fields: Map<String, Json>, marks: Marks) -> Result<Meant, ParseFailure> {
    // `{"function": {"name": …}}`: the format in which services send calls.
    if let Some(Json::Object(function)) = fields.get("function") {
        fields = function.clone();
    }
    let has_arguments = ARGUMENTS.iter().any(|key| fields.contains_key(*key));
    let name = ["tool", "tool_name", "action", "name", "function"].iter().find_map(|key| {
        match fields.get(*key) {
            // An object with a `name` but without arguments is often no call.
            Some(Json::String(_)) if *key == "name" && marks == Marks::None && !has_arguments => None,
            Some(Json::String(name)) => Some(name.clone()),
            _ => None,
        }
    });
    let Some(tool) = name else {
        return match fields.remove("answer") {
            Some(answer) => Ok(Meant::Final(plain(answer))),
            None => Err(ParseFailure::NoTool),
        };
    };
    if tool.eq_ignore_ascii_case("final") && !fields.contains_key("arguments") {
        return Ok(Meant::Final(fields.remove("answer").map(plain).unwrap_or_default()));
    }
    let arguments = match ARGUMENTS.iter().find_map(|key| fields.remove(*key)) {
        None | Some(Json::Null) => Json::Object(Map::new()),
        // Services send arguments as a JSON string.
        Some(Json::String(text)) if text.trim_start().starts_with('{') => {
            serde_json::from_str(&text).unwrap_or(Json::String(text))
        }
        Some(arguments) => arguments,
    };
    Ok(Meant::Call(WrittenCall::new(tool, arguments)))
}

fn plain(value: Json) -> String {
    match value {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "action_parser_tests.rs"]
mod tests;
