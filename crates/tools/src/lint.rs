//! Checks that a tool's description is good enough for a model.

use archon_types::ToolSpec;

/// Minimum length of a useful description, in characters.
const SHORT: usize = 20;

/// Returns the problems of a tool's description, one sentence for each; empty if there are none. A description with
/// fewer than 20 characters is a problem.
///
/// A registry refuses a tool without a description. It logs other problems as warnings.
pub fn lint(spec: &ToolSpec) -> Vec<String> {
    let description = spec.description.trim();
    match description.chars().count() {
        0 => vec![format!("Tool '{}' has no description: a model cannot know when to call it", spec.name)],
        n if n < SHORT => vec![format!(
            "The description of tool '{}' is short ({n} characters): describe what the tool does, when to use it, \
             its arguments and its result",
            spec.name
        )],
        _ => Vec::new(),
    }
}
