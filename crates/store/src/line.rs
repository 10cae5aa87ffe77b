//! One record as one line of a log: a line of a file, or a row of a table.
//!
//! ```text
//! {"crc":"9f3a0b1c","seq":0,"at":1767168000000,"type":"run_started",...}
//! ```
//!
//! The line is JSON, so `jq` and `grep` work on it. `crc` comes first and is the CRC-32 (IEEE, reflected, as
//! in zlib) of every byte behind the comma after it, as eight lower-case hexadecimal digits. The rest are
//! the members of the record, or of a reference to a large record; see [`blob`](crate::blob).

use archon_types::{JournalError, LOG_FORMAT, PlanRecord, RecordBody, RunId, TeamRecord};
use serde::{Deserialize, Serialize};

const START: &[u8] = br#"{"crc":""#;
const DIGITS: std::ops::Range<usize> = START.len()..START.len() + 8;
/// The index, in a line, of the comma after the checksum. The comma takes the place of the opening brace of
/// the record's JSON.
const COMMA: usize = DIGITS.end + 1;

/// Appends a line without its newline: the line of a whole record, or of a reference to a blob.
pub(crate) fn encode(out: &mut Vec<u8>, members: &impl Serialize) -> std::io::Result<()> {
    let start = out.len();
    out.extend_from_slice(START);
    out.extend_from_slice(b"00000000\"");
    serde_json::to_writer(&mut *out, members)?;
    let line = &mut out[start..];
    line[COMMA] = b',';
    let crc = checksum(&line[COMMA + 1..]);
    line[DIGITS].copy_from_slice(&crc);
    Ok(())
}

/// Returns the record's JSON from a line that [`check`] found valid; changes the line in place.
pub(crate) fn json(line: &mut [u8]) -> &[u8] {
    line[COMMA] = b'{';
    &line[COMMA..]
}

/// Returns the number of the record of a line; `None` if the line is damaged, or does not begin with its number.
#[cfg(feature = "jsonl")]
pub(crate) fn number(line: &[u8]) -> Option<u64> {
    check(line).ok()?;
    let digits = line[COMMA + 1..].strip_prefix(br#""seq":"#)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Returns true if `line` is two lines, because the newline between them was damaged.
#[cfg(feature = "jsonl")]
pub(crate) fn is_two(line: &[u8]) -> bool {
    let begins = |at: &usize| line[*at..].starts_with(START);
    (COMMA + 1..line.len()).filter(begins).any(|at| check(&line[..at - 1]).is_ok())
}

/// Returns true if a line that is cut off may belong to a record that starts a tool call with an effect other
/// than `read_only`.
#[cfg(feature = "jsonl")]
pub(crate) fn may_be_effect(line: &[u8]) -> bool {
    // Zero bytes at the end: the system reserved room for a line and wrote only its start, or nothing.
    let Some(end) = line.iter().rposition(|b| *b != 0) else { return false };
    let line = &line[..=end];
    match member(line, br#""type":""#) {
        None => true,
        Some((kind, _)) if kind != TOOL_STARTED => TOOL_STARTED.starts_with(kind) && line.ends_with(kind),
        Some((_, rest)) => member(rest, br#""effect":""#).is_none_or(|(effect, _)| effect != READ_ONLY),
    }
}

#[cfg(feature = "jsonl")]
const TOOL_STARTED: &[u8] = b"tool_call_started";
#[cfg(feature = "jsonl")]
const READ_ONLY: &[u8] = b"read_only";

/// Returns the value of the first string member with that name, as far as the value was written, and the
/// text after it.
#[cfg(feature = "jsonl")]
fn member<'a>(line: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let start = line.windows(name.len()).position(|found| found == name)? + name.len();
    let rest = &line[start..];
    let end = rest.iter().position(|b| *b == b'"').unwrap_or(rest.len());
    Some(rest.split_at(end))
}

/// Checks a line, without its newline, against its checksum.
pub(crate) fn check(line: &[u8]) -> Result<(), &'static str> {
    if line.len() <= COMMA || !line.starts_with(START) || line[DIGITS.end] != b'"' || line[COMMA] != b',' {
        return Err("the line does not begin with a checksum");
    }
    match line[DIGITS] == checksum(&line[COMMA + 1..]) {
        true => Ok(()),
        false => Err("the checksum does not match"),
    }
}

/// Formats the checksum without `format!`, since this function runs for every line that is written or read.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    const DIGIT: &[u8; 16] = b"0123456789abcdef";
    let crc = crc32fast::hash(bytes);
    std::array::from_fn(|n| DIGIT[(crc >> (28 - 4 * n)) as usize & 15])
}

#[cfg(all(test, feature = "jsonl"))]
mod tests {
    use archon_types::{CallId, CommandId, Effect, RecordBody};

    use super::*;

    #[test]
    fn tool_started_is_the_name_of_the_record() {
        let call = CallId::new(CommandId(0), 0);
        let started =
            RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::SideEffect, child_run: None };
        assert_eq!(started.name().as_bytes(), TOOL_STARTED);
    }
}

/// Returns the error for a record of a type, or of an event of a plan or a team, that this version does not know;
/// `None` if both are known.
pub(crate) fn unknown_record(run: &RunId, record: u64, json: &[u8]) -> Option<JournalError> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "type")]
        name: String,
        event: Option<String>,
    }
    let Named { name, event } = serde_json::from_slice(json).ok()?;
    let events: &[&str] = match name.as_str() {
        "plan" => &PlanRecord::NAMES,
        "team" => &TeamRecord::NAMES,
        known if RecordBody::NAMES.contains(&known) => return None,
        _ => return Some(JournalError::UnknownRecord { run: run.clone(), record, name, format: LOG_FORMAT }),
    };
    let event = event.filter(|event| !events.contains(&event.as_str()))?;
    let name = format!("{name}: {event}");
    Some(JournalError::UnknownRecord { run: run.clone(), record, name, format: LOG_FORMAT })
}
