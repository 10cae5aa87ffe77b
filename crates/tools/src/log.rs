//! Writes calls into the application's log, without secrets.

use std::fmt;

use archon_types::{Correction, Json, ToolCall, ToolResult};

use crate::{arguments::clip, output::error_type};

/// Maximum number of characters of a text argument in a log line.
const SHOWN: usize = 200;

/// Maximum number of entries of a list or object in a log line; [`LEVELS`] is the maximum number of levels.
/// Refused arguments of any size are logged too.
const ENTRIES: usize = 50;
const LEVELS: usize = 8;

/// Returns the span around a tool's work, so that its log lines name the call and the run.
pub(crate) fn call_span(tool: &str, call: &str, run: &str) -> tracing::Span {
    tracing::info_span!(target: "archon::tools", "tool_call", run, call, tool)
}

/// Logs that a call passed all guards, or was refused by one.
pub(crate) fn inspected(call: &ToolCall, run: &str, validation_ms: u64, refused: Option<&ToolResult>) {
    let outcome = match refused {
        None => "ready",
        Some(result) => error_type(result).unwrap_or("refused"),
    };
    tracing::info!(
        target: "archon::tools",
        run,
        call = call.id.as_str(),
        tool = call.name.as_str(),
        validation = outcome,
        validation_ms,
        arguments = %Redacted(&call.arguments, LEVELS),
        "tool call inspected"
    );
}

/// Logs arguments that are not JSON. The text itself is not logged, because secrets cannot be found in it.
pub(crate) fn malformed(call: &ToolCall, run: &str, error: &str) {
    tracing::warn!(
        target: "archon::tools",
        run,
        call = call.id.as_str(),
        tool = call.name.as_str(),
        error,
        "tool call malformed"
    );
}

/// Logs that refused arguments were corrected.
pub(crate) fn corrected(call: &ToolCall, run: &str, correction: &Correction) {
    tracing::warn!(
        target: "archon::tools",
        run,
        call = call.id.as_str(),
        tool = call.name.as_str(),
        correction = correction.kind,
        arguments = %Redacted(&correction.arguments, LEVELS),
        "arguments corrected"
    );
}

/// Logs the end of a call.
pub(crate) fn finished(
    tool: &str,
    call: &str,
    run: &str,
    attempt: u32,
    execution_ms: u64,
    result: &ToolResult,
) {
    // Computed only if the line is written.
    let outcome = || format!("{:?}", result.status).to_lowercase();
    match &result.error_message {
        None => tracing::info!(
            target: "archon::tools", run, call, tool, attempt, execution_ms, outcome = outcome(), "tool call finished"
        ),
        Some(error) => tracing::warn!(
            target: "archon::tools",
            run,
            call,
            tool,
            attempt,
            execution_ms,
            outcome = outcome(),
            error,
            "tool call failed"
        ),
    }
}

/// Formats arguments as JSON with secrets replaced and long or deep values cut. The work is done only when
/// the line is written.
struct Redacted<'a>(&'a Json, usize);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(value, levels) = self;
        let Some(inner) = levels.checked_sub(1) else { return f.write_str("\"…\"") };
        match value {
            Json::Object(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().take(ENTRIES).enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}:", Json::from(clip(key, SHOWN)))?;
                    if is_secret(key) { f.write_str("\"****\"")? } else { Redacted(value, inner).fmt(f)? }
                }
                f.write_str("}")
            }
            Json::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().take(ENTRIES).enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}", Redacted(item, inner))?;
                }
                f.write_str("]")
            }
            Json::String(text) => write!(f, "{}", Json::from(clip(text, SHOWN))),
            other => write!(f, "{other}"),
        }
    }
}

/// Returns whether a key names a secret.
fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase().replace(['-', '_'], "");
    let words = "password passwd passphrase token secret apikey authorization credential privatekey cookie";
    words.split(' ').any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // spec: TE-11
    #[test]
    fn secrets_are_replaced_at_any_depth_and_long_texts_cut() {
        let arguments = json!({
            "user": "ann",
            "password": "hunter2",
            "headers": [{ "Authorization": "Bearer abc", "X-Api-Key": ["k1", "k2"], "accept": "*/*" }],
            "access_token": { "value": "t" },
            "clientSecret": 7,
            "body": "x".repeat(300),
            "n": 1.5,
        });
        let shown = Redacted(&arguments, LEVELS).to_string();
        for secret in ["hunter2", "Bearer", "k1", "\"t\"", "7"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        let parsed: Json = serde_json::from_str(&shown).unwrap();
        assert_eq!(parsed["user"], "ann");
        assert_eq!(parsed["headers"][0]["accept"], "*/*");
        assert_eq!(parsed["n"], 1.5);
        assert_eq!(parsed["body"], format!("{}…", "x".repeat(200)));
    }

    // spec: TE-11
    #[test]
    fn log_line_of_any_arguments_is_short() {
        let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
        for arguments in [deep, json!({ "list": vec![1; 1_000_000] }), json!({ "k".repeat(1_000_000): 1 })] {
            assert!(Redacted(&arguments, LEVELS).to_string().len() < 1_000);
        }
    }
}
