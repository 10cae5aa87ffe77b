//! Guard: the arguments must match the tool's schema. If not, the model reads all problems at once.

use crate::{
    guard::{Guard, Inspection, Verdict},
    output, violations,
};

pub(crate) struct MatchesSchema;

impl Guard for MatchesSchema {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        let arguments = inspection.arguments();
        if arguments.is_object() && tool.validator.is_valid(arguments) {
            return Verdict::Pass;
        }
        let report = violations::report(&tool.spec, &tool.validator, arguments, inspection.argument_bytes);
        let mut result = output::error_of_type("validation_error", report.text);
        if let Some(suggestion) = report.suggestion {
            result = result.with_metadata("suggestion", suggestion);
        }
        Verdict::Refuse(Box::new(result))
    }
}
