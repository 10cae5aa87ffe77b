//! Reads a file with hooks. A broken hook is left out, with its line; the others count.

use std::{collections::BTreeMap, fmt, path::Path, time::Duration};

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    event::HookEvent,
    hook::{Action, HookProblem, OneHook},
    matcher::Matcher,
};

/// The time that a hook may take, unless its file says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time that a file may set, in seconds.
const LONGEST: f64 = 600.0;

/// The most hooks of a file, counted together with their groups: a file is read before anybody trusts it.
const MOST_PARTS: usize = 1_000;

/// A file. Settings of other programs have more fields, which are not read.
#[derive(Deserialize)]
struct Document<'t> {
    #[serde(borrow, default)]
    hooks: Pairs<'t>,
}

/// The fields of an object in order, also those whose name is there twice.
#[derive(Default)]
struct Pairs<'t>(Vec<(String, &'t RawValue)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group<'t> {
    #[serde(default)]
    matcher: String,
    #[serde(borrow)]
    hooks: Vec<&'t RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    r#type: String,
    command: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    timeout: Option<f64>,
    /// A text for a screen, which is not shown here.
    #[serde(rename = "statusMessage", default)]
    _status_message: Option<IgnoredAny>,
}

/// The text of a file, and what was wrong in it.
struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
    problems: Vec<HookProblem>,
    /// The number of groups and hooks so far.
    parts: usize,
}

/// Returns the hooks of a file, and one problem for each part that was left out.
pub(crate) fn parse(path: &Path, text: &str) -> (Vec<OneHook>, Vec<HookProblem>) {
    let mut reader = Reader { path, text, problems: Vec::new(), parts: 0 };
    let mut hooks = Vec::new();
    let document = match serde_json::from_str::<Document<'_>>(text) {
        Ok(document) => document,
        Err(e) => {
            reader.problem(
                e.line(),
                format!("{}; no hook of this file works until it is mended", without_place(&e)),
            );
            return (hooks, reader.problems);
        }
    };
    for (name, groups) in document.hooks.0 {
        let Some(event) = HookEvent::of_name(&name) else {
            let known = HookEvent::ALL.map(HookEvent::name).join(", ");
            reader.problem(
                reader.line(groups),
                format!("`{name}` is no event of a run here; use one of {known}"),
            );
            continue;
        };
        let Some(groups) = reader.part::<Vec<&RawValue>>(groups) else { continue };
        for group in groups {
            if !reader.has_room(group) {
                return (hooks, reader.problems);
            }
            hooks.extend(reader.group(event, group));
        }
    }
    (hooks, reader.problems)
}

impl<'t> Reader<'t> {
    fn group(&mut self, event: HookEvent, raw: &'t RawValue) -> Vec<OneHook> {
        let Some(group) = self.part::<Group<'_>>(raw) else { return Vec::new() };
        let matcher = match Matcher::parse(&group.matcher) {
            Ok(matcher) => matcher,
            Err(text) => {
                self.problem(self.line(raw), text);
                return Vec::new();
            }
        };
        let mut hooks = Vec::new();
        for raw in group.hooks {
            if !self.has_room(raw) {
                break;
            }
            hooks.extend(self.hook(event, &matcher, raw));
        }
        hooks
    }

    /// Counts a part of the file; false, with a problem, if there are too many.
    fn has_room(&mut self, raw: &'t RawValue) -> bool {
        self.parts += 1;
        if self.parts == MOST_PARTS + 1 {
            let text =
                format!("the file has more than {MOST_PARTS} hooks and groups; the others do not work");
            self.problem(self.line(raw), text);
        }
        self.parts <= MOST_PARTS
    }

    fn hook(&mut self, event: HookEvent, matcher: &Matcher, raw: &'t RawValue) -> Option<OneHook> {
        let entry = self.part::<Entry>(raw)?;
        let line = self.line(raw);
        match timeout(entry.timeout).and_then(|timeout| Ok((timeout, action(entry)?))) {
            Ok((timeout, action)) => {
                let (matcher, path) = (matcher.clone(), self.path.to_owned());
                Some(OneHook { event, matcher, action, timeout, path, line, trusted: None })
            }
            Err(text) => {
                self.problem(line, text);
                None
            }
        }
    }

    /// Reads a part of the file; a part that is not as it should be becomes a problem.
    fn part<T: Deserialize<'t>>(&mut self, raw: &'t RawValue) -> Option<T> {
        match serde_json::from_str(raw.get()) {
            Ok(part) => Some(part),
            Err(e) => {
                self.problem(self.line(raw) + e.line().saturating_sub(1), without_place(&e));
                None
            }
        }
    }

    fn problem(&mut self, line: usize, text: String) {
        self.problems.push(HookProblem { path: self.path.to_owned(), line: line.max(1), text });
    }

    /// Returns the line on which a part of the text begins, from 1.
    fn line(&self, raw: &RawValue) -> usize {
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

fn timeout(seconds: Option<f64>) -> Result<Duration, String> {
    match seconds {
        None => Ok(TIMEOUT),
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(Duration::from_secs_f64(seconds)),
        Some(seconds) => Err(format!("the timeout {seconds} is not between 0 and {LONGEST} seconds")),
    }
}

fn action(entry: Entry) -> Result<Action, String> {
    match (&*entry.r#type, entry.command, entry.url) {
        ("command", Some(line), None) if !line.trim().is_empty() && entry.headers.is_empty() => {
            Ok(Action::Command(line))
        }
        ("http", None, Some(url)) => {
            Ok(Action::Endpoint { url: address(&url)?, headers: headers(&entry.headers)? })
        }
        ("command", ..) => {
            Err("a hook of the type `command` needs the field `command` and no other".to_owned())
        }
        ("http", ..) => Err("a hook of the type `http` needs the field `url` and no `command`".to_owned()),
        (other, ..) => Err(format!("the type `{other}` is not supported; use `command` or `http`")),
    }
}

/// Returns an address that a hook may have: events hold prompts and arguments, which leave this machine encrypted
/// only. Without the feature `tls` an https address would fail at each event, so it is refused here.
fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|e| format!("`{text}` is no address: {e}"))?;
    let is_here = url.host_str().is_some_and(archon_types::is_this_machine);
    match url.scheme() {
        "https" if cfg!(feature = "tls") => Ok(url),
        "https" => Err(
            "an https address needs the cargo feature `tls`, which is off in this build; use an address of this \
             machine (http://127.0.0.1)"
                .to_owned(),
        ),
        "http" if is_here => Ok(url),
        "http" => {
            Err(format!("`{text}` is not encrypted; use https, or an address of this machine (127.0.0.1)"))
        }
        other => Err(format!("`{other}` is no scheme of an endpoint; use https")),
    }
}

fn headers(fields: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        // The value may be a key, so it is not repeated.
        let broken = || format!("the header `{name}` has a name or a value that HTTP does not allow");
        let key = HeaderName::try_from(name).map_err(|_| broken())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| broken())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Returns an error of JSON without its place, which is relative to the part that was read.
fn without_place(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(text, _)| text.to_owned())
}

impl<'de: 't, 't> Deserialize<'de> for Pairs<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with events")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
