//! An active skill, and its mark in the log. The mark contains the limits of the skill, so that a later process can
//! enforce them even if the skill no longer exists.

use archon_types::{Json, RunId, Timestamp, ToolMark};
use serde_json::json;

use crate::{ACTIVATE_SKILL, AllowedTools, Skill, SkillActivationRequest};

/// The text that replaces a secret in the log. A rule with this text is dropped, because its `*` would match more
/// calls than the original rule.
const REDACTED: &str = "****";

/// A skill that is active in a conversation, with its limits at the time of the activation. Later changes of the
/// skill's file do not change these limits, not even after a resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveSkill {
    /// The name of the skill.
    pub name: String,
    /// The tools that may be called while the skill is active; `None` for no limit.
    pub allowed_tools: Option<AllowedTools>,
    /// The model that the skill names.
    pub model: Option<String>,
    /// The id of the activation; empty if an earlier process made it.
    pub activation_id: String,
    /// The names of the skills that led to this one, the outermost first.
    pub activation_chain: Vec<String>,
    /// The time of the activation.
    pub since: Timestamp,
}

impl ActiveSkill {
    pub(crate) fn of(skill: &Skill, request: &SkillActivationRequest) -> Self {
        Self {
            name: skill.name.clone(),
            allowed_tools: skill.allowed_tools.clone(),
            model: skill.model.clone(),
            activation_id: request.activation_id.clone(),
            activation_chain: request.activation_chain.clone(),
            since: request.at,
        }
    }

    /// Returns the mark of an activation.
    pub(crate) fn mark(skill: &Skill, request: &SkillActivationRequest) -> ToolMark {
        let seen = json!({
            "skill": skill.name,
            "run": request.run,
            "chain": request.activation_chain,
            "tools": skill.allowed_tools.as_ref().map(AllowedTools::rules),
            "model": skill.model,
        });
        ToolMark::new(ACTIVATE_SKILL, seen)
    }

    /// Reads the content of a mark: the run and the active skill. Rules that cannot be read allow nothing. Returns
    /// `None` if the mark names no skill.
    pub(crate) fn of_mark(seen: &Json) -> Option<(RunId, Self)> {
        let text = |key: &str| seen.get(key).and_then(Json::as_str);
        let texts = |list: &Json| -> Vec<String> {
            let items = list.as_array().into_iter().flatten().filter_map(Json::as_str);
            items.filter(|text| !text.contains(REDACTED)).map(str::to_owned).collect()
        };
        let rules = seen.get("tools").filter(|tools| !tools.is_null()).map(texts);
        let active = Self {
            name: text("skill")?.to_owned(),
            allowed_tools: rules.map(|rules| AllowedTools::new(rules.iter().map(String::as_str))),
            model: text("model").map(str::to_owned),
            activation_chain: seen.get("chain").map(texts).unwrap_or_default(),
            ..Self::default()
        };
        Some((RunId::new(text("run").unwrap_or_default()), active))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_mark_with_rules_that_are_not_understood_allows_nothing_more() {
        let rules = |seen: Json| {
            let (_, active) = ActiveSkill::of_mark(&seen)?;
            Some(active.allowed_tools.map(|tools| tools.rules().to_vec()))
        };
        assert_eq!(rules(json!({ "skill": "a", "tools": null })), Some(None));
        assert_eq!(rules(json!({ "skill": "a", "tools": "read_file" })), Some(Some(Vec::new())));
        let redacted = json!({ "skill": "a", "tools": ["bash(curl ****:*)", "read_file"] });
        assert_eq!(rules(redacted), Some(Some(vec!["read_file".to_owned()])));
        assert_eq!(rules(json!({ "tools": null })), None);
    }
}
