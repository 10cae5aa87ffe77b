//! The steps of an activation that do not change the conversation: the checks of the request, and the result.

use std::sync::Arc;

use crate::{
    ActiveSkill, Skill, SkillActivationRequest, SkillActivationResult, SkillActivator, SkillError,
    SkillLevel, SkillMessage, SkillMessageKind, SkillModifier, SkillSet,
};

/// Returns the skill of a request.
///
/// # Errors
/// There is no such skill, only a person can activate it, it is in its own chain, or the chain is too long.
pub(crate) fn check<'s>(
    skills: &'s SkillSet,
    request: &SkillActivationRequest,
) -> Result<&'s Arc<Skill>, SkillError> {
    let skill = skills.find(&request.skill_name)?;
    if skill.disable_model_invocation && request.activator == SkillActivator::Model {
        return Err(SkillError::OnlyByPerson(skill.name.clone()));
    }
    check_chain(request)?;
    Ok(skill)
}

/// Refuses a skill that is in its own chain, and a chain that is too long.
fn check_chain(request: &SkillActivationRequest) -> Result<(), SkillError> {
    let (chain, name) = (&request.activation_chain, &request.skill_name);
    if chain.contains(name) {
        let names: Vec<&str> = chain.iter().chain([name]).map(String::as_str).collect();
        return Err(SkillError::Circular(names.join(" → ")));
    }
    let depth = request.activation_depth.max(u32::try_from(chain.len()).unwrap_or(u32::MAX));
    match depth > request.max_depth {
        true => Err(SkillError::TooDeep(request.max_depth)),
        false => Ok(()),
    }
}

/// Returns the result of an activation. `is_loaded` is true if the conversation already has the instructions: then
/// the messages do not repeat them.
///
/// # Errors
/// The instructions cannot be read, or have changed since they were trusted.
pub(crate) fn result(
    skill: &Skill,
    request: &SkillActivationRequest,
    is_loaded: bool,
) -> Result<SkillActivationResult, SkillError> {
    Ok(SkillActivationResult {
        messages: messages(skill, request, is_loaded)?,
        context_modifier: Some(SkillModifier {
            allowed_tools: skill.allowed_tools.clone(),
            model: skill.model.clone(),
            disable_model_invocation: skill.disable_model_invocation,
        }),
        success: true,
        error: None,
        mark: Some(ActiveSkill::mark(skill, request)),
        brings_instructions: request.load_level > SkillLevel::Metadata && !is_loaded,
    })
}

/// Returns the messages of an activation.
fn messages(
    skill: &Skill,
    request: &SkillActivationRequest,
    is_loaded: bool,
) -> Result<Vec<SkillMessage>, SkillError> {
    let name = &skill.name;
    let about = match request.user_request.as_str() {
        "" => format!("The skill `{name}` is active."),
        words => format!("The skill `{name}` is active, for: {words}"),
    };
    let mut messages = vec![SkillMessage::new(SkillMessageKind::Metadata, about)];
    let instruction = match (request.load_level, is_loaded) {
        (SkillLevel::Metadata, _) => None,
        (_, true) => Some("Its instructions are already in this conversation; follow them.".to_owned()),
        (level, false) => Some(skill.content(level)?),
    };
    messages.extend(instruction.map(|text| SkillMessage::new(SkillMessageKind::Instruction, text)));
    let mut limits = Vec::new();
    if let Some(tools) = &skill.allowed_tools {
        limits
            .push(format!("Only these tools may be called while it is active: {}.", tools.rules().join(" ")));
    }
    limits.extend(skill.model.as_ref().map(|model| format!("The model is {model}.")));
    if !limits.is_empty() {
        messages.push(SkillMessage::new(SkillMessageKind::Permissions, limits.join(" ")));
    }
    Ok(messages)
}
