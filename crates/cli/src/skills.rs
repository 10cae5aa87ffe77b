//! Skills: instructions of the person and of a project, which the agent loads when a task needs them. The skills of a
//! project are offered only after a person agreed to them.
//!
//! Without the feature `skills`, there are no skills.

#[cfg(not(feature = "skills"))]
mod absent;
#[cfg(all(feature = "chat", feature = "skills"))]
mod by_person;
#[cfg(feature = "skills")]
mod found;

#[cfg(all(feature = "chat", not(feature = "skills")))]
pub(crate) use absent::{Skills, offered, warnings};
#[cfg(not(feature = "skills"))]
pub(crate) use absent::{findings, waiting, with_recorded_skills, with_skills};
#[cfg(all(feature = "chat", feature = "skills"))]
pub(crate) use by_person::{Skills, offered};
#[cfg(feature = "skills")]
pub(crate) use found::{discover, findings, waiting, warnings, with_recorded_skills, with_skills};

/// The tool with which a model loads a skill. A person cannot choose it by name.
pub(crate) const ACTIVATE_SKILL: &str = "activate_skill";

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

/// A skill that a person activates with a message, for the run that receives the message.
#[cfg(feature = "chat")]
#[derive(Clone, Debug)]
pub(crate) struct BroughtSkill {
    /// The instructions and the limits, as the model reads them.
    pub(crate) text: String,
    /// The mark that the message gets, so that the log keeps the limits of the skill.
    pub(crate) mark: archon::types::ToolMark,
}
