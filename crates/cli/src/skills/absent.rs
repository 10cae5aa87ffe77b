//! The replacement without the feature `skills`: there are no skills.

#[cfg(feature = "chat")]
use archon::Archon;
use archon::{ArchonBuilder, types::RunConfig};

#[cfg(feature = "chat")]
use super::{BroughtSkill, OfferedSkill, SkillCall};
#[cfg(feature = "chat")]
use crate::failure::Failure;
use crate::{app::App, project_parts::ProjectPart};

/// The skills that a person activates: none.
#[cfg(feature = "chat")]
#[derive(Clone, Default)]
pub(crate) struct Skills;

#[cfg(feature = "chat")]
impl Skills {
    pub(crate) fn of(_: &App, _: &Archon) -> Self {
        Self
    }

    /// Fails: there are no skills.
    pub(crate) fn activate(&self, call: &SkillCall) -> Result<BroughtSkill, Failure> {
        Err(Failure::usage(format!("there is no skill {:?}", call.name), "build with `--features skills`"))
    }
}

pub(crate) fn with_skills(_: &App, builder: ArchonBuilder) -> ArchonBuilder {
    builder
}

pub(crate) fn with_recorded_skills(_: &App, builder: ArchonBuilder, _: &RunConfig) -> ArchonBuilder {
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
