//! Skills that a person activates in a conversation, with `/` and the name.

use std::sync::Arc;

use archon::{
    skills::{Skill, SkillActivationRequest, SkillActivator},
    types::{RunId, SessionId},
};

use super::{
    OfferedSkill, SkillCall, Skills,
    found::{SHOWN, discover},
    of_agent::any_run,
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

impl Skills {
    /// Activates a skill for a person, and returns the text that the model reads. Until [`Self::move_to_run`], its limits
    /// hold for all runs of the session, because the next one may begin at any time.
    ///
    /// # Errors
    /// [`Failure`] if there is no such skill, or it cannot be read or has changed.
    pub(crate) fn activate(&self, session: &SessionId, call: &SkillCall) -> Result<String, Failure> {
        let conversation = self.0.of(session);
        // Instructions of an earlier message may have been compacted since.
        conversation.forget_instructions(&call.name);
        let request = SkillActivationRequest::new(&call.name)
            .with_activator(SkillActivator::Person)
            .with_conversation_id(session.to_string())
            .with_user_request(&call.words)
            .with_run(any_run());
        let result = conversation.activate(&request);
        match result.error {
            None => Ok(result.text_for_model()),
            Some(e) => {
                let advice =
                    "list the skills with /skills, and agree to changed ones with `archon skills trust`";
                Err(Failure::failed(e.to_string(), advice))
            }
        }
    }

    /// Lets the skills that a person activated be those of this run; of no run if the message was not sent.
    pub(crate) fn move_to_run(&self, session: &SessionId, run: Option<&RunId>) {
        let (conversation, waiting) = (self.0.of(session), any_run());
        for active in conversation.active(&waiting) {
            if let Some(run) = run {
                conversation.restore(&SkillActivationRequest::new(&active.skill.name).with_run(run.clone()));
            }
        }
        conversation.end_run(&waiting);
    }
}
