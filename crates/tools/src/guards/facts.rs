//! Guard: records facts about a call, such as its time, in its result's metadata.

use std::time::Duration;

use archon_types::{ToolResult, metadata};

use crate::{
    guard::{Ended, Guard},
    retry::Tried,
};

pub(crate) struct Facts;

impl Guard for Facts {
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let Tried { attempts, last_error } = ended.tried;
        stamp(result, ended.validation, ended.execution, *attempts, Some(&ended.tool.spec.version));
        if let Some(error) = last_error {
            result.metadata.insert(metadata::RETRY_COUNT.to_owned(), (*attempts - 1).into());
            result.metadata.insert(metadata::LAST_ERROR.to_owned(), error.as_str().into());
        }
    }
}

/// Writes the times, the number of attempts and the tool's version into the metadata of a call's result, also
/// if the call was refused.
pub(crate) fn stamp(
    result: &mut ToolResult,
    validation: Duration,
    execution: Duration,
    attempts: u32,
    version: Option<&str>,
) {
    let facts = &mut result.metadata;
    if facts.is_empty() {
        // Allocate for all four at once.
        *facts = serde_json::Map::with_capacity(4);
    }
    facts.insert("validation_time_ms".to_owned(), millis(validation).into());
    facts.insert(metadata::EXECUTION_TIME_MS.to_owned(), millis(execution).into());
    facts.insert(metadata::ATTEMPTS.to_owned(), attempts.into());
    if let Some(version) = version {
        facts.insert(metadata::TOOL_VERSION.to_owned(), version.into());
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
