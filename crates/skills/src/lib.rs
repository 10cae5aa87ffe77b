//! Loads skills and agent files. A skill is a folder with instructions and files, which an agent loads when a task
//! needs them, in the format of <https://agentskills.io>. An agent file is a Markdown file with YAML that describes
//! an agent.
//!
//! Use this crate alone to load, check and list skills for an agent loop of your own; it needs no agent.
//!
//! *Invariants*
//!
//! - A conversation gets the instructions of a skill once.
//! - Activating another skill never allows a call that was not allowed before. The limits of an active skill hold
//!   until its run ends, even if the file of the skill is changed or deleted.
//! - Nothing outside of a skill's folder is read, and no symbolic link below the given folders is followed.
//! - A project's skill is loaded, and its instructions are read, only while its folder has the hash that a person
//!   trusted. The same holds for a project's agent file.
//! - An agent file can only take tools away from those of the main agent.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_skills::{ActivateSkill, SkillConversations, SkillSet};
//! use archon_types::Tool;
//!
//! let skills = tempfile::tempdir()?;
//! let folder = skills.path().join("release-notes");
//! std::fs::create_dir(&folder)?;
//! let text = "---\nname: release-notes\ndescription: Writes release notes.\n---\nRead the changelog first.\n";
//! std::fs::write(folder.join("SKILL.md"), text)?;
//!
//! let set = Arc::new(SkillSet::load([skills]));
//! let system_prompt = set.format_for_prompt();
//! assert!(system_prompt.contains("<name>release-notes</name>"));
//! let tool = ActivateSkill::new(Arc::new(SkillConversations::new(set))).unwrap();
//! assert_eq!(tool.spec().parameters["properties"]["name"]["enum"][0], "release-notes");
//! # Ok::<(), std::io::Error>(())
//! ```

// | concept | file |
// |---|---|
// | `SkillSet`, skills by name | `set.rs` |
// | `Skill`, its three levels | `skill.rs` |
// | the list for the system prompt | `prompt.rs`, `xml.rs` |
// | `SkillPlaces`, the folders of people and projects | `places.rs` |
// | the search for skills below a folder | `scan.rs` |
// | `SkillTrust`, trust in the skills of a project | `trust.rs` |
// | the files of a skill, and `folder_hash` | `folder.rs` |
// | `SKILL.md`: its two parts, its fields, its YAML | `skill_file.rs`, `fields.rs`, `yaml.rs`, `tabs.rs` |
// | `validate`, the strict validation | `validate.rs`, `limits.rs` |
// | `AllowedTools`, the tools of a skill | `allowed_tools.rs` |
// | requests and results of an activation | `activation.rs` |
// | the checks of an activation; `ActiveSkill` with its mark in the log | `activation_steps.rs`, `active_skill.rs` |
// | `SkillConversation`, the active skills of a conversation | `conversation.rs` |
// | `SkillConversations`, the conversations of an agent | `conversations.rs` |
// | `ActivateSkill`, the tool of the model | `tool.rs` |
// | `SkillBound`, the limits of active skills for a run | `bound.rs` |
// | `AgentFiles` in `AgentFilePlaces`, agents from files | `agents.rs`, `agents/places.rs` |
// | `AgentFile`, its fields and the tools that it keeps | `agents/file.rs`, `agents/fields.rs`, `agents/tool_names.rs` |
// | `AgentFileProblem`, a problem with file and line | `agents/problem.rs` |

mod activation;
mod activation_steps;
mod active_skill;
mod agents;
mod allowed_tools;
mod bound;
mod conversation;
mod conversations;
mod error;
mod fields;
mod folder;
mod limits;
mod places;
mod problem;
mod prompt;
mod scan;
mod set;
mod skill;
mod skill_file;
mod tabs;
mod tool;
mod trust;
mod validate;
mod xml;
mod yaml;

pub use activation::{
    ACTIVATE_SKILL, SkillActivationRequest, SkillActivationResult, SkillActivator, SkillMessage,
    SkillMessageKind, SkillModifier, SkillVisibility,
};
pub use active_skill::ActiveSkill;
pub use agents::{AgentFile, AgentFilePlaces, AgentFileProblem, AgentFiles};
pub use allowed_tools::{AllowedTools, RuleMatcher};
pub use bound::SkillBound;
pub use conversation::{SkillConversation, SkillMetrics};
pub use conversations::SkillConversations;
pub use error::SkillError;
pub use folder::folder_hash;
pub use places::SkillPlaces;
pub use problem::{SkillProblem, SkillProblemKind};
pub use set::SkillSet;
pub use skill::{Skill, SkillLevel};
pub use tool::{ActivateSkill, SKILL_METADATA};
pub use trust::{SkillTrust, UntrustedFile, UntrustedSkill};
pub use validate::validate;
