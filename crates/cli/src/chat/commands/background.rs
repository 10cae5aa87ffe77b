//! `/ps` and `/stop`: the commands of this conversation that run in the background.

use archon::types::{Json, ToolResultStatus};
use serde_json::json;

use super::{Situation, call::call};
use crate::{failure::Failure, text::visible};

/// Lists the commands.
pub(super) fn list(situation: &Situation<'_>) {
    report(situation, "list_commands", json!({}));
}

/// Stops a command, and prints the rest of its output.
///
/// # Errors
/// The text about an argument that is no number.
pub(super) fn stop(word: &str, situation: &Situation<'_>) -> Result<(), String> {
    let number = word.trim_start_matches("cmd_").parse::<u64>();
    let number = number.map_err(|_| format!("{word:?} is no number of a command: /ps lists them"))?;
    report(situation, "stop_command", json!({ "id": format!("cmd_{number}") }));
    Ok(())
}

fn report(situation: &Situation<'_>, tool: &'static str, arguments: Json) {
    let (app, session) = (situation.app.clone(), situation.session.cloned());
    situation.spawn(async move {
        let result = call(&app, session.as_ref(), tool, arguments).await?;
        let text = visible(&result.text());
        match result.status {
            ToolResultStatus::Success => app.note(text),
            _ => return Err(Failure::failed(text, "/ps lists the commands")),
        }
        Ok(())
    });
}
