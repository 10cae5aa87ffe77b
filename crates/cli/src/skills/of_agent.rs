//! The skills of an agent: the list in its system text, the tool that activates a skill, and the limits of active
//! skills.

use std::sync::Arc;

use archon::{
    ArchonBuilder,
    skills::{ACTIVATE_SKILL, ActivateSkill, RuleMatcher, SkillConversations},
    tools::{FnGuard, GuardedCall, Permissions},
    types::{RunId, Subject},
};

use super::found;
use crate::app::App;

/// The skills of an agent and of its conversations.
#[derive(Clone)]
pub(crate) struct Skills(pub(super) Arc<SkillConversations>);

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
pub(super) fn any_run() -> RunId {
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
