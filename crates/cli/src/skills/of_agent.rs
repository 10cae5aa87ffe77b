//! The skills of an agent: the list in its system text, the tool that activates a skill, and the limits of active
//! skills.

use std::sync::Arc;

use archon::{
    ArchonBuilder,
    skills::{
        ACTIVATE_SKILL, ActivateSkill, RuleMatcher, SkillActivationRequest, SkillActivator,
        SkillConversations,
    },
    tools::{FnGuard, GuardedCall, Permissions},
    types::{RunId, SessionId, Subject},
};

use super::{SkillCall, found};
use crate::{app::App, failure::Failure};

/// The skills of an agent and of its conversations.
#[derive(Clone)]
pub(crate) struct Skills(Arc<SkillConversations>);

/// Compares calls with the rules of a skill as with those of the settings.
struct Rules;

impl RuleMatcher for Rules {
    fn allows(&self, rules: &[&str], tool: &str, subject: &Subject) -> bool {
        let rules = Permissions::parse([], [], rules.iter().copied());
        rules.is_ok_and(|rules| rules.is_trusted(tool, subject))
    }
}

impl Skills {
    /// Loads the skills, and writes a warning about each problem.
    pub(crate) fn load(app: &App) -> Self {
        let set = found::discover(app);
        found::warnings_of(app, &set).iter().for_each(|warning| app.output.warn(warning));
        Self(Arc::new(SkillConversations::new(Arc::new(set)).with_matcher(Arc::new(Rules))))
    }

    /// Returns true if this is the name of the tool that activates skills, and there is one that the model sees.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        name == ACTIVATE_SKILL && self.0.skills().visible().next().is_some()
    }

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

    /// Refuses a call that an active skill does not allow.
    fn check(&self, call: &GuardedCall<'_>) -> Result<(), String> {
        let conversation = self.0.of(&call.run.session);
        let blocker = |run: &RunId| conversation.blocker(run, &call.tool.name, call.subject);
        match blocker(&call.run.run).or_else(|| blocker(&any_run())) {
            None => Ok(()),
            Some(skill) => Err(format!("The active skill `{}` does not allow this tool.", skill.name)),
        }
    }
}

/// Returns the id of the run of skills whose run has not begun.
fn any_run() -> RunId {
    RunId::new("")
}

/// Gives an agent the skills: the list behind its system text, the tool, and the limits of active skills. Without
/// skills, the agent stays as it is.
pub(crate) fn with_skills(builder: ArchonBuilder, skills: &Skills, system: Option<&str>) -> ArchonBuilder {
    let list = skills.0.skills().format_for_prompt();
    let builder = with_skill_tool(builder, skills);
    match list.is_empty() {
        true => builder,
        false => builder.system(system.map_or_else(|| list.clone(), |system| format!("{system}\n\n{list}"))),
    }
}

/// Gives an agent the tool and the limits. The system text of a run that exists has the list already.
pub(crate) fn with_skill_tool(builder: ArchonBuilder, skills: &Skills) -> ArchonBuilder {
    let builder = with_limits(builder, skills);
    match ActivateSkill::new(skills.0.clone()) {
        Some(tool) => builder.tool(tool),
        None => builder,
    }
}

fn with_limits(builder: ArchonBuilder, skills: &Skills) -> ArchonBuilder {
    if skills.0.skills().is_empty() {
        return builder;
    }
    let skills = skills.clone();
    builder.guard(FnGuard::new(move |call| skills.check(call)))
}
