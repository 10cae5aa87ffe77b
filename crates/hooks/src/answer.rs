//! Reads what a hook answered: its exit code, its outputs, and the JSON in them.

use archon_types::Json;
use serde::Deserialize;

use crate::{
    event::HookEvent,
    verdict::{Answer, Verdict},
};

/// The most bytes of an answer. A longer one is not read to its end, and counts as none.
pub(crate) const MOST_BYTES: usize = 64 * 1024;

/// The most characters of a reason that the model reads.
const MOST_REASON: usize = 2_000;

/// The output of a hook, and its end.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The exit code as a shell reports it; `None` if it is not known.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// The JSON of an answer. Fields that only concern a screen are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    additional_context: Option<String>,
    decision: Option<Behaviour>,
    updated_input: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Behaviour {
    behavior: String,
    message: Option<String>,
    updated_input: Option<Json>,
}

/// Returns the answer of a hook about `event`.
///
/// # Errors
/// The output is no answer; the text says why and begins with a verb.
pub(crate) fn read(event: HookEvent, output: &Output) -> Result<Answer, String> {
    if output.stdout.len() > MOST_BYTES {
        return Err(format!("printed more than {} KiB", MOST_BYTES / 1024));
    }
    match output.code {
        Some(0) => read_text(event, &output.stdout),
        Some(2) => no(event, text(&output.stderr).as_deref()),
        Some(code) => {
            let why = text(&output.stderr).map(|text| format!(": {text}")).unwrap_or_default();
            Err(format!("ended with exit code {code}{why}"))
        }
        None => Err("ended without an exit code".to_owned()),
    }
}

fn read_text(event: HookEvent, stdout: &[u8]) -> Result<Answer, String> {
    let printed = String::from_utf8_lossy(stdout);
    let printed = printed.trim();
    if printed.is_empty() {
        return Ok(Answer::default());
    }
    if !printed.starts_with('{') {
        // Only a prompt takes text as it is; elsewhere nobody could tell an answer from a mistake.
        return match event {
            HookEvent::Prompt => Ok(Answer { context: vec![printed.to_owned()], ..Answer::default() }),
            _ => Err("printed text that is no JSON object".to_owned()),
        };
    }
    let reply = serde_json::from_str(printed).map_err(|e| format!("printed JSON that is no answer: {e}"))?;
    judge(event, reply)
}

/// Returns the strictest of what an answer says.
fn judge(event: HookEvent, reply: Reply) -> Result<Answer, String> {
    let specific = reply.hook_specific_output.unwrap_or_default();
    let behaviour = specific.decision;
    let changes = behaviour.as_ref().is_some_and(|behaviour| behaviour.updated_input.is_some());
    if changes || specific.updated_input.is_some() {
        return Err("answered with `updatedInput`, but a hook cannot change arguments".to_owned());
    }
    let reason = reply.reason.as_deref();
    let mut answers = Vec::new();
    match specific.permission_decision.as_deref() {
        None | Some("allow" | "defer") => {}
        Some("ask") => {
            answers.push(question(event, specific.permission_decision_reason.as_deref().or(reason))?)
        }
        Some("deny") => answers.push(no(event, specific.permission_decision_reason.as_deref().or(reason))?),
        Some(other) => return Err(format!("answered with the unknown permissionDecision `{other}`")),
    }
    match reply.decision.as_deref() {
        None | Some("approve" | "allow") => {}
        Some("block" | "deny") => answers.push(no(event, reason)?),
        Some(other) => return Err(format!("answered with the unknown decision `{other}`")),
    }
    match behaviour.as_ref().map(|behaviour| (&*behaviour.behavior, behaviour.message.as_deref())) {
        None | Some(("allow", _)) => {}
        Some(("deny", message)) => answers.push(no(event, message.or(reason))?),
        Some((other, _)) => return Err(format!("answered with the unknown behavior `{other}`")),
    }
    if reply.goes_on == Some(false) {
        answers.push(no(event, reply.stop_reason.as_deref().or(reason))?);
    }
    if let Some(context) = specific.additional_context.filter(|_| event.takes_context()) {
        answers.push(Answer { context: vec![context], ..Answer::default() });
    }
    Ok(Answer::fold(answers))
}

/// Returns the answer of a hook that says no. After a call, the model reads the reason.
fn no(event: HookEvent, reason: Option<&str>) -> Result<Answer, String> {
    let reason =
        clip(reason.map(str::trim).filter(|reason| !reason.is_empty()).unwrap_or("no reason was given"));
    match event {
        _ if event.can_deny() => Ok(Answer { verdict: Verdict::Deny(reason), ..Answer::default() }),
        HookEvent::AfterTool => Ok(Answer { context: vec![reason], ..Answer::default() }),
        _ => Err(format!("answered no ({reason}), but cannot change what already happened")),
    }
}

fn question(event: HookEvent, reason: Option<&str>) -> Result<Answer, String> {
    let reason = clip(reason.unwrap_or("no reason was given"));
    match event {
        HookEvent::BeforeTool => Ok(Answer { verdict: Verdict::Ask(reason), ..Answer::default() }),
        // The person is about to be asked.
        HookEvent::Permission => Ok(Answer::default()),
        _ => Err("answered `ask`, but only a call can be asked about".to_owned()),
    }
}

/// Returns an output as text; `None` if it is blank.
fn text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    Some(clip(text.trim())).filter(|text| !text.is_empty())
}

fn clip(text: &str) -> String {
    archon_types::shorten(text, MOST_REASON, " ...")
}
