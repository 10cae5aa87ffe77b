//! Agents from agent files: the files in the person's home folder, and the files of the project that the person agreed
//! to. The agents are added to those of the settings, so that every command treats both alike.
//!
//! Without the feature `skills`, no agent file is read.

#[cfg(not(feature = "skills"))]
mod absent;
#[cfg(feature = "skills")]
mod found;

#[cfg(not(feature = "skills"))]
pub(crate) use absent::{
    add, check_agreed, check_model, findings, has_tool, list_untrusted, path, place_of_model, replace,
    system_prompt, unknown_tools, waiting,
};
#[cfg(feature = "skills")]
pub(crate) use found::{
    add, check_agreed, check_model, findings, has_tool, list_untrusted, path, place_of_model, replace,
    system_prompt, unknown_tools, waiting,
};
