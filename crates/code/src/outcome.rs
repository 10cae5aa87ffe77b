//! The outcome of a program, and the tool result that is made of it.

use std::time::Duration;

use archon_types::{Json, ToolResult, ToolResultStatus, metadata};

use crate::{CodeOptions, Language, exact_json::exact_json, meter::Stopped, output::shortened};

/// The outcome of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: Result<Option<Value>, Failed>,
    /// The printed output, and the number of bytes that were left out.
    pub(crate) output: (String, usize),
    pub(crate) calls: usize,
    pub(crate) processor_time: Duration,
}

/// The value of a program's last expression.
#[derive(Debug)]
pub(crate) struct Value {
    /// JSON, or else the value as the language prints it.
    pub(crate) text: String,
    pub(crate) json: Option<Json>,
}

/// The reason why a program did not finish.
#[derive(Debug)]
pub(crate) enum Failed {
    /// An uncaught exception, or a syntax error.
    Thrown {
        line: Option<usize>,
        text: String,
    },
    Stopped(Stopped),
    /// An error of the interpreter itself, with its message.
    Broken(String),
}

impl Value {
    /// Parses the value of the program's last expression. `text` comes from our code around the program: `j` followed
    /// by JSON, or another letter followed by the value as the language prints it. Returns `None` for an empty text.
    pub(crate) fn parse(text: String) -> Option<Self> {
        let mut rest = text.chars();
        let is_json = rest.next()? == 'j';
        let text = rest.as_str();
        let json = is_json.then(|| exact_json(text).ok()).flatten();
        let text = json.as_ref().and_then(Json::as_str).unwrap_or(text).to_owned();
        Some(Self { text, json })
    }
}

impl Outcome {
    /// Makes the tool result: the text for the model, and facts about the program's run in the metadata.
    pub(crate) fn into_result(
        self,
        language: Language,
        code: &str,
        time: Duration,
        options: &CodeOptions,
    ) -> ToolResult {
        let (output, lost) = self.output;
        let result = match self.end {
            Ok(value) => succeeded(output, value, options.output),
            Err(failed) => failure(&failed, &output, code, time, options),
        };
        result
            .with_metadata("language", language.name())
            .with_metadata("processor_ms", u64::try_from(self.processor_time.as_millis()).unwrap_or(u64::MAX))
            .with_metadata("calls", self.calls)
            .with_metadata("lost_bytes", lost)
    }
}

fn succeeded(mut text: String, value: Option<Value>, room: usize) -> ToolResult {
    let Some(value) = value else {
        return ToolResult::success(if text.is_empty() { "(no output)".to_owned() } else { text });
    };
    let shown = shortened(&value.text, room);
    if text.is_empty() {
        text = shown;
    } else {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{gap}Value: {shown}"));
    }
    let result = ToolResult::success(text);
    match value.json.filter(|_| value.text.len() <= room) {
        Some(json) => result.with_metadata("value", json),
        None => result,
    }
}

fn failure(failed: &Failed, output: &str, code: &str, time: Duration, options: &CodeOptions) -> ToolResult {
    let (detail, kind) = match failed {
        Failed::Thrown { line: Some(line), text } => (format!("line {line}: {text}"), "thrown"),
        Failed::Thrown { line: None, text } => (text.clone(), "thrown"),
        Failed::Stopped(Stopped::Time) => (
            format!(
                "the program was stopped after {} seconds of processor time. Do less, or ask for more with timeout_ms \
                 (at most {}).",
                time.as_secs_f64(),
                options.max_time.as_millis()
            ),
            "time",
        ),
        Failed::Stopped(Stopped::Memory) => (
            format!(
                "the program was stopped because its values took more than {} bytes. Keep less of them at once.",
                options.memory
            ),
            "memory",
        ),
        Failed::Stopped(Stopped::Cancelled) => ("the program was cancelled".to_owned(), "cancelled"),
        Failed::Broken(words) => (format!("the interpreter itself failed: {words}"), "fault"),
    };
    let mut text = format!("Error: {}", shortened(&detail, MESSAGE));
    if let Failed::Thrown { line: Some(line), .. } = failed
        && let Some(source) = line.checked_sub(1).and_then(|line| code.lines().nth(line))
    {
        text.push_str(&format!("\n    {}", shortened(source.trim(), LINE)));
    }
    if !output.is_empty() {
        text.push_str(&format!("\nIt wrote before:\n{output}"));
    }
    let mut result = ToolResult::failed(ToolResultStatus::Error, text, detail)
        .with_metadata(metadata::ERROR_TYPE, "execution_error")
        .with_metadata("ended_by", kind);
    if let Failed::Thrown { line: Some(line), .. } = failed {
        result = result.with_metadata("line", *line);
    }
    result
}

/// Maximum number of bytes of an error message that are shown.
const MESSAGE: usize = 4_000;
/// Maximum number of bytes of the program's line that are shown with an error.
const LINE: usize = 200;
