//! Converts results of runs and tools to results of the protocol.

use std::sync::Arc;

use archon_types::{
    Content, Media, MediaKind, MediaView, Outcome, OutcomeStatus, Record, RecordBody, RunError, RunId,
    RunStatus, ToolResult,
};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::json;

/// The key of the run's id in the metadata of a result.
const RUN: &str = "archon/run";

/// Returns the last tool result in the log of a call.
pub(crate) fn tool_result(records: &[Arc<Record>]) -> Option<&Arc<ToolResult>> {
    records.iter().rev().find_map(|record| match &record.body {
        RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
            Some(result)
        }
        _ => None,
    })
}

/// Returns the result of a call of a tool.
pub(crate) fn of_tool(result: &ToolResult, run: &RunId) -> CallToolResult {
    let content = result.content.iter().filter_map(block).collect();
    of(content, result.is_error(), run)
}

fn block(content: &Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } => Some(ContentBlock::text(text.clone())),
        other => other.as_media().map(media),
    }
}

/// Returns a picture or audio as such a block, and other media as a resource.
fn media(media: MediaView<'_>) -> ContentBlock {
    let kind = media.mime_type;
    let Some(data) = media.base64 else { return ContentBlock::text(media.note("not stored")) };
    match media.kind() {
        MediaKind::Image => ContentBlock::image(data, kind),
        _ if kind.starts_with("audio/") => ContentBlock::audio(data, kind),
        _ => {
            let uri = media.media.map(Media::reference).unwrap_or_default();
            ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(kind))
        }
    }
}

/// Returns the result of a call of an agent whose run has ended or is suspended.
pub(crate) fn of_agent(outcome: &Outcome) -> CallToolResult {
    let (run, said) = (&outcome.run, outcome.last_text().unwrap_or_default());
    let so_far = if said.is_empty() { String::new() } else { format!(" So far: {said}") };
    let text = match outcome.status {
        OutcomeStatus::Finished => said.to_owned(),
        OutcomeStatus::Limit(limit) => {
            format!("Run {run} met a limit: {limit}. It can be resumed with a larger one.{so_far}")
        }
        OutcomeStatus::Cancelled => format!("Run {run} was cancelled. It can be resumed.{so_far}"),
        OutcomeStatus::Suspended => format!("Run {run} waits for a person's answer at the server.{so_far}"),
        _ => {
            let error = outcome.error.as_deref().unwrap_or("it gave no reason");
            format!("Run {run} failed: {error}")
        }
    };
    let mut result = of(
        vec![ContentBlock::text(text)],
        !matches!(outcome.status, OutcomeStatus::Finished | OutcomeStatus::Suspended),
        run,
    );
    let status = RunStatus::from(outcome.status);
    result.structured_content = Some(json!({ "run": run, "status": status, "answer": said }));
    result
}

/// Returns the result of a call that waits for a person at the server.
pub(crate) fn waiting(run: &RunId, questions: &[String]) -> CallToolResult {
    let asked = questions.join("; ");
    let text =
        format!("Not run yet: run {run} waits for a person's answer at the server. The question: {asked}");
    of(vec![ContentBlock::text(text)], true, run)
}

/// Returns the result of a call whose run cannot be started, followed or read.
pub(crate) fn failure(error: &RunError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("Error: {error} ({})", error.advice()))])
}

fn of(content: Vec<ContentBlock>, is_error: bool, run: &RunId) -> CallToolResult {
    let mut result = match is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    let mut meta = MetaObject::new();
    meta.insert(RUN.to_owned(), json!(run));
    result.meta = Some(meta);
    result
}
