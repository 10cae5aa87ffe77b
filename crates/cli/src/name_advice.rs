//! The advice for a name that does not exist.

use archon::types::nearest;

/// Returns the advice for an unknown name: the nearest of the known names, and all of them.
pub(crate) fn name_advice<'a>(
    name: &str,
    kind: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let meant = nearest(name, known.clone()).map(|meant| format!("did you mean {meant}? "));
    let known = known.collect::<Vec<_>>().join(", ");
    format!("{}the {kind} are: {known}", meant.unwrap_or_default())
}
