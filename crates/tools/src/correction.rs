//! Corrects refused arguments once, if the tool offers a correction and the options allow it. A note tells
//! the model, and the correction is logged.

use archon_types::{Correction, ToolResult, metadata};

use crate::{execute::contain, guard::Inspection, log, output::error_type};

/// Returns corrected arguments for a refused call, if a correction is allowed.
pub(crate) fn of(inspection: &Inspection<'_>, refused: &ToolResult) -> Option<Correction> {
    let (tool, options) = (inspection.tool.as_ref()?, inspection.options);
    let kind = error_type(refused)?;
    // Arguments that a person edited are not corrected.
    let may = CORRECTABLE.contains(&kind) && inspection.edited.is_none() && !options.corrections.is_empty();
    if !may {
        return None;
    }
    let correction =
        contain(|| tool.tool.correction(inspection.arguments(), inspection.run)).ok().flatten()?;
    if !options.corrections.contains(correction.kind) {
        return None;
    }
    log::corrected(inspection.call, inspection.run.run.as_str(), &correction);
    Some(correction)
}

/// Adds a note about the correction to the result for the model.
pub(crate) fn add_note(correction: &Correction, result: &mut ToolResult) {
    let text = format!("[The arguments of this call were corrected: {}]", correction.what);
    result.content.insert(0, text.into());
    result.metadata.insert(metadata::CORRECTION.to_owned(), correction.kind.into());
}

/// The error types of refusals that corrected arguments can avoid.
const CORRECTABLE: [&str; 2] = ["validation_error", "invalid_parameters"];
