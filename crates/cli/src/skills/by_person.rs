//! Skills that a person activates in a conversation, with `/` and the name.

use std::sync::Arc;

use archon::{
    Archon,
    skills::{Skill, SkillActivationRequest, SkillActivator, SkillConversations},
};

use super::{
    BroughtSkill, OfferedSkill, SkillCall,
    found::{SHOWN, discover},
};
use crate::{app::App, failure::Failure, text::one_line};

/// Returns the skills that a person can activate, in the order of their names.
pub(crate) fn offered(app: &App) -> Vec<OfferedSkill> {
    let offer = |skill: &Arc<Skill>| OfferedSkill {
        name: skill.name.clone(),
        about: one_line(&skill.description, SHOWN),
    };
    discover(app).iter().map(offer).collect()
}

/// The skills of a conversation's agent, which a person can activate.
#[derive(Clone)]
pub(crate) struct Skills(Arc<SkillConversations>);

impl Skills {
    /// Returns the skills of an agent. An agent without tools has no skills, and no calls that a skill could limit. For
    /// such an agent, all skills are returned, because its model can still read their instructions.
    pub(crate) fn of(app: &App, agent: &Archon) -> Self {
        let skills = agent.skills().cloned();
        Self(skills.unwrap_or_else(|| Arc::new(SkillConversations::new(Arc::new(discover(app))))))
    }

    /// Returns the text and the mark with which a message activates a skill in the run that receives the message.
    ///
    /// # Errors
    /// [`Failure`] if there is no such skill, or it cannot be read or has changed.
    pub(crate) fn activate(&self, call: &SkillCall) -> Result<BroughtSkill, Failure> {
        let request = SkillActivationRequest::new(&call.name).with_activator(SkillActivator::Person);
        let result = self.0.for_message(&request.with_user_request(&call.words));
        let text = result.text_for_model();
        match (result.mark, result.error) {
            (Some(mark), None) => Ok(BroughtSkill { text, mark }),
            (_, error) => {
                let what = error.map_or_else(|| format!("{} is not active", call.name), |e| e.to_string());
                let advice =
                    "list the skills with /skills, and agree to changed ones with `archon skills trust`";
                Err(Failure::failed(what, advice))
            }
        }
    }
}
