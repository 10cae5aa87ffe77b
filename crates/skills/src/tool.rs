//! The tool `activate_skill`.

use std::sync::Arc;

use archon_types::{
    BoxFuture, Json, SessionId, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec, Trust,
    metadata,
};
use serde_json::json;

use crate::{ACTIVATE_SKILL, SkillActivationRequest, SkillActivationResult, SkillConversations, SkillError};

/// The key in a tool result's metadata that describes the activated skill: its name, its activation id, its tools and
/// its model.
pub const SKILL_METADATA: &str = "skill";

/// The tool `activate_skill`: a model loads the instructions of a skill, and reads the skill's files.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{ActivateSkill, SkillConversations, SkillSet};
///
/// // Without skills there is no tool.
/// let conversations = Arc::new(SkillConversations::new(Arc::new(SkillSet::new())));
/// assert!(ActivateSkill::new(conversations).is_none());
/// ```
pub struct ActivateSkill {
    spec: ToolSpec,
    conversations: Arc<SkillConversations>,
}

impl ActivateSkill {
    /// Creates the tool for the skills that a model may activate; `None` if there are none.
    pub fn new(conversations: Arc<SkillConversations>) -> Option<Self> {
        let names: Vec<&str> = conversations.skills().visible().map(|skill| skill.name.as_str()).collect();
        let spec = (!names.is_empty()).then(|| spec(&names))?;
        Some(Self { spec, conversations })
    }
}

fn spec(names: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["name"],
        "properties": {
            "name": { "type": "string", "enum": names, "description": "The skill" },
            "called_by": {
                "type": "string", "enum": names,
                "description": "The active skill whose instructions ask for this one; else leave it out",
            },
            "file": {
                "type": "string",
                "description": "A file of the skill to read once the skill is active, relative to its folder",
            },
        },
    });
    let about = "Loads the instructions of a skill. Call it when a task fits the description of a skill in \
                 <available_skills>, before you begin, and follow the instructions.";
    let mut annotations = ToolAnnotations::read_only();
    (annotations.blocking, annotations.instructs) = (true, true);
    ToolSpec::new(ACTIVATE_SKILL, about, parameters).with_annotations(annotations)
}

impl Tool for ActivateSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let text = |key: &str| arguments.get(key).and_then(Json::as_str);
            let name = text("name").unwrap_or_default();
            let conversation = self.conversations.of(&context.run.session);
            if let Some(file) = text("file") {
                return Ok(trusted(conversation.read_file(name, file).map_err(tool_error)?));
            }
            let (run, turn) = (&context.run.run, context.call.map(|call| call.command));
            if let Some(pinned) = &context.run.pinned
                && !pinned.contains(&pin_name(name))
            {
                conversation.forget_unless_of(run, turn, name);
            }
            let chain = text("called_by").map(|caller| conversation.chain_below(&context.run.run, caller));
            let request = SkillActivationRequest::new(name)
                .with_activation_chain(chain.transpose().map_err(tool_error)?.unwrap_or_default())
                .with_activation_id(context.key())
                .with_run(run.clone())
                .with_turn(turn)
                .with_conversation_id(context.run.session.to_string())
                .with_time(context.run.clock.now());
            result(&request, conversation.activate(&request))
        })
    }

    fn recall(&self, session: &SessionId, result: &ToolResult) {
        self.conversations.recall(session, result);
    }
}

fn result(
    request: &SkillActivationRequest,
    activation: SkillActivationResult,
) -> Result<ToolResult, ToolError> {
    if let Some(error) = activation.error {
        return Err(tool_error(error));
    }
    let modifier = activation.context_modifier.clone().unwrap_or_default();
    let about = json!({
        "name": request.skill_name,
        "activation_id": request.activation_id,
        "allowed_tools": modifier.allowed_tools.as_ref().map(|tools| tools.rules()),
        "model": modifier.model,
    });
    let mut result = trusted(activation.text_for_model()).with_metadata(SKILL_METADATA, about);
    // The loop gives it to `recall` when the session goes on, also in another process.
    if let Some(mark) = activation.mark {
        result = result.with_metadata(metadata::SEEN, mark.seen);
    }
    // A result without the instructions must not take the place of the one that has them.
    Ok(match activation.brings_instructions {
        true => result.with_metadata(metadata::PINNED, pin_name(&request.skill_name)),
        false => result,
    })
}

/// Returns a tool result with a text of a skill. The result is trusted, because skills are loaded only from folders
/// that a person trusts.
fn trusted(text: String) -> ToolResult {
    ToolResult::success(text).with_metadata(metadata::TRUST, Trust::Trusted.as_str())
}

/// Returns the name under which the instructions of a skill are pinned in the context window.
fn pin_name(skill: &str) -> String {
    format!("skill:{skill}")
}

fn tool_error(error: SkillError) -> ToolError {
    let text = error.to_string();
    match error {
        SkillError::Unknown { .. } => ToolError::NotFound(text),
        SkillError::OnlyByPerson(_) | SkillError::Changed(_) => ToolError::PermissionDenied(text),
        SkillError::Unreadable { .. } => ToolError::Failed(text),
        _ => ToolError::InvalidArgs(text),
    }
}

archon_types::debug_fields!(ActivateSkill: conversations);
