//! Reads and writes cassettes: calls of a model in a file, so that tests can replay them without the model.
//!
//! A cassette is a text of JSON lines. The first is `{"cassette":1}`, where the number is the version of the
//! format. Each other line is one call:
//!
//! ```json
//! {"request":{"model":"…","system":"…","messages":[…],"tools":[…],"options":{…}},"events":[…]}
//! ```
//!
//! If the abilities of the model differ from the default, the call has a third field, `can`. It is an object with
//! the abilities that differ: `native_tools`, `is_small`, `context_window` or `price`.
//!
//! `request` is everything that was sent to the model. Times, usage, and the provider and model of a message
//! are left out, because they are not sent. `events` is the stream in order, each event an object with one
//! field:
//!
//! | field | value |
//! |---|---|
//! | `start` | `null` |
//! | `text`, `thinking` | the piece |
//! | `call` | `[index, id, name]`: a tool call begins |
//! | `arguments` | `[index, text]` |
//! | `call_end` | the index |
//! | `done` | the whole message |
//! | `error` | `{code, message}` and, if they are known, `status`, `retry_after_ms` and `kind` |
//!
//! A reader skips blank lines, refuses a version that it does not know, and skips fields that it does not
//! know. Secrets are replaced by `****` before anything is written.

use std::time::Duration;

use archon_types::{ApiErrorKind, Capabilities, ErrorText, Json, ModelEvent, ProviderError, Request};
use serde_json::json;

use crate::{scrub::Scrubber, tap::Heard};

/// The version of the format that is written and read.
pub(crate) const VERSION: u64 = 1;

/// The two ways to record a cassette. Error texts show them after "record the cassette: ".
pub(crate) const HOW_TO_RECORD: &str =
    "with `RecordingProvider` in a program, with `--record FILE` on the command line";

/// Returns the first line of a cassette.
pub(crate) fn header() -> String {
    format!("{}\n", json!({ "cassette": VERSION }))
}

/// One recorded call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// The request; see [`request_json`].
    pub(crate) request: Json,
    pub(crate) events: Heard,
    /// The abilities of the model.
    pub(crate) can: Capabilities,
}

/// Returns the line of a call, without secrets.
pub(crate) fn line(request: &Json, heard: &Heard, can: &Capabilities, scrubber: &Scrubber) -> String {
    let events: Vec<Json> = merged(heard, scrubber).iter().map(event_json).collect();
    let mut events = Json::Array(events);
    scrubber.clean(&mut events);
    let mut call = json!({ "request": request, "events": events });
    if *can != Capabilities::default() {
        call["can"] = can_json(can);
    }
    format!("{call}\n")
}

fn can_json(can: &Capabilities) -> Json {
    let mut json = json!({});
    if !can.native_tools {
        json["native_tools"] = false.into();
    }
    if can.is_small {
        json["is_small"] = true.into();
    }
    if let Some(tokens) = can.context_window {
        json["context_window"] = tokens.into();
    }
    if let Some(price) = &can.price {
        json["price"] = value(price);
    }
    json
}

fn can(json: &Json) -> Capabilities {
    let mut can = Capabilities::default();
    let is = |field: &str| json.get(field).and_then(Json::as_bool);
    (can.native_tools, can.is_small) = (is("native_tools").unwrap_or(true), is("is_small") == Some(true));
    can.context_window = json.get("context_window").and_then(Json::as_u64);
    can.price = json.get("price").and_then(|price| serde_json::from_value(price.clone()).ok());
    can
}

/// Returns the calls of a cassette, or the reason why it cannot be read.
pub(crate) fn read(text: &str) -> Result<Vec<Call>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Err("the file is empty".to_owned()) };
    let version = serde_json::from_str::<Json>(first).ok().and_then(|first| first.get("cassette")?.as_u64());
    match version {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!("the file has format version {other}; this program reads version {VERSION}"));
        }
        None => {
            return Err(format!(
                "the file is not a cassette: its first line is not {{\"cassette\":{VERSION}}}"
            ));
        }
    }
    lines.map(|(at, line)| call(line).map_err(|what| format!("line {}: {what}", at + 1))).collect()
}

fn call(line: &str) -> Result<Call, String> {
    let mut call: Json = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let request = call.get_mut("request").map(Json::take).ok_or("the call has no `request`")?;
    let events = call.get("events").and_then(Json::as_array).ok_or("the call has no list `events`")?;
    let can = can(call.get("can").unwrap_or(&Json::Null));
    Ok(Call { request, events: events.iter().map(event).collect::<Result<_, _>>()?, can })
}

/// Returns the part of the request that is sent to the model, without secrets.
pub(crate) fn request_json(request: &Request, scrubber: &Scrubber) -> Json {
    let messages: Vec<Json> = request.messages.iter().map(|message| model_part(value(&**message))).collect();
    let mut told =
        json!({ "model": request.model, "messages": messages, "options": value(&*request.options) });
    if let Some(system) = &request.system {
        told["system"] = value(&***system);
    }
    if !request.tools.is_empty() {
        told["tools"] = value(&**request.tools);
    }
    scrubber.clean(&mut told);
    told
}

/// Removes the fields of a message that are not sent to a model.
fn model_part(mut message: Json) -> Json {
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|name, _| {
            matches!(name.as_str(), "role" | "content" | "tool_call_id" | "tool_name" | "is_error")
        });
    }
    message
}

/// Describes the first difference between two requests; `None` if they are equal.
pub(crate) fn difference(recorded: &Json, asked: &Json) -> Option<String> {
    differ("", recorded, asked)
}

fn differ(path: &str, recorded: &Json, asked: &Json) -> Option<String> {
    match (recorded, asked) {
        (Json::Object(old), Json::Object(new)) => {
            let more = new.keys().filter(|key| !old.contains_key(*key));
            old.keys().chain(more).find_map(|key| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                missing_or_differ(&path, old.get(key), new.get(key))
            })
        }
        (Json::Array(old), Json::Array(new)) => (0..old.len().max(new.len()))
            .find_map(|at| missing_or_differ(&format!("{path}[{at}]"), old.get(at), new.get(at))),
        (old, new) if old == new => None,
        (old, new) => {
            let (old, new) = (old.to_string(), new.to_string());
            let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            Some(format!("{path}: recorded {}, asked {}", around(&old, same), around(&new, same)))
        }
    }
}

fn missing_or_differ(path: &str, recorded: Option<&Json>, asked: Option<&Json>) -> Option<String> {
    match (recorded, asked) {
        (Some(old), Some(new)) => differ(path, old, new),
        (Some(old), None) => Some(format!("{path}: recorded {}, asked nothing", short_text(old))),
        (None, Some(new)) => Some(format!("{path}: recorded nothing, asked {}", short_text(new))),
        (None, None) => None,
    }
}

/// Returns a value as text of at most 120 characters.
fn short_text(value: &Json) -> String {
    around(&value.to_string(), 0)
}

/// Returns at most 120 characters of a text, around the character at index `place`.
fn around(text: &str, place: usize) -> String {
    const LONGEST: usize = 120;
    const BEFORE: usize = 40;
    let (length, skipped) = (text.chars().count(), place.saturating_sub(BEFORE));
    if length <= LONGEST {
        return text.to_owned();
    }
    let part: String = text.chars().skip(skipped).take(LONGEST).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if skipped + LONGEST < length { "…" } else { "" };
    format!("{before}{part}{after}")
}

/// Returns the events; consecutive deltas of one text are joined if a secret spans them.
fn merged(heard: &Heard, scrubber: &Scrubber) -> Heard {
    let mut all: Heard = Vec::with_capacity(heard.len());
    let mut run = Vec::new();
    for event in heard {
        if run.last().is_some_and(|last| kind(last) != kind(event)) {
            flush(&mut run, &mut all, scrubber);
        }
        run.push(event.clone());
    }
    flush(&mut run, &mut all, scrubber);
    all
}

type Event = Result<ModelEvent, ProviderError>;

/// Returns the kind of a delta: consecutive deltas of one kind are parts of one text.
fn kind(event: &Event) -> Option<(u8, u32)> {
    match event {
        Ok(ModelEvent::TextDelta(_)) => Some((0, 0)),
        Ok(ModelEvent::ThinkingDelta(_)) => Some((1, 0)),
        Ok(ModelEvent::ToolCallDelta { index, .. }) => Some((2, *index)),
        _ => None,
    }
}

fn flush(run: &mut Heard, all: &mut Heard, scrubber: &Scrubber) {
    let pieces = |event: &Event| match event {
        Ok(ModelEvent::TextDelta(t) | ModelEvent::ThinkingDelta(t)) => t.clone(),
        Ok(ModelEvent::ToolCallDelta { arguments, .. }) => arguments.clone(),
        _ => String::new(),
    };
    let whole: String = run.iter().map(pieces).collect();
    match (run.first(), scrubber.scrubbed(&whole)) {
        (Some(Ok(first)), Some(text)) => all.push(Ok(match first {
            ModelEvent::TextDelta(_) => ModelEvent::TextDelta(text),
            ModelEvent::ThinkingDelta(_) => ModelEvent::ThinkingDelta(text),
            ModelEvent::ToolCallDelta { index, .. } => {
                ModelEvent::ToolCallDelta { index: *index, arguments: text }
            }
            other => other.clone(),
        })),
        _ => all.append(run),
    }
    run.clear();
}

fn event_json(event: &Event) -> Json {
    match event {
        Ok(ModelEvent::Start) => json!({ "start": null }),
        Ok(ModelEvent::TextDelta(text)) => json!({ "text": text }),
        Ok(ModelEvent::ThinkingDelta(text)) => json!({ "thinking": text }),
        Ok(ModelEvent::ToolCallStart { index, id, name }) => json!({ "call": [index, id, name] }),
        Ok(ModelEvent::ToolCallDelta { index, arguments }) => json!({ "arguments": [index, arguments] }),
        Ok(ModelEvent::ToolCallEnd { index }) => json!({ "call_end": index }),
        Ok(ModelEvent::Done(message)) => json!({ "done": value(&**message) }),
        Err(error) => json!({ "error": error_json(error) }),
        // An event of a later version of the types: its content is also in the final message.
        Ok(_) => json!({ "unknown": null }),
    }
}

fn event(json: &Json) -> Result<Event, String> {
    let wrong = || format!("invalid event: {}", short_text(json));
    let (name, body) = json.as_object().and_then(|fields| fields.iter().next()).ok_or_else(wrong)?;
    let text = |body: &Json| body.as_str().map(str::to_owned).ok_or_else(wrong);
    let number = |body: &Json| body.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(wrong);
    Ok(Ok(match name.as_str() {
        "start" => ModelEvent::Start,
        "text" => ModelEvent::TextDelta(text(body)?),
        "thinking" => ModelEvent::ThinkingDelta(text(body)?),
        "call" => {
            ModelEvent::ToolCallStart { index: number(&body[0])?, id: text(&body[1])?, name: text(&body[2])? }
        }
        "arguments" => ModelEvent::ToolCallDelta { index: number(&body[0])?, arguments: text(&body[1])? },
        "call_end" => ModelEvent::ToolCallEnd { index: number(body)? },
        "done" => ModelEvent::Done(
            serde_json::from_value(body.clone()).map_err(|e| format!("{e} in {}", short_text(body)))?,
        ),
        "error" => return Ok(Err(error(body).ok_or_else(wrong)?)),
        _ => return Err(wrong()),
    }))
}

fn error_json(error: &ProviderError) -> Json {
    let message = error.text().map_or_else(|| error.to_string(), str::to_owned);
    let mut json = json!({ "code": error.code(), "message": message });
    if let Some(status) = error.status() {
        json["status"] = status.into();
    }
    if let Some(kind) = error.refusal() {
        json["kind"] = value(&kind);
    }
    if let Some(wait) = error.retry_after() {
        json["retry_after_ms"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
    }
    json
}

fn error(json: &Json) -> Option<ProviderError> {
    use ProviderError as E;
    let message = json.get("message")?.as_str()?.to_owned();
    let http = json.get("status").and_then(Json::as_u64).and_then(|s| u16::try_from(s).ok());
    let status = http.unwrap_or(0);
    let retry_after = json.get("retry_after_ms").and_then(Json::as_u64).map(Duration::from_millis);
    let said = || ErrorText::from(message.clone());
    let error = match json.get("code")?.as_str()? {
        "rate_limited" => E::RateLimited { retry_after, message: said() },
        "overloaded" => E::Overloaded { status, retry_after, message },
        "network" => E::Network(said()),
        "unreachable" => E::Unreachable(said()),
        "timeout" => E::Timeout(said()),
        "auth" => E::Auth(said()),
        "api" => {
            let kind = json.get("kind").and_then(|kind| serde_json::from_value(kind.clone()).ok());
            E::Api { status, kind: kind.unwrap_or(ApiErrorKind::Other), message }
        }
        "context_overflow" => E::ContextOverflow(said()),
        "protocol" => E::Protocol(said()),
        "cancelled" => E::Cancelled,
        _ => E::Other(said()),
    };
    Some(match http {
        Some(http) => error.or_status(http),
        None => error,
    })
}

/// Converts a value to JSON. Only texts, numbers, lists and objects are converted, so this cannot fail.
fn value(value: &impl serde::Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
#[path = "cassette_tests.rs"]
mod tests;
