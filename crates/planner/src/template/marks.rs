//! The names inside templates and loops, and the prefix that marks names from outside a template.

use std::collections::HashSet;

use archon_types::{ForEach, Json, SubTask};

use crate::{
    condition::Condition,
    references::{Reference, references},
};

/// Prefix of references to subtasks outside a template, because the template's own steps may have the
/// same names.
pub(super) const OUTER: &str = "outer__";

/// Returns the name of a reference without the prefix [`OUTER`]: the name in the plan around the template.
pub(super) fn unmarked(head: &str) -> &str {
    head.strip_prefix(OUTER).unwrap_or(head)
}

/// Returns the references in the arguments and in the condition of a step.
pub(super) fn references_in(arguments: Option<&Json>, condition: Option<&str>) -> Vec<Reference> {
    let mut found = arguments.map(references).unwrap_or_default();
    if let Some(Ok(condition)) = condition.map(Condition::parse) {
        found.extend(condition.references());
    }
    found
}

/// Returns the ids and the `save_as` names of the steps of a loop.
pub(super) fn names_of(each: &ForEach) -> HashSet<String> {
    let names = |step: &SubTask| [Some(step.id.to_string()), step.rules.save_as.clone()];
    each.steps.iter().flat_map(names).flatten().collect()
}
