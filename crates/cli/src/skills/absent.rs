//! The replacement without the feature `skills`: there are no skills.

use archon::ArchonBuilder;
#[cfg(feature = "chat")]
use archon::types::{RunId, SessionId};

#[cfg(feature = "chat")]
use super::{OfferedSkill, SkillCall};
#[cfg(feature = "chat")]
use crate::failure::Failure;
use crate::{app::App, project_parts::ProjectPart};

/// The skills of an agent: none.
#[derive(Clone, Default)]
pub(crate) struct Skills;

impl Skills {
    pub(crate) fn load(_: &App) -> Self {
        Self
    }

    /// Returns false: there is no tool that activates skills.
    pub(crate) fn has_tool(&self, _: &str) -> bool {
        false
    }
}

#[cfg(feature = "chat")]
impl Skills {
    /// Fails: there are no skills.
    pub(crate) fn activate(&self, _: &SessionId, call: &SkillCall) -> Result<String, Failure> {
        Err(Failure::usage(format!("there is no skill {:?}", call.name), "build with `--features skills`"))
    }

    /// Does nothing: no skill is active.
    pub(crate) fn move_to_run(&self, _: &SessionId, _: Option<&RunId>) {}
}

pub(crate) fn with_skills(builder: ArchonBuilder, _: &Skills, _: Option<&str>) -> ArchonBuilder {
    builder
}

pub(crate) fn with_skill_tool(builder: ArchonBuilder, _: &Skills) -> ArchonBuilder {
    builder
}

#[cfg(feature = "chat")]
pub(crate) fn offered(_: &App) -> Vec<OfferedSkill> {
    Vec::new()
}

#[cfg(feature = "chat")]
pub(crate) fn warnings(_: &App) -> Vec<String> {
    Vec::new()
}

pub(crate) fn waiting(_: &App) -> Vec<ProjectPart> {
    Vec::new()
}

pub(crate) fn findings(_: &App) -> Vec<(bool, String)> {
    Vec::new()
}
