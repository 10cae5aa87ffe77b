//! The tools with which a member's model reaches its team: share an entry, read an entry, ask a member.
//!
//! A tool call finds its [`TeamHandle`](crate::TeamHandle) by the id of its run, so one set of tools serves
//! all members.

use std::sync::Arc;

use archon_types::{BoxFuture, Json, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec};
use serde_json::json;

use crate::{TeamDesk, response::text_of};

/// Time limit of a call of `ask_member`, in ms.
const LONGEST_ANSWER_MS: u64 = 300_000;

/// The operation of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Share,
    Read,
    Ask,
}

struct DeskTool {
    desk: TeamDesk,
    what: What,
    spec: ToolSpec,
}

impl TeamDesk {
    /// Returns the tools `share`, `read_shared` and `ask_member`. The tools fail in a run that does not
    /// work for a team, and refuse calls that the member's role does not allow.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool =
            |what| -> Arc<dyn Tool> { Arc::new(DeskTool { desk: self.clone(), what, spec: spec(what) }) };
        [What::Share, What::Read, What::Ask].map(tool).to_vec()
    }
}

impl Tool for DeskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let handle = self.desk.seat(&context.run.run);
            let handle = handle.ok_or_else(|| failed("this run does not work for a team"))?;
            let result = match self.what {
                What::Share => {
                    let key = text(&arguments, "key")?;
                    let value = arguments.get("value").cloned().unwrap_or_default();
                    let expected = arguments.get("version").and_then(Json::as_u64);
                    let version = handle.write(key, value, expected).await.map_err(failed)?;
                    format!("\"{key}\" is shared, version {version}")
                }
                What::Read => {
                    let key = text(&arguments, "key")?;
                    match handle.read(key).await.map_err(failed)? {
                        Some(item) => {
                            format!("{} (version {}, by {})", text_of(&item.value), item.version, item.by)
                        }
                        None => format!("nobody shares \"{key}\" yet"),
                    }
                }
                What::Ask => {
                    let (to, task) = (text(&arguments, "to")?, text(&arguments, "task")?);
                    let under_way = context.run.under_way.clone();
                    handle.ask_during_calls(to, task, under_way).await.map_err(failed)?
                }
            };
            Ok(ToolResult::success(result))
        })
    }
}

fn text<'a>(arguments: &'a Json, name: &str) -> Result<&'a str, ToolError> {
    let text = arguments.get(name).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
    text.ok_or_else(|| ToolError::InvalidArgs(format!("`{name}` must be a text that is not empty")))
}

fn failed(why: impl ToString) -> ToolError {
    ToolError::Failed(why.to_string())
}

fn spec(what: What) -> ToolSpec {
    let key = json!({"type": "string", "description": "What it is about, in a word or two."});
    let (name, description, properties, required) = match what {
        What::Share => (
            "share",
            "Shares what you found with your team, under a key. With the version that you read it is refused if \
             somebody wrote in between; version 0 stands for none. If your final answer has facts on which others \
             may differ, give it as one JSON object that names them, and contradictions are settled: \
             {\"result\": \"your answer\", \"claims\": {\"a key\": \"a value\"}}",
            json!({"key": key, "value": {"description": "What is shared: text, or JSON."},
                "version": {"type": "integer", "minimum": 0}}),
            json!(["key", "value"]),
        ),
        What::Read => {
            ("read_shared", "Reads what your team shares under a key.", json!({ "key": key }), json!(["key"]))
        }
        What::Ask => (
            "ask_member",
            "Asks another member of your team to do something, and waits for the answer.",
            json!({"to": {"type": "string", "description": "A role, or the id of a member."},
                "task": {"type": "string", "description": "All that is to be known to do it."}}),
            json!(["to", "task"]),
        ),
    };
    // Read-only, because nothing outside the team changes: no approval is needed, and a call that a crash
    // cut off runs again. If a delegation asks the same question twice, the team starts one request.
    let mut annotations = ToolAnnotations::read_only();
    annotations.concurrency_safe = what == What::Read;
    annotations.timeout_ms = (what == What::Ask).then_some(LONGEST_ANSWER_MS);
    let parameters = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    ToolSpec::new(name, description, parameters).with_annotations(annotations)
}
