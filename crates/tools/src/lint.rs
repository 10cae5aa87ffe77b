//! Whether a tool says enough of itself for a model to use it well.

use archon_types::ToolSpec;

/// Below this many characters a description cannot say what, when and with what.
const SHORT: usize = 20;

/// What a model will miss in the spec, a sentence each; empty if nothing.
///
/// A registry refuses a tool that has no description; what else is missing it logs, and registers the tool all the same.
pub fn lint(spec: &ToolSpec) -> Vec<String> {
    let description = spec.description.trim();
    match description.chars().count() {
        0 => vec![format!("Tool '{}' has no description: a model cannot know when to call it", spec.name)],
        n if n < SHORT => vec![format!(
            "The description of tool '{}' is short ({n} characters): say what it does, when to use it, what goes in \
             and what comes out",
            spec.name
        )],
        _ => Vec::new(),
    }
}
