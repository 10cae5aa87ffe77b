//! Writes the requests and results of fixtures to a file; the conformance check compares it with the
//! services' own clients.
//!
//! This happens only if the variable `ARCHON_EXCHANGES` names a file. Each replay appends a line of JSON
//! with the provider, the test, the request, the response in hexadecimal digits, and the result.

use std::{fmt::Write as _, fs, io::Write as _};

use archon_types::{Content, Json};
use serde_json::json;

use super::{Fixture, Heard, Sent};

pub(super) fn note(provider: &str, sent: Option<&Sent>, fixture: &Fixture, heard: &Heard) {
    let (Ok(path), Some(sent)) = (std::env::var("ARCHON_EXCHANGES"), sent) else { return };
    let thread = std::thread::current();
    let body = fixture.body.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let line = json!({
        "provider": provider,
        "test": thread.name().unwrap_or_default(),
        "sent": { "method": sent.method, "url": sent.url, "headers": sent.headers, "body": sent.body },
        "response": { "status": fixture.status, "headers": fixture.headers, "body": body, "breaks_off": fixture.breaks_off },
        "heard": understood(heard),
    });
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    // One write for each line, since tests run in parallel.
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .expect("a file for the exchanges");
}

fn understood(heard: &Heard) -> Json {
    let message = match &heard.end {
        Ok(message) => message,
        Err(error) => return json!({ "error": error.code() }),
    };
    let thinking = message.content.iter().filter_map(|block| match block {
        Content::Thinking { thinking, .. } => Some(thinking.as_str()),
        _ => None,
    });
    let calls = message.tool_calls().map(|call| {
        let malformed = call.malformed.as_ref().map(|malformed| &malformed.text);
        json!({ "id": call.id, "name": call.name, "arguments": call.arguments, "malformed": malformed })
    });
    json!({
        "text": message.content.iter().filter_map(Content::as_text).collect::<String>(),
        "thinking": thinking.collect::<String>(),
        "calls": calls.collect::<Vec<_>>(),
        "stop_reason": message.stop_reason,
        "usage": message.usage,
        "model": message.model,
    })
}
