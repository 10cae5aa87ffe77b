//! Arguments that cannot work, set right once where the tool is sure how: what the options allow, each told to the model
//! and logged.

use archon_types::{Correction, Json, ToolResult, metadata};

use crate::{execute::contain, guard::Inspection, log};

/// What to call the tool with instead of arguments that were refused, if that may be done.
pub(crate) fn of(inspection: &Inspection<'_>, refused: &ToolResult) -> Option<Correction> {
    let (tool, options) = (inspection.tool.as_ref()?, inspection.options);
    let kind = refused.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str)?;
    // What a person wrote stands as it is.
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

/// The model learns that its arguments were changed, and how.
pub(crate) fn tell(correction: &Correction, result: &mut ToolResult) {
    let text = format!("[The arguments of this call were corrected: {}]", correction.what);
    result.content.insert(0, text.into());
    result.metadata.insert(metadata::CORRECTION.to_owned(), correction.kind.into());
}

/// The kinds of refusal that are about the arguments.
const CORRECTABLE: [&str; 2] = ["validation_error", "invalid_parameters"];
