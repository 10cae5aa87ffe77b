//! The tool `cleanup_tool_call`: the model removes results that it no longer needs from its context.

use archon_types::{
    CLEANUP_TOOL, CleanedUp, Effect, Json, SeenResult, TokenCounter, TokenEstimate, Tool, ToolAnnotations,
    ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Removes tool results from the model's context window; a note replaces each result. The run's log keeps
/// the results.
///
/// If the model has this tool, each result begins with the id of its call, and long or empty results end with
/// a hint to clean up. Outside of a run there is no context window, and the call fails.
#[derive(Clone, Debug)]
pub struct CleanupToolCall {
    spec: ToolSpec,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Ids of the calls, as they stand at the beginning of their results
    #[schemars(length(min = 1))]
    tool_call_ids: Vec<String>,
    /// What is worth keeping of the results, in one or two sentences
    summary: Option<String>,
    /// Why they are not needed, in a few words; "not relevant to task" if left out
    reason: Option<String>,
}

impl CleanupToolCall {
    /// Creates the tool.
    pub fn new() -> Self {
        let mut annotations = ToolAnnotations::default();
        annotations.effect = Effect::Idempotent;
        let about = "Frees context space: a short note takes the place of results that are not needed any more. They \
                     cannot be read again, so say in the summary what is worth keeping.";
        let example = json!({
            "tool_call_ids": ["call_1"],
            "summary": "The search found nothing in src.",
            "reason": "no results",
        });
        let names = [CLEANUP_TOOL, "Clean up results"];
        Self { spec: super::spec::<Arguments>(names, about, annotations, example) }
    }

    fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        clean_up(crate::macro_support::arguments(arguments)?, context.run.results.as_deref())
    }
}

default_is_new!(CleanupToolCall);

impl Tool for CleanupToolCall {
    tool_methods!(run at once);
}

fn clean_up(arguments: Arguments, seen: Option<&[SeenResult]>) -> Result<ToolResult, ToolError> {
    let Arguments { tool_call_ids, summary, reason } = arguments;
    let Some(seen) = seen else {
        return Err(ToolError::Failed(
            "results cannot be removed, because this call has no context window. Go on without it."
                .to_owned(),
        ));
    };
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let reason = reason.as_deref().unwrap_or("not relevant to task");
    let (mut cleaned, mut tools, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let ids: std::collections::BTreeSet<_> = tool_call_ids.iter().collect();
    for id in &ids {
        match find(seen, id) {
            Ok(result) => {
                cleaned.push(CleanedUp::new(result, reason, summary.clone()));
                tools.push(result.tool.as_str());
            }
            Err(problem) => problems.push(problem),
        }
    }
    if cleaned.is_empty() {
        return Err(ToolError::InvalidArgs(problems.join(" ")));
    }
    let saved: u64 =
        cleaned.iter().map(|c| c.original_tokens.saturating_sub(TokenEstimate.count(&c.note()))).sum();
    let mut message = format!("Cleaned up {} of {} results.", cleaned.len(), ids.len());
    problems.iter().for_each(|problem| message.extend([" ", problem]));
    let said = json!({
        "success": true,
        "message": message,
        "original_tool": tools.join(", "),
        "tokens_saved": saved,
    });
    let marks = serde_json::to_value(cleaned).map_err(|e| ToolError::Failed(e.to_string()))?;
    Ok(ToolResult::success(said.to_string()).with_metadata(metadata::CLEANED_UP, marks))
}

/// Finds the newest result of the call `id` that was not cleaned up yet, or returns an error text for the
/// model.
fn find<'s>(seen: &'s [SeenResult], id: &str) -> Result<&'s SeenResult, String> {
    let of_call = || seen.iter().rev().filter(|result| result.call.as_str() == id);
    match (of_call().find(|result| !result.is_cleaned_up), of_call().next()) {
        (Some(result), _) => Ok(result),
        (None, Some(_)) => Err(format!("The result of '{id}' was cleaned up before.")),
        (None, None) => Err(format!(
            "There is no result of a call '{id}' in the context window. The id stands at the beginning of each result."
        )),
    }
}
