//! Skills: instructions of the person and of a project, which the agent loads when a task needs them. Those of a
//! project are there after a person agreed to them.
//!
//! Without the feature `skills` there are none.

#[cfg(not(feature = "skills"))]
mod absent;
#[cfg(all(feature = "chat", feature = "skills"))]
mod by_person;
#[cfg(feature = "skills")]
mod found;
#[cfg(feature = "skills")]
mod of_agent;

#[cfg(not(feature = "skills"))]
pub(crate) use absent::{Skills, findings, waiting, with_skill_tool, with_skills};
#[cfg(all(feature = "chat", not(feature = "skills")))]
pub(crate) use absent::{offered, warnings};
#[cfg(all(feature = "chat", feature = "skills"))]
pub(crate) use by_person::offered;
#[cfg(feature = "skills")]
pub(crate) use found::{discover, findings, waiting, warnings};
#[cfg(feature = "skills")]
pub(crate) use of_agent::{Skills, with_skill_tool, with_skills};

/// A skill that a person can activate.
#[cfg(feature = "chat")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedSkill {
    /// The name, without the `/`.
    pub(crate) name: String,
    /// The description, one line.
    pub(crate) about: String,
}

/// The activation of a skill by a person: `/NAME WORDS`.
#[cfg(feature = "chat")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillCall {
    /// The name of the skill.
    pub(crate) name: String,
    /// The words that the skill is for; may be empty.
    pub(crate) words: String,
}
