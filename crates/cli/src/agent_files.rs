//! Agents from files: those in the person's home folder, and those of the project to which the person has agreed. They
//! become agents of the settings, so that every command treats the two alike.
//!
//! Without the feature `skills` there are none.

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
